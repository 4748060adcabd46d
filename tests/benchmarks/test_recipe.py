"""The recipe's benchmark: rows differ by their contexts or their component alone, and are tested on
both forms."""

import json

import pytest
from spacy.util import load_config

from benchmarks import recipe
from benchmarks.datasets import SPANS_KEY, load
from benchmarks.forms import FORMS
from benchmarks.training import CONFIGS


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "few-nerd"
    folder.mkdir(parents=True)
    lines = []
    for i in range(60):
        lines += [f"Name{i}\tB-person", "sang\tO", "in\tO", "Rome\tB-location", ".\tO", ""]
    (folder / "dev.txt").write_text("\n".join([*lines, *lines[:6], ""]), "utf8")
    return folder.parent


@pytest.fixture
def arguments(data, bert_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "MOST", 40)
    monkeypatch.setattr(recipe, "DEV", 10)
    given = ["--encoder", str(bert_dir), "--data", str(data), "--work", str(tmp_path / "work")]
    fast = ["--set", "training.optimizer.learn_rate.initial_rate", "0.005"]
    few = ["--set", "initialize.after_init.words", "1500"]
    return [*given, "--sizes", "30", "--seeds", "0", *fast, *few]


@pytest.fixture
def read_records(tmp_path):
    file = tmp_path / "work" / "results.jsonl"
    return lambda: [json.loads(line) for line in file.read_text("utf8").splitlines()]


def test_rows_are_trained_and_tested_on_both_forms(arguments, read_records, tmp_path, capsys):
    assert recipe.main([*arguments, "--forms"]) == 0
    records = read_records()
    assert len(records) == 6 and {x["steps"] > 0 for x in records} == {True}
    for record in records:
        assert set(record["test_sentences"]) == set(record["test_documents"]) == {"f", "p", "r"}
        assert set(record["forms"]) == set(FORMS)
        for form in recipe.GIVEN:
            assert set(record["tuned"][f"test_{form}"]) == {"f", "p", "r"}
        for found in (record, record["tuned"]):  # counts are of what is shown
            right, n_predicted, n_gold = map(sum, zip(*found["test_counts"]))
            f1 = 200 * right / (n_predicted + n_gold)
            assert f1 == pytest.approx(found["test_sentences"]["f"])
            assert len(found["test_counts"]) == 10 and n_gold == 20
        for form in recipe.GIVEN:
            assert record["forms"][form] == pytest.approx(record[f"test_{form}"])
    assert len(load(tmp_path / "work" / "data" / "few-nerd" / "test-sentences.spacy")) == 10
    capsys.readouterr()
    assert recipe.main(arguments) == 0  # all done
    assert recipe.main([*arguments, "--table"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 8 and "| few-nerd | 30 | sentences | shipped," in shown[2]
    assert len(read_records()) == 6


@pytest.mark.parametrize("row", recipe.OTHERS)
def test_another_component_learns_by_the_same_recipe(row, arguments, read_records):
    more = ["--set", "initialize.after_init.words", "9000", "--given", "sentences"]
    assert recipe.main([*arguments, *more, "--rows", row]) == 0
    (record,) = read_records()
    assert ("tuned" in record) == (row == "probe")
    # Of both forms: predicted spans of a span categoriser are entities, too.
    assert record["row"] == row
    assert record["test_sentences"]["f"] > 30 and record["test_documents"]["f"] > 30


def test_settings_of_luke_ner_are_refused_for_another_component(arguments):
    more = ["--set", "components.luke_ner.nil_bias", "1.0", "--given", "sentences"]
    with pytest.raises(ValueError, match="nil_bias is for luke_ner"):
        recipe.main([*arguments, *more, "--rows", "token"])


@pytest.mark.parametrize("row", recipe.OTHERS)
def test_another_component_changes_nothing_else_of_the_config(row, bert_dir):
    shipped, config = (load_config(CONFIGS / "ner.cfg") for _ in range(2))
    recipe.replace_component(config, row, str(bert_dir))
    rate = config["training"]["optimizer"]["learn_rate"]["initial_rate"]
    model = config["components"]["luke_ner"]["model"]
    encoder = model.get("encoder") or model["tok2vec"]
    before = shipped["training"]["optimizer"]["learn_rate"]["initial_rate"]
    assert rate * encoder["learn_rate_factor"] == pytest.approx(before)  # the encoder's
    head = model.get("learn_rate_factor", 1.0)
    assert rate * head == pytest.approx(5 * before)  # that of fresh weights
    own = {"learn_rate_factor", "pooling", "name"}  # rates are above; words of token are pieces
    was = shipped["components"]["luke_ner"]["model"]["encoder"]
    assert {x: y for x, y in encoder.items() if x not in own} == {
        x: y for x, y in was.items() if x not in own
    }
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = before
    config["components"]["luke_ner"] = shipped["components"]["luke_ner"]
    assert config == shipped


def test_documents_of_a_file_are_given_whole_or_as_their_sentences(tmp_path):
    folder = tmp_path / "data" / "bc5cdr"
    folder.mkdir(parents=True)
    for name, n_docs in (("Training", 4), ("Development", 6)):
        docs = []
        for i in range(n_docs):
            title, abstract = f"Aspirin in case {i}.", "It helped. Pain ended at last."
            start = len(title) + 1 + abstract.index("Pain")
            docs.append(
                f"{i}|t|{title}\n{i}|a|{abstract}\n{i}\t0\t7\tAspirin\tChemical\tD1\n"
                f"{i}\t{start}\t{start + 4}\tPain\tDisease\tD2\n"
            )
        (folder / f"CDR_{name}Set.PubTator.txt").write_text("\n".join(docs), "utf8")
    paths = recipe.prepare("bc5cdr", folder.parent, tmp_path / "work", 7)
    given = {name: load(path) for name, path in paths.items()}
    # A third of the second file is to develop with. The third training document loses its end.
    n_sentences = {"train-7": [3, 3, 1], "dev": [3] * 2, "test": [3] * 4}
    for part, expected in n_sentences.items():
        whole, sentences = given[f"{part}-documents"], given[f"{part}-sentences"]
        assert [len(list(doc.sents)) for doc in whole] == expected
        assert len(sentences) == sum(expected)
        # Nothing of the annotation is lost, and the text is that of the file.
        assert sum(len(doc.ents) for doc in whole) == sum(len(doc.ents) for doc in sentences)
        assert all(len(doc.spans[SPANS_KEY]) == len(doc.ents) for doc in (*whole, *sentences))
    assert given["test-documents"][0].text == "Aspirin in case 2. It helped. Pain ended at last."
    assert [ent.text for ent in given["test-documents"][0].ents] == ["Aspirin", "Pain"]


def test_more_sentences_than_there_are_is_an_error(arguments):
    more = [*arguments, "--sizes", "41", "--given", "sentences", "--rows", "shipped"]
    with pytest.raises(ValueError, match="few-nerd has 40 training sentences, not 41"):
        recipe.main(more)


def test_differences_are_of_shared_seeds_sizes_and_sentences():
    def record(row, seed, right, given="sentences", size=30, tuned=None, changes=(), of="x"):
        counts = {"test_counts": [[x, 2, 2] for x in right]}
        settings = {"size": size, "given": given, "encoder": of, "set": list(changes)}
        named = {"kind": "recipe", "data": "few-nerd", "row": row, "seed": seed, "steps": 8}
        found = {} if tuned is None else {"tuned": {"test_counts": [[x, 2, 2] for x in tuned]}}
        return {**named, "settings": settings, **counts, **found}

    longer = [["initialize.after_init.words", "9000"]]
    old = record("token", 0, [2, 2])
    del old["test_counts"]
    records = [
        record("shipped", 0, [0, 0], tuned=[2, 2]),
        record("shipped", 1, [0, 0], tuned=[0, 0]),
        record("shipped", 0, [2, 2], given="documents", tuned=[1, 1]),
        record("shipped", 0, [0, 0], tuned=[1, 2], changes=longer),
        record("sentences", 0, [0, 0], tuned=[1, 1]),
        record("ner", 0, [1, 0]),
        record("ner", 1, [0, 0]),
        record("ner", 1, [2, 2], of="another"),
        record("spancat", 2, [2, 2]),
        record("probe", 0, [2, 2], size=40, tuned=[2, 2]),
        old,
    ]
    lines = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in recipe.differences(records).splitlines()[2:]
    ]
    found = {(x[2], x[4], x[5]): (x[1], x[3], x[7], x[8].split()[0]) for x in lines}
    # The row alone that was shipped, by both forms given; F1 of two seeds is their mean.
    assert found == {
        ("sentences", "shipped", "sentences"): ("1", "100.0", "75.0", "+25.0"),
        ("sentences", "sentences", "sentences"): ("1", "100.0", "50.0", "+50.0"),
        ("sentences", "ner", "sentences"): ("2", "50.0", "12.5", "+37.5"),
        ("documents", "shipped", "sentences"): ("1", "50.0", "75.0", "-25.0"),
        ("documents", "sentences", "sentences"): ("1", "50.0", "50.0", "+0.0"),
        ("documents", "ner", "sentences"): ("1", "50.0", "25.0", "+25.0"),
    }
