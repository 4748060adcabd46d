"""The benchmark of a GPU's speed runs, on the CPU and a small network."""

from pathlib import Path

import pytest

from benchmarks import gpu_speed, results
from spacy_luke.layers import adam, shim
from spacy_luke.model import packing


def test_it_measures_blocks_and_steps_and_leaves_the_package_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = packing._LIMITS_ELSEWHERE
    few = ["--sentences", "3", "--rounds", "2", "--cases", "luke_ner two-stage"]
    assert gpu_speed.main(["--tiny", *few, "--work", str(tmp_path)]) == 0
    records = results.of_kind(tmp_path / "gpu_speed.jsonl", gpu_speed.KIND)
    assert [record["row"] for record in records] == ["blocks"] * 2 + ["step"] * 2
    for record in records[:2]:
        assert record["predict"].keys() == record["update"].keys() == gpu_speed.LIMITS.keys()
        assert all(len(x) == 2 for way in ("predict", "update") for x in record[way].values())
    assert all(record["seconds"].keys() == gpu_speed.STEPS.keys() for record in records[2:])
    assert usual == packing._LIMITS_ELSEWHERE and shim.applies is adam.applies
    capsys.readouterr()
    gpu_speed.main(["--table", "--work", str(tmp_path)])
    printed = capsys.readouterr().out.split("\n\n")
    assert [len(table.strip().splitlines()) for table in printed] == [2 + 2 * 3, 2 + 2]
