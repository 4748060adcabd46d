"""The benchmark for a first GPU is rehearsed on the emulated one."""

import json
from pathlib import Path

import pytest

from tests.gpu.emulated import run_emulated
from tests.gpu.emulation.cuda_library import build, missing


@pytest.mark.slow
def test_what_a_gpu_has_to_prove_is_rehearsed(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    build()
    command = ["-m", "benchmarks.gpu_acceptance", "--tiny", "--emulate", "--work", str(tmp_path)]
    result = run_emulated(command)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    found = json.loads((tmp_path / "acceptance.json").read_text(encoding="utf8"))
    assert len(found) == 11 and {x["state"] for x in found.values()} == {"ok"}
    ran = {name for name, x in found.items() if x["found"] != "on a GPU only"}
    assert ran == {"environment", "parity", "predictions", "training", "threads", "pretraining"}
