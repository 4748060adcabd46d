"""What a page says of its documents: predicted, annotated, or both. Predictions are never compared
with predictions."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.questions import Offsets, set_answer_offsets, set_questions
from spacy_luke.cli.pages.documents import read_documents
from spacy_luke.cli.pages.layers import has_layer, not_annotated, scored_layers
from spacy_luke.cli.pages.page import make_page, page_as_it_is
from spacy_luke.cli.pages.render import render
from spacy_luke.errors import ConfigError
from tests.cli.pages.page_data import read

EN = spacy.blank("en")
WORDS = ["Ada", "met", "Byron", "."]
LEGEND = {
    "only predicted": ["predicted and annotated alike", "spurious: only predicted"],
    "nothing": ["predicted, with nothing to compare with"],
    "as it is": ["an entity of the documents"],
}


def everything(score):
    """A document with all layers. score: of all of them; 1.0 as annotation has."""
    doc = Doc(EN.vocab, words=WORDS)
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q1"), Span(doc, 2, 3, "PER")]
    ada, byron = doc.ents
    ada._.types = {"/person": score}
    doc._.relations = [(ada, byron, "knows", score)]
    set_questions(doc, ["Who?"])
    set_answer_offsets(doc, [Offsets([(0, 3, score)], 1.0 - score)])
    if score < 1.0:
        doc.spans["sc"] = [ada, byron]
        doc.spans["sc"].attrs["scores"] = [score, score]
        ada._.candidates = [("Q1", score)]
    return doc


@spacy.Language.factory(
    "test_all_layers",
    assigns=[
        "doc.ents",
        "doc._.relations",
        "span._.types",
        "span._.candidates",
        "doc._.answers",
    ],
)
def make_all_layers(nlp, name):
    def annotate(doc):
        done = everything(0.5)
        doc.ents = [Span(doc, x.start, x.end, x.label_, kb_id=x.kb_id_) for x in done.ents]
        doc.spans["sc"] = list(doc.ents)
        doc.spans["sc"].attrs["scores"] = [0.5, 0.5]
        doc.user_data.update(done.user_data)
        return doc

    return annotate


@pytest.fixture
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("test_all_layers")
    return nlp


@pytest.fixture
def saved(tmp_path):
    """Writes documents to a file."""

    def save(doc):
        path = tmp_path / "docs.spacy"
        DocBin(docs=[doc], store_user_data=True).to_disk(path)
        return path

    return save


def page_of(nlp, path):
    documents = read_documents(path, nlp)
    return make_page(nlp, documents.examples, 0, "Test", path.name, documents.scored)


def test_layers_with_scores_are_predictions():
    layers = {"doc.ents", "span._.types", "doc._.relations", "span._.candidates", "doc._.answers"}
    assert scored_layers([everything(0.5), everything(1.0)]) == layers - {"doc.ents"}
    assert scored_layers([everything(0.5)]) == layers
    assert scored_layers([everything(1.0)]) == set()


def test_annotation_is_compared_with_predictions(nlp, saved):
    page = page_of(nlp, saved(everything(1.0)))
    assert page.compared == ["entities", "relations", "links", "types", "answers"]
    statuses = {layer.name: layer.status for layer in page.layers}
    assert set(statuses.values()) == {
        "predicted by test_all_layers, and compared with the annotation of docs.spacy"
    }
    text = read(render(page))
    assert all(x in text for x in LEGEND["only predicted"])
    assert not any(x in text for x in LEGEND["nothing"] + LEGEND["as it is"])


def test_predictions_are_not_compared_with_themselves(nlp, saved):
    page = page_of(nlp, saved(nlp("Ada met Byron .")))
    assert (page.compared, page.curves, page.questions) == ([], [], [])
    assert all("have scores, so they are predictions" in x.status for x in page.layers)
    html = render(page)
    text = read(html)
    assert "F 100" not in text and "100.0" not in text and "differs" not in text
    assert all(x in text for x in LEGEND["nothing"])
    assert not any(x in text for x in LEGEND["only predicted"] + LEGEND["as it is"])
    assert 'class="bar"' not in html and "<script" not in html
    (shown,) = page.documents
    kinds = {tag.kind for piece in shown.passages[0].pieces for tag in piece.tags}
    assert kinds == {"plain"} and shown.errors == {}


def of_group(score, linked):
    """A document with types, and links if wanted, of a spans group alone."""
    doc = Doc(EN.vocab, words=WORDS)
    kb_id = "Q1" if linked else ""
    doc.spans["things"] = [Span(doc, 0, 1, "PER", kb_id=kb_id), Span(doc, 2, 3, "PER")]
    first = doc.spans["things"][0]
    first._.types = {"/person": score}
    if linked and score < 1.0:
        first._.candidates = [("Q1", score)]
    return doc


def test_types_and_links_of_a_group_are_predictions_or_annotation_as_those_of_entities():
    keys = {x: {"spans_key": "things"} for x in ("span._.types", "span._.candidates")}
    for linked, layers in ((False, {"span._.types"}), (True, set(keys))):
        predicted, gold = (of_group(score, linked) for score in (0.5, 1.0))
        for doc in (predicted, gold):
            assert {x for x in keys if has_layer(doc, x, keys)} == layers
            assert not any(has_layer(doc, x, {}) for x in keys)
        assert scored_layers([predicted], keys) == layers and not scored_layers([gold], keys)
        for doc in (gold, predicted):
            not_annotated(doc, layers, keys)
            assert not any(has_layer(doc, x, keys) for x in layers)
        page = page_as_it_is([of_group(0.5, linked)], 0, "Test", "docs.spacy")
        assert len(page.layers) == len(layers)
        assert {x.status for x in page.layers} == {
            "predictions, with scores; of the spans group things"
        }
        assert "/person" in read(render(page))


def test_without_a_pipeline_entities_come_first_and_spans_that_are_not_shown_are_counted():
    """Scores of a group are not those of annotated entities."""
    doc = Doc(EN.vocab, words=WORDS)
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q2")]
    doc.ents[0]._.types = {"/city": 1.0}
    two = of_group(0.5, True)
    two.spans["same"] = [Span(two, 0, 1, "PER", kb_id="Q3")]  # another link of the same words
    page = page_as_it_is([doc, of_group(0.5, True), two], 0, "Test", "docs.spacy")
    statuses = {x.name: x.status for x in page.layers}
    expected = "annotation, or predictions without scores; not shown: {} in other groups"
    assert statuses["types"] == expected.format(2) and statuses["links"] == expected.format(3)
    text = read(render(page))
    assert "/city" in text and "Q2" in text and "/person" not in text


def test_without_entities_the_group_that_most_documents_have_is_shown():
    other = Doc(EN.vocab, words=WORDS)
    other.spans["few"] = [Span(other, 2, 3, "PER", kb_id="Q9")]
    page = page_as_it_is([other, of_group(0.5, True), of_group(0.5, True)], 0, "Test", "docs.spacy")
    (links,) = (x for x in page.layers if x.name == "links")
    assert links.status.endswith("of the spans group things; not shown: 1 in other groups")


def test_text_has_only_predictions(nlp, tmp_path):
    (tmp_path / "a.txt").write_text("Ada met Byron .", encoding="utf8")
    page = page_of(nlp, tmp_path / "a.txt")
    assert page.compared == [] and page.bars
    assert {x.status for x in page.layers if x.name != "answers"} == {
        "predicted by test_all_layers; not annotated, so nothing is compared"
    }
    text = read(render(page))
    assert "Predictions for 1 document." in text and all(x in text for x in LEGEND["nothing"])


def test_documents_without_a_pipeline_are_shown_as_they_are(saved):
    for score, status, shown_score in (
        (1.0, "annotation, or predictions without scores", ""),
        (0.5, "predictions, with scores", " 0.50"),
    ):
        documents = read_documents(saved(everything(score)), None)
        docs = [eg.reference for eg in documents.examples]
        page = page_as_it_is(docs, 0, "Test", "docs.spacy")
        assert page.compared == [] and {x.status for x in page.layers} == {status}
        assert len(page.layers) == 5
        text = read(render(page))
        assert "As they are, compared with nothing: 1 document." in text
        for what in (f"PER{shown_score}", f"knows{shown_score}", f"/person{shown_score}", "Q1"):
            assert what in text
        assert ("1.00" in text, "knows 0.50" in text) == (False, score == 0.5)
        assert all(x in text for x in LEGEND["as it is"])
        assert not any(x in text for x in LEGEND["only predicted"] + LEGEND["nothing"])


def test_documents_with_nothing_to_show_are_an_error(saved):
    with pytest.raises(ConfigError, match="Give a PIPELINE"):
        page_as_it_is([EN("Ada")], 0, "Test", "docs.spacy")


def test_a_pipeline_that_reads_entities_needs_some(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_relations_only")
    (tmp_path / "a.txt").write_text("Ada met Byron .", encoding="utf8")
    with pytest.raises(ConfigError, match="reads entities and writes none"):
        page_of(nlp, tmp_path / "a.txt")


@spacy.Language.factory("test_relations_only", assigns=["doc._.relations"])
def make_relations_only(nlp, name):
    return lambda doc: doc


def test_entities_without_scores_that_all_agree_are_doubted(saved):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": "Ada"}])
    page = page_of(nlp, saved(nlp("Ada met Byron .")))
    assert page.tallies[0].total.f == 1.0
    assert len(page.notes) == 1 and "compared with themselves" in read(render(page))
    ruler.add_patterns([{"label": "PER", "pattern": "Byron"}])
    gold = nlp("Ada met Byron .")
    gold.ents = gold.ents[:1]
    assert page_of(nlp, saved(gold)).notes == []


def test_entities_of_which_some_have_scores_are_doubted(nlp, saved):
    doc = nlp("Ada met Byron .")  # as of luke_ner and a ruler
    doc.spans["sc"] = doc.ents[:1]
    doc.spans["sc"].attrs["scores"] = [0.5]
    page = page_of(nlp, saved(doc))
    assert page.tallies[0].total.f == 1.0
    assert "1 of 2 entities of docs.spacy have scores, so they may be predictions" in page.notes[0]


def test_only_the_files_of_a_folder_that_are_annotated_are_compared(nlp, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    predicted = nlp("Ada met Byron .")
    for name, doc in (("predicted", predicted), ("gold", everything(1.0))):
        DocBin(docs=[doc], store_user_data=True).to_disk(folder / f"{name}.spacy")
    page = page_of(nlp, folder)
    assert page.tallies[0].total.gold == 2
    assert all("only the others are compared" in layer.status for layer in page.layers)
    assert page.notes == []
