"""Every row of the relation benchmark trains, resumes, is scored officially, reaches the tables."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks import relation_modes, results, tables, task_data
from benchmarks.chosen import chosen_runs, difference_table
from benchmarks.datasets import load, unanswered
from benchmarks.task_rows import RELATION, ROWS, sampled_pairs
from spacy_luke.annotations.relations import relation_offsets
from spacy_luke.metrics.relations import semeval_score
from tests.benchmarks.task_data import write_crossre, write_redocred, write_semeval


@pytest.fixture(scope="module")
def work(tmp_path_factory, bert_dir):
    """A work folder in which every row was trained on toy sentences."""
    folder = tmp_path_factory.mktemp("relation")
    write_semeval(folder / "data", 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_data, "SEMEVAL_DEV", 8)
        assert relation_modes.main(arguments(folder, bert_dir)) == 0
    return folder


def arguments(folder, encoder, *more):
    places = ["--encoder", encoder, "--data", folder / "data", "--work", folder / "work"]
    options = "--data-sets semeval --seeds 0 --epochs 15 --batch-size 8 --learn-rate 0.004 --save"
    return [*map(str, places), *options.split(), *more]


def records(folder):
    return results.read([folder / "work" / "results.jsonl"])


@pytest.mark.parametrize("row", ROWS)
def test_a_row_learns_toy_relations_and_their_directions(work, row):
    (run,) = [x for x in records(work) if x["row"] == row]
    assert run["kind"] == "relation" and run["steps"] == 45
    assert run["limits"] == {**run["limits"], "no entity": 0, "no candidate": 0}
    assert run["test"]["f"] == 100


def test_finished_runs_are_skipped(work, bert_dir):
    before = records(work)
    assert relation_modes.main(arguments(work, bert_dir)) == 0
    assert records(work) == before


@pytest.mark.parametrize("row", ROWS)
def test_the_score_is_that_of_the_official_scorer(work, row):
    """Also where not everything is right: after forgetting what one class looks like."""
    pipe = spacy.load(work / "work" / "models" / f"semeval.{row}").get_pipe(RELATION)
    gold = load(next((work / "work" / "corpora").rglob("test.spacy")))
    for forget in (False, True):
        if forget:
            pipe.model.shims[0].module.classifier.weight.data[0] = 0.0
        docs = list(pipe.pipe([unanswered(doc) for doc in gold]))
        ours = relation_modes.macro_prf(*(relation_modes.items(x, None) for x in (docs, gold)))
        theirs = semeval_score([Example(*pair) for pair in zip(docs, gold)])
        assert ours.f == pytest.approx(100 * theirs["rels_semeval_f"])


def test_documents_keep_the_tokens_that_nominals_cut(work):
    docs = load(next((work / "work" / "corpora").rglob("test.spacy")))
    cut = [unanswered(doc) for doc in docs if "non-France" in doc.text]
    assert all([ent.text for ent in doc.ents] == ["Kyoto", "-France"] for doc in cut) and cut
    assert not any(relation_offsets(unanswered(doc)) for doc in docs)


def test_document_level_relations_and_their_time(tmp_path, bert_dir, monkeypatch):
    write_redocred(tmp_path / "data", 6)
    monkeypatch.setattr(task_data, "REDOCRED_TRAIN", 2)
    monkeypatch.setattr(task_data, "REDOCRED_DEV", 2)
    more = ["--data-sets", "redocred", "--epochs", "40"]
    assert (
        relation_modes.main(arguments(tmp_path, bert_dir, *more, "--rows", "baseline", "probe"))
        == 0
    )
    less = ["--rows", "markers", "--pairs", "3", "--score-docs", "1"]
    assert relation_modes.main(arguments(tmp_path, bert_dir, *more, *less)) == 0
    found = {x["row"]: x for x in records(tmp_path)}
    assert set(found) == {"probe", "markers"}  # the baseline cannot merge mentions
    assert found["markers"]["settings"]["pairs"] == 3 and found["markers"]["limits"] is None
    assert found["probe"]["settings"]["pairs"] == 0 and found["probe"]["test"]["f"] == 100
    assert (found["probe"]["n_docs"], found["markers"]["n_docs"]) == (2, 1)
    assert all([0, 0, 1, 1] in x["gold"] and [0, 1, 3, 0] in x["gold"] for x in found.values())
    timing = ["--speed-docs", "2", "--rounds", "1"]
    assert relation_modes.main(arguments(tmp_path, bert_dir, *more, *timing)) == 0
    measured = [x for x in records(tmp_path) if x["kind"] == "relation-speed"]
    assert {x["clock"] for x in measured} == {"process", "wall"}
    assert all(x["n_pairs"] == 12 and set(x["seconds"]) == set(found) for x in measured)
    text = tables.render(records(tmp_path), n_samples=50)
    sampled = "learned from 3 pairs a document, half related"
    limits = f"{sampled}, scored on the first 1 of dev and of test"
    assert limits in text and "3 pairs a document, 1 test documents" in text
    assert "| probe - markers (first 1 documents) |" in text and "6 pairs" in text


def test_the_tables_have_macro_scores_and_intervals_against_the_baseline(work):
    text = tables.render(records(work), n_samples=50)
    assert all(f"| {row} |" in text for row in ROWS)
    assert "test macro F1" in text
    assert all(f"| {row} - baseline |" in text for row in ("probe", "markers"))


def test_pairs_are_drawn_anew_every_time_and_half_are_related(tmp_path):
    write_redocred(tmp_path, 1)
    corpora = task_data.prepare("redocred", task_data.RELATION_SETS["redocred"], tmp_path, tmp_path)
    # The only document is of the part that is trained on: three entities, two related pairs.
    draw = sampled_pairs(3, seed=0, path=corpora.train)
    (doc,) = load(corpora.train)
    entities: dict[str, list] = {}
    for span in doc.spans["luke_ner"]:
        entities.setdefault(span.kb_id_, []).append(span)
    drawn = [list(map(tuple, draw(doc, list(entities.values())).tolist())) for _ in range(20)]
    assert all(len(set(pairs)) == 3 and all(a != b for a, b in pairs) for pairs in drawn)
    assert all({(0, 1), (1, 2)} & set(pairs) for pairs in drawn)
    assert {(0, 1), (1, 2), (2, 1), (1, 0), (0, 2), (2, 0)} == set(sum(drawn, []))
    other = Doc(doc.vocab, words=["Someone", "else"])
    assert len(draw(other, [[other[:1]], [other[1:]]])) == 2


def test_crossre_is_trained_on_its_larger_part(tmp_path):
    write_crossre(tmp_path, "ai")
    source = task_data.RELATION_SETS["crossre-ai"]
    corpora = task_data.prepare("crossre-ai", source, tmp_path, tmp_path)
    parts = (corpora.train, corpora.dev, corpora.test)
    assert [load(path)[0][-1].text for path in parts] == ["dev", "train", "test"]
    (doc,) = load(corpora.train)
    entities = [(x.text, x.label_) for x in doc.ents]
    assert entities == [("Ada", "person"), ("old town hall", "building"), ("dev", "place")]
    related = [(x.head.text, x.tail.text, x.label) for x in doc._.relations]
    assert related == [("Ada", "old town hall", "saw"), ("old town hall", "dev", "in")]
    assert len(list(doc.sents)) == 1


def made_up(row, right, n_docs, scored=0, seed=0):
    """A record of a run that finds the relation in the documents ``right``."""
    gold = [[i, 0, 1, 0] for i in range(n_docs)]
    return {
        "kind": "relation",
        "data": "redocred",
        "row": row,
        "seed": seed,
        "settings": {"learn_rate": 1e-4, "scored": scored},
        "dev": {"f": 100.0 * bool(scored)},
        "n_docs": n_docs,
        "labels": ["in"],
        "gold": gold,
        "predicted": [gold[i] for i in right],
    }


def test_a_difference_is_that_of_the_documents_scored_in_both():
    rows = {
        "markers": [made_up("markers", [0], 2, scored=2)],
        "probe": [made_up("probe", [0, 1], 6)],
    }
    table = difference_table(rows, [("markers", "probe")], n_samples=100)
    # 100 against 2 / 3 of the first two documents; of all it would be 50 against 28.6
    assert "| probe - markers (first 2 documents) | +33.33 |" in table
    with pytest.raises(ValueError, match="cannot be compared"):
        difference_table(
            {**rows, "markers": [made_up("markers", [0], 2)]}, [("markers", "probe")], 9
        )


def test_runs_on_more_documents_go_before_runs_with_a_better_score():
    few, all_of_them = made_up("probe", [0], 2, scored=2), made_up("probe", [0], 6)
    chosen = chosen_runs([few, all_of_them], "relation")["redocred"]["probe"]
    assert chosen == [all_of_them]


def test_less_than_no_documents_is_an_error(capsys):
    with pytest.raises(SystemExit):
        relation_modes.parse(["--encoder", "x", "--score-docs", "-1"])
    assert "--score-docs is -1" in capsys.readouterr().err
