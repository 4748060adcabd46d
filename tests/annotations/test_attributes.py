"""Custom attributes: registered by the import of the package, and names that are taken."""

import pickle
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.attributes import ATTRIBUTES
from spacy_luke.errors import ConfigError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A document with annotation, as DocBin and pickled."""
    path = tmp_path_factory.mktemp("attributes")
    nlp = spacy.blank("en")
    doc = nlp("Ada lived in London")
    doc.spans["mine"] = [Span(doc, 0, 1, label="PER"), Span(doc, 3, 4, label="LOC")]
    doc.spans["mine"].attrs["scores"] = [0.5, 0.25]
    doc.set_ents(list(doc.spans["mine"]))
    ada, london = doc.ents
    ada._.types = {"/person": 0.75}
    ada._.candidates = [("Q7259", 0.5)]
    doc._.relations = [(ada, london, "lived_in", 0.875)]
    doc._.questions = ["Who lived in London?"]
    doc._.answers = [[ada]]
    doc._.queries = ["@placeholder lived there."]
    DocBin(docs=[doc], store_user_data=True).to_disk(path / "docs.spacy")
    (path / "doc.pickle").write_bytes(pickle.dumps(doc))
    return path


READ = {
    "pickle": "pickle.load(open('doc.pickle', 'rb'))",
    "DocBin": "list(DocBin().from_disk('docs.spacy').get_docs(spacy.blank('en').vocab))[0]",
}
SHOW = """
ada = doc.ents[0]
print(ada._.score, ada._.types, ada._.candidates[0].id, doc.ents[1]._.types)
print(doc._.relations[0].label, doc._.answers[0].best, doc._.queries[0].text, doc._.luke)
"""
SHOWN = "0.5 {'/person': 0.75} Q7259 None\nlived_in Ada @placeholder lived there. None\n"


@pytest.mark.parametrize(
    "imports",
    [
        "import spacy_luke, spacy",
        "import spacy; spacy.blank('en')",  # entry points alone
    ],
)
def test_a_fresh_process_sees_the_annotation_of_documents(saved, imports):
    shown = "".join(f"\ndoc = {read}\n{SHOW}" for read in READ.values())
    code = f"import pickle\n{imports}\nfrom spacy.tokens import DocBin\n{shown}"
    result = subprocess.run([sys.executable, "-c", code], cwd=saved, capture_output=True, text=True)
    assert result.stdout == SHOWN * len(READ), result.stderr


def test_a_name_that_is_taken_before_the_import_breaks_nothing_but_components_that_need_it():
    code = """
import spacy
from spacy.tokens import Doc, Span
Span.set_extension("types", default="mine")
import spacy_luke
doc = spacy.blank("en")("Ada")
assert doc[:1]._.types == "mine" and doc[:1]._.candidates is None
spacy.blank("en").add_pipe("luke_ner")
try:
    spacy.blank("en").add_pipe("luke_entity_typing")
except ValueError as err:
    print(err)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Span._.types is set by another package" in result.stdout, result.stderr


FACTORIES = {
    "relations": "luke_relation",
    "types": "luke_entity_typing",
    "candidates": "luke_linker",
    "allowed_ids": "luke_linker",
    "questions": "luke_qa",
    "answers": "luke_qa",
    "queries": "luke_cloze",
    "completions": "luke_cloze",
    "luke": "luke",
    "luke_vector": "luke",
}


@pytest.mark.parametrize("name", FACTORIES)
def test_an_attribute_of_that_name_from_elsewhere_is_refused(name):
    (attribute,) = (x for x in ATTRIBUTES if x.name == name)
    owner = attribute.owner
    owner.remove_extension(name)
    owner.set_extension(name, default=None)
    try:
        with pytest.raises(ConfigError, match=f"{owner.__name__}._.{name} is set by another"):
            spacy.blank("en").add_pipe(FACTORIES[name])
    finally:
        owner.remove_extension(name)
    spacy.blank("en").add_pipe(FACTORIES[name])  # registers it again
    assert attribute.is_ours


def test_every_attribute_is_one_that_a_component_needs_or_the_score():
    assert {x.name for x in ATTRIBUTES} == {*FACTORIES, "score"}
    assert all(x.owner in (Doc, Span) and x.is_ours for x in ATTRIBUTES)


def test_what_is_read_cannot_be_changed_in_place(saved):
    doc = pickle.loads((saved / "doc.pickle").read_bytes())
    ada = doc.ents[0]
    ada._.allowed_ids = ["Q7259"]
    doc._.queries = [("@placeholder lived there.", [ada])]
    doc._.completions = [[("Ada", [ada])]]
    (answers,), (completions,) = doc._.answers, doc._.completions
    (query,) = doc._.queries
    read = (doc._.relations, doc._.questions, doc._.answers, doc._.queries, doc._.completions)
    inner = (answers.answers, query.candidates, completions.candidates, completions.best.mentions)
    for values in (*read, *inner, ada._.candidates, ada._.allowed_ids):
        assert len(values) == 1
        with pytest.raises(AttributeError, match="'tuple' object has no attribute 'append'"):
            values.append(values[0])
    doc._.relations = [*doc._.relations, (doc.ents[1], ada, "home_of")]
    assert [x.label for x in doc._.relations] == ["lived_in", "home_of"]
