"""The code of ``docs/adding_a_task.md`` is a task: it learns, shares an encoder, and is saved."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import Adam, fix_random_seed

PAGE = Path(__file__).parents[2] / "docs" / "adding_a_task.md"
LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}


@pytest.fixture(scope="module")
def task() -> ModuleType:
    """The page's code as a module."""
    if "adding_a_task" not in sys.modules:
        code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf8"), re.DOTALL))
        assert len(code.splitlines()) <= 150
        module = sys.modules["adding_a_task"] = ModuleType("adding_a_task")
        exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return sys.modules["adding_a_task"]


def answers(task: ModuleType, nlp: Language) -> list[str]:
    docs = [task.annotated(nlp, eg.text, "") for eg in task.examples(nlp)]
    return [doc.ents[0]._.attitude for doc in nlp.pipe(docs)]


def test_it_learns_and_answers_as_before_once_loaded(task, luke_dir, tmp_path):
    fix_random_seed(0)
    nlp = task.train(str(luke_dir), steps=40)
    assert answers(task, nlp) == ["praise", "blame"]
    nlp.to_disk(tmp_path)
    assert answers(task, spacy.load(tmp_path)) == ["praise", "blame"]


def test_it_shares_an_encoder(task, luke_dir):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(luke_dir)}})
    model = {"@architectures": "my-project.AttitudeScorer.v1", "encoder": LISTENER}
    nlp.add_pipe("attitude", config={"model": model})
    nlp.initialize(lambda: task.examples(nlp))
    optimizer = Adam(5e-3, L2=0.0, use_averages=False)
    for _ in range(40):
        nlp.update(task.examples(nlp), sgd=optimizer)
    assert answers(task, nlp) == ["praise", "blame"]


def test_scores_do_not_depend_on_the_batch(task, luke_dir):
    nlp = task.train(str(luke_dir), steps=0)
    pipe = nlp.get_pipe("attitude")
    long = Doc(nlp.vocab, words=["Tokyo", "is", "large"] * 80)
    long.ents = [Span(long, 3 * i, 3 * i + 1, "LOC") for i in range(80)]
    docs = [long, *(eg.predicted for eg in task.examples(nlp))]
    _, together = pipe.predict(docs)
    alone = [pipe.predict([doc])[1].logits for doc in docs]
    assert len(together.rows) == 82
    assert np.abs(together.logits - np.concatenate(alone)).max() < 1e-5
