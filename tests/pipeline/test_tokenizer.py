"""Languages with a tokenizer of their own, of which the configs name another."""

import json
import re

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import get_lang_class, registry

from spacy_luke.pipeline.tokenizer import warn_of_tokenizer

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}  # as configs/*.cfg


@pytest.fixture(autouse=True)
def _logged():
    spacy.util.logger.propagate = True


def test_the_tokenizer_to_give_is_named(caplog):
    nlp = get_lang_class("zh").from_config(CONFIG)
    assert len(nlp("北京很大")) == 1
    warn_of_tokenizer(nlp)
    given = json.loads(re.findall(r"--nlp.tokenizer '(.*)'", caplog.text)[0])
    own = registry.resolve({"x": given})["x"](nlp)
    assert len(own("北京很大")) == 4


@pytest.mark.parametrize("nlp", [spacy.blank("zh"), spacy.blank("de")])
def test_a_tokenizer_that_fits_is_not_named(nlp, caplog):
    warn_of_tokenizer(nlp)
    assert not caplog.records


def test_initialize_tells(luke_dir, caplog):
    nlp = get_lang_class("zh").from_config(CONFIG)
    for name in ("one", "two"):
        nlp.add_pipe("luke_ner", name, config={"model": {"encoder": {"name": str(luke_dir)}}})
    doc = Doc(nlp.vocab, words=["北京", "很大"])
    doc.ents = [doc.char_span(0, 2, "LOC")]
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["北京", "很大"]), doc)])
    assert caplog.text.count("the language 'zh' has its own") == 1
