"""Parts have the attributes that spaCy's ``Span.as_doc`` gives them, without its cost."""

import random

import numpy as np
import pytest
from spacy.attrs import ENT_ID, ENT_IOB, ENT_KB_ID
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_luke.corpora.parts import cut
from tests.conftest import blank

NAMES = Doc(Vocab(), words=["x"])._get_array_attrs()


def any_doc(nlp: Language, draw: random.Random, parsed: bool) -> Doc:
    """Tags, lemmas, entities with ids, missing or "outside" tokens; a parse or sentence starts."""
    n = draw.randint(1, 40)
    if parsed:
        deps = [draw.choice(["nsubj", "obj", "ROOT"]) for _ in range(n)]
        more = {"heads": [draw.randint(max(0, i - 5), i) for i in range(n)], "deps": deps}
    else:
        more = {"sent_starts": [draw.random() < 0.2 for _ in range(n)]}
    doc = Doc(
        nlp.vocab,
        words=[draw.choice("abcdef") for _ in range(n)],
        spaces=[draw.random() < 0.7 for _ in range(n)],
        tags=[draw.choice(["NN", "VB"]) for _ in range(n)],
        lemmas=["lemma"] * n,
        **more,
    )
    ents, start = [], 0
    while start < n:
        end = start + draw.randint(1, 6)
        if draw.random() < 0.5 and end <= n:
            ents.append(Span(doc, start, end, label="PER", kb_id="Q1", span_id="id"))
        start = end
    doc.set_ents(ents, default=draw.choice(["outside", "missing"]))
    doc.tensor = np.arange(2 * n, dtype="f").reshape(n, 2)
    return doc


@pytest.mark.parametrize("parsed", [False, True])
def test_parts_are_those_of_spacy(parsed: bool) -> None:
    nlp, draw = blank("en"), random.Random(0)
    n_cut = 0
    for _ in range(200):
        doc = any_doc(nlp, draw, parsed)
        inner = range(1, len(doc))
        starts = [0, *sorted(draw.sample(inner, min(len(inner), draw.randint(0, 6))))]
        for part, start, end in zip(cut(doc, starts)[0], starts, [*starts[1:], len(doc)]):
            expected = doc[start:end].as_doc()
            assert part.text == expected.text
            found, values = part.to_array(NAMES), expected.to_array(NAMES)
            # spaCy leaves the ids of an entity that was cut on its tokens, which are "missing".
            missing = values[:, NAMES.index(ENT_IOB)] == 0
            for name in (ENT_ID, ENT_KB_ID):
                values[missing, NAMES.index(name)] = 0
            n_cut += int(missing.sum())
            np.testing.assert_array_equal(found, values)
            assert [x.is_sent_start for x in part] == [x.is_sent_start for x in expected]
            assert [(x.start, x.end, x.label, x.kb_id, x.id) for x in part.ents] == [
                (x.start, x.end, x.label, x.kb_id, x.id) for x in expected.ents
            ]
            np.testing.assert_array_equal(part.tensor, expected.tensor)
    assert n_cut


def test_hooks_are_kept() -> None:
    doc = Doc(Vocab(), words=["a", "b"])
    doc.user_hooks["vector"] = lambda doc: np.ones(3)
    assert all(part.vector.sum() == 3 for part in cut(doc, [0, 1])[0])


def test_more_parts_do_not_read_the_whole_document_more_often() -> None:
    """Else they take time that is quadratic in its length."""

    class Counted(Doc):
        n_read = 0

        def to_array(self, *args):
            self.n_read += 1
            return super().to_array(*args)

        @property
        def ents(self):
            self.n_read += 1
            return super().ents

    counts = []
    for n_parts in (5, 50):
        doc = Counted(Vocab(), words=["a"] * 100)
        doc.set_ents([Span(doc, i, i + 1, label="X") for i in range(100)])
        doc.spans["sc"] = [doc[i : i + 1] for i in range(100)]
        doc.n_read = 0
        size = 100 // n_parts
        found, lost = cut(doc, list(range(0, 100, size)))
        assert len(found) == n_parts and not +lost
        assert all(len(part.ents) == len(part.spans["sc"]) == size for part in found)
        counts.append(doc.n_read)
    assert counts[0] == counts[1] > 0
