"""Shared by the tests of pretraining."""

from pathlib import Path

import pytest

from tests.pretraining.world import make_world


@pytest.fixture(scope="module")
def world(bert_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what ``make_world`` writes: a vocabulary and shards of 80 articles."""
    folder = tmp_path_factory.mktemp("world")
    make_world(folder, bert_dir, n=80)
    return folder
