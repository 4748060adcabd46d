"""Text to pieces: byte-level BPE, WordPiece and Unigram, from published files."""

import json
import pickle
import shutil

import numpy as np
import pytest

from spacy_luke.errors import CheckpointError, VocabError
from spacy_luke.vocab.files import write_pieces
from spacy_luke.vocab.pieces import PieceTokenizer

transformers = pytest.importorskip("transformers")

KINDS = ["luke_dir", "bert_dir", "xlmr_dir"]
SPECIAL_STRINGS = [
    "<mask>", "</s>", "<s>", "<pad>", "<unk>", "<ent>", "<ent2>",
    "[MASK]", "[CLS]", "[SEP]", "[PAD]", "[UNK]",
]  # fmt: skip
TEXTS = [
    "Tokyo is the capital of Japan.",
    " Beyoncé sang in Paris, but didn't dance!",
    "JAPAN 1877-2020 ???",
    "zebra QUARTZ jumps",
    "東京 👩‍👩‍👧 cafe\u0301 שלום",
]


@pytest.fixture(params=KINDS)
def path(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def tokenizer(path):
    return PieceTokenizer.from_directory(path)


@pytest.fixture
def copy_of(tmp_path):
    """A copy of a checkpoint's tokenizer files, to damage."""

    def copy(path):
        for file in path.iterdir():
            if file.suffix in (".json", ".txt"):
                shutil.copy(file, tmp_path)
        return tmp_path

    return copy


def ids_of(tokenizer, text):
    return tokenizer.encode_parts([text])[0][0].tolist()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("fixture", "reference"),
    [("luke_dir", "RobertaTokenizer"), ("bert_dir", "BertTokenizer"), ("xlmr_dir", "")],
)
def test_pieces_are_those_of_the_reference(fixture, reference, text, request):
    path = request.getfixturevalue(fixture)
    if reference:
        expected = getattr(transformers, reference).from_pretrained(path)
    else:
        file = str(path / "tokenizer.json")
        expected = transformers.PreTrainedTokenizerFast(tokenizer_file=file)
    ours = ids_of(PieceTokenizer.from_directory(path), text)
    assert ours == expected(text, add_special_tokens=False)["input_ids"]


def test_special_pieces_are_found_by_name(luke_dir, bert_dir, xlmr_dir):
    luke = PieceTokenizer.from_directory(luke_dir)
    assert (luke.cls_id, luke.pad_id, luke.sep_id, luke.unk_id, luke.mask_id) == (0, 1, 2, 3, 4)
    assert (luke.id_of("<ent>"), luke.id_of("<ent2>")) == (len(luke) - 2, len(luke) - 1)
    bert = PieceTokenizer.from_directory(bert_dir)
    lines = (bert_dir / "vocab.txt").read_text(encoding="utf8").split("\n")
    roles = (bert.cls_id, bert.sep_id, bert.mask_id, bert.pad_id, bert.unk_id)
    assert [lines[i] for i in roles] == ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"]
    xlmr = PieceTokenizer.from_directory(xlmr_dir)
    assert (xlmr.cls_id, xlmr.pad_id, xlmr.sep_id, xlmr.unk_id) == (0, 1, 2, 3)
    assert xlmr.mask_id == xlmr.id_of("<mask>") == len(xlmr) - 1
    assert xlmr.id_of("no such piece") is None


@pytest.mark.parametrize("string", SPECIAL_STRINGS)
def test_special_strings_in_text_are_ordinary_text(tokenizer, string):
    special = {*tokenizer.special_ids.values(), *tokenizer.added.values()} - {tokenizer.unk_id}
    for text in (string, f"Tokyo {string} Japan", f"Tokyo{string}{string}Japan"):
        ids, offsets = tokenizer.encode_parts([text])[0]
        assert len(ids) > 1
        assert not special & set(ids.tolist())
        assert offsets[:, 1].max() == len(text)
        assert tokenizer.encode_words([text])[0].tolist() == ids.tolist()


def test_hiding_special_pieces_changes_no_other_segmentation(xlmr_dir):
    """Unknown characters are scored by the lowest score there is, which must stay as it was."""
    tokenizer = PieceTokenizer.from_directory(xlmr_dir)
    file = str(xlmr_dir / "tokenizer.json")
    reference = transformers.PreTrainedTokenizerFast(tokenizer_file=file)
    for text in ("Tok¤yo", "Uni¤versity¤of", "¤¤", "the¤ capital,¤"):
        assert ids_of(tokenizer, text) == reference(text, add_special_tokens=False)["input_ids"]


def test_words_are_encoded_like_parts_and_remembered(tokenizer):
    parts = ["Tokyo", " Japan", "", "Tokyo", " ", "-"]
    for _ in range(2):
        words = tokenizer.encode_words(parts)
        for word, (ids, offsets) in zip(words, tokenizer.encode_parts(parts)):
            assert word.tolist() == ids.tolist()
            assert offsets.shape == (len(ids), 2)


def test_a_full_cache_starts_anew(tokenizer, monkeypatch):
    monkeypatch.setattr("spacy_luke.vocab.pieces._CACHE_SIZE", 3)
    first = tokenizer.encode_words(["Tokyo", "Japan", "Paris"])
    second = tokenizer.encode_words(["London", "Tokyo", "Kyoto"])
    assert np.array_equal(first[0], second[1])
    assert len(second) == 3


@pytest.mark.parametrize("through", ["dict", "pickle"])
def test_it_survives_saving(tokenizer, through):
    if through == "dict":
        values = json.loads(json.dumps(tokenizer.to_dict()))
        copy = PieceTokenizer.from_dict(values)
    else:
        copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.special_ids == tokenizer.special_ids
    assert (copy.added, len(copy)) == (tokenizer.added, len(tokenizer))
    assert copy.spaces_matter == tokenizer.spaces_matter
    for text in [*TEXTS, *SPECIAL_STRINGS]:
        assert ids_of(copy, text) == ids_of(tokenizer, text)


def test_only_byte_level_bpe_reads_a_leading_space(luke_dir, bert_dir, xlmr_dir):
    def matter(path):
        return PieceTokenizer.from_directory(path).spaces_matter

    assert [matter(p) for p in (luke_dir, bert_dir, xlmr_dir)] == [True, False, False]


def with_prefix_space(path, where):
    """Say ``add_prefix_space`` in one of the files, and the contrary in the other one."""
    if where != "tokenizer_config.json":
        write_pieces(PieceTokenizer.from_directory(path), path)
        data = json.loads((path / "tokenizer.json").read_text())
        data["pre_tokenizer"]["add_prefix_space"] = True
        if where == "a sequence":
            split = {"type": "Digits", "individual_digits": False}
            data["pre_tokenizer"] = {
                "type": "Sequence",
                "pretokenizers": [split, data["pre_tokenizer"]],
            }
        (path / "tokenizer.json").write_text(json.dumps(data))
    config = '{"add_prefix_space": true}' if where == "tokenizer_config.json" else "{}"
    (path / "tokenizer_config.json").write_text(config)


@pytest.mark.parametrize("where", ["tokenizer_config.json", "tokenizer.json", "a sequence"])
def test_a_prefix_space_is_known_and_left_to_the_caller(luke_dir, copy_of, tmp_path_factory, where):
    path = copy_of(luke_dir)
    with_prefix_space(path, where)
    plain, spaced = (PieceTokenizer.from_directory(p) for p in (luke_dir, path))
    assert spaced.prefix_space and not plain.prefix_space
    written = tmp_path_factory.mktemp("written")
    write_pieces(spaced, written)
    for copy in (
        spaced,
        PieceTokenizer.from_dict(spaced.to_dict()),
        pickle.loads(pickle.dumps(spaced)),
        PieceTokenizer.from_directory(written),
    ):
        assert copy.prefix_space
        assert ids_of(copy, "Tokyo") == ids_of(plain, "Tokyo") != ids_of(plain, " Tokyo")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        assert '"add_prefix_space": true' in (written / file).read_text()
    if where != "a sequence":
        theirs = transformers.RobertaTokenizerFast.from_pretrained(written)
        assert theirs("Tokyo", add_special_tokens=False)["input_ids"] == ids_of(plain, " Tokyo")


def test_of_two_files_tokenizer_config_has_its_way(luke_dir, copy_of):
    path = copy_of(luke_dir)
    with_prefix_space(path, "tokenizer.json")
    (path / "tokenizer_config.json").write_text('{"add_prefix_space": false}')
    assert not PieceTokenizer.from_directory(path).prefix_space


def test_case_is_as_configured(bert_dir, copy_of):
    uncased = PieceTokenizer.from_directory(bert_dir)
    assert ids_of(uncased, "TOKYO") == ids_of(uncased, "tokyo")
    (bert_copy := copy_of(bert_dir)).joinpath("tokenizer_config.json").write_text(
        '{"do_lower_case": false}'
    )
    cased = PieceTokenizer.from_directory(bert_copy)
    assert ids_of(cased, "TOKYO") != ids_of(cased, "tokyo")


def test_special_names_may_be_configured(luke_dir, copy_of):
    path = copy_of(luke_dir)
    config = {"mask_token": {"content": "<ent>"}, "sep_token": "<pad>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = PieceTokenizer.from_directory(path)
    assert tokenizer.mask_id == tokenizer.id_of("<ent>")
    assert tokenizer.sep_id == 1


def test_special_names_may_stand_in_their_own_file(luke_dir, copy_of):
    path = copy_of(luke_dir)
    named = {"mask_token": "<ent>", "sep_token": "<pad>", "additional_special_tokens": ["Ġthe"]}
    (path / "special_tokens_map.json").write_text(json.dumps(named))
    (path / "tokenizer_config.json").write_text('{"sep_token": "</s>", "mask_token": null}')
    tokenizer = PieceTokenizer.from_directory(path)
    assert tokenizer.mask_id == tokenizer.id_of("<ent>")
    assert tokenizer.sep_id == 2
    assert "Ġthe" in tokenizer.added


@pytest.mark.parametrize(
    ("fixture", "mask"), [("luke_dir", "<mask>"), ("bert_dir", "[MASK]"), ("xlmr_dir", "<mask>")]
)
def test_a_missing_special_piece_is_named(fixture, mask, request, copy_of):
    path = copy_of(request.getfixturevalue(fixture))
    for name in ("vocab.json", "vocab.txt", "tokenizer.json"):
        if (path / name).exists():
            text = (path / name).read_text(encoding="utf8")
            (path / name).write_text(text.replace(mask, "mäsk"), encoding="utf8")
    with pytest.raises(VocabError, match=r"mask piece") as error:
        PieceTokenizer.from_directory(path)
    assert mask in str(error.value)
    assert str(path) in str(error.value)


DAMAGE = [
    ("luke_dir", "vocab.json", "{"),
    ("luke_dir", "vocab.json", '{"a": "b"}'),
    ("luke_dir", "merges.txt", "#version: 0.2\nq q q q\n"),
    ("luke_dir", "added_tokens.json", "[1]"),
    ("luke_dir", "added_tokens.json", '{"<ent>": "last"}'),
    ("luke_dir", "tokenizer_config.json", "no json"),
    ("bert_dir", "vocab.txt", b"\xff\xfe"),
    ("xlmr_dir", "tokenizer.json", "{"),
    ("xlmr_dir", "tokenizer.json", "[]"),
    ("xlmr_dir", "tokenizer.json", "{}"),
    ("xlmr_dir", "tokenizer.json", '{"model": {"type": "Unigram", "vocab": [1, 2]}}'),
    ("xlmr_dir", "tokenizer.json", '{"model": {"type": "Other", "vocab": {}}}'),
    ("xlmr_dir", "tokenizer.json", '{"model": {"vocab": {}}, "added_tokens": [{}]}'),
]


@pytest.mark.parametrize(("fixture", "name", "content"), DAMAGE)
def test_a_damaged_file_is_one_clear_error(fixture, name, content, request, copy_of):
    path = copy_of(request.getfixturevalue(fixture))
    data = content if isinstance(content, bytes) else content.encode()
    (path / name).write_bytes(data)
    with pytest.raises((CheckpointError, VocabError)) as error:
        PieceTokenizer.from_directory(path)
    assert str(path) in str(error.value)


def test_no_tokenizer_says_what_was_expected(tmp_path):
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*merges\.txt.*vocab\.txt"):
        PieceTokenizer.from_directory(tmp_path)
