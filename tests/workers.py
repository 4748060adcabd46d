"""Workers and trainings in processes of their own that start at once: as copies of a process that
has imported the package (the standard library's ``forkserver``). A new one imports for seconds."""

import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.context import BaseContext

import pytest
import torch

from spacy_luke.pretraining import engine


def quick_context() -> BaseContext:
    """How such processes start; by imports where copies are not possible."""
    if sys.platform != "linux" or torch.cuda.is_available():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([engine.__name__, "distributed"])
    forkserver.ensure_running()
    return context


@pytest.fixture(autouse=True)
def quick_workers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Workers of engines start so, unless a test is marked ``spawned``."""
    if request.node.get_closest_marker("spawned"):
        yield
        return
    method = quick_context().get_start_method()
    monkeypatch.setattr(engine, "START_METHOD", method)
    try:
        import dask
        import distributed  # noqa: F401  (its import sets what the configuration has by default)
    except ImportError:
        yield
        return
    with dask.config.set({"distributed.worker.multiprocessing-method": method}):
        yield
