"""Copies of a checkpoint, to rewrite or damage."""

import shutil

import pytest


@pytest.fixture
def copy_of(tmp_path):
    """A copy of a checkpoint directory."""

    def copy(path, name="copy"):
        return shutil.copytree(path, tmp_path / name)

    return copy
