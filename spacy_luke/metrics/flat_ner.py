"""The NER score with which LUKE's first CoNLL-2003 figures (94.3, 94.2) were computed.

The whole corpus is scored as *one* sequence of tags, and gold tags are read as IOB1, the scheme of
CoNLL-2003. IOB1 does not separate an entity at the end of a sentence from one of the same type at
the start of the next: they become one gold entity (5,616 of the 5,648 entities of the test set
remain). Correct predictions, two entities, cannot match it. Use this score only to compare with
such figures, and ``spacy-luke.luke_ner_scorer.v1`` otherwise.
"""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

FlatEntity = tuple[int, int, str]  # start, end (exclusive), label; tokens of the whole corpus


@registry.scorers("spacy-luke.flat_ner_scorer.v1")
def make_flat_ner_scorer() -> Callable[..., dict[str, Any]]:
    """Precision, recall and F of ``Doc.ents`` over concatenated documents:
    :func:`flat_ner_score`."""
    return flat_ner_score


def flat_ner_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the entities of the concatenated documents.

    Returns ``ents_p``, ``ents_r``, ``ents_f`` and ``ents_per_type``, from 0 to 1, as spaCy's NER
    scorer does; None if there are no entities. Documents without annotation are left out. If a
    reference has no sentence starts, entities are merged only across documents.
    """
    gold: list[FlatEntity] = []
    predicted: list[FlatEntity] = []
    n_tokens = 0
    for eg in examples:
        if not eg.reference.has_annotation("ENT_IOB"):
            continue
        _append_gold(gold, eg.reference, n_tokens)
        x2y = eg.alignment.x2y
        for ent in eg.predicted.ents:
            reference_tokens = x2y[ent.start : ent.end]
            if len(reference_tokens):
                first, last = int(reference_tokens[0]), int(reference_tokens[-1])
                predicted.append((first + n_tokens, last + 1 + n_tokens, ent.label_))
        n_tokens += len(eg.reference)
    if not gold and not predicted:
        return dict.fromkeys(("ents_p", "ents_r", "ents_f", "ents_per_type"))
    total = _score(predicted, gold)
    per_type = {}
    for label in sorted({label for _, _, label in (*gold, *predicted)}):
        of_label = ([ent for ent in ents if ent[2] == label] for ents in (predicted, gold))
        per_type[label] = _score(*of_label).to_dict()
    return {
        "ents_p": total.precision,
        "ents_r": total.recall,
        "ents_f": total.fscore,
        "ents_per_type": per_type,
    }


def _append_gold(gold: list[FlatEntity], doc: Doc, offset: int) -> None:
    """Append a document's entities, whose first token is number ``offset`` of the corpus.

    "... in Paris" followed by a sentence "Paris is ..." gives one entity of two tokens.
    """
    for ent in doc.ents:
        start, end, label = ent.start + offset, ent.end + offset, ent.label_
        starts_sentence = ent.start == 0 or doc[ent.start].is_sent_start
        if starts_sentence and gold and gold[-1][1:] == (start, label):
            start = gold.pop()[0]
        gold.append((start, end, label))


def _score(predicted: list[FlatEntity], gold: list[FlatEntity]) -> PRFScore:
    score = PRFScore()
    score.score_set(set(predicted), set(gold))
    return score
