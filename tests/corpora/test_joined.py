"""Several corpora are read as one, each with what it annotates."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import registry

from spacy_luke.annotations.annotated import annotated_labels, set_annotated
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.errors import ConfigError

NAME = "spacy-luke.JoinedCorpora.v1"
NLP = spacy.blank("en")


@pytest.fixture
def paths(tmp_path):
    def doc(words):
        doc = Doc(NLP.vocab, words=words)
        doc.ents = [Span(doc, 0, 1, label="PER"), Span(doc, 2, 3, label="LOC")]
        return doc

    news = [doc(["Ada", "left", "Rome"]), doc(["Bob", "saw", "Bonn"])]
    facts = [doc(["Eve", "likes", "Kiel"])]
    set_relations(facts[0], [(*facts[0].ents, "likes")])
    set_annotated(facts[0], "relations", ["likes"])
    for name, docs in (("news", news), ("facts", facts)):
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{name}.spacy")
    return {name: str(tmp_path / f"{name}.spacy") for name in ("news", "facts")}


def reader(paths, annotates):
    config = {
        "train": {
            "@readers": NAME,
            "corpora": {
                name: {"@readers": "spacy-luke.PresetEntsCorpus.v1", "path": path}
                for name, path in paths.items()
            },
            "annotates": annotates,
        }
    }
    return registry.resolve(config)["train"]


def test_each_corpus_says_what_it_annotates(paths):
    corpus = reader(paths, {"news": ["ents", "types"], "facts": ["relations"]})
    for _ in range(2):
        one, two, three = corpus(NLP)
        assert [eg.reference[0].text for eg in (one, two, three)] == ["Ada", "Bob", "Eve"]
        for eg in (one, two):
            assert annotated_labels(eg.reference, "relations") == frozenset()
            assert annotated_labels(eg.reference, "ents") is None
            assert annotated_labels(eg.reference, "types") is None
        assert annotated_labels(three.reference, "ents") == frozenset()
        # What the document says of itself stays.
        assert annotated_labels(three.reference, "relations") == {"likes"}
        assert [r.label for r in get_relations(three.reference)] == ["likes"]
        # Entities are given all the same.
        assert [ent.text for ent in three.predicted.ents] == ["Eve", "Kiel"]


@pytest.mark.parametrize(
    "annotates,message",
    [
        ({"news": ["ents"]}, r"names \['news'\] and corpora \['facts', 'news'\]"),
        ({"news": ["ents"], "facts": ["rels"]}, r"annotates.facts has \['rels'\]; use ents"),
    ],
)
def test_settings_that_cannot_work(paths, annotates, message):
    with pytest.raises(ConfigError, match=message):
        reader(paths, annotates)
    with pytest.raises(ConfigError, match="corpora is empty"):
        reader({}, {})
