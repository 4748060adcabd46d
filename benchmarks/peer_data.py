"""What two libraries are compared on: a checkpoint with random weights, sentences, spans."""

import json
from collections.abc import Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import NumpyOps

from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.placed_spans import span_pieces
from spacy_luke.inputs.suggester import suggest_sentence_spans
from spacy_luke.vocab.pieces import PieceTokenizer

from .datasets import DATA_SETS, read

Array = np.ndarray
Starts = list[bool | int | None]

# hidden size, layers, heads, width of the feed-forward part
SIZES = {
    "tiny": (32, 2, 4, 48),
    "small": (384, 6, 12, 1536),
    "base": (768, 12, 12, 3072),
}
ENTITIES = ("[PAD]", "[UNK]", "[MASK]", "[MASK2]")
LABELS = ("NIL", "LOC", "MISC", "ORG", "PER")
MAX_PIECES = 16  # of a span that is asked about, as published
MAX_WINDOW = 510
ARTICLES = Path(__file__).resolve().parents[1] / "project" / "corpus" / "annotations.jsonl"


def build_checkpoint(path: Path, size: str, vocab: Path | None, docs: Sequence[Doc]) -> None:
    """Write a span classifier with random weights, as published ones are laid out.

    vocab: a directory with the ``vocab.json`` and ``merges.txt`` of RoBERTa; without one, pieces
    are learned from ``docs``. Biases and LayerNorms are random too, and there is no dropout.
    """
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    path.mkdir(parents=True, exist_ok=True)
    if vocab is not None:
        for name in ("vocab.json", "merges.txt"):
            (path / name).write_bytes((vocab / name).read_bytes())
        n_pieces = len(json.loads((path / "vocab.json").read_text(encoding="utf8")))
    else:
        tokenizer = ByteLevelBPETokenizer()
        specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        texts = [doc.text for doc in docs]
        tokenizer.train_from_iterator(texts, 8000, special_tokens=specials, show_progress=False)
        tokenizer.save_model(str(path))
        n_pieces = tokenizer.get_vocab_size()
    (path / "entity_vocab.json").write_text(json.dumps({x: i for i, x in enumerate(ENTITIES)}))
    (path / "added_tokens.json").write_text(json.dumps({"<ent>": n_pieces, "<ent2>": n_pieces + 1}))
    hidden, layers, heads, inner = SIZES[size]
    config = transformers.LukeConfig(
        vocab_size=n_pieces + 2,
        entity_vocab_size=len(ENTITIES),
        hidden_size=hidden,
        entity_emb_size=hidden // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(LABELS)),
        label2id={label: i for i, label in enumerate(LABELS)},
    )
    torch.manual_seed(0)
    model = transformers.LukeForEntitySpanClassification(config)
    for parameter in model.parameters():  # fresh biases are zero and fresh LayerNorms one
        parameter.data.add_(torch.randn_like(parameter) * 0.02)
    model.save_pretrained(path)


@cache
def read_sentences(folder: Path) -> tuple[str, list[Doc]]:
    """The name of the first corpus that is there, and its sentences as texts: words joined by
    spaces. folder: see ``datasets.default_folder``; else the encyclopedia of the project."""
    nlp = spacy.blank("en")
    for name, source in DATA_SETS.items():
        if (folder / source.test.file).exists():
            words = ([token.text for token in doc] for doc in read(folder / source.test.file, 1))
            return name, [as_text(nlp.vocab, x) for x in words if x]
    nlp.add_pipe("sentencizer")
    lines = ARTICLES.read_text(encoding="utf8").splitlines()
    texts = (part for line in lines for part in json.loads(line)["text"].split("\n\n"))
    sents = (sent for doc in nlp.pipe(texts) for sent in doc.sents)
    return "encyclopedia", [as_text(nlp.vocab, [t.text for t in s]) for s in sents]


def as_text(vocab: Vocab, words: list[str], starts: Starts | None = None) -> Doc:
    """Words joined by single spaces. starts: where sentences start; by default nowhere."""
    return Doc(vocab, words=words, spaces=[True] * (len(words) - 1) + [False], sent_starts=starts)


def equal_sentences(
    docs: Sequence[Doc], pieces: PieceTokenizer, n_words: int, max_words: int, n: int
) -> list[Doc]:
    """``n`` sentences cut to ``n_words``, all with the same number of pieces and of spans (the
    most frequent numbers there are); repeated where there are too few."""
    groups: dict[tuple[int, int], list[Doc]] = {}
    for doc in docs:
        if len(doc) >= n_words:
            cut = as_text(doc.vocab, [token.text for token in doc[:n_words]])
            n_spans = len(all_spans([cut], pieces, max_words)[0])
            groups.setdefault((len(align([cut], pieces).ids), n_spans), []).append(cut)
    largest = max(groups.values(), key=len)
    return list(islice(cycle(largest), n))


def mixed_sentences(docs: Sequence[Doc], least: int, most: int, n: int) -> list[Doc]:
    """The first ``n`` sentences of ``least`` to ``most`` words; repeated where there are fewer."""
    return list(islice(cycle([doc for doc in docs if least <= len(doc) <= most]), n))


def long_document(docs: Sequence[Doc], pieces: PieceTokenizer) -> Doc:
    """Sentences joined as long as they fit one window."""
    words: list[str] = []
    starts: Starts = []
    n_pieces = 0
    for doc in docs:
        n_pieces += len(align([doc], pieces).ids)
        if n_pieces > MAX_WINDOW:
            break
        words += [token.text for token in doc]
        starts += [token.i == 0 for token in doc]
    return as_text(docs[0].vocab, words, starts)


def all_spans(docs: Sequence[Doc], pieces: PieceTokenizer, max_words: int) -> list[Array]:
    """Of each document an (n, 2) array of the token ranges that both sides are asked about."""
    found = suggest_sentence_spans(docs, max_words=max_words, ops=NumpyOps())
    table: Any = np.asarray(found.dataXd, dtype=np.int64)
    counts = np.asarray(found.lengths)
    starts, ends = span_pieces(align(docs, pieces), table, np.repeat(np.arange(len(docs)), counts))
    fits = (ends > starts) & (ends - starts <= MAX_PIECES)
    parts = np.cumsum(counts)[:-1]
    return [t[keep] for t, keep in zip(np.split(table, parts), np.split(fits, parts))]
