"""spaCy's scores of ``Doc.ents`` or, for nested entities, of a spans group."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.pipeline.spancat import spancat_score
from spacy.scorer import get_ner_prf
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import is_annotated


def luke_ner_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """spaCy's NER score in flat mode, its span categoriser score in nested mode. Documents without
    annotated entities (:func:`.is_annotated`) are left out."""
    examples = [eg for eg in examples if is_annotated(eg.reference, "ents")]
    if kwargs.get("nested"):
        keep = ("spans_key", "labels", "threshold")
        return spancat_score(examples, **{key: kwargs[key] for key in keep if key in kwargs})
    return get_ner_prf(examples)


@registry.scorers("spacy-luke.luke_ner_scorer.v1")
def make_luke_ner_scorer() -> Callable[..., dict[str, Any]]:
    """``spacy.ner_scorer.v1`` or, in nested mode, ``spacy.spancat_scorer.v1``."""
    return luke_ner_score
