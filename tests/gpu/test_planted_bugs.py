"""Bugs that only a GPU shows, planted one by one: each has to raise on the emulated device.

    pytest tests/gpu/test_planted_bugs.py --slow -n 0     # some two minutes

A bug is a text of the package and what replaces it, in a copy of the package. If the package no
longer has the text, the test fails: plant the same kind of bug in the code of today.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gpu.emulated import ROOT, prepare, run_cases


class Bug(NamedTuple):
    """case: the smallest that reaches the line. raises: a part of the message that is expected."""

    name: str
    file: str
    old: str
    new: str
    case: str
    raises: str


MIXED = "same device"
INDEX = "dtype=np.int64)).to(self.device)"
BUGS = [
    Bug("inputs stay", "model/network.py", INDEX, "dtype=np.int64))", "ner_two_stage", MIXED),
    Bug("indices stay", "layers/encoder_run.py", INDEX, "dtype=np.int64))", "ner_two_stage", MIXED),
    Bug(
        "a mask without a device",
        "model/attention.py",
        ", dtype=torch.bool, device=keys.device)",
        ", dtype=torch.bool)",
        "relation_markers",  # sequences of several lengths, with two entities each
        MIXED,
    ),
    Bug(
        "padding stays",
        "model/packing.py",
        "torch.from_numpy(keep).to(device))",
        "torch.from_numpy(keep))",
        "ner_two_stage",
        MIXED,
    ),
    Bug(
        "numpy() of a tensor on the device",
        "layers/span_network.py",
        "filter_logits.detach().cpu().numpy()",
        "filter_logits.detach().numpy()",
        "ner_two_stage",
        "convert cuda",
    ),
    Bug(
        "np.asarray of CuPy's array",
        "layers/arrays.py",
        'return array.get() if hasattr(array, "get") else np.asarray(array)',
        "return np.asarray(array)",
        "spancat",
        "Implicit conversion",
    ),
    Bug(
        "decoding gets CuPy's array",
        "pipeline/classifier_pipe.py",
        "self.model.ops.to_numpy(scores.logits)",
        "scores.logits",
        "ner_two_stage",
        "",
    ),
    Bug(
        "a loss mixes arrays",
        "pipeline/span_loss.py",
        'xp.asarray(annotated[scores.filtered], dtype="f")',
        'annotated[scores.filtered].astype("f")',
        "ner_two_stage",
        "Unsupported type",
    ),
    Bug(
        "a loss in NumPy",
        "pipeline/class_loss.py",
        'gold = xp.asarray(targets, dtype="f")',
        'gold = targets.astype("f")',
        "relation_probe",
        "Unsupported type",
    ),
    Bug(
        "zeros without a device",
        "layers/encoder_run.py",
        "torch.zeros(*shape, dtype=torch.float32, device=self.device)",
        "torch.zeros(*shape, dtype=torch.float32)",
        "relation_probe",
        MIXED,
    ),
    Bug(
        "gradients stay",
        "layers/encoder_run.py",
        "to_torch(gradients[i]).to(outputs[i].device, outputs[i].dtype)",
        "torch.as_tensor(gradients[i].get())",
        "ner_two_stage",
        "",
    ),
    Bug(
        "kept vectors are CuPy's",
        "pipeline/luke.py",
        "keep(doc, scores[i], self.model.ops.to_numpy)",
        "keep(doc, scores[i], np.asarray)",
        "luke_kept",
        "Implicit conversion",
    ),
    Bug(
        "the module stays",
        "layers/shim.py",
        "module.to(self._device or get_torch_default_device(), torch.float32)",
        "module",
        "ner_two_stage",
        "",
    ),
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    prepare(folder)
    return folder


def copy_of_the_package(root: Path) -> Path:
    root.mkdir()
    shutil.copytree(ROOT / "spacy_luke", root / "spacy_luke")
    (root / "tests").symlink_to(ROOT / "tests")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug_raises(checkpoints: Path, tmp_path: Path, bug: Bug) -> None:
    root = copy_of_the_package(tmp_path / "root")
    path = root / "spacy_luke" / bug.file
    text = path.read_text(encoding="utf8")
    assert bug.old in text, f"{bug.file} has no {bug.old!r}: plant this kind of bug where it is now"
    path.write_text(text.replace(bug.old, bug.new), encoding="utf8")
    (record,) = run_cases(checkpoints, f"counts {bug.case}", root=root).values()
    assert "error" in record, "the bug was not noticed"
    assert bug.raises in record["error"], record["error"]


@pytest.mark.slow
def test_the_package_itself_raises_nothing(checkpoints: Path, tmp_path: Path) -> None:
    cases = {f"counts {bug.case}" for bug in BUGS}
    found = run_cases(checkpoints, *cases, root=copy_of_the_package(tmp_path / "root"))
    assert found.keys() == cases
    assert not [record["error"] for record in found.values() if "error" in record]
