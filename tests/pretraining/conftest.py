"""Shared by the tests of pretraining."""

from pathlib import Path

import pytest

from spacy_luke.pretraining import pretrain
from tests.pretraining.world import make_world
from tests.workers import quick_workers  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def world(bert_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what ``make_world`` writes: a vocabulary and shards of 80 articles."""
    folder = tmp_path_factory.mktemp("world")
    make_world(folder, bert_dir, n=80)
    return folder


@pytest.fixture(autouse=True)
def without_plots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny trainings draw no plot, which would take most of their time, unless a test is marked
    ``plots``."""
    if not request.node.get_closest_marker("plots"):
        monkeypatch.setattr(pretrain, "plot_log", lambda records, path: None)
