"""The NIL bias of ``luke_ner``, chosen on development data.

The network runs once over the data; each bias is then only decoded.
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
from .card import refresh

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
    """For ``[training.before_to_disk]``: every pipeline that training saves gets the bias that
    is best for it on the documents at ``path``.

    Later evaluations of the same training use that bias, until the next save chooses again.
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
    """low, low + step, ... up to high. Raises ConfigError where that cannot be walked."""
    if not step > 0:
        raise ConfigError(f"step is {step}; it has to be above 0.")
    if not low <= high:
        raise ConfigError(f"low is {low} and high {high}; low may not be above high.")
    # Half a thousandth of a step makes up for rounding at the upper end.
    count = int((high - low) / step + 0.0005) + 1
    if count > _MOST_VALUES:
        raise ConfigError(f"low, high and step ask for {count:,} values; {_MOST_VALUES:,} do.")
    return [round(low + i * step, 6) + 0.0 for i in range(count)]


def tuned(nlp: Language, name: str) -> Any:
    """The component that has a NIL bias. Raises ConfigError where there is none."""
    if name not in nlp.pipe_names:
        raise ConfigError(
            f"component is {name!r}; the pipeline has {', '.join(nlp.pipe_names) or 'none'}."
        )
    pipe: Any = nlp.get_pipe(name)
    if "nil_bias" not in getattr(pipe, "cfg", {}):
        raise ConfigError(f"component is {name!r}, which has no NIL bias: it is no luke_ner.")
    return pipe


def score_biases(
    nlp: Language, name: str, examples: Sequence[Example], values: Sequence[float]
) -> list[Score]:
    """P, R and F of the component under each bias; its own bias is left as it was.

    Components before it annotate the documents, as in the pipeline. Raises CorpusError where
    the examples have nothing to find.
    """
    pipe = tuned(nlp, name)
    references = [eg.reference for eg in examples]
    if not any(_gold(doc, pipe) for doc in references):
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
            # Copies, because what a bias wrote would stand in the next one's way.
            fresh = [[doc.copy() for doc in batch] for batch in batches]
            for batch, prediction in zip(fresh, predictions):
                pipe.set_annotations(batch, prediction)
            found = [doc for batch in fresh for doc in batch]
            scores.append(_score(pipe, bias, found, references))
    finally:
        pipe.cfg["nil_bias"] = bias_before
    return scores


def choose(scores: Sequence[Score]) -> Score:
    """The best F; of neighbours that are equally good the middle one, so that a little more
    or less of it changes nothing; of several such stretches the longest. What is left is
    decided by nearness to 0, as is everything where no bias makes a difference."""
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
    """Set the bias where the pipeline keeps it: in the component, whose saved settings win at
    loading, and in the config, which is read first and should say the same."""
    tuned(nlp, name).cfg["nil_bias"] = score.bias
    nlp.get_pipe_config(name)["nil_bias"] = score.bias


def _gold(doc: Doc, pipe: Any) -> bool:
    if pipe.cfg.get("nested"):
        key = pipe.cfg["spans_key"]
        return key in doc.spans and len(doc.spans[key]) > 0
    return len(doc.ents) > 0


def _annotated_before(nlp: Language, name: str, docs: list[Doc]) -> list[Doc]:
    """The documents after every component that stands before the tuned one."""
    before = nlp.pipe_names[: nlp.pipe_names.index(name)]
    with nlp.select_pipes(enable=before):
        return list(nlp.pipe(docs))


def _score(pipe: Any, bias: float, docs: Sequence[Doc], references: Sequence[Doc]) -> Score:
    prefix = f"spans_{pipe.cfg['spans_key']}" if pipe.cfg.get("nested") else "ents"
    found = pipe.score([Example(doc, gold) for doc, gold in zip(docs, references)])
    p, r, f = (found.get(f"{prefix}_{part}") or 0.0 for part in "prf")
    return Score(bias, p, r, f)
