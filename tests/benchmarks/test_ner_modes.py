"""Every row trains, is scored as its own pipeline predicts, and reaches the tables."""

import pytest
import spacy

from benchmarks import forms, ner_modes, ner_speed, results, tables
from benchmarks.chosen import settings_text
from benchmarks.datasets import DATA_SETS, load
from benchmarks.rows import COMPONENT, ROWS
from benchmarks.scoring import gold_entities, pack_entities
from benchmarks.training import RunSettings

SENTENCES = [
    "Ada/B-person Lovelace/I-person was/O born/O in/O London/B-location",
    "Tokyo/B-location is/O the/O capital/O of/O Japan/B-location",
    "The/O band/O sang/O in/O Paris/B-location",
    "Charles/B-person Babbage/I-person disagreed/O ,/O of/O course/O !/O",
]


@pytest.fixture(scope="module")
def work(tmp_path_factory, bert_dir):
    """A work folder in which every row was trained on a few sentences, at two rates."""
    folder = tmp_path_factory.mktemp("work")
    text = "\n\n".join(line.replace(" ", "\n").replace("/", "\t") for line in SENTENCES * 4)
    for part in ("train", "dev", "test"):
        path = folder / "data" / getattr(DATA_SETS["wnut17"], part).file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf8")
    assert ner_modes.main(arguments(folder, bert_dir)) == 0
    return folder


def arguments(folder, encoder):
    places = ["--encoder", encoder, "--data", folder / "data", "--work", folder / "work"]
    options = "--data-sets wnut17 --seeds 0 1 --epochs 2 --batch-size 8 --save"
    options += " --learn-rate 0.002 0.001 --max-words 4 --forms --kept --gold-labels"
    return [*map(str, places), *options.split()]


def records(folder):
    return results.read([folder / "work" / "results.jsonl"])


def test_each_row_has_its_tried_rates_and_a_run_for_every_seed(work):
    found = records(work)
    for row in ROWS:
        runs = [x for x in found if x["row"] == row]
        tried = 2 + len(ner_modes.NEGATIVE_WEIGHTS) * (row == "spancat")
        assert len([x for x in runs if x["seed"] == 0]) == tried
        assert len([x for x in runs if x["seed"] == 1]) == 1
        assert all(x["steps"] == 4 and x["recall_test"] <= 100 for x in runs)


def test_each_run_is_scored_on_the_forms_of_the_test_data(work, capsys):
    for record in records(work):
        assert tuple(record["forms"]) == forms.FORMS
        # Documents of one sentence.
        assert record["forms"]["sentences"] == record["forms"]["as given"] == record["test"]
    assert forms.main(["--table", "--results", str(work / "work" / "results.jsonl")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(ROWS)


def test_all_gold_spans_are_labelled_whatever_was_found(work):
    for record in records(work):
        assert ("gold_labels" in record) == (record["row"] != "ner")
        told = record.get("gold_labels", [0] * len(record["gold"]))
        assert len(told) == len(record["gold"]) and min(told) >= 0
        # Of a span that was found, the label that was written, where nothing else is asked.
        if record["row"] in ("probe", "full", "two-stage"):
            found = {tuple(row[:3]): row[3] for row in record["predicted"]}
            for (*place, _), label in zip(record["gold"], told, strict=True):
                assert found.get(tuple(place), label) == label


def test_finished_runs_are_skipped(work, bert_dir):
    before = records(work)
    assert ner_modes.main(arguments(work, bert_dir)) == 0
    assert records(work) == before


@pytest.mark.parametrize("row", ROWS)
def test_the_scored_entities_are_those_the_pipeline_writes(work, row):
    record = [x for x in records(work) if x["row"] == row and x["seed"] == 1][-1]
    nlp = spacy.load(work / "work" / "models" / f"wnut17.{row}")
    pipe = nlp.get_pipe(COMPONENT)
    if row == "spancat":
        record_at_zero = record["test_raw"]
    else:
        pipe.cfg["o_bias" if row == "token" else "nil_bias"] = record["bias"]
        record_at_zero = None
    path = next((work / "work" / "corpora").rglob("test.spacy"))
    docs = [spacy.tokens.Doc(nlp.vocab, words=[t.text for t in doc]) for doc in load(path)]
    docs = list(pipe.pipe(docs, batch_size=8))
    if record_at_zero is not None:
        for doc in docs:
            doc.set_ents(doc.spans["sc"])
        right = set(gold_entities(docs)) & set(gold_entities(load(path)))
        n = sum(len(doc.ents) for doc in docs)
        assert record_at_zero["p"] == pytest.approx(100 * len(right) / max(n, 1))
    else:
        written = pack_entities(gold_entities(docs), record["labels"])
        assert sorted(written) == sorted(record["predicted"])


def test_speed_of_all_rows_is_measured_and_the_tables_name_them(work, bert_dir):
    options = "--rounds 2 --sentences 8 --long-docs 1 --warm-docs 16 --variants"
    speed = work / "work" / "speed.jsonl"
    argv = arguments(work, bert_dir)[:6]
    assert ner_speed.main([*argv, "--batch-size", "16", *options.split()]) == 0
    measured = results.read([speed])
    cases = {(x["case"], x["input"]) for x in measured}
    assert cases == {(a, b) for a in ("sentences", "long") for b in ("docs", "texts")}
    assert all(len(times) == x["rounds"] for x in measured for times in x["seconds"].values())
    text = tables.render([*records(work), *measured], n_samples=100)
    assert all(f"| {row} |" in text for row in ROWS)
    assert "two-stage - token" in text and "k = 0.5 x words" in text


def test_speed_of_training_is_measured_on_the_same_examples(work, bert_dir):
    options = "--rounds 2 --warm-docs 16 --variants --training 2 --train-batch 4"
    speed = work / "work" / "training_speed.jsonl"
    argv = [*arguments(work, bert_dir)[:6], "--rows", "token", "two-stage", *options.split()]
    assert ner_speed.main([*argv, "--results", str(speed)]) == 0
    measured = results.read([speed])
    assert {(x["case"], x["input"]) for x in measured} == {("training", "examples")}
    assert list(measured[0]["seconds"])[2:] == list(ner_speed.TRAINING_VARIANTS)
    assert "k = 0.5 in training" in tables.render(measured, n_samples=100)


def test_speed_of_a_whole_training_is_that_of_updates_that_follow_each_other(
    work, bert_dir, monkeypatch
):
    seen = []
    update = spacy.language.Language.update

    def watched(nlp, examples, **options):
        seen.append((id(nlp), [eg.reference.text for eg in examples]))
        return update(nlp, examples, **options)

    monkeypatch.setattr(spacy.language.Language, "update", watched)
    speed = work / "work" / "whole.jsonl"
    argv = [*arguments(work, bert_dir)[:6], "--rows", "token", "two-stage", "--results", str(speed)]
    options = "--whole --training 2 --train-batch 3 --rounds 3 --warm-docs 16"
    assert ner_speed.main([*argv, *options.split()]) == 0
    texts = [[text for nlp, batch in seen if nlp == one for text in batch] for one, _ in seen[:4:2]]
    assert len(texts[0]) == 18 and texts[0] == texts[1]
    assert len(set(texts[0][:4])) == 4 and texts[0] == [texts[0][i % 4] for i in range(18)]
    (measured,) = [x for x in results.read([speed]) if x["gates"]]
    sums = {row: sum(times) for row, times in measured["seconds"].items()}
    text = tables.render([measured], n_samples=100)
    assert "whole training" in text and f"{sums['two-stage'] / sums['token']:.2f}" in text
    with pytest.raises(SystemExit):
        ner_speed.main([*argv, *options.split(), "--variants"])


def test_pretrained_encoders_of_one_name_are_told_apart(tmp_path):
    names = []
    for folder, weights in (("one", b"a"), ("other", b"b")):
        path = tmp_path / folder / "model"
        path.mkdir(parents=True)
        (path / "model.safetensors").write_bytes(weights)
        names.append(RunSettings(encoder=str(path)).record()["encoder"])
        (path / "entity_vocab.json").write_text("{}")
        names.append(RunSettings(encoder=str(path)).record()["encoder"])
    plain, one, also_plain, other = names
    assert plain == also_plain == "model" and one != other and one.startswith("model@")


def test_tables_name_every_setting_that_tells_runs_apart():
    settings = {"learn_rate": 2e-4, "negative_weight": 0.5, "overrides": {"component.model.k": 2.0}}
    assert settings_text({"settings": settings}) == "rate 0.0002, negative_weight 0.5, k 2.0"
