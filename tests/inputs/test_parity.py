"""The rule ``mentions`` gives the piece ids and entity positions of ``LukeTokenizer``, which adds
no space, or one before every part (``spaces = "words"``).

Strings such as ``<mask>`` in a text are a deliberate difference: they are ordinary text here. So is
the space that spaCy keeps after a last token: no piece is made of it.
"""

import json
import random

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.placed_spans import span_pieces

MAX_MENTION = 30
SPECIAL_STRINGS = ("<mask>", "<s>", "</s>", "<pad>", "<unk>", "<ent>", "<ent2>")
CORPORA = [
    "wnut17/wnut17train.conll",
    "wnut17/emerging.dev.conll",
    "wnut17/emerging.test.annotated",
    "crossner/ai/dev.txt",
    "crossner/literature/test.txt",
    "crossner/politics/test.txt",
]


@pytest.fixture(scope="module", params=["text", "words"])
def tokenizers(request, data_dir, tmp_path_factory):
    """Ours, the reference and what is preceded by a space, on RoBERTa's own files."""
    transformers = pytest.importorskip("transformers")
    if int(transformers.__version__.split(".")[0]) > 4:
        pytest.skip("transformers 5 has another LukeTokenizer, which takes no files")
    path = data_dir / "roberta-vocab"
    entities = tmp_path_factory.mktemp("entities") / "entity_vocab.json"
    entities.write_text('{"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}')
    reference = transformers.LukeTokenizer(
        str(path / "vocab.json"),
        str(path / "merges.txt"),
        str(entities),
        add_prefix_space=request.param == "words",
    )
    return read_tokenizer(path), reference, request.param


def test_sentences_with_entities(tokenizers, data_dir, nlp):
    n_with_entities = 0
    for name in CORPORA:
        for words, spans in iob_sentences(data_dir / name):
            if spans:
                assert_equal(tokenizers, Doc(nlp.vocab, words=words, spaces=spaces(words)), spans)
                n_with_entities += 1
    assert n_with_entities >= 2_000


@pytest.mark.parametrize("name", ["squad/train-v1.1-head.json", "squad/xquad.de.json"])
def test_running_text_cut_anywhere(name, tokenizers, data_dir, nlp):
    rng = random.Random(0)
    articles = json.loads((data_dir / name).read_text(encoding="utf8"))["data"]
    texts = [p["context"] for article in articles for p in article["paragraphs"]]
    for text in texts[:200]:
        doc = nlp(text)
        starts = [rng.randrange(len(doc)) for _ in range(6)]
        assert_equal(tokenizers, doc, [(i, min(len(doc), i + rng.randint(1, 4))) for i in starts])


@pytest.mark.parametrize(
    "text",
    [
        "two  spaces   and\ttabs \n lines",
        " leading and trailing ",
        "👩‍👩‍👧 at 東京 cafe\u0301 naïve שלום عليكم",
        "it's what they'd've said",
        "  ",
        "\u00a0non-breaking\u2003em\u00a0space\u200b",
    ],
)
def test_odd_text_cut_at_every_pair_of_tokens(text, tokenizers, nlp):
    doc = nlp(text)
    for start in range(len(doc)):
        for end in range(start + 1, len(doc) + 1):
            assert_equal(tokenizers, doc, [(start, end)])
    everything = [(i, j) for i in range(len(doc)) for j in range(i + 1, len(doc) + 1)]
    assert_equal(tokenizers, doc, everything)


def test_special_strings_differ_on_purpose(tokenizers, nlp):
    ours, reference, rule = tokenizers
    for string in SPECIAL_STRINGS:
        doc = nlp(f"a {string} b")
        ids = align([doc], ours, "mentions", spaces=rule).ids.tolist()
        assert not {0, 1, 2, 3, 50264} & set(ids)
        assert ids != reference(doc.text, add_special_tokens=False)["input_ids"]


def assert_equal(tokenizers, doc, spans):
    """One sequence: the same piece ids, and the same positions of every mention."""
    ours, reference, rule = tokenizers
    text = doc[:].text  # without a space after the last token
    table = np.asarray(spans, dtype=np.int64)
    characters = [(doc[a].idx, doc[b - 1].idx + len(doc[b - 1])) for a, b in spans]
    expected = reference(text, entity_spans=characters)
    pieces = align([doc], ours, "mentions", [table], spaces=rule)
    assert [0, *pieces.ids.tolist(), 2] == expected["input_ids"], doc.text
    starts, ends = span_pieces(pieces, table, np.zeros(len(table), dtype=np.int64))
    ends = np.minimum(ends, starts + MAX_MENTION)
    positions = [list(range(a + 1, b + 1)) for a, b in zip(starts.tolist(), ends.tolist())]
    padded = [row + [-1] * (MAX_MENTION - len(row)) for row in positions]
    assert padded == expected["entity_position_ids"], doc.text


def iob_sentences(path):
    """Words and (start, end) spans of each sentence of a file in IOB2."""
    for block in path.read_text(encoding="utf8").replace("\r", "").split("\n\n"):
        lines = [line.split("\t") for line in block.split("\n") if line.strip()]
        words, tags = [line[0] for line in lines], [line[-1] for line in lines]
        starts = [i for i, tag in enumerate(tags) if tag.startswith("B-")]
        spans = []
        for start in starts:
            end = start + 1
            while end < len(tags) and tags[end].startswith("I-"):
                end += 1
            spans.append((start, end))
        if words:
            yield words, spans


def spaces(words):
    return [True] * (len(words) - 1) + [False]
