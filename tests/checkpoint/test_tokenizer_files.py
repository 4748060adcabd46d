"""Tokenizer files of published checkpoints, read and written."""

import json
import pickle
import shutil

import pytest

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.checkpoint.write_tokenizer import write_tokenizer
from spacy_luke.errors import CheckpointError, VocabError
from spacy_luke.vocab.pieces import PieceTokenizer

transformers = pytest.importorskip("transformers")

TEXTS = ["Tokyo is the capital of Japan.", " Beyoncé (1877) didn't dance!", "zebra 東京 👩‍👩‍👧"]


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


def edit(path, change):
    """Change the content of a JSON file."""
    data = json.loads(path.read_text(encoding="utf8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf8")


def with_prefix_space(path, where):
    """Say ``add_prefix_space`` in one of the files, and the contrary in the other one."""
    if where != "tokenizer_config.json":
        write_tokenizer(read_tokenizer(path), path)
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
    plain, spaced = (read_tokenizer(p) for p in (luke_dir, path))
    assert spaced.prefix_space and not plain.prefix_space
    written = tmp_path_factory.mktemp("written")
    write_tokenizer(spaced, written)
    for copy in (
        spaced,
        PieceTokenizer.from_dict(spaced.to_dict()),
        pickle.loads(pickle.dumps(spaced)),
        read_tokenizer(written),
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
    assert not read_tokenizer(path).prefix_space


def test_case_is_as_configured(bert_dir, copy_of):
    uncased = read_tokenizer(bert_dir)
    assert ids_of(uncased, "TOKYO") == ids_of(uncased, "tokyo")
    (bert_copy := copy_of(bert_dir)).joinpath("tokenizer_config.json").write_text(
        '{"do_lower_case": false}'
    )
    cased = read_tokenizer(bert_copy)
    assert ids_of(cased, "TOKYO") != ids_of(cased, "tokyo")


def test_special_names_may_be_configured(luke_dir, copy_of):
    path = copy_of(luke_dir)
    config = {"mask_token": {"content": "<ent>"}, "sep_token": "<pad>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = read_tokenizer(path)
    assert tokenizer.mask_id == tokenizer.id_of("<ent>")
    assert tokenizer.sep_id == 1


def test_special_names_may_stand_in_their_own_file(luke_dir, copy_of):
    path = copy_of(luke_dir)
    named = {"mask_token": "<ent>", "sep_token": "<pad>", "additional_special_tokens": ["Ġthe"]}
    (path / "special_tokens_map.json").write_text(json.dumps(named))
    (path / "tokenizer_config.json").write_text('{"sep_token": "</s>", "mask_token": null}')
    tokenizer = read_tokenizer(path)
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
        read_tokenizer(path)
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
        read_tokenizer(path)
    assert str(path) in str(error.value)


def test_no_tokenizer_says_what_was_expected(tmp_path):
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*merges\.txt.*vocab\.txt"):
        read_tokenizer(tmp_path)


def as_tokenizer_json(path):
    """The directory with a ``tokenizer.json``, which has precedence."""
    write_tokenizer(read_tokenizer(path), path)
    return path / "tokenizer.json"


def test_dropout_of_merges_is_off(luke_dir, copy_of):
    plain, path = read_tokenizer(luke_dir), copy_of(luke_dir)
    edit(as_tokenizer_json(path), lambda data: data["model"].update(dropout=0.5))
    dropping = read_tokenizer(path)
    for text in TEXTS * 5:
        assert ids_of(dropping, text) == ids_of(plain, text)


@pytest.mark.parametrize("name", ["vocab.json", "tokenizer.json"])
def test_an_id_of_several_pieces_is_refused(name, luke_dir, copy_of):
    path = copy_of(luke_dir)
    if name == "tokenizer.json":
        as_tokenizer_json(path)

    def repeat(data):
        vocab = data["model"]["vocab"] if "model" in data else data
        vocab[list(vocab)[50]] = 7

    edit(path / name, repeat)
    with pytest.raises(CheckpointError, match="same id 7") as error:
        read_tokenizer(path)
    assert str(path / name) in str(error.value)


def test_ids_stay_where_a_vocabulary_has_a_gap(luke_dir, copy_of, tmp_path_factory):
    path = copy_of(luke_dir)
    edit(path / "vocab.json", lambda vocab: vocab.pop("("))
    before = read_tokenizer(path)
    written = tmp_path_factory.mktemp("written")
    write_tokenizer(before, written)
    after = read_tokenizer(written)
    assert (after.added, len(after)) == (before.added, len(before))
    for text in TEXTS:
        assert ids_of(after, text) == ids_of(before, text)
    (written / "tokenizer.json").unlink()
    old, new = (transformers.RobertaTokenizer.from_pretrained(p) for p in (path, written))
    for text in TEXTS:
        assert new(text)["input_ids"] == old(text)["input_ids"]
        assert read_tokenizer(written).encode_parts([text])[0][0].tolist() == ids_of(before, text)


def test_ids_stay_where_a_line_is_repeated(bert_dir, copy_of, tmp_path_factory):
    path = copy_of(bert_dir)
    lines = (path / "vocab.txt").read_text(encoding="utf8").split("\n")
    lines[20] = lines[21]
    (path / "vocab.txt").write_text("\n".join(lines), encoding="utf8")
    before = read_tokenizer(path)
    written = tmp_path_factory.mktemp("written")
    write_tokenizer(before, written)
    assert len((written / "vocab.txt").read_text(encoding="utf8").split("\n")) == len(lines)
    old, new = (transformers.BertTokenizer.from_pretrained(p) for p in (path, written))
    for text in [*TEXTS, "London Kyoto universities"]:
        assert new(text)["input_ids"] == old(text)["input_ids"]
        assert ids_of(read_tokenizer(written), text) == ids_of(before, text)


def test_whole_words_only(luke_dir, copy_of, tmp_path_factory):
    """A kind of tokenizer that no class of transformers is named after."""
    path = copy_of(luke_dir)

    def whole_words(data):
        vocab = data["model"]["vocab"]
        data["model"] = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}

    edit(as_tokenizer_json(path), whole_words)
    (path / "tokenizer_config.json").unlink()
    before = read_tokenizer(path)
    written = tmp_path_factory.mktemp("written")
    write_tokenizer(before, written)
    after = read_tokenizer(written)
    for text in TEXTS:
        assert ids_of(after, text) == ids_of(before, text)


def nested(depth):
    kind = '{"type": "Sequence", "normalizers": ['
    return kind * depth + '{"type": "NFC"}' + "]}" * depth


FIELDS = {
    "no model": ("model", lambda data: data.update(model=None)),
    "pieces of another type": ("model.vocab", lambda data: data["model"].update(vocab=7)),
    "ids that are text": ("model.vocab", lambda data: data["model"]["vocab"].update(zz="7")),
    "a negative id": ("model.vocab", lambda data: data["model"]["vocab"].update(zz=-1)),
    "an id too large": ("tokenizer.json", lambda data: data["model"]["vocab"].update(zz=2**70)),
    "an added piece without a name": (
        "added_tokens",
        lambda data: data["added_tokens"].append({"id": 5}),
    ),
    "a pre-tokenizer of another type": (
        "pre_tokenizer",
        lambda data: data.update(pre_tokenizer={"type": "Sequence", "pretokenizers": None}),
    ),
    "an unknown piece without an id": (
        "unk_id",
        lambda data: data.update(model={"type": "Unigram", "unk_id": None, "vocab": [["a", 0.0]]}),
    ),
    "an unknown piece that is no piece": (
        "tokenizer.json",
        lambda data: data["model"].update(type="WordLevel", unk_token="nope"),
    ),
    "a damaged character map": (
        "tokenizer.json",
        lambda data: data.update(
            normalizer={"type": "Precompiled", "precompiled_charsmap": "/////w=="}
        ),
    ),
    "deep nesting": (
        "tokenizer.json",
        lambda data: data.update(normalizer=json.loads(nested(300))),
    ),
}


@pytest.mark.parametrize(("field", "change"), FIELDS.values(), ids=FIELDS)
def test_a_damaged_field_is_named(field, change, luke_dir, copy_of):
    path = copy_of(luke_dir)
    edit(as_tokenizer_json(path), change)
    with pytest.raises((CheckpointError, VocabError)) as error:
        read_tokenizer(path)
    assert str(path) in str(error.value)
    if not isinstance(error.value, VocabError):
        assert field in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "[" * 100_000),
        ("tokenizer.json", '{"normalizer": ' + nested(5_000) + "}"),
        ("tokenizer.json", '{"model": {"vocab": {"a": ' + "9" * 5_000 + "}}}"),
        ("vocab.json", '{"a": ' + "9" * 5_000 + "}"),
        ("added_tokens.json", '{"<ent>": ' + "9" * 5_000 + "}"),
        ("tokenizer_config.json", '{"additional_special_tokens": 3}'),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"a": {"content": "x"}}}'),
        ("special_tokens_map.json", '{"additional_special_tokens": 3}'),
        ("merges.txt", b"\xff\xfe\x00"),
    ],
)
def test_what_is_no_file_of_its_kind_is_named(name, content, luke_dir, copy_of):
    path = copy_of(luke_dir)
    (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CheckpointError) as error:
        read_tokenizer(path)
    assert str(path / name) in str(error.value)
