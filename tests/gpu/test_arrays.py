"""Arrays and modules on their way between Thinc and torch, without a device."""

import numpy as np
import pytest
import spacy
import torch
from thinc.api import CupyOps

from spacy_luke.layers.arrays import to_torch
from spacy_luke.pipeline.luke_ner import LukeNER


def test_a_numpy_array_becomes_a_tensor_in_the_same_memory() -> None:
    array = np.zeros((2, 3), dtype="float32")
    tensor = to_torch(array)
    tensor += 1
    assert array.all() and tensor.dtype == torch.float32
    with pytest.raises(ValueError, match="negative"):
        to_torch(array[::-1])


class NewCupyArray:
    """An array with CuPy's protocol of today: no version is agreed on unless it is asked for."""

    def __init__(self) -> None:
        self.tensor = torch.arange(3.0)

    def toDlpack(self) -> None:
        raise AssertionError("a capsule of a version that torch may not read")

    def __dlpack__(self, **options: object) -> object:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return self.tensor.__dlpack_device__()


def test_torch_and_cupy_agree_on_a_version_of_dlpack() -> None:
    array = NewCupyArray()
    tensor = to_torch(array)
    tensor += 1
    assert array.tensor.tolist() == [1.0, 2.0, 3.0]


def test_a_model_without_weights_moves(luke_dir) -> None:
    nlp = spacy.blank("en")
    model = nlp.add_pipe("luke", config={"model": {"name": str(luke_dir)}}).model
    model.to_cpu()
    nlp.initialize()
    assert model.shims[0].module.network.device.type == "cpu"


def test_a_module_goes_to_the_device_that_its_shim_was_moved_to(luke_dir) -> None:
    nlp = spacy.blank("en")
    shim = nlp.add_pipe("luke", config={"model": {"name": str(luke_dir)}}).model.shims[0]
    shim.to_device("meta", 0)  # torch's device without memory stands for a GPU
    shim.set(torch.nn.Linear(2, 2))
    assert shim.module.weight.device.type == "meta"


def test_candidates_are_made_on_the_host(luke_dir) -> None:
    seen = []

    def suggester(docs, *, ops):
        seen.append(ops)
        return spans(docs, ops=ops)

    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("luke_ner")
    assert isinstance(pipe, LukeNER)
    spans, pipe.suggester = pipe.suggester, suggester
    pipe.model.ops = CupyOps.__new__(CupyOps)
    pipe._query([nlp.make_doc("Ada lives in Tokyo")])
    assert [ops.name for ops in seen] == ["numpy"]
