"""The NER score under which LUKE's first CoNLL-2003 figures (94.3, 94.2) were computed.

All of a corpus is scored as *one* sequence of tags, in which gold is read as IOB1, as CoNLL-2003 is
written: there a tag tells where an entity begins only inside a sentence. So an entity that ends one
sentence and an entity of the same type that begins the next are one gold entity (of the 5,648 of
the test set 5,616 are left), which right predictions, two entities, cannot match. Use it to compare
with such figures, and ``spacy-luke.luke_ner_scorer.v1`` for everything else.
"""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

Entity = tuple[int, int, str]  # first and last token (exclusive) of the chain, label


@registry.scorers("spacy-luke.flat_ner_scorer.v1")
def make_flat_ner_scorer() -> Callable[..., dict[str, Any]]:
    """Precision, recall and F of ``Doc.ents`` over one chain of documents:
    :func:`flat_ner_score`."""
    return flat_ner_score


def flat_ner_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score entities as one chain of all documents, in their order.

    Returns ``ents_p``, ``ents_r``, ``ents_f`` and ``ents_per_type``, from 0 to 1, as spaCy's NER
    scorer does; None where nothing is annotated. Documents without annotation are left out. Where
    a reference has no sentence starts, entities become one only between documents.
    """
    gold: list[Entity] = []
    predicted: list[Entity] = []
    n_tokens = 0
    for eg in examples:
        if not eg.reference.has_annotation("ENT_IOB"):
            continue
        _chain(gold, eg.reference, n_tokens)
        tokens = eg.alignment.x2y
        for ent in eg.predicted.ents:
            own = tokens[ent.start : ent.end]
            if len(own):
                first, last = int(own[0]), int(own[-1])
                predicted.append((first + n_tokens, last + 1 + n_tokens, ent.label_))
        n_tokens += len(eg.reference)
    if not gold and not predicted:
        return dict.fromkeys(("ents_p", "ents_r", "ents_f", "ents_per_type"))
    total = _score(predicted, gold)
    per_type = {}
    for label in sorted({label for _, _, label in (*gold, *predicted)}):
        both = ([x for x in some if x[2] == label] for some in (predicted, gold))
        per_type[label] = _score(*both).to_dict()
    return {
        "ents_p": total.precision,
        "ents_r": total.recall,
        "ents_f": total.fscore,
        "ents_per_type": per_type,
    }


def _chain(gold: list[Entity], doc: Doc, base: int) -> None:
    """Add a document's entities to those of the chain, in which its first token is ``base``."""
    for ent in doc.ents:
        start, end, label = ent.start + base, ent.end + base, ent.label_
        opens = ent.start == 0 or doc[ent.start].is_sent_start
        if opens and gold and gold[-1][1:] == (start, label):
            start = gold.pop()[0]
        gold.append((start, end, label))


def _score(predicted: list[Entity], gold: list[Entity]) -> PRFScore:
    score = PRFScore()
    score.score_set(set(predicted), set(gold))
    return score
