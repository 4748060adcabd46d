"""Pipelines that are trained and used on a device, and compared with themselves on the CPU."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, fix_random_seed, get_current_ops, use_ops, xp2torch

from spacy_luke.layers.arrays import to_torch
from tests.configs.corpus import write_corpus
from tests.configs.test_configs import ENCODERS
from tests.saved.make import ENCODER, WITHOUT, configs, documents, examples

RATE = 1e-3
KEY = "sc"
"""Of the spans that stock components learn from."""
CASES = (
    "luke",
    "luke_kept",
    "ner_two_stage",
    "ner_probe",
    "ner_full",
    "relation_probe",
    "relation_markers",
    "typing_probe",
    "typing_markers",
    "spancat",
    "joint",
)
"""Every component in every mode. ``luke_kept``: vectors stay on the documents. ``spancat``: the
stock component with our model. ``joint``: one encoder for all components, and a stock tagger."""


def parts_of(case: str, encoder: str) -> dict[str, dict[str, Any]]:
    """Component -> its config."""
    own = {"@architectures": ENCODER, "name": encoder}
    nil_bias = {"nil_bias": 4.0}
    scorer = {"@architectures": "spacy-luke.SpanScorer.v1", "activation": "logistic"}
    added = {
        "luke_kept": {"luke": {"model": own, "keep_vectors": True}},
        "spancat": {
            "spancat": {
                "spans_key": KEY,
                "suggester": {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 3},
                "model": {**scorer, "encoder": own},
                "threshold": 0.0,
            }
        },
        "ner_probe": {"luke_ner": {"model": {"mode": "probe", "encoder": own}, **nil_bias}},
        "typing_probe": {
            "luke_entity_typing": {"model": {"mode": "probe", "encoder": own}, "threshold": 0.0}
        },
    }
    parts = {**configs(encoder), **added}[case]
    if find_spec("spacy_transformers") is None:
        parts.pop("tagger", None)  # it reads vectors through a layer of that package
    return parts


def blank(parts: dict[str, dict[str, Any]]) -> Language:
    nlp = spacy.blank("xx")
    for name, config in parts.items():
        nlp.add_pipe(name, config=config)
    return nlp


def batch(nlp: Language) -> list[Example]:
    found = examples(nlp)
    for example in found:
        example.reference.spans[KEY] = list(example.reference.ents)
    return found


def learn(nlp: Language, steps: int = 2) -> list[float]:
    """The losses of a few steps without dropout, all components and steps end to end."""
    optimizer, found = Adam(RATE, L2=0.0, use_averages=False), []
    for _ in range(steps):
        losses = nlp.update(batch(nlp), sgd=optimizer, drop=0.0)
        found += [float(x) for x in losses.values()]
    return found


def answers(nlp: Language) -> list[np.ndarray]:
    """What the pipeline computes and writes: arrays of numbers."""
    found: list[Any] = []
    for name, pipe in nlp.pipeline:
        if name.startswith("luke_"):
            _, scores = pipe.predict(documents(nlp, gold=False))
            found += [pipe.model.ops.to_numpy(x) for x in scores]
    for doc in nlp.pipe(documents(nlp, gold=False)):
        found += _written(doc)
    return [np.asarray(x, dtype=np.float64) for x in found]


def _written(doc: Doc) -> list[Any]:
    vectors = doc._.luke
    return [
        [(span.start, span.end, span.label) for span in doc.ents],
        *(group.attrs.get("scores", []) for group in doc.spans.values()),
        [token.tag for token in doc],
        [relation.score for relation in doc._.relations],
        [score for span in doc.ents for score in (span._.types or {}).values()],
        vectors.token_vectors.tolist() if vectors else [],
        [span._.luke_vector.tolist() for span in doc.ents] if vectors else [],
    ]


def distance(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference of two pipelines' answers. Raises AssertionError for other shapes."""
    assert [x.shape for x in one] == [x.shape for x in other]
    return max(float(np.abs(x - y).max(initial=0.0)) for x, y in zip(one, other))


def there_and_back(case: str, encoder: str, folder: Path) -> dict[str, float]:
    """Train on the device, save, go on on the CPU, save, and load on the device again. Returns how
    far answers and losses are from each other."""
    fix_random_seed(0)
    parts = parts_of(case, encoder)
    here = blank(parts)
    here.initialize(lambda: batch(here))
    losses = learn(here)
    assert np.isfinite(losses).all()
    data, answered, losses = here.to_bytes(exclude=WITHOUT), answers(here), learn(here)
    with use_ops("numpy"):
        there = blank(parts).from_bytes(data, exclude=WITHOUT)
        assert device_of(there) == "cpu"
        far = {"saved on the device": distance(answered, answers(there))}
        shares = np.subtract(losses, learn(there)) / np.maximum(losses, 1.0)
        far["losses"] = float(np.abs(shares).max(initial=0.0))
        there.to_disk(folder, exclude=WITHOUT)
        expected = answers(there)
    again = spacy.load(folder, exclude=WITHOUT)
    assert device_of(again) == "cuda"
    far["saved on the CPU"] = distance(answers(again), expected)
    return far


def device_of(nlp: Language) -> str:
    """Of the encoder's weights."""
    parameters = (
        parameter
        for _, pipe in nlp.pipeline
        if hasattr(pipe, "model")
        for node in pipe.model.walk()
        for shim in node.shims
        for parameter in shim.module.parameters()
    )
    return next(parameters).device.type


def counts(case: str, encoder: str) -> dict[str, dict[str, int]]:
    """What one batch asks of the device: ``predict``, and ``update`` without the optimizer's step
    (eight operations per parameter)."""
    from tests.gpu.emulation.ledger import LEDGER

    fix_random_seed(0)
    nlp = blank(parts_of(case, encoder))
    nlp.initialize(lambda: batch(nlp))
    found = {}
    for name, run in (
        ("predict", lambda docs, _: list(nlp.pipe(docs, batch_size=len(docs)))),
        ("update", lambda _, golden: nlp.update(golden, sgd=None, drop=0.1)),
    ):
        docs, golden = documents(nlp, gold=False), batch(nlp)
        LEDGER.clear()
        run(docs, golden)
        found[name] = {**LEDGER.totals(), "lines": LEDGER.lines()}
    return found


def config(name: str, encoder: str, folder: Path) -> None:
    """``spacy train`` of a shipped config on the device in bf16, and its pipeline on the CPU."""
    from spacy.cli.train import train

    overrides = {
        **write_corpus(name, encoder, folder),
        "training.max_steps": 2,
        "training.eval_frequency": 1,
        "training.logger.progress_bar": False,
        f"{ENCODERS[name]}.mixed_precision": True,
    }
    if name == "linker":  # else its encoder is frozen
        overrides[f"{ENCODERS[name]}.learn_rate_factor"] = 1.0
    configs_folder = Path(__file__).parents[2] / "configs"
    train(configs_folder / f"{name}.cfg", folder, use_gpu=0, overrides=overrides)
    with use_ops("numpy"):
        nlp = spacy.load(folder / "model-last")
        assert device_of(nlp) == "cpu"
        nlp("Ada Lovelace was born in London.")


def commands(encoder: str, folder: Path) -> None:
    """All commands that take ``--gpu-id``, with a pipeline of all tasks."""
    from spacy.cli import app
    from typer.testing import CliRunner

    import spacy_luke.cli  # noqa: F401

    config("all", encoder, folder)
    model, corpus, records = (str(folder / x) for x in ("model-last", "corpus.spacy", "kb.jsonl"))
    questions = str(folder / "questions.jsonl")
    entity = {"id": "N1", "name": "Bath", "description": "A town ."}
    Path(records).write_text(json.dumps(entity) + "\n", encoding="utf8")
    asked = {"text": "Ada Lovelace was born in London.", "questions": ["Who was there ?"]}
    Path(questions).write_text(json.dumps(asked) + "\n", encoding="utf8")
    for name, *options in (
        ("evaluate", model, corpus),
        ("tune", model, corpus, "--output", str(folder / "tuned")),
        ("page", model, corpus, str(folder / "page.html")),
        ("answer", model, questions, str(folder / "answers.jsonl")),
        ("kb", records, str(folder / "other-kb"), "--pipeline", model),
        ("kb-edit", model, "--add", records),
    ):
        result = CliRunner().invoke(app, ["luke", name, *options, "--gpu-id", "0"])
        assert result.exit_code == 0, (name, result.output[-2000:], result.exception)
    assert device_of(spacy.load(model)) == "cuda"


def threads(encoder: str) -> None:
    """New threads predict as the first one: Thinc's present operations belong to a thread."""
    from concurrent.futures import ThreadPoolExecutor

    from thinc.api import NumpyOps

    nlp = blank(parts_of("joint", encoder))
    nlp.initialize(lambda: batch(nlp))
    expected = answers(nlp)

    def predict(_: int) -> list[np.ndarray]:
        assert isinstance(get_current_ops(), NumpyOps)
        return answers(nlp)

    with ThreadPoolExecutor(2) as pool:
        far = [distance(found, expected) for found in pool.map(predict, range(4))]
    assert max(far) < 1e-5, far


def moving(encoder: str) -> None:
    """A model moves before it has weights, and with them."""
    nlp = blank(parts_of("ner_two_stage", encoder))
    model = nlp.get_pipe("luke_ner").model
    model.to_cpu()
    nlp.initialize(lambda: batch(nlp))
    assert device_of(nlp) == "cpu"
    nlp("Ada Lovelace was born in London.")
    model.to_gpu(0)
    assert device_of(nlp) == "cuda"
    nlp("Ada Lovelace was born in London.")


def rules(emulated: bool) -> None:
    """What a device refuses is refused. emulated: also what a torch before 2.9 does, which cannot
    read the arrays of a newer CuPy as Thinc passes them."""
    import cupy

    tensor, array = torch.zeros(3, device="cuda"), cupy.zeros(3)
    wrong: list[tuple[type[Exception], Callable[[], Any]]] = [
        (RuntimeError, lambda: tensor + torch.zeros(3)),
        (RuntimeError, lambda: torch.cat([tensor, torch.zeros(3)])),
        (TypeError, lambda: tensor.numpy()),
        (TypeError, lambda: np.asarray(array)),
        (TypeError, lambda: array + np.zeros(3)),
        (TypeError, lambda: cupy.concatenate([array, np.zeros(3)])),
    ]
    if emulated:
        wrong.append((BufferError, lambda: xp2torch(array)))
    for expected, run in wrong:
        try:
            run()
        except expected:
            continue
        raise AssertionError(f"no {expected.__name__}")
    tensor[torch.tensor([1])] = 2.0  # an index may be in host memory
    assert (tensor + 1.0).tolist() == [1.0, 3.0, 1.0]
    to_torch(array).add_(1.0)  # one memory
    assert array.get().tolist() == [1.0, 1.0, 1.0]


def pretraining(encoder: Path, folder: Path) -> None:
    """A few steps of both phases by the real loop, with evaluation and a checkpoint."""
    from tests.pretraining.run_training import run
    from tests.pretraining.world import make_world

    make_world(folder, encoder, n=24)
    values = {
        "phases": [[1, 1e-3, True], [1, 1e-3, False]],
        "evaluate_every": 1,
        "deterministic": True,
    }
    assert torch.cuda.is_available()
    run(folder, encoder, folder / "out", {**values, "precision": "bf16"})
