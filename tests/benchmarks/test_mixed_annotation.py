"""The benchmark of corpora with different annotations: every row learns its own layers."""

import json

import pytest

from benchmarks import mixed_annotation
from spacy_luke.annotations.annotated import annotated_labels, is_annotated
from spacy_luke.annotations.relations import get_relations


def passage(fold: int, text: str, facts: list[tuple], annotated: list[str]) -> dict:
    return {
        "fold": fold,
        "text": text,
        "facts": [{"property": p, "subject": s, "object": o} for p, s, o in facts],
        "annotated": annotated,
    }


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "crossner" / "politics"
    folder.mkdir(parents=True)
    lines = ["Ada\tB-person", "sang\tO", "in\tO", "Rome\tB-location", ".\tO", ""]
    for part in ("train", "dev", "test"):
        (folder / f"{part}.txt").write_text("\n".join([*lines * 10, ""]), "utf8")
    born = ("BORN_IN", [0, 5], [18, 22])
    passages = [
        passage(fold, "Grace was born in Rome.", [born], ["BORN_IN", "SPOUSE"])
        for fold in (1, 2, 3, 3, 3)
    ]
    passages.append(passage(1, "Nothing here.", [], ["SPOUSE"]))
    passages.append(passage(1, "Emmylou", [("BORN_IN", [0, 4], [4, 7])], ["BORN_IN"]))
    target = tmp_path / "data" / "knowledgenet"
    target.mkdir()
    text = "\n".join(map(json.dumps, passages))
    (target / "passages-folds123.jsonl").write_text(text, "utf8")
    return tmp_path / "data"


def test_passages_say_what_was_judged_and_facts_within_tokens_are_left_out(data):
    first, second, odd = mixed_annotation.knowledgenet(data, [1, 2])
    for doc in (first, second):
        assert annotated_labels(doc, "relations") == {"BORN_IN", "SPOUSE"}
        assert not is_annotated(doc, "ents")
        (relation,) = get_relations(doc)
        assert (relation.head.text, relation.tail.text, relation.label) == (
            *("Grace", "Rome"),
            "BORN_IN",
        )
    assert get_relations(odd) == ()


def test_rows_are_trained_on_their_corpora(data, bert_dir, tmp_path, capsys):
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--seeds", "0", "--epochs", "1"]
    arguments += ["--work", str(tmp_path / "work")]
    assert mixed_annotation.main(arguments) == 0
    file = tmp_path / "work" / "results.jsonl"
    records = {x["row"]: x for x in map(json.loads, file.read_text("utf8").splitlines())}
    assert set(records) == set(mixed_annotation.ROWS)
    assert set(records["both"]["test"]) == {"f", "ents_f", "rels_f"}
    assert set(records["entities"]["test"]) == {"f", "ents_f"}
    assert set(records["relations"]["test"]) == {"f", "rels_f"}
    capsys.readouterr()
    assert mixed_annotation.main([*arguments, "--table"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
