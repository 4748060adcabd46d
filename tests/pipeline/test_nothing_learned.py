"""A component that has learned next to nothing says so, beside others whose scores are good."""

import pytest

from spacy_luke.pipeline import classifier_pipe
from tests.pipeline.conftest import fit, trained
from tests.pipeline.relation_data import make_examples, make_pipeline

SAID = "it has learned next to nothing"


@pytest.fixture(autouse=True)
def few_updates(monkeypatch):
    monkeypatch.setattr(classifier_pipe, "MANY_UPDATES", 3)


def said(caplog) -> list[str]:
    found = [record.getMessage() for record in caplog.records if SAID in record.getMessage()]
    caplog.clear()
    return found


def test_it_is_said_once_and_not_before_many_updates(bert_dir, caplog):
    nlp = make_pipeline("luke_relation", bert_dir, "probe", threshold=1.0)
    nlp.initialize(lambda: make_examples(nlp))
    fit(nlp, make_examples(nlp), 2)
    assert nlp.evaluate(make_examples(nlp))["rels_f"] == 0.0 and not said(caplog)
    fit(nlp, make_examples(nlp), 1)
    nlp.evaluate(make_examples(nlp))
    (message,) = said(caplog)
    assert message.startswith("luke_relation: after 3 updates its best score is 0.0 %")
    assert message.endswith("below threshold.")
    nlp.evaluate(make_examples(nlp))
    assert not said(caplog)
    nlp.initialize(lambda: make_examples(nlp))  # another training begins
    nlp.evaluate(make_examples(nlp))
    assert not said(caplog)
    fit(nlp, make_examples(nlp), 3)
    nlp.evaluate(make_examples(nlp))
    assert len(said(caplog)) == 1


def test_what_is_learned_or_has_no_gold_annotation_is_not_warned_of(ner, caplog):
    nlp = ner()
    examples = trained(nlp)
    assert nlp.evaluate(examples)["ents_f"] > classifier_pipe.LEAST_LEARNED
    bare = [eg.from_dict(nlp.make_doc(eg.text), {}) for eg in examples]
    assert nlp.evaluate(bare)["ents_f"] is None and not said(caplog)
