"""Every component, config and pretraining by the rules of a device, in one process."""

import pytest

from tests.configs.test_configs import PIPELINES
from tests.gpu.cases import CASES
from tests.gpu.emulated import Record, prepare, run_cases

MOST_AWAY = 1e-5
"""Kernels are emulated by those of the CPU, so answers differ by the order of additions only."""

COPIES = {
    # case: predict to the device and back, update to the device and back
    "luke": (17, 0, 0, 0),
    "luke_kept": (17, 8, 0, 0),
    "ner_two_stage": (16, 2, 20, 3),
    "ner_probe": (13, 1, 17, 2),
    "ner_full": (13, 1, 17, 2),
    "relation_probe": (22, 1, 23, 3),
    "relation_markers": (10, 1, 12, 2),
    "typing_probe": (15, 1, 17, 2),
    "typing_markers": (10, 1, 12, 2),
    "spancat": (19, 4, 21, 5),
    "joint": (51, 4, 64, 8),
}
"""Copies for a batch of four documents. Each waits for the device, so a new one has to pay.

To the device go what a network call reads, since batches are made in NumPy: ids, positions and
offsets of words and entities (8 arrays), the rows of the padded block (2), the rows that heads
read (2 to 10), and in training gold classes and weights. To the host go scores, those of the filter
too, and in training losses and whether gradients are finite. Of ``luke_kept`` the vectors of each
document follow; stock ``spancat`` makes candidates on the device.
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    folder = tmp_path_factory.mktemp("emulated")
    prepare(folder)
    return run_cases(folder)


@pytest.mark.parametrize("case", CASES)
def test_a_pipeline_is_trained_saved_and_loaded_on_either_device_with_equal_answers(
    found: dict[str, Record], case: str
) -> None:
    assert "error" not in found[case], found[case]["error"]
    far = found[case]["found"]
    assert far.keys() == {"saved on the device", "losses", "saved on the CPU"}
    assert max(far.values()) < MOST_AWAY, far


@pytest.mark.parametrize("case", CASES)
def test_copies_per_batch_are_bounded(found: dict[str, Record], case: str) -> None:
    record = found[f"counts {case}"]
    assert "error" not in record, record["error"]
    counted = record["found"]
    seen = [
        counted[way][kind] for way in ("predict", "update") for kind in ("to device", "to host")
    ]
    lines = [line for way in counted.values() for line in way["lines"]]
    assert all(n <= most for n, most in zip(seen, COPIES[case])), (seen, COPIES[case], lines)


@pytest.mark.parametrize("config", PIPELINES)
def test_a_shipped_config_trains_on_a_device(found: dict[str, Record], config: str) -> None:
    assert "error" not in found[f"config {config}"], found[f"config {config}"]["error"]


@pytest.mark.parametrize("case", ["rules", "commands", "threads", "moving", "pretraining"])
def test_by_the_rules_of_a_device(found: dict[str, Record], case: str) -> None:
    assert "error" not in found[case], found[case]["error"]
