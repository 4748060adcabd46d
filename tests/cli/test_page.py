"""``spacy luke page``: one HTML file with predicted and annotated entities side by side."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.cli.pages.charts import histogram
from spacy_luke.cli.pages.counts import Counts, count
from spacy_luke.cli.pages.page import make_page
from spacy_luke.cli.pages.render import render
from spacy_luke.cli.pages.text import Entity, cut_text
from spacy_luke.errors import ConfigError
from spacy_luke.metrics.entity_typing import typing_score
from spacy_luke.metrics.relations import relation_score
from tests.cli.pages.page_data import FAMILY, operations, read, related, texts
from tests.pipeline.conftest import fit, make_examples, make_ner


def marked(pieces):
    return [(piece.kind, piece.text) for piece in pieces]


def test_agreement_missed_and_spurious_are_told_apart():
    predicted = [Entity(0, 3, "PER", 0.9), Entity(8, 12, "ORG", 0.6)]
    gold = [Entity(0, 3, "PER"), Entity(4, 7, "LOC")]
    pieces = cut_text("Ada saw Acme", predicted, gold)
    assert marked(pieces) == [
        ("agreed", "Ada"),
        ("", " "),
        ("missed", "saw"),
        ("", " "),
        ("spurious", "Acme"),
    ]
    assert [tag for piece in pieces for tag in piece.tags] == [
        ("agreed", "PER", 0.9),
        ("missed", "LOC", None),
        ("spurious", "ORG", 0.6),
    ]


def test_entities_that_cross_keep_the_text_whole():
    pieces = cut_text("the Port of Ada", [Entity(0, 8, "PLACE")], [Entity(4, 15, "PLACE")])
    assert marked(pieces) == [("spurious", "the "), ("both", "Port"), ("missed", " of Ada")]


def test_work_grows_with_the_entities():
    """Counted in operations of the interpreter: four times the text, five times the work."""

    def cut(n: int) -> int:
        entities = [Entity(2 * i, 2 * i + 1, "X") for i in range(n)]
        types = {(entity.start, entity.end): [] for entity in entities}
        return operations(lambda: cut_text("a " * n, entities, entities[::2], types))

    assert cut(200) < 5 * cut(50)


def test_a_wrong_label_is_spurious_and_missed():
    (piece,) = cut_text("Ada", [Entity(0, 3, "PER")], [Entity(0, 3, "LOC")])
    assert (piece.kind, piece.label, piece.gold_label) == ("both", "PER", "LOC")
    assert count([Entity(0, 3, "PER")], [Entity(0, 3, "LOC")]) == Counts(0, 1, 1)


def test_without_annotation_nothing_is_right_or_wrong():
    (piece,) = cut_text("Ada", [Entity(0, 3, "PER", 0.5)], None)
    assert piece.kind == "plain"


def test_scores_of_nothing_are_no_numbers():
    counts = Counts()
    assert (counts.p, counts.r, counts.f) == (None, None, None)
    counts.add(Counts(agreed=1, spurious=1, missed=3))
    assert (counts.p, counts.r, counts.f) == (1 / 2, 1 / 4, 1 / 3)


def test_the_histogram_counts_every_score():
    bars = histogram([(0.0, True), (0.049, False), (1.0, True), (0.97, True), (0.99, None)])
    assert bars[0][1:] == (1, 1, 0) and bars[-1][1:] == (2, 0, 1)
    assert histogram([]) == []


@pytest.fixture(scope="module")
def nlp(bert_dir):
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    return nlp


def test_totals_are_those_of_the_scorer_and_all_documents_count(nlp):
    examples = make_examples(nlp)
    examples[1].reference.set_ents([], default="outside")
    page = make_page(nlp, examples, limit=2, title="Test")
    expected = nlp.evaluate(examples)
    (tally,) = page.tallies
    total = tally.total
    assert total.p == expected["ents_p"] < 1.0
    assert (total.r, total.f) == (expected["ents_r"], expected["ents_f"])
    assert {label: part.f for label, part in tally.labels.items()} == {
        label: part["f"] for label, part in expected["ents_per_type"].items()
    }
    assert (len(page.documents), page.n_docs) == (2, 5)
    assert sum(bar.agreed + bar.spurious for bar in page.bars) == total.predicted
    assert "5 documents; the first 2 are shown" in read(render(page))


def test_how_often_entities_are_right_by_their_score(nlp):
    examples = make_examples(nlp)
    examples[1].reference.set_ents([], default="outside")
    page = make_page(nlp, examples, limit=0, title="Test")
    (tally,), (curve,) = page.tallies, page.curves
    assert curve.component == "luke_ner" and 0 < curve.error < 1
    assert sum(found.n for found in curve.bins) == tally.total.predicted
    right = sum(found.n * found.right for found in curve.bins)
    assert right == pytest.approx(tally.total.predicted * tally.total.p)
    assert f"Calibration error {100 * curve.error:.1f} %" in read(render(page))


def test_entities_on_tokens_without_annotation_are_shown_and_not_compared(nlp):
    """As converted spans that overlap or cut a token leave them."""
    examples = make_examples(nlp)
    gold, *others = examples[0].reference.ents
    examples[0].reference.set_ents(others, missing=[gold], default="outside")
    page = make_page(nlp, examples, limit=0, title="Test")
    expected = nlp.evaluate(examples)
    (tally,) = page.tallies
    assert tally.total.p == pytest.approx(expected["ents_p"])
    assert tally.total.f == pytest.approx(expected["ents_f"])
    assert page.documents[0].counts == Counts(1, 0, 0) and not page.documents[0].errors
    assert ("plain", gold.text) in marked(page.documents[0].passages[0].pieces)
    assert sum(bar.plain for bar in page.bars) == 1
    assert "with nothing to compare with" in read(render(page))


def test_a_document_without_annotation_is_shown_and_not_counted(nlp):
    (example, *_) = make_examples(nlp)
    bare = spacy.training.Example(example.predicted, Doc(nlp.vocab, words=["Ada"]))
    page = make_page(nlp, [bare], limit=0, title="Test")
    assert page.documents[0].counts is None and page.tallies == []
    assert "not annotated" in read(render(page))


def test_all_text_is_escaped(nlp):
    words = ["<b>Ada</b>", "&amp;", "<script>alert(1)</script>"]
    reference = Doc(nlp.vocab, words=words)
    reference.user_data["title"] = "<i>title</i>"
    reference.set_ents([Span(reference, 0, 1, label="<u>")], default="outside")
    example = spacy.training.Example(Doc(nlp.vocab, words=words), reference)
    html = render(make_page(nlp, [example], limit=0, title='"<title>'))
    text = read(html)
    assert all(part in text for part in (*words, "<i>title</i>", "<u>", '"<title>'))


def test_other_components_without_scores_are_shown():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
    reference = nlp("Ada left.")
    example = spacy.training.Example(nlp.make_doc(reference.text), reference)
    page = make_page(nlp, [example], limit=0, title="Test")
    assert page.tallies[0].total == Counts(agreed=1) and page.bars == []
    assert "Ada" in read(render(page)) and "Histogram" not in render(page)


def test_relations_and_types_of_any_text_are_escaped():
    doc = related([("Ada", "Byron", '<em>"&')], types={"Ada": {"<u>": 1.0}})
    ents = list(doc.ents)
    ents[0].label_ = "<s>"
    doc.ents = ents
    html = render(page_of([(doc, related([]))]))
    assert not any(tag in html for tag in ("<em>", "<u>", "<s>"))
    text = read(html)
    assert '<em>"& 1.00' in text and "<u> 1.00" in text
    assert text.count("<s>") == 3  # in the table, behind the entity and below the word


class Annotate:
    """A component that writes what documents with the same words have."""

    def __init__(self, docs):
        self.docs = {doc.text: doc for doc in docs}
        self.cfg = {
            "ancestors": True,
            "threshold": 0.5,
            "multi_label": True,
            "symmetric": ["knows"],
            "examples": "a setting that is nobody's",
        }

    def __call__(self, doc):
        done = self.docs[doc.text]
        doc.ents = [Span(doc, e.start, e.end, label=e.label_) for e in done.ents]
        doc.user_data.update(done.user_data)
        return doc


@spacy.Language.factory("test_entities", assigns=["doc.ents"], default_config={"docs": []})
def make_entities(nlp, name, docs):
    return Annotate([])


@spacy.Language.factory(
    "test_everything",
    assigns=["doc.ents", "doc._.relations", "span._.types"],
    default_config={"docs": []},
)
def make_everything(nlp, name, docs):
    return Annotate([])


@spacy.Language.factory("test_relations", assigns=["doc._.relations"], default_config={"docs": []})
def make_relations(nlp, name, docs):
    return lambda doc: doc


def page_of(pairs, factory="test_everything"):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory).docs.update({doc.text: doc for doc, _ in pairs})
    examples = [
        spacy.training.Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold)
        for _, gold in pairs
    ]
    return make_page(nlp, examples, limit=0, title="Test")


def test_the_page_shows_relations_and_types_below_and_behind_entities():
    relations = [("Ada", "Byron", "child", 0.75)]
    doc = related(relations, types={"Ada": {"poet": 0.5}})
    html = render(page_of([(doc, related(relations, types={"Ada": {"countess": 1.0}}))]))
    text = read(html)
    assert "child 0.75" in text and "poet 0.50" in text and "countess" in text
    assert html.count("<figure") == 1 and "Arcs point from the head" in text


def test_a_page_without_relations_or_types_does_not_speak_of_them():
    html = render(page_of([(related([]), related([]))]))
    assert (
        "Arcs point" not in html and 'class="relations"' not in html and 'class="type' not in html
    )


def test_what_a_pipeline_does_not_write_is_not_missed():
    relations = [("Ada", "Byron", "child")]
    gold = related(relations, types={"Ada": {"countess": 1.0}})
    html = render(page_of([(related([]), gold)], "test_entities"))
    assert not any(x in html for x in ("countess", "Arcs point", "<figure", 'class="type'))
    html = render(page_of([(related([]), gold)]))
    assert "countess" in html and "Arcs point" in html


def test_gold_relations_anywhere_make_predictions_elsewhere_spurious():
    relations = [("Ada", "Byron", "child")]
    other = FAMILY.replace("wrote", "sang")
    page = page_of(
        [(related(relations), related([])), (related([], other), related(relations, other))]
    )
    kinds = [texts(shown.passages[0].relations.pictures[0])[1][0][0] for shown in page.documents]
    assert kinds == ["spurious", "missed"]
    page = page_of([(related(relations), related([]))])
    assert texts(page.documents[0].passages[0].relations.pictures[0])[1][0][0] == "plain"


def test_relations_and_types_are_counted_as_by_their_scorers():
    relations = [("Ada", "Byron", "child"), ("Ada", "Babbage", "knows")]
    predicted = related(relations[:1], types={"Ada": {"poet": 0.5, "countess": 1.0}})
    gold = related(relations, types={"Ada": {"countess": 1.0}})
    page = page_of([(predicted, gold)])
    counts = {tally.what: tally.labels for tally in page.tallies}
    assert set(counts) == {"entities", "relations", "types"}
    assert counts["relations"] == {"child": Counts(1), "knows": Counts(missed=1)}
    assert counts["types"] == {"countess": Counts(1), "poet": Counts(spurious=1)}
    example = spacy.training.Example(predicted, gold)
    for tally, scores, name in (
        (page.tallies[1], relation_score([example]), "rels"),
        (page.tallies[2], typing_score([example]), "types_micro"),
    ):
        assert [tally.total.p, tally.total.r] == [scores[f"{name}_{x}"] for x in "pr"]
    page = page_of([(predicted, related([]))])
    assert [tally.what for tally in page.tallies] == ["entities"]  # nothing else is annotated


def test_settings_of_the_component_count():
    types = {"/person": 0.75, "/person/poet": 0.75, "/place": 0.25}
    predicted = related([("Ada", "Byron", "knows")], types={"Ada": types})
    gold = related([("Byron", "Ada", "knows")], types={"Ada": {"/person/poet": 1.0}})
    page = page_of([(predicted, gold)])
    counts = {tally.what: tally.labels for tally in page.tallies}
    assert counts["relations"] == {"knows": Counts(1)}
    assert counts["types"] == {"/person": Counts(1), "/person/poet": Counts(1)}
    (shown,) = page.documents
    assert [kind for kind, _ in texts(shown.passages[0].relations.pictures[0])[1]] == ["agreed"]
    chips = [chip.kind for piece in shown.passages[0].pieces for chip in piece.types]
    assert chips == ["agreed", "agreed", "spurious"]


def test_a_pipeline_that_takes_entities_is_given_those_of_the_annotation():
    nlp = spacy.blank("en")
    nlp.add_pipe("test_relations")
    nlp.vocab.strings.add("PER")
    nlp.vocab.strings.add("LOC")
    gold = related([("Ada", "Byron", "child")])
    example = spacy.training.Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold)
    page = make_page(nlp, [example], limit=0, title="Test")
    assert page.entities == "given" and [ent.text for ent in example.predicted.ents] == [
        ent.text for ent in gold.ents
    ]
    text = read(render(page))
    assert "entities are given" in text and "an annotated entity" in text
    assert [tally.what for tally in page.tallies] == ["relations"]
    assert page.tallies[0].labels == {"child": Counts(missed=1)} and "Labels of relations" in text
    with pytest.raises(ConfigError, match="writes Doc.ents"):
        make_page(spacy.blank("en"), [example], limit=0, title="Test")


def test_the_page_has_the_settings_that_decide_what_is_written(nlp):
    cfg = nlp.get_pipe("luke_ner").cfg
    before = dict(cfg)
    cfg.update(threshold=0.25, thresholds={"LOC": 0.5, "ORG": None, "PER": 0.125})
    try:
        page = make_page(nlp, make_examples(nlp), limit=0, title="Test")
    finally:
        cfg.update(before)
    assert ("luke_ner.threshold", "0.25") in page.meta
    assert ("luke_ner.thresholds", "LOC 0.5, ORG never, PER 0.125") in page.meta
    assert ("luke_ner.calibration", "no") in page.meta


@pytest.fixture
def run(nlp, tmp_path, monkeypatch):
    nlp.to_disk(tmp_path / "model")
    spacy.blank("en").to_disk(tmp_path / "blank")
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(tmp_path / "docs.spacy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*args):
        result = CliRunner().invoke(app, ["luke", "page", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def test_the_page_is_written(run, tmp_path):
    code, output = run("model", "docs.spacy", "deep/out.html", "--limit", "3", "--title", "My page")
    assert code == 0 and "3 of 5 documents" in output
    assert "Entities: predicted by luke_ner, and compared with the annotation" in output
    text = read((tmp_path / "deep" / "out.html").read_text(encoding="utf8"))
    assert "My page" in text and "Document 3" in text and "Document 4" not in text


def test_text_is_predicted_and_predictions_are_shown_as_they_are(run, tmp_path):
    nlp = spacy.load(tmp_path / "model")
    text = make_examples(nlp)[0].reference.text
    (tmp_path / "notes.txt").write_text(f"{text}\n\nAda left\n", encoding="utf8")
    code, output = run("model", "notes.txt", "out.html", "--lines")
    assert code == 0 and "2 of 2 documents" in output and "nothing is compared" in output
    doc = nlp(text)
    assert doc.ents
    DocBin(docs=[doc], store_user_data=True).to_disk("predicted.spacy")
    for args in (["predicted.spacy"], ["model", "predicted.spacy"]):
        assert run(*args, "out.html")[0] == 1  # it exists
        code, output = run(*args, "out.html", "--force")
        assert code == 0 and ("with scores" in output or "have scores" in output)
        text = read((tmp_path / "out.html").read_text(encoding="utf8"))
        assert doc.ents[0].text in text and "100.0" not in text and "agreements" not in text


def test_names_of_files_may_have_any_bytes(run, tmp_path):
    (tmp_path / "texts").mkdir()
    name = os.fsencode(tmp_path / "texts") + b"/caf\xe9.txt"
    with open(name, "w") as file:
        file.write("Ada left")
    code, output = run("model", "texts", "out.html")
    assert code == 0, output
    assert "caf?.txt" in (tmp_path / "out.html").read_text(encoding="utf8")


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["gone", "docs.spacy", "out.html"], "gone is not the directory of a trained pipeline"),
        (["model", "gone.spacy", "out.html"], "gone.spacy does not exist"),
        (["blank", "docs.spacy", "out.html"], "(empty) writes Doc.ents"),
        (["model", "docs.spacy", "out.html", "--limit", "-1"], "--limit is -1"),
        (["model", "docs.spacy"], "OUT is docs.spacy, not an .html file"),
        (["docs.spacy"], "1 arguments; give [PIPELINE] DOCS OUT"),
        (["model", "docs.spacy", "out.html", "--code", "gone.py"], "gone.py is not a file"),
    ],
)
def test_bad_input_is_one_error(run, tmp_path, args, fault):
    before = (tmp_path / "docs.spacy").read_bytes()
    code, output = run(*args)
    assert code == 1 and fault in output
    assert not (tmp_path / "out.html").exists()
    assert (tmp_path / "docs.spacy").read_bytes() == before


def test_the_wheel_contains_the_templates(tmp_path):
    root, source = Path(__file__).parents[2], tmp_path / "source"
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        source.mkdir(exist_ok=True)
        shutil.copy(root / name, source)
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "spacy_luke", source / "spacy_luke", ignore=unwanted)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    done = subprocess.run([*build, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    folder = "spacy_luke/cli/pages/templates"
    names = {x for x in zipfile.ZipFile(wheel).namelist() if x.startswith(folder)}
    assert names == {f"{folder}/{path.name}" for path in (root / folder).iterdir()}
    assert f"{folder}/page.html" in names
