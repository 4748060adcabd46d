"""The benchmark of documents with many entities asks about every pair of them."""

import pytest

from benchmarks import relation_crowd, results, tables


@pytest.mark.slow
def test_every_pair_is_asked_about_and_learned_from(bert_dir, tmp_path):
    options = ["--modes", "probe", "markers", "--entities", "3", "6"]
    places = ["--encoder", str(bert_dir), "--work", str(tmp_path)]
    assert relation_crowd.main([*places, *options]) == 0
    found = results.read([tmp_path / "results.jsonl"])
    assert [(x["mode"], x["n_entities"], x["n_pairs"]) for x in found] == [
        ("probe", 3, 3),
        ("probe", 6, 15),
        ("markers", 3, 3),
        ("markers", 6, 15),
    ]
    text = tables.render([*found, *found], n_samples=10)
    assert text.count("| probe | 6 |") == 1 and "| markers | 3 |" in text
    assert all(min(x["predict_seconds"], x["update_seconds"]) > 0 for x in found)
