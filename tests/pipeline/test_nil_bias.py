from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import registry

from spacy_luke.layers.task_layer import head_of
from tests.pipeline.conftest import fit, make_examples


def test_the_callback_gives_a_pipeline_that_is_saved_the_bias_best_on_dev(ner, tmp_path):
    nlp = ner(mode="probe")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in examples]).to_disk(path)
    pipe = nlp.get_pipe("luke_ner")
    head = head_of(pipe.model).head.classifier
    head.bias.data[-1] += 30.0  # a model that finds nothing any more
    assert (
        nlp.evaluate([Example(eg.reference.copy(), eg.reference) for eg in examples])["ents_f"] == 0
    )
    make = registry.callbacks.get("spacy-luke.tune_nil_bias.v1")
    callback = make(str(path), low=-40.0, high=40.0, step=5.0)
    assert callback(nlp) is nlp
    assert 20.0 <= pipe.cfg["nil_bias"] <= 40.0
    assert nlp.get_pipe_config("luke_ner")["nil_bias"] == pipe.cfg["nil_bias"]
    assert (
        nlp.evaluate([Example(eg.reference.copy(), eg.reference) for eg in examples])["ents_f"] == 1
    )
