"""Queries of ``luke_cloze``: the queries of documents, as documents, with their candidates."""

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc

from ..annotations.queries import PLACEHOLDER, candidates_of, get_queries
from ..layers.cloze_scorer import ClozeQuery
from .entity_task import given_spans
from .tokenizer import Tokenizer


def cloze_query(docs: Sequence[Doc], spans_key: str | None, make_doc: Tokenizer) -> ClozeQuery:
    """All queries of documents, in the order of the documents.

    spans_key: the spans group with the candidates of queries that do not name theirs; None:
    ``Doc.ents``. make_doc: from the text of a query.
    """
    asked = [get_queries(doc) for doc in docs]
    candidates = [
        [candidates_of(doc, query, spans_key) for query in queries]
        for doc, queries in zip(docs, asked)
    ]
    by_query = [spans for of_doc in candidates for spans in of_doc]
    made = [query_doc(query.text, make_doc) for queries in asked for query in queries]
    return ClozeQuery(
        docs,
        [doc for doc, _ in made],
        np.asarray([gap for _, gap in made], dtype=np.int64),
        np.repeat(np.arange(len(docs)), [len(queries) for queries in asked]),
        by_query,
        given_spans([[x for spans in of_doc for x in spans] for of_doc in candidates]),
        np.repeat(np.arange(len(by_query)), [len(spans) for spans in by_query]),
    )


def query_doc(text: str, make_doc: Tokenizer) -> tuple[Doc, int]:
    """A query as a document in which the placeholder is one token, and the number of the token."""
    before, after = text.split(PLACEHOLDER)
    space = after.startswith(" ")
    left, right = make_doc(before), make_doc(after[space:])
    tokens = [*left, *right]
    words, spaces = [x.text for x in tokens], [bool(x.whitespace_) for x in tokens]
    words.insert(len(left), PLACEHOLDER)
    spaces.insert(len(left), space)
    return Doc(left.vocab, words=words, spaces=spaces), len(left)
