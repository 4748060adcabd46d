"""Blocked tokens and entity ids, which ``Doc.ents`` does not show."""

from collections.abc import Iterable

import numpy as np
from spacy.attrs import ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE
from spacy.tokens import Doc, Span

Array = np.ndarray


def entity_tokens(doc: Doc) -> tuple[Array, Array]:
    """(n_tokens,) whether each token is in an entity or blocked, and (n_tokens,) whether it is
    blocked: marked by ``Doc.set_ents`` as a token no entity may cover."""
    values = doc.to_array([ENT_IOB, ENT_TYPE, ENT_KB_ID, ENT_ID]).reshape(len(doc), 4)
    inside = np.isin(values[:, 0], (1, 3))
    return inside, inside & ~values[:, 1:].any(axis=1)


def set_doc_ents(doc: Doc, ents: Iterable[Span]) -> None:
    """Call ``Doc.set_ents``, but keep blocked tokens blocked, and remove the ids of the old
    entities, which new ones of the same place would otherwise get."""
    blocked = np.flatnonzero(entity_tokens(doc)[1]).tolist()
    for token in np.flatnonzero(doc.to_array([ENT_ID])).tolist():
        doc[token].ent_id_ = ""
    doc.set_ents(
        sorted(ents, key=lambda span: span.start), blocked=[doc[i : i + 1] for i in blocked]
    )
