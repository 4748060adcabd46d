"""The harness that kills preparation and pretraining, with one kill."""

from benchmarks import kill_resume


def test_a_killed_preparation_leaves_the_same_bytes(bert_dir, tmp_path, capsys):
    args = ["--encoder", str(bert_dir), "--work", str(tmp_path), "--kills", "1", "--workers", "1"]
    assert kill_resume.main([*args, "--halves", "preparation"]) == 0
    assert "identical" in capsys.readouterr().out


def test_what_differs_is_told(tmp_path):
    for name, text in (("one", "a"), ("other", "b")):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part" / "file").write_text(text)
        (tmp_path / name / ".lock").write_text(name)
    one, other = (kill_resume.files(tmp_path / x) for x in ("one", "other"))
    assert one.keys() == other.keys() == {"part/file"} and one != other
