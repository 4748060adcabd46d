"""The benchmark of lists of names, with few names."""

import pytest

from benchmarks import known_names, results


@pytest.mark.slow
def test_all_kinds_are_measured_and_shown(bert_dir, tmp_path, capsys):
    work = ["--work", str(tmp_path), "--encoder", str(bert_dir)]
    known_names.main([*work, "--names", "1000", "--kinds", "known", "span_ruler"])
    known, ruler = results.read([tmp_path / "results.jsonl"])
    assert [x["row"] for x in (known, ruler)] == list(known_names.KINDS.values())
    assert known["spans"] >= ruler["spans"] >= 990 and known["words"] == ruler["words"]
    known_names.main([*work, "--table"])
    assert "| words per second |" in capsys.readouterr().out


def test_texts_have_names_of_the_list():
    names = {x.text.upper() for x in known_names.invented(100)}
    texts = known_names.texts(100)
    assert len(texts) == 10 and sum(any(x in text for x in names) for text in texts) == 10
