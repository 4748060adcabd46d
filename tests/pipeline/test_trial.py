"""Trials of settings: one changes nothing for the next."""

import pytest

from spacy_luke.pipeline.trial import Trial
from tests.pipeline.linker_data import (
    make_examples,
    make_linker,
)


@pytest.mark.parametrize("overwrite", [True, False])
def test_trials_of_settings_are_independent(bert_dir, tmp_path, overwrite):
    """Of a spans group, too: the links of one trial would stay in the next."""
    nlp = make_linker(bert_dir, tmp_path / "kb", spans_key="sc", overwrite=overwrite)
    examples = make_examples(nlp)
    for doc in (doc for eg in examples for doc in (eg.x, eg.y)):
        doc.spans["sc"] = list(doc.ents)
    trial = Trial(nlp, "luke_linker", examples)
    found = []
    for bias in (-1000.0, 1000.0, -1000.0):
        trial.set(nil_bias=bias)
        found.append([(x.label, x.right) for x in trial.answers().found])
    assert found[0] == found[2] == [] and len(found[1]) > 3
