"""Choose the NIL bias of ``luke_ner`` on development data.

The network runs over the data once; for each bias only decoding (:func:`.decoding.decode`, where
the bias acts) is repeated.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.util import registry
from tqdm import tqdm

from ..errors import ConfigError, CorpusError
from ..report import LOGGER
from .model_card import refresh

_MOST_VALUES = 1000


class Score(NamedTuple):
    """Precision, recall and F, from 0 to 1, under a bias."""

    bias: float
    p: float
    r: float
    f: float


@registry.callbacks("spacy-luke.tune_nil_bias.v1")
def make_tune_nil_bias(
    path: str,
    component: str = "luke_ner",
    low: float = -3.0,
    high: float = 3.0,
    step: float = 0.25,
) -> Callable[[Language], Language]:
    """For ``[training.before_to_disk]``: set the bias that is best on the documents at ``path`` in
    every pipeline that training saves.

    Later evaluations of the same training use that bias until the next pipeline is saved.
    """
    values = bias_values(low, high, step)

    def tune(nlp: Language) -> Language:
        best = choose(score_biases(nlp, component, list(Corpus(Path(path))(nlp)), values))
        save_bias(nlp, component, best)
        refresh(nlp)
        LOGGER.info("%s: nil_bias %g (F %.2f).", component, best.bias, 100 * best.f)
        return nlp

    return tune


def bias_values(low: float, high: float, step: float) -> list[float]:
    """low, low + step, ... up to high. Raises ConfigError if the three make no valid range."""
    if not step > 0:
        raise ConfigError(f"step is {step}; it must be above 0.")
    if not low <= high:
        raise ConfigError(f"low is {low} and high {high}; low must not be above high.")
    # 0.0005 steps of tolerance: (3 - -3) / 0.1 may be rounded to a little less than 60.
    count = int((high - low) / step + 0.0005) + 1
    if count > _MOST_VALUES:
        raise ConfigError(
            f"low, high and step make {count:,} values; at most {_MOST_VALUES:,} are allowed."
        )
    return [round(low + i * step, 6) + 0.0 for i in range(count)]


def find_pipe(nlp: Language, name: str) -> Any:
    """The component ``name``. Raises ConfigError if it is missing or has no NIL bias."""
    if name not in nlp.pipe_names:
        raise ConfigError(
            f"component is {name!r}; the pipeline has {', '.join(nlp.pipe_names) or 'none'}."
        )
    pipe: Any = nlp.get_pipe(name)
    if "nil_bias" not in getattr(pipe, "cfg", {}):
        raise ConfigError(f"component is {name!r}, which has no NIL bias: it is not a luke_ner.")
    return pipe


def score_biases(
    nlp: Language, name: str, examples: Sequence[Example], values: Sequence[float]
) -> list[Score]:
    """P, R and F of the component with each bias; its own bias is restored afterwards.

    The components before it annotate the documents, as in the pipeline. Raises CorpusError if the
    examples have no gold entity.
    """
    pipe = find_pipe(nlp, name)
    references = [eg.reference for eg in examples]
    if not any(_has_gold(doc, pipe) for doc in references):
        raise CorpusError("The development data has no annotated entity to tune on.")
    docs = _annotated_before(nlp, name, [eg.predicted for eg in examples])
    size = nlp.batch_size
    batches = [docs[i : i + size] for i in range(0, len(docs), size)]
    predictions = [
        pipe.predict(batch) for batch in tqdm(batches, "predict", leave=False, disable=None)
    ]
    scores = []
    bias_before = pipe.cfg["nil_bias"]
    try:
        for bias in tqdm(values, "decode", leave=False, disable=None):
            pipe.cfg["nil_bias"] = bias
            # Copies, because the annotations of one bias would change the results of the next.
            copies = [[doc.copy() for doc in batch] for batch in batches]
            for batch, prediction in zip(copies, predictions):
                pipe.set_annotations(batch, prediction)
            predicted = [doc for batch in copies for doc in batch]
            scores.append(_score(pipe, bias, predicted, references))
    finally:
        pipe.cfg["nil_bias"] = bias_before
    return scores


def choose(scores: Sequence[Score]) -> Score:
    """The bias with the best F. Of consecutive biases with the same F the middle one is chosen,
    because small changes of it make no difference; of several such stretches, the longest. Ties are
    decided by the distance to 0, also if all biases have the same F.

    Biases -1, 0, 1, 2, 3 with F 0.8, 0.9, 0.9, 0.9, 0.7: the bias 1 is chosen.
    """
    best = max(score.f for score in scores)
    stretches: list[list[Score]] = [[]]
    for score in scores:
        if score.f == best:
            stretches[-1].append(score)
        elif stretches[-1]:
            stretches.append([])
    if len(stretches[0]) == len(scores):
        return min(scores, key=lambda score: abs(score.bias))
    stretches = [stretch for stretch in stretches if stretch]
    longest = max(len(stretch) for stretch in stretches)
    middles = [
        stretch[i]
        for stretch in stretches
        if len(stretch) == longest
        for i in {(longest - 1) // 2, longest // 2}
    ]
    return min(middles, key=lambda score: (abs(score.bias), score.bias))


def save_bias(nlp: Language, name: str, score: Score) -> None:
    """Set the bias in the component, whose saved settings take precedence at loading, and in the
    pipeline's config, which should agree with them."""
    find_pipe(nlp, name).cfg["nil_bias"] = score.bias
    nlp.get_pipe_config(name)["nil_bias"] = score.bias


def _has_gold(doc: Doc, pipe: Any) -> bool:
    if pipe.cfg.get("nested"):
        key = pipe.cfg["spans_key"]
        return key in doc.spans and len(doc.spans[key]) > 0
    return len(doc.ents) > 0


def _annotated_before(nlp: Language, name: str, docs: list[Doc]) -> list[Doc]:
    """The documents, annotated by all components before the component ``name``."""
    earlier = nlp.pipe_names[: nlp.pipe_names.index(name)]
    with nlp.select_pipes(enable=earlier):
        return list(nlp.pipe(docs))


def _score(pipe: Any, bias: float, docs: Sequence[Doc], references: Sequence[Doc]) -> Score:
    prefix = f"spans_{pipe.cfg['spans_key']}" if pipe.cfg.get("nested") else "ents"
    scores = pipe.score([Example(doc, gold) for doc, gold in zip(docs, references)])
    p, r, f = (scores.get(f"{prefix}_{part}") or 0.0 for part in "prf")
    return Score(bias, p, r, f)
