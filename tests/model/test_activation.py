"""GELU outside oneDNN, which would keep something for every number of rows."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.activation import gelu

PROGRAM = """
import torch
from spacy_luke.model.activation import gelu

torch.manual_seed(0)
for n in range(2, 30):
    rows = torch.randn(n, 48, requires_grad=True)
    gelu(rows).sum().backward()
torch.nn.functional.gelu(torch.randn(40, 48))
"""


@pytest.mark.parametrize("n", [0, 1, 7])
def test_it_is_torchs_gelu(n):
    rows = (4 * torch.randn(n, 48)).requires_grad_()
    same = rows.detach().clone().requires_grad_()
    gelu(rows).sum().backward()
    F.gelu(same).sum().backward()
    torch.testing.assert_close(gelu(rows), F.gelu(same), atol=3e-6, rtol=0)
    torch.testing.assert_close(rows.grad, same.grad, atol=3e-6, rtol=0)
    assert gelu(rows).is_contiguous()


def test_no_number_of_rows_leaves_a_primitive():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    calls = [line for line in done.stdout.split("\n") if ",exec," in line]
    if not calls:
        pytest.skip("torch does not use oneDNN for GELU here")
    assert len(calls) == 1 and "40x48" in calls[0]
