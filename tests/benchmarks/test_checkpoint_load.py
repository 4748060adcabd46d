"""Both sides load a fabricated checkpoint and agree. Times and memory are not tested."""

import pytest

from benchmarks import checkpoint_load, results

pytest.importorskip("transformers")


@pytest.fixture(
    scope="module",
    params=[pytest.param(x, marks=pytest.mark.slow) for x in ("tiny", "tiny-multilingual")],
)
def records(tmp_path_factory, request):
    pytest.importorskip("sentencepiece", reason="the multilingual one has a SentencePiece model")
    folder = tmp_path_factory.mktemp("load")
    arguments = ["--size", request.param, "--work", str(folder), "--rounds", "1"]
    assert checkpoint_load.main(arguments) == 0
    return results.read([checkpoint_load.parse(arguments).results])


def test_every_side_is_loaded_and_asked(records):
    loads = {x["side"]: x for x in records if x["kind"] == "load"}
    assert set(loads) == set(checkpoint_load.SIDES)
    assert all(x["load_seconds"] > 0 and x["peak_mib"] > 0 for x in loads.values())
    assert loads["stored"]["difference"] < 1e-4 <= checkpoint_load.PRECISE["half"]
    assert {x["side"] for x in records if x["kind"] == "import"} == {"trained", "stored", "half"}


def test_the_table_has_a_row_a_side(records):
    shown = checkpoint_load.table(records)
    assert all(f"| {side} |" in shown for side in checkpoint_load.SIDES)


@pytest.mark.parametrize("away", [1e-3, float("nan")])
def test_other_vectors_stop_the_benchmark(away):
    found = {side: {"vectors": [[0.0, 1.0]]} for side in checkpoint_load.SIDES}
    found["stored"] = {"vectors": [[0.0, 1.0 + away]]}
    with pytest.raises(SystemExit, match="stored: the vectors differ"):
        checkpoint_load.compare(found)
