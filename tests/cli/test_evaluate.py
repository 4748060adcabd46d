"""Scores end to end and with gold entities, under different names."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from typer.testing import CliRunner
from wasabi import Printer

from spacy_luke.annotations.questions import (
    Offsets,
    has_answers,
    question_texts,
    set_answer_offsets,
    set_questions,
)
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.annotations.types import clear_types
from spacy_luke.cli import app
from spacy_luke.cli.evaluate import evaluate, print_scores, unknown_labels
from spacy_luke.cli.loading import load_examples
from spacy_luke.cli.pages.page import make_page
from spacy_luke.corpora.preset import preset_ents_corpus
from spacy_luke.errors import ConfigError
from tests.cli.answering import make_answers_by_rule  # noqa: F401  (registers the factory)
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import annotate, make_examples, make_pipeline


@pytest.fixture(scope="module")
def relation(bert_dir):
    nlp = make_pipeline("luke_relation", bert_dir, "probe", pair_order="text")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 100)
    return nlp


def test_recall_of_candidates_and_numbers_of_mentions_are_printed(capsys):
    scores = {"nel_candidate_recall": 0.5, "nel_candidate_recall_1": 0.25, "speed": 9.0}
    none = {"nel_ambiguous_micro_f": None}
    print_scores({**scores, "nel_ambiguous_mentions": 1234, **none}, Printer())
    printed = capsys.readouterr().out
    assert "nel_ambiguous_micro_f" not in printed
    print_scores({"nel_micro_f": None}, Printer())
    warned = capsys.readouterr().out
    assert "lack its annotation" in warned and "nel_micro_f" in warned
    rows = [line.split() for line in printed.splitlines()]
    assert ["nel_candidate_recall", "50.00"] in rows and ["nel_candidate_recall_1", "25.00"] in rows
    assert ["nel_ambiguous_mentions", "1,234"] in rows and "speed" not in str(rows)


def test_scores_of_labels_are_printed_and_what_chance_makes_of_the_error(capsys):
    by_label = {"LOC": {"p": 0.5, "r": 0.25, "f": 1 / 3}, "PER": {"p": None, "r": None, "f": None}}
    errors = {"ents_calibration_error": 0.04, "ents_calibration_error_by_chance": 0.02}
    others = {"cats_auc_per_type": {"POS": 0.5, "NEG": None}}  # of spaCy's textcat
    print_scores({"ents_f": 0.5, "ents_per_type": by_label, **errors, **others}, Printer())
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ents_per_type", "P", "R", "F"] in rows and ["LOC", "50.00", "25.00", "33.33"] in rows
    assert ["PER", "-", "-", "-"] in rows and ["ents_calibration_error_by_chance", "2.00"] in rows


def test_labels_of_the_documents_that_no_component_has_are_told(relation):
    examples = make_examples(relation)
    assert not list(unknown_labels(relation, examples, evaluate(relation, examples)))
    for eg in examples:
        set_relations(
            eg.reference, [(x.head, x.tail, "other") for x in get_relations(eg.reference)]
        )
    (line,) = unknown_labels(relation, examples, evaluate(relation, examples))
    assert line.startswith("rels: ") and line.endswith("count as missed: other.")
    right = {"gold_rels_per_type": {"other": {"p": 1.0, "r": 1.0, "f": 1.0}}}
    assert not list(unknown_labels(relation, examples, right))  # by one that does not say it
    for eg in examples:
        ents = eg.reference.ents
        pairs = [(x.head, x.tail, "born in") for x in get_relations(eg.reference)]
        none = [(ents[0], ents[-1], "no_relation")] if ents else []
        set_relations(eg.reference, [*pairs, *none])
    (line,) = unknown_labels(relation, examples, evaluate(relation, examples))
    assert line.endswith("count as missed: born in.")  # pairs that have none are not missed


def test_gold_entities_are_given_to_components_that_consume_them(relation):
    scores = evaluate(relation, make_examples(relation, entities=False))
    assert scores["gold_rels_f"] == 1.0
    assert not [key for key in scores if not key.startswith("gold_")]


def test_end_to_end_scores_are_of_the_pipelines_own_entities(relation):
    relation.add_pipe("entity_ruler", before="luke_relation").add_patterns(
        [{"label": "LOC", "pattern": name} for name in ("London", "Tokyo", "Japan")]
    )
    examples = make_examples(relation, entities=True)
    scores = evaluate(relation, examples)
    relation.remove_pipe("entity_ruler")
    assert scores["gold_rels_f"] == 1.0
    # Of five relations only those of Tokyo and Japan have both of their entities.
    assert scores["rels_r"] == pytest.approx(0.4)
    assert 0 < scores["ents_f"] < 1 and "gold_ents_f" not in scores
    assert examples[0].predicted.ents  # not changed


def test_a_first_document_without_annotation_is_not_all_documents(relation, caplog):
    empty = relation.make_doc("Nothing is annotated here.")
    examples = [Example(empty.copy(), empty), *make_examples(relation, entities=False)]
    assert evaluate(relation, examples)["gold_rels_f"] == 1.0
    assert "no gold annotation" not in caplog.text
    assert evaluate(relation, examples[:1])["gold_rels_f"] is None
    assert "no gold annotation" in caplog.text


def test_a_pipeline_without_entities_is_refused():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    with pytest.raises(ConfigError, match="sentencizer"):
        evaluate(nlp, [])


def test_a_list_of_names_alone_has_no_scores():
    nlp = spacy.blank("en")
    names = nlp.add_pipe("known_names", config={"annotate_ents": False})
    names.set_names([{"name": "Tokyo", "label": "LOC"}])
    with pytest.raises(ConfigError, match="No component of this pipeline"):
        evaluate(nlp, [])


def test_the_command_prints_and_writes(relation, tmp_path, monkeypatch):
    relation.to_disk(tmp_path / "model")
    docs = [eg.reference for eg in make_examples(relation)]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "test.spacy")
    out = tmp_path / "scores" / "test.json"
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "test.spacy")]
    done = CliRunner().invoke(app, [*arguments, "--output", str(out), "--gold-sents"])
    assert done.exit_code == 0, done.output
    assert "gold_rels_f" in done.output
    assert json.loads(out.read_text())["gold_rels_f"] == 1.0
    out.write_text("mine")
    done = CliRunner().invoke(app, [*arguments, "--output", str(out)])
    assert done.exit_code == 1 and out.read_text() == "mine"
    done = CliRunner().invoke(app, [*arguments, "--output", str(out), "--force"])
    assert done.exit_code == 0 and "gold_rels_f" in out.read_text()
    before = out.read_text()

    def full_disk(path, text, **kwargs):
        path.write_bytes(text.encode()[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    done = CliRunner().invoke(app, [*arguments, "--output", str(out), "--force"])
    assert (
        done.exit_code == 1 and out.read_text() == before and len(list(out.parent.iterdir())) == 1
    )
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path), str(tmp_path / "test.spacy")])
    assert done.exit_code == 1


@Language.component("writes_in_secret")
def writes_in_secret(doc):
    doc.ents = doc.ents[:1]
    return doc


def test_a_component_that_changes_given_entities_is_refused(relation):
    relation.add_pipe("writes_in_secret", before="luke_relation")
    with pytest.raises(ConfigError, match="writes_in_secret"):
        evaluate(relation, make_examples(relation))
    relation.remove_pipe("writes_in_secret")
    # Other tokens are not other entities, and a span_ruler says by a setting that it writes some.
    relation.add_pipe("merge_entities")
    ruler = relation.add_pipe("span_ruler", first=True, config={"annotate_ents": True})
    ruler.add_patterns([{"label": "LOC", "pattern": "Tokyo"}])
    scores = evaluate(relation, make_examples(relation))
    assert scores["gold_rels_f"] == 1.0 > scores["rels_r"]
    for name in ("merge_entities", "span_ruler"):
        relation.remove_pipe(name)


@Language.component("empties_group")
def empties_group(doc):
    doc.spans["sc"] = []
    return doc


def test_a_component_that_changes_given_spans_is_refused(bert_dir):
    nlp = make_pipeline("luke_relation", bert_dir, "probe", spans_key="sc")
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["sc"] = list(eg.reference.ents)
    nlp.initialize(lambda: examples)
    nlp.add_pipe("writes_in_secret", before="luke_relation")  # which nobody reads
    evaluate(nlp, examples)
    nlp.add_pipe("empties_group", before="luke_relation")
    with pytest.raises(ConfigError, match="empties_group"):
        evaluate(nlp, examples)


def test_labels_are_types_where_the_command_says_so(bert_dir, tmp_path):
    nlp = make_pipeline("luke_entity_typing", bert_dir, "probe")
    examples = make_examples(nlp)
    for eg in examples:
        clear_types(eg.reference)
    DocBin(docs=[eg.reference for eg in examples]).to_disk(tmp_path / "ner.spacy")
    reader = preset_ents_corpus(tmp_path / "ner.spacy", types_from_labels=True)
    nlp.initialize(lambda: reader(nlp))
    fit(nlp, list(reader(nlp)), 60)
    nlp.to_disk(tmp_path / "model")
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "ner.spacy")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and "lack its annotation" in done.output
    done = CliRunner().invoke(app, [*arguments, "--types-from-labels"])
    assert done.exit_code == 0 and "gold_types_micro_f 100.00" in " ".join(done.output.split())
    page = ["page", *arguments[1:], str(tmp_path / "page.html"), "--types-from-labels"]
    assert CliRunner().invoke(app, page).exit_code == 0
    assert ">PER<" in (tmp_path / "page.html").read_text(encoding="utf8")


@pytest.mark.parametrize(
    "factory,score", [("luke_relation", "rels_f"), ("luke_entity_typing", "types_micro_f")]
)
def test_gold_spans_of_a_group_are_given_to_components_that_read_it(bert_dir, factory, score):
    nlp = make_pipeline(factory, bert_dir, "probe", spans_key="sc")
    examples = make_examples(nlp)
    for eg in examples:
        for doc in (eg.predicted, eg.reference):
            doc.spans["sc"] = list(doc.ents)
            doc.ents = []
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 100)
    bare = [Example(nlp.make_doc(eg.reference.text), eg.reference) for eg in examples]
    assert evaluate(nlp, bare)[f"gold_{score}"] == 1.0
    # What a component before writes to the group is its own, not gold.
    ruler = nlp.add_pipe("span_ruler", before=factory, config={"spans_key": "sc"})
    ruler.add_patterns([{"label": "LOC", "pattern": name} for name in ("London", "Tokyo", "Japan")])
    scores = evaluate(nlp, bare)
    assert scores[f"gold_{score}"] == 1.0 > scores[score] > 0.0


def test_gold_entities_that_do_not_fit_the_tokens_are_warned_of(relation, caplog):
    reference = Doc(relation.vocab, words=["Tokyo", "bay"], spaces=[False, False])
    annotate(reference, [(0, 1, "LOC", []), (1, 2, "LOC", [])], [(0, 1, "located_in")])
    evaluate(relation, [Example(relation.make_doc(reference.text), reference)])
    assert "2 of 2 gold entities and spans do not align" in caplog.text


@pytest.fixture
def asked(tmp_path):
    """A file of two documents with the same two questions, of which the second has no answer."""
    nlp = spacy.blank("en")
    docs = [nlp("Ada King wrote it in 1843."), nlp("They wrote it in 1843, Ada King says.")]
    for doc in docs:
        set_questions(doc, ["Who wrote it?", "Why?"])
        set_answer_offsets(
            doc, [Offsets([(0, doc.text.index(" wrote"), 1.0)], 0.0), Offsets([], 1.0)]
        )
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "asked.spacy")
    return tmp_path / "asked.spacy"


def test_commands_are_given_the_questions_and_never_the_answers(asked):
    """tune and page load their documents with the same function."""
    examples = load_examples(asked, spacy.blank("en"))
    for eg in examples:
        assert question_texts(eg.predicted) == ["Who wrote it?", "Why?"]
        assert has_answers(eg.reference) and not has_answers(eg.predicted)


def test_a_page_is_made_with_the_questions_and_without_the_answers(asked):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada King"}])
    pipe = nlp.add_pipe("answers_by_rule")  # which checks that there are no answers
    make_page(nlp, load_examples(asked, nlp), limit=0, title="Questions")
    assert pipe.questions == [["Who wrote it?", "Why?"]] * 2


def test_a_pipeline_that_answers_questions_is_scored(asked):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("answers_by_rule")
    examples = load_examples(asked, nlp)
    scores = evaluate(nlp, examples)
    assert pipe.questions == [["Who wrote it?", "Why?"]] * 2
    assert (scores["qa_em"], scores["qa_unanswerable"]) == (0.75, 1.0)
    assert not [key for key in scores if key.startswith(("gold_", "token"))]
    assert not has_answers(examples[0].predicted)  # not changed


def test_scores_of_answers_stand_beside_those_of_entities(relation, asked):
    relation.add_pipe("answers_by_rule")
    scores = evaluate(relation, load_examples(asked, relation))
    relation.remove_pipe("answers_by_rule")
    assert scores["qa_em"] == 0.75
    assert "gold_rels_f" in scores and "rels_f" not in scores


def test_scores_of_a_spans_group_stand_beside_those_of_entities(relation, bert_dir):
    examples = make_examples(relation, entities=False)
    for eg in examples:
        eg.reference.spans["luke_ner"] = list(eg.reference.ents)
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    model = {"mode": "full", "encoder": encoder}
    nested = {"nested": True, "nil_bias": 99.0, "model": model}
    pipe = relation.add_pipe("luke_ner", config=nested)
    pipe.initialize(lambda: examples, nlp=relation)
    try:
        both = evaluate(relation, examples)
        with relation.select_pipes(enable="luke_ner"):
            alone = evaluate(relation, examples)
    finally:
        relation.remove_pipe("luke_ner")
    assert both["spans_luke_ner_r"] == alone["spans_luke_ner_r"] > 0
    assert both["gold_rels_f"] == 1.0 and "rels_f" not in both


def test_a_spans_group_without_a_scorer_is_no_score(relation):
    nlp = spacy.blank("en")
    nlp.add_pipe("span_ruler", config={"scorer": None})
    with pytest.raises(ConfigError, match="or a spans group: span_ruler"):
        evaluate(nlp, make_examples(nlp))


def test_the_command_prints_scores_of_answers(asked, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("answers_by_rule")
    nlp.to_disk(tmp_path / "model")
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "model"), str(asked)])
    assert done.exit_code == 0, done.output
    assert "qa_em 75.00" in " ".join(done.output.split())
    assert "qa_unanswerable 100.00" in " ".join(done.output.split())
