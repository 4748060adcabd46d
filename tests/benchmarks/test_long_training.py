"""The benchmark of long documents for training runs, and loses no word."""

from pathlib import Path

import pytest

from benchmarks import long_training


def test_it_reads_and_cuts_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert long_training.main(["--words", "60", "600", "--work", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.strip().splitlines()[-2:]
    assert [line.split("|")[1].strip() for line in lines] == ["60", "600"]
