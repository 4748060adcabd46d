"""Mixed precision is float32 on devices that only emulate bf16."""

import logging

import pytest
import torch

from spacy_luke.model import precision
from spacy_luke.model.precision import has_bf16, uses_bf16

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def forget():
    uses_bf16.cache_clear()
    yield
    uses_bf16.cache_clear()


@pytest.mark.parametrize("capability,has", [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_have_bf16_since_ampere(monkeypatch, capability, has):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_bf16(GPU) == has


def test_all_gpus_of_amd_have_it(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.0")
    assert has_bf16(GPU)


@pytest.mark.parametrize("supported", [True, False])
@pytest.mark.parametrize(
    "machine, native, is_enough",
    [("x86_64", True, True), ("AMD64", False, False), ("arm64", False, True)],
)
def test_of_a_cpu_its_library_of_matrices_tells(monkeypatch, supported, machine, native, is_enough):
    """It also says yes to AVX-512, with which it emulates bf16."""
    operations = torch.ops.mkldnn
    monkeypatch.setattr(operations, "_is_mkldnn_bf16_supported", lambda: supported, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native, raising=False)
    monkeypatch.setattr(precision.platform, "machine", lambda: machine)
    assert has_bf16(CPU) == (supported and is_enough)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not has_bf16(CPU)


def test_what_is_missing_is_logged_once(monkeypatch, caplog):
    monkeypatch.setattr(precision, "has_bf16", lambda device: False)
    caplog.set_level(logging.WARNING, "spacy.luke")
    assert not uses_bf16(CPU) and not uses_bf16(CPU)
    (record,) = caplog.records
    assert "this CPU has no instructions for bf16" in record.getMessage()


def test_what_is_there_is_used_without_a_word(monkeypatch, caplog):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    assert uses_bf16(CPU) and not caplog.records
