"""Every row of the typing benchmark trains, resumes and reaches the tables."""

import pytest

from benchmarks import results, tables, typing_modes
from benchmarks.task_rows import ROWS
from tests.benchmarks.task_data import write_crossner


@pytest.fixture(scope="module")
def trained(tmp_path_factory, bert_dir):
    """Arguments of a finished command, and its records."""
    folder = tmp_path_factory.mktemp("typing")
    write_crossner(folder / "data", "ai")
    places = ["--encoder", bert_dir, "--data", folder / "data", "--work", folder / "work"]
    options = "--data-sets ai --seeds 0 --epochs 12 --batch-size 3 --learn-rate 0.004"
    argv = [*map(str, places), *options.split()]
    assert typing_modes.main(argv) == 0
    return argv, results.read([folder / "work" / "results.jsonl"])


def test_every_row_learns_toy_types(trained):
    for row in ROWS:
        (run,) = [x for x in trained[1] if x["row"] == row]
        assert len(run["predicted"]) == len(run["gold"]) == 24
        assert run["test"]["f"] == 100


def test_finished_runs_are_skipped(trained):
    argv, before = trained
    assert typing_modes.main(argv) == 0
    assert results.read([typing_modes.parse(argv).results]) == before


def test_the_tables_compare_with_the_baseline(trained):
    text = tables.render(trained[1], n_samples=50)
    assert "## Types: ai" in text and "test micro F1" in text
    assert "| probe - baseline | +0.00 | [+0.00, +0.00] |" in text
