"""Unigram models from ``sentencepiece.bpe.model``: ids of mLUKE's and XLM-R's own tokenizers."""

import copy
import io
import json
import pickle
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.checkpoint.write_tokenizer import write_tokenizer
from spacy_luke.errors import CheckpointError, VocabError
from spacy_luke.vocab.pieces import PieceTokenizer, RustModel

WHY = "comparing with the reference needs transformers, sentencepiece and protobuf"
transformers = pytest.importorskip("transformers", reason=WHY)
sentencepiece = pytest.importorskip("sentencepiece", reason=WHY)
proto = pytest.importorskip("sentencepiece.sentencepiece_model_pb2", reason=WHY)
if int(transformers.__version__.split(".")[0]) > 4:
    pytest.skip("transformers 5 has no slow tokenizers", allow_module_level=True)

FILE = "sentencepiece.bpe.model"
NORMAL, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 3, 4, 5, 6
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
    assert isinstance(through_json.model, RustModel)
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


def fixed(raw):
    """A model of known pieces, with the rules of another."""
    model = parsed(raw)
    del model.pieces[3:]
    words = [
        "\u2581",
        "\u2581the",
        "\u2581a",
        *"abcdefghinostyéếệガ株.",
        "ガラ",
        "\u2581in",
        "nd",
        "de",
    ]
    for i, piece in enumerate(words):
        model.pieces.add(piece=piece, score=-3.0 - i / 8)
    model.pieces.add(piece="[a]", score=0.0, type=USER_DEFINED)
    return model.SerializeToString()


# Text, ids, characters of each piece, pieces at which words start.
PLACES = [
    ("the  a\t the", [5, 6, 5], [(0, 3), (4, 6), (7, 11)], [0, 1, 2]),
    ("\u200bthe \x01 a\x01", [5, 6], [(1, 4), (6, 8)], [0, 1]),
    ("a \x01\ufb01n\x01", [6, 4, 12, 15, 16], [(0, 1), (1, 2), (3, 4), (3, 4), (4, 5)], [0, 1]),
    (
        "tie\u0302\u0301t e\u0323\u0302",
        [4, 19, 15, 22, 19, 4, 23],
        [(0, 1), (0, 1), (1, 2), (2, 5), (5, 6), (6, 7), (7, 10)],
        [0, 5],
    ),
    ("\uff76\uff9e\uff97 \uff76\uff9e", [4, 27, 4, 24], [(0, 2), (0, 3), (3, 4), (4, 6)], [0, 2]),
    (
        "a \xa8 \xa8a\xa8",
        [6, 4, 3, 4, 3, 7, 4, 3],
        [(0, 1), (2, 3), (2, 3), (4, 5), (4, 5), (5, 6), (6, 7), (6, 7)],
        [0, 1, 3, 6],
    ),
    (
        "\x01\ufdfa",
        [4, 3, 4, 3, 4, 3, 4, 3],
        [(1, 2), (1, 2), (1, 2), (1, 2), (1, 2), (1, 2), (1, 2), (1, 2)],
        [0, 2, 4, 6],
    ),
    ("\u337f\u2026", [4, 25, 3, 26, 26, 26], [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2), (1, 2)], [0]),
    ("\u3000[a]\x01 [a][a]", [4, 31, 4, 31, 31], [(1, 2), (1, 4), (5, 6), (6, 9), (9, 12)], [0, 2]),
    (
        "\U0001f600\U0001f600 a \u2603",
        [4, 3, 6, 4, 3],
        [(0, 1), (0, 2), (2, 4), (4, 5), (5, 6)],
        [0, 2, 3],
    ),
    ("a\u2581the\u2581", [6, 5], [(0, 1), (1, 5)], [0, 1]),
    (" ", [], [], []),
    ("\x01\u200b", [], [], []),
    ("\u0301a\u0301 \u0301", [4, 3, 4, 3], [(0, 1), (0, 3), (3, 4), (4, 5)], [0, 2]),
    ("the\u3000\u3000and\n", [5, 6, 29], [(0, 3), (4, 6), (6, 8)], [0, 1]),
]


@pytest.mark.parametrize(("text", "ids", "places", "words"), PLACES)
def test_pieces_are_traced_to_their_characters(text, ids, places, words, raw, write):
    """Spaces, what is left out, rules from several characters to one and from one to several."""
    found, offsets, starts = read(write(fixed(raw))).encode_texts([text])[0]
    assert found.tolist() == ids
    assert [tuple(x) for x in offsets.tolist()] == places
    assert starts.nonzero()[0].tolist() == words


def test_a_special_piece_of_the_model_is_not_found_in_text(raw, write):
    named = {"tokenizer_config": {"additional_special_tokens": ["[a]", "\u2581the"]}}
    plain, hiding = read(write(fixed(raw))), read(write(fixed(raw), **named))
    for name in ("[a]", "\u2581the"):
        assert hiding.id_of(name) == plain.id_of(name)
        assert plain.id_of(name) in ids_of(plain, [f"in {name[1:] if name[0] != '[' else name}"])[0]
    again = PieceTokenizer.from_dict(hiding.to_dict())
    for tokenizer in (hiding, again):
        found = ids_of(tokenizer, ["the [a] and the\u2581the"])[0]
        assert not {*found} & {plain.id_of("[a]"), plain.id_of("\u2581the")}
        assert tokenizer.model.raw == fixed(raw)


def test_one_tokenizer_serves_threads_and_copies(xlmr):
    tokenizer, texts = read(xlmr), mixed_texts()
    expected = ids_of(tokenizer, texts)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: ids_of(tokenizer, texts), range(8)):
            assert found == expected
    assert ids_of(copy.deepcopy(tokenizer), texts) == expected
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        for found in pool.map(partial(ids_of, tokenizer), [texts] * 2):
            assert found == expected


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
        again = PieceTokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    elif through == "pickle":
        again = pickle.loads(pickle.dumps(tokenizer))
    else:
        folder = tmp_path_factory.mktemp("written")
        write_tokenizer(tokenizer, folder)
        again = read(folder)
    assert again.model.raw == (mluke / FILE).read_bytes()
    assert again.special_ids == tokenizer.special_ids
    assert (again.added, len(again)) == (tokenizer.added, len(tokenizer))
    texts = [*PLAIN, *HARD, *SPECIAL_STRINGS]
    assert ids_of(again, texts) == ids_of(tokenizer, texts)
    for ours, theirs in zip(tokenizer.encode_texts(texts), again.encode_texts(texts)):
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
    if what == "all bytes":
        model.trainer_spec.byte_fallback = True
        for byte in range(256):
            model.pieces.add(piece=f"<0x{byte:02X}>", score=-20.0, type=BYTE)
    elif what == "byte piece":
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


@pytest.mark.parametrize("kind", [2, 3, 4], ids=["BPE", "words", "characters"])
def test_other_ways_to_find_pieces_are_those_of_the_slow_tokenizer(kind, raw, write):
    model = parsed(raw)
    model.trainer_spec.model_type = kind
    path = write(model.SerializeToString())
    ours, reference = read(path), transformers.XLMRobertaTokenizer.from_pretrained(path)
    texts = [*PLAIN, *HARD, *mixed_texts()]
    assert ids_of(ours, texts) == reference_ids(reference, texts)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("first pieces", "begin with"),
        ("all bytes", "bytes"),
        (("trainer_spec", "byte_fallback", True), "byte_fallback"),
        ("byte piece", "byte piece"),
        (("trainer_spec", "treat_whitespace_as_suffix", True), "spaces"),
        (("normalizer_spec", "escape_whitespaces", False), "spaces"),
        ("a piece twice", "already defined"),
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
