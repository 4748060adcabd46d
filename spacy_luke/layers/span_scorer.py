"""``spacy-luke.SpanScorer.v1``: the task layer of spans, for ``luke_ner`` and for stock components.

For a ``SpanQuery`` it returns ``SpanScores``. For documents and candidates, the input of spaCy's
``spancat`` and ``spancat_singlelabel``, it returns probabilities:
``Model[Tuple[List[Doc], Ragged], Floats2d]``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..errors import ConfigError
from .shim import LearnRates
from .span_network import SpanQuery, SpanScorer, SpanScores
from .task_layer import task_layer

NODE = "luke-span-scorer"


@registry.architectures("spacy-luke.SpanScorer.v1")
def SpanScorer_v1(
    encoder: Model,
    *,
    mode: Literal["two-stage", "probe", "full"] = "two-stage",
    candidates_per_word: float = 1.0,
    filter_threshold: float = 0.01,
    layout: Literal["document", "sentence", "context"] | None = None,
    max_pieces: int = 16,
    max_entities: int = 128,
    filter_size: int = 128,
    learn_rate_factor: float = 1.0,
    activation: Literal["softmax", "logistic"] = "softmax",
    predict_layout: Literal["document", "sentence", "context"] | None = None,
    train_candidates_per_word: float | None = None,
    label_weight: float | None = None,
) -> Model[tuple[Sequence[Doc], Ragged], Floats2d]:
    """Score candidate spans, each as an entity input.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``two-stage`` (a fast filter selects the best candidates; probe attention), ``probe``
        or ``full`` (every candidate is an entity input; ``full`` is the published attention).
    candidates_per_word: the number of candidates that the filter of ``two-stage`` selects, per
        word; may be changed after training.
    filter_threshold: candidates with a lower probability according to the filter are not scored;
        may be changed after training.
    layout: ``document`` windows, each ``sentence`` alone, or each sentence extended with document
        ``context`` on both sides, as published. Default: ``context`` for ``full``, else
        ``document``.
    max_pieces: largest number of pieces of a candidate; longer candidates are not scored.
    max_entities: most entities per sequence in ``probe`` and ``full``; windows with more are
        repeated.
    filter_size: width of the filter's hidden layer.
    learn_rate_factor: learning rate of head and filter, relative to the config's.
    activation: of the probabilities for stock components: ``softmax`` (with a negative class) for
        ``spancat_singlelabel``, ``logistic`` for ``spancat``. ``luke_ner`` uses logits.
    predict_layout: the layout at prediction, if it is not that of training; may be changed after
        training.
    train_candidates_per_word: in training, the number of candidates, per word, that are scored even
        if they are below ``filter_threshold`` (if that is 0, no others are). By default
        ``candidates_per_word``. Most of the time of training is spent on candidates, and soon most
        of them are below.
    label_weight: if given, whether a candidate is an entity, and which label it has, are two
        questions with a loss each, and that of labels counts so many times; the head reads the mean
        of a candidate's pieces, too. By default one softmax over labels and "no entity" of the
        first piece, the last piece and the entity, as published.
    """
    if activation not in ("softmax", "logistic"):
        raise ConfigError(f"SpanScorer.activation is {activation!r}; use 'softmax' or 'logistic'.")
    if label_weight is not None and activation == "logistic":
        raise ConfigError(
            "SpanScorer.label_weight needs the class 'no entity', which activation 'logistic' "
            "does not have; set it to null."
        )
    scorer = SpanScorer(
        mode,
        candidates_per_word,
        filter_threshold,
        layout,
        max_pieces,
        max_entities,
        filter_size,
        predict_layout,
        train_candidates_per_word,
        label_weight,
    )
    network = task_layer(encoder, scorer, LearnRates(learn_rate_factor))
    return Model(
        NODE,
        _forward,
        init=_initialize,
        layers=[network],
        dims={"nO": None},
        refs={"network": network, "output_layer": network},
        attrs={"activation": activation},
    )


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=None, Y=Y)
    model.set_dim("nO", model.layers[0].get_dim("nO"), force=True)


def _forward(
    model: Model, inputs: SpanQuery | list[Doc] | tuple[Sequence[Doc], Ragged], is_train: bool
) -> tuple[Any, Callable[[Any], list]]:
    if isinstance(inputs, SpanQuery | list):
        return model.layers[0](inputs, is_train)
    return _probabilities(model, *inputs, is_train)


def _probabilities(
    model: Model, docs: Sequence[Doc], spans: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list]]:
    """(n_candidates, n_classes). If a candidate was dropped by the filter, or does not fit,
    (nearly) all of its probability is on the negative class; ``logistic``: all are 0."""
    xp = model.ops.xp
    network, activation = model.layers[0], model.attrs["activation"]
    scores, finish = network(SpanQuery(docs, spans), is_train)
    logits = scores.logits
    n_classes = network.get_dim("nO")
    output = model.ops.alloc2f(int(spans.lengths.sum()), n_classes)
    probability = model.ops.sigmoid(scores.filter_logits)
    if activation == "softmax":
        output[:, -1] = 1.0
        if len(scores.filtered) and n_classes > 1:
            # The probability p of a dropped candidate is divided into n + 1 equal parts: one for
            # each other class, and two for NIL, which gets 1 - p as well. So NIL is always the most
            # probable.
            output[scores.filtered, :-1] = (probability / (n_classes + 1))[:, None]
            output[scores.filtered, -1] = 1.0 - probability * (n_classes - 1) / (n_classes + 1)
        output[scores.rows] = model.ops.softmax(logits)
    else:
        output[scores.rows] = model.ops.sigmoid(logits)

    def backprop(d_output: Floats2d) -> list:
        """d_output: the gradient of the logits, as in Thinc's Softmax and Logistic with a stock
        loss. The filter's target is 1 for a candidate with a negative gradient in any class,
        because this class is gold; or with none where its probability is 1, which is right then.
        """
        if activation == "softmax" and len(d_output) and float(d_output.sum(axis=1).max()) > 0.5:
            # A target of no class at all: those of spancat_singlelabel sum to 1 or more.
            raise ConfigError(
                "SpanScorer.activation is 'softmax', which has a class for no entity, and the "
                "component has none. Set it to 'logistic', as spancat needs it."
            )
        is_gold = (d_output < 0) | ((d_output == 0) & (output == 1.0))
        of_labels = is_gold[:, :-1] if activation == "softmax" else is_gold
        gold = of_labels.any(axis=1)[scores.filtered]
        d_filter = xp.asarray(probability - gold, dtype="f")
        finish(SpanScores(scores.rows, d_output[scores.rows], scores.filtered, d_filter))
        return []

    return output, backprop
