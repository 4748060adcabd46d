"""Text to pieces: byte-level BPE, WordPiece and Unigram."""

import json
import pickle
import random
import sys
import threading

import numpy as np
import pytest

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.errors import CheckpointError
from spacy_luke.vocab import pieces
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
    return read_tokenizer(path)


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
    ours = ids_of(read_tokenizer(path), text)
    assert ours == expected(text, add_special_tokens=False)["input_ids"]


def test_special_pieces_are_found_by_name(luke_dir, bert_dir, xlmr_dir):
    luke = read_tokenizer(luke_dir)
    assert (luke.cls_id, luke.pad_id, luke.sep_id, luke.unk_id, luke.mask_id) == (0, 1, 2, 3, 4)
    assert (luke.id_of("<ent>"), luke.id_of("<ent2>")) == (len(luke) - 2, len(luke) - 1)
    bert = read_tokenizer(bert_dir)
    lines = (bert_dir / "vocab.txt").read_text(encoding="utf8").split("\n")
    roles = (bert.cls_id, bert.sep_id, bert.mask_id, bert.pad_id, bert.unk_id)
    assert [lines[i] for i in roles] == ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"]
    xlmr = read_tokenizer(xlmr_dir)
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
    tokenizer = read_tokenizer(xlmr_dir)
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


def size_of(words):
    """Bytes that the cache counts for these words."""
    return sum(sys.getsizeof(word) + pieces._ENTRY_BYTES for word in words)


def test_a_full_cache_starts_anew(tokenizer, monkeypatch):
    monkeypatch.setattr(pieces, "_CACHE_BYTES", size_of(["Tokyo", "Japan", "Paris"]) + 100)
    first = tokenizer.encode_words(["Tokyo", "Japan"])
    assert set(tokenizer._cache) == {"Tokyo", "Japan"}
    second = tokenizer.encode_words(["London", "Tokyo", "Kyoto"])
    assert set(tokenizer._cache) == {"London", "Kyoto"}
    assert np.array_equal(first[0], second[1])
    assert len(second) == 3


def test_the_cache_is_bounded_in_bytes(tokenizer, monkeypatch):
    monkeypatch.setattr(pieces, "_CACHE_BYTES", 20_000)
    short = tokenizer.encode_words(["Tokyo"])
    for i in range(20):  # each of them alone is more than there is room for
        tokenizer.encode_words([f"{i}" + "long " * 5_000])
        held = sum(sys.getsizeof(k) + v.nbytes for k, v in tokenizer._cache.items())
        assert held <= 20_000
    assert np.array_equal(tokenizer.encode_words(["Tokyo"])[0], short[0])


def test_threads_share_a_tokenizer(tokenizer, monkeypatch):
    words = [f"w{i}" for i in range(60)]
    expected = dict(zip(words, [ids.tolist() for ids in tokenizer.encode_words(words)]))
    monkeypatch.setattr(pieces, "_CACHE_BYTES", size_of(words[:30]))
    wrong = []

    def work(seed):
        pick = random.Random(seed)
        for _ in range(300):
            asked = pick.choices(words, k=20)
            try:
                found = [ids.tolist() for ids in tokenizer.encode_words(asked)]
            except Exception as err:
                found = [err]
            if found != [expected[word] for word in asked]:
                wrong.append(found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


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
        return read_tokenizer(path).spaces_matter

    assert [matter(p) for p in (luke_dir, bert_dir, xlmr_dir)] == [True, False, False]


DAMAGE = {
    "no ids": lambda v: v.pop("special_ids"),
    "a role missing": lambda v: v["special_ids"].pop("mask"),
    "a role without an id": lambda v: v["special_ids"].update(mask=None),
    "an id of text": lambda v: v["added"].update({"<new>": "7"}),
    "a list": lambda v: v.update(added=[1]),
    "no tokenizer": lambda v: v.pop("tokenizer"),
    "another type": lambda v: v.update(tokenizer=7),
    "no model": lambda v: v["tokenizer"].pop("model"),
    "an unknown model": lambda v: v["tokenizer"]["model"].update(type="Other"),
    "a part of another type": lambda v: v["tokenizer"].update(pre_tokenizer="x"),
    "a character map": lambda v: v["tokenizer"].update(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "/////w=="}
    ),
    "a SentencePiece model": lambda v: v.update(sentencepiece="AAAA"),
    "letters": lambda v: v.update(sentencepiece="?"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_save_is_one_clear_error(tokenizer, damage):
    values = json.loads(json.dumps(tokenizer.to_dict()))
    damage(values)
    with pytest.raises(CheckpointError, match="saved tokenizer|sentencepiece"):
        PieceTokenizer.from_dict(values)


def test_merges_are_not_dropped_at_random(luke_dir):
    plain = read_tokenizer(luke_dir)
    values = plain.to_dict()
    values["tokenizer"]["model"]["dropout"] = 0.5
    saved = PieceTokenizer.from_dict(values)
    for text in TEXTS * 5:
        assert ids_of(saved, text) == ids_of(plain, text)
