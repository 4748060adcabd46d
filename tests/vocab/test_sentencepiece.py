"""Unigram models from ``sentencepiece.bpe.model``: ids of mLUKE's and XLM-R's own tokenizers."""

import io
import json
import pickle
import random

import pytest

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.checkpoint.write_tokenizer import write_tokenizer
from spacy_luke.errors import CheckpointError, VocabError
from spacy_luke.vocab.pieces import PieceTokenizer

WHY = "comparing with the reference needs transformers, sentencepiece and protobuf"
transformers = pytest.importorskip("transformers", reason=WHY)
sentencepiece = pytest.importorskip("sentencepiece", reason=WHY)
proto = pytest.importorskip("sentencepiece.sentencepiece_model_pb2", reason=WHY)

FILE = "sentencepiece.bpe.model"
NORMAL, CONTROL, UNUSED, BYTE = 1, 3, 5, 6
CORPUS = [
    "Tokyo is the capital of Japan, and its largest city.",
    "The University of Tokyo was founded in 1877 by the government of Japan.",
    "Beyoncé sang in Paris, but the band didn't play their best songs.",
    "東京は日本の首都です。日本の首都は東京です。ガラスとパン。",
    "Tiếng Việt là ngôn ngữ của người Việt.",
    "مرحبا بالعالم، مرحبا بطوكيو",
    "שלום עולם",
]
# What tokenizer.json and the model itself agree about.
PLAIN = [
    "Tokyo is the capital of Japan.",
    "Beyoncé sang; cafe\u0301, naïve Zoë",
    "東京は日本の首都です。",
    "Ｔｏｋｙｏ　１２３（全角）",
    "the ﬁrst eﬀort ½ № ㍿ … ™",
    "👩‍👩‍👧 Tokyo 🎉🎉 ☃",
    "in  the   city    of",
    " Tokyo ",
    "\t Tokyo\nJapan\u00a0city\u3000of \n",
    "مرحبا بالعالم، ﷺ ﻻ",
    "שָׁלוֹם עולם",
    "한국어 각",
    "",
    " ",
    "\n\t ",
    "Tok¤yo ¤¤ ¤",
    "<ctl> [LINK] <0x41>",
]
# Where the character map has rules within a grapheme, or a space that is not written as one.
HARD = [
    "Tie\u0302\u0301ng Vie\u0323\u0302t",
    "ｶﾞﾗｽ ﾊﾟﾝ",
    "\u1100\u1161\u11a8",
    "ﬁ\u0301 w\u081f Å\u0323 ¨a´",
    "a\u2581b \u2581 c\u2581",
    "\u2581",
    "\x01\u200b\ufeff",
    "\u200bTokyo\u200b \u200bJapan\x01",
]
SPECIAL_STRINGS = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "<ent>", "<ent2>"]
SETTINGS = {
    "usual": {},
    "case folded": {"normalization_rule_name": "nmt_nfkc_cf"},
    "no rules": {"normalization_rule_name": "identity"},
    "pieces over spaces": {"split_by_whitespace": False, "vocab_size": 180},
    "no first space": {"add_dummy_prefix": False},
    "symbols": {"user_defined_symbols": ["[LINK]", "ｶﾞ", "apa"], "control_symbols": ["<ctl>"]},
    "own padding": {"control_symbols": ["<pad>", "<mask>"]},
}


def train(**settings):
    """The content of a model file."""
    usual = {"vocab_size": 150, "hard_vocab_limit": False, "character_coverage": 0.99}
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 3),
        model_writer=writer,
        minloglevel=2,
        **{**usual, **settings},
    )
    return writer.getvalue()


def mixed_texts(n=300):
    """Words, signs and white space at random."""
    words = [word for text in (*CORPUS, *PLAIN, *HARD) for word in text.split()]
    signs = [*"abcTk東は،-.,/", " ", " ", "  ", "\t", "\u3000", "¤", "e\u0302\u0301", "ﾊﾟ", "\u0301"]
    pick = random.Random(0)
    both = (words, signs)
    return [
        "".join(pick.choice(pick.choice(both)) for _ in range(pick.randint(1, 9))) for _ in range(n)
    ]


@pytest.fixture(scope="module")
def raw():
    return train()


@pytest.fixture
def write(tmp_path):
    """Writes a directory as published, and returns it."""

    def write(raw, **files):
        (tmp_path / FILE).write_bytes(raw)
        for name, value in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
        return tmp_path

    return write


@pytest.fixture
def xlmr(write, raw):
    return write(raw)


@pytest.fixture
def mluke(write, raw):
    """With the files that mLUKE is published with."""
    n = len(parsed(raw).pieces)
    markers = ["<ent>", "<ent2>"]
    named = {"mask_token": {"content": "<mask>"}, "additional_special_tokens": [*markers, *markers]}
    return write(
        raw,
        added_tokens={"<ent>": n + 2, "<ent2>": n + 3},
        special_tokens_map=named,
        tokenizer_config={"tokenizer_class": "MLukeTokenizer", **named},
        entity_vocab={"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3},
    )


def parsed(raw):
    model = proto.ModelProto()
    model.ParseFromString(raw)
    return model


def read(path):
    return read_tokenizer(path)


def ids_of(tokenizer, texts):
    return [ids.tolist() for ids, _ in tokenizer.encode_parts(texts)]


def reference_ids(tokenizer, texts):
    return [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in texts]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_ids_are_those_of_the_slow_tokenizer(settings, write):
    path = write(train(**settings))
    ours, reference = read(path), transformers.XLMRobertaTokenizer.from_pretrained(path)
    for role, index in ours.special_ids.items():
        assert index == getattr(reference, f"{role}_token_id")
    texts = [*PLAIN, *HARD, *mixed_texts()]
    for text, ids, expected in zip(texts, ids_of(ours, texts), reference_ids(reference, texts)):
        assert ids == expected, repr(text)


def test_spaces_are_kept_where_the_model_keeps_them(write):
    path = write(train(remove_extra_whitespaces=False))
    ours, reference = read(path), transformers.XLMRobertaTokenizer.from_pretrained(path)
    texts = [" Tokyo  is ", "  ", *PLAIN]
    assert ids_of(ours, texts) == reference_ids(reference, texts)


def test_ids_are_those_of_mluke(mluke):
    ours, reference = read(mluke), transformers.MLukeTokenizer.from_pretrained(mluke)
    texts = [*PLAIN, *HARD]
    assert ids_of(ours, texts) == reference_ids(reference, texts)
    n = len(parsed((mluke / FILE).read_bytes()).pieces)
    expected = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": n + 1}
    expected |= {"<ent>": n + 2, "<ent2>": n + 3}
    assert ours.added == expected
    assert {name: reference.convert_tokens_to_ids(name) for name in expected} == expected
    assert (len(ours), ours.mask_id) == (n + 4, n + 1)
    assert ours.id_of(",") == reference.convert_tokens_to_ids(",")


@pytest.mark.parametrize(
    "missing",
    [
        {"added_tokens"},
        {"special_tokens_map"},
        {"added_tokens", "special_tokens_map"},
        {"added_tokens", "tokenizer_config"},
        {"added_tokens", "special_tokens_map", "tokenizer_config"},
    ],
    ids=lambda names: ", ".join(sorted(names)),
)
def test_markers_have_their_ids_without_the_files_that_list_them(mluke, missing):
    complete = read(mluke)
    for name in missing:
        (mluke / f"{name}.json").unlink()
    assert read(mluke).added == complete.added


def test_ids_are_given_only_where_the_network_has_rows(mluke):
    (mluke / "added_tokens.json").unlink()
    (mluke / "config.json").write_text(json.dumps({"vocab_size": len(read(mluke)) - 1}))
    tokenizer = read(mluke)
    assert tokenizer.id_of("<ent>") == len(tokenizer) - 1
    assert tokenizer.id_of("<ent2>") is None


def test_only_mluke_has_markers_of_itself(write, raw):
    entities = {"[MASK]": 0}
    path = write(raw, entity_vocab=entities, tokenizer_config={"tokenizer_class": "XLMRoberta"})
    assert read(path).id_of("<ent>") is None
    (path / "tokenizer_config.json").unlink()
    assert read(path).id_of("<ent>") is not None
    (path / "entity_vocab.json").unlink()
    assert read(path).id_of("<ent>") is None


def test_names_come_from_either_file(write, raw):
    n = len(parsed(raw).pieces)
    path = write(
        raw,
        tokenizer_config={"mask_token": None, "added_tokens_decoder": {n + 3: {"content": "<b>"}}},
        special_tokens_map={"mask_token": "<a>", "additional_special_tokens": ["<b>", "<c>"]},
        added_tokens={"<a>": n + 2},
    )
    tokenizer = read(path)
    assert tokenizer.mask_id == n + 2
    assert (tokenizer.id_of("<b>"), tokenizer.id_of("<c>")) == (n + 3, n + 4)
    assert len(tokenizer) == n + 5


def test_an_unknown_piece_of_another_name_is_refused(write, raw):
    with pytest.raises(VocabError, match=r"\[UNK\]"):
        read(write(raw, tokenizer_config={"unk_token": "[UNK]"}))


def test_the_model_itself_agrees_with_its_tokenizer_json(xlmr, tmp_path_factory):
    reference = transformers.XLMRobertaTokenizerFast.from_pretrained(xlmr)
    converted = tmp_path_factory.mktemp("converted")
    reference.save_pretrained(converted)
    through_json = read(converted)
    assert through_json.sentencepiece is None
    ours = read(xlmr)
    assert ids_of(ours, PLAIN) == ids_of(through_json, PLAIN)
    assert (ours.special_ids, len(ours)) == (through_json.special_ids, len(through_json))


@pytest.mark.parametrize("string", SPECIAL_STRINGS)
def test_special_strings_in_text_are_ordinary_text(mluke, string):
    tokenizer = read(mluke)
    special = {*tokenizer.added.values()} - {tokenizer.unk_id}
    for text in (string, f"Tokyo {string} Japan", f"Tokyo{string}{string}Japan"):
        ids, offsets = tokenizer.encode_parts([text])[0]
        assert len(ids) > 1
        assert not special & set(ids.tolist())
        assert offsets[:, 1].max() == len(text)


def test_control_and_unused_pieces_have_ids_but_are_not_found(raw, write):
    model = parsed(raw)
    at = next(i for i, piece in enumerate(model.pieces) if piece.piece == "▁the")
    for kind in (CONTROL, UNUSED):
        model.pieces[at].type = kind
        tokenizer = read(write(model.SerializeToString()))
        assert tokenizer.id_of("▁the") == at + 1
        reference = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        expected = [i + 1 if i else 3 for i in reference.encode("the capital of the city")]
        assert ids_of(tokenizer, ["the capital of the city"]) == [expected]


def test_offsets_are_those_of_the_text_as_given(xlmr):
    tokenizer = read(xlmr)
    for text in [*PLAIN, *HARD, *mixed_texts(100)]:
        ids, offsets = tokenizer.encode_parts([text])[0]
        again, same, _ = tokenizer.encode_texts([text])[0]
        assert (again.tolist(), same.tolist()) == (ids.tolist(), offsets.tolist())
        assert (offsets[:, 0] < offsets[:, 1]).all()
        assert (offsets[1:] >= offsets[:-1]).all()
        assert not len(ids) or 0 <= offsets.min() <= offsets.max() <= len(text)
    (_, offsets), (_, spaced) = tokenizer.encode_parts(["①ｶﾞ!", "  the capital"])
    assert offsets[-1].tolist() == [3, 4]
    assert {tuple(o) for o in offsets[:-1].tolist()} <= {(0, 1), (1, 3), (0, 3)}
    assert spaced[0, 0] == 2
    assert spaced[-1, 1] == len("  the capital")


def test_a_word_starts_after_every_space(xlmr):
    ids, _, starts = read(xlmr).encode_texts(["the  capital of\nJapan"])[0]
    assert starts[0]
    assert (starts.sum(), len(starts)) == (4, len(ids))


def test_parts_are_cut_from_a_text_without_their_spaces(xlmr, write):
    tokenizer = read(xlmr)
    assert not tokenizer.spaces_matter
    whole, first, second = ids_of(tokenizer, ["the capital", "the", " capital"])
    assert whole == first + second == first + ids_of(tokenizer, ["capital"])[0]
    assert read(write(train(add_dummy_prefix=False))).spaces_matter


@pytest.mark.parametrize("through", ["dict", "pickle", "files"])
def test_it_survives_saving(mluke, through, tmp_path_factory):
    tokenizer = read(mluke)
    if through == "dict":
        copy = PieceTokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    elif through == "pickle":
        copy = pickle.loads(pickle.dumps(tokenizer))
    else:
        folder = tmp_path_factory.mktemp("written")
        write_tokenizer(tokenizer, folder)
        copy = read(folder)
    assert copy.sentencepiece.raw == (mluke / FILE).read_bytes()
    assert copy.special_ids == tokenizer.special_ids
    assert (copy.added, len(copy)) == (tokenizer.added, len(tokenizer))
    texts = [*PLAIN, *HARD, *SPECIAL_STRINGS]
    assert ids_of(copy, texts) == ids_of(tokenizer, texts)
    for ours, theirs in zip(tokenizer.encode_texts(texts), copy.encode_texts(texts)):
        assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]


def test_transformers_reads_what_is_written(mluke, tmp_path_factory):
    tokenizer, folder = read(mluke), tmp_path_factory.mktemp("written")
    write_tokenizer(tokenizer, folder)
    (folder / "entity_vocab.json").write_bytes((mluke / "entity_vocab.json").read_bytes())
    reference = transformers.AutoTokenizer.from_pretrained(folder)
    assert isinstance(reference, transformers.MLukeTokenizer)
    assert reference_ids(reference, PLAIN) == ids_of(tokenizer, PLAIN)
    for name, index in tokenizer.added.items():
        assert reference.convert_tokens_to_ids(name) == index
    assert {"<ent>", "<ent2>"} <= set(reference.all_special_tokens)


def test_transformers_reads_what_is_written_without_markers(xlmr, tmp_path_factory):
    tokenizer, folder = read(xlmr), tmp_path_factory.mktemp("written")
    write_tokenizer(tokenizer, folder)
    reference = transformers.AutoTokenizer.from_pretrained(folder, use_fast=False)
    assert isinstance(reference, transformers.XLMRobertaTokenizer)
    assert len(reference) == len(tokenizer)
    assert reference_ids(reference, PLAIN) == ids_of(tokenizer, PLAIN)


def test_a_file_cut_short_is_one_clear_error(raw, write):
    pick = random.Random(0)
    for length in (0, 1, 7, len(raw) - 1, *(pick.randrange(len(raw)) for _ in range(40))):
        path = write(raw[:length])
        with pytest.raises(CheckpointError, match="cannot be read") as error:
            read(path)
        assert str(path / FILE) in str(error.value)


@pytest.mark.parametrize(
    "content",
    [b"\x00" * 20, b"\xff" * 20, b"version https://git-lfs.github.com/spec/v1\n", b"\x08\x01"],
    ids=["zeros", "ones", "pointer", "number"],
)
def test_what_is_no_model_is_one_clear_error(content, write):
    with pytest.raises(CheckpointError, match=r"sentencepiece\.bpe\.model cannot be read"):
        read(write(content))


def test_damage_anywhere_is_an_error_or_a_tokenizer(raw, write):
    pick = random.Random(0)
    settings = len(raw) - len(parsed(raw).normalizer_spec.precompiled_charsmap)
    for _ in range(60):
        damaged = bytearray(raw)
        for _ in range(3):
            damaged[pick.choice([pick.randrange(settings), pick.randrange(len(raw))])] = (
                pick.randrange(256)
            )
        path = write(bytes(damaged))
        try:
            read(path).encode_parts([*PLAIN, *HARD])
        except (CheckpointError, VocabError) as error:
            assert str(path) in str(error)


def change(model, what):
    if what == "byte piece":
        model.pieces[-1].type = BYTE
    elif what == "first pieces":
        model.pieces[1].type = NORMAL
    elif what == "a piece twice":
        model.pieces[-1].piece = model.pieces[-2].piece
    elif what == "no pieces":
        del model.pieces[3:]
    else:
        spec, name, value = what
        setattr(getattr(model, spec), name, value)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (("trainer_spec", "model_type", 2), "BPE"),
        (("trainer_spec", "model_type", 3), "word"),
        (("trainer_spec", "model_type", 4), "character"),
        (("trainer_spec", "unk_id", 1), "begin with"),
        ("first pieces", "begin with"),
        (("trainer_spec", "byte_fallback", True), "bytes"),
        ("byte piece", "bytes"),
        (("trainer_spec", "treat_whitespace_as_suffix", True), "spaces"),
        (("normalizer_spec", "escape_whitespaces", False), "spaces"),
        ("a piece twice", "twice"),
        ("no pieces", "no pieces"),
    ],
)
def test_another_kind_of_model_is_refused(what, message, raw, write):
    model = parsed(raw)
    change(model, what)
    path = write(model.SerializeToString())
    with pytest.raises(CheckpointError, match=message) as error:
        read(path)
    assert str(path / FILE) in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer_config", {"additional_special_tokens": 3}),
        ("tokenizer_config", {"added_tokens_decoder": []}),
        ("tokenizer_config", {"added_tokens_decoder": {"7": "<a>"}}),
        ("special_tokens_map", []),
        ("added_tokens", {"<ent>": "last"}),
    ],
)
def test_a_damaged_list_of_names_is_one_clear_error(name, value, raw, write):
    path = write(raw, **{name: value})
    with pytest.raises(CheckpointError) as error:
        read(path)
    assert str(path) in str(error.value)
