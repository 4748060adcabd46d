"""Documents are as random as they say, and a changed answer is noticed. Memory is not tested."""

import pytest
from spacy.vocab import Vocab

from benchmarks import many_documents, results
from benchmarks.random_documents import random_documents

pytest.importorskip("transformers")


def test_documents_are_the_same_for_a_seed_and_cover_what_real_ones_lack():
    one, same, other = (
        [
            (doc.text, doc.to_array(["ENT_IOB"]).tolist())
            for doc in random_documents(Vocab(), 300, x)
        ]
        for x in ("1", "1", "2")
    )
    assert one == same != other
    lengths = [len(iob) for _, iob in one]
    assert min(lengths) == 0 and max(lengths) >= 60
    assert any(text and not text.strip() for text, _ in one)
    assert any("👩" in text for text, _ in one) and any(len(text) > 900 for text, _ in one)


@pytest.mark.parametrize("name", many_documents.PIPELINES)
def test_every_pipeline_gives_answers_that_do_not_change(name, tmp_path):
    arguments = ["--docs", "30", "--pipelines", name, "--work", str(tmp_path)]
    record = many_documents.measure(many_documents.parse(arguments))
    assert record["n_answers"] and record["worst"] < 1e-5 and not record["n_changed"]
    many_documents.plot([record], tmp_path / "memory.svg")
    assert name in (tmp_path / "memory.svg").read_text("utf8")


def test_a_change_is_noticed_and_one_at_the_threshold_is_none():
    least = many_documents.THRESHOLD
    assert many_documents.difference({("a",): 0.9}, {("a",): 0.7}) == pytest.approx(0.2)
    assert many_documents.difference({("a",): 0.9}, {}) == pytest.approx(0.9 - least)
    assert many_documents.difference({("a",): least + 1e-7}, {}) < 1e-6
    assert many_documents.difference({}, {}) == 0.0


def test_long_documents_are_compared(tmp_path):
    arguments = ["--long", "--words", "60", "--rounds", "1", "--work", str(tmp_path)]
    assert many_documents.main(arguments) == 0
    records = results.read([many_documents.parse(arguments).results])
    assert {x["clock"] for x in records} == {"process", "wall"}
    assert list(records[0]["seconds"]) == ["1", "2", "4", "8"]
