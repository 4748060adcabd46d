"""The comparison of ways to find sentences."""

from benchmarks import sentences
from tests.pretraining.articles import article, make_articles


def test_boundaries_and_speed(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.tsv").write_text("en\tDr. Ada.| Eda.\nhy\tՆա։| Ոչ։\n", "utf8")
    monkeypatch.setattr(sentences, "FILES", [tmp_path / "a.tsv"])
    rows = [article(1, "Ada", "Dr. Ada. Eda.\n\nAda.", [])]
    make_articles(tmp_path / "articles", (rows, []))
    sentences.main([str(tmp_path / "articles")])
    output = capsys.readouterr().out
    assert "hy 2 rules -0 +0 sentencizer -1 +0" in output
    assert "rules missed 0 wrong 0 all 4" in output and "MB/s sentencizer" in output
