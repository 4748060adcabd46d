"""Encoders beside each other: only runs that differ in nothing else."""

from pathlib import Path

import pytest

from benchmarks import encoder_tables, results


def run(encoder, right, data="politics", row="probe", kind="typing", seed=0, **settings):
    """Ten documents of one entity each, of which so many are right."""
    labels = ["person", "place"]
    gold = [[i, 0, 1, 0] for i in range(10)]
    found = [[i, 0, 1, 0 if i < right else 1] for i in range(10)]
    return {
        "kind": kind,
        "data": data,
        "row": row,
        "seed": seed,
        "settings": {"learn_rate": 1e-4, "encoder": encoder, "overrides": {}, **settings},
        "steps": 7,
        "n_docs": 10,
        "labels": labels,
        "gold": gold,
        "predicted": found,
        "dev": {"f": 50.0},
        "test": {"f": 10.0 * right},
    }


@pytest.fixture
def write(tmp_path):
    def to_file(name, *records):
        for record in records:
            results.append(tmp_path / name, record)
        return str(tmp_path / name)

    return to_file


def rendered(capsys, *argv):
    encoder_tables.main([*argv, "--samples", "50"])
    return capsys.readouterr().out


def test_encoders_are_told_apart_by_task_and_data_set(write, capsys):
    kinds = {"kind": "run", "row": "two-stage"}
    plain = write("plain", run("x", 5), run("x", 6, seed=1), run("x", 3, **kinds))
    results.append(Path(plain), run("x", 0, seed=2))  # not a seed of the other
    more = write("more", run("y@1", 8), run("y@1", 9, seed=1), run("y@1", 2, **kinds))
    text = rendered(
        capsys, "--of", "plain", plain, "--of", "more", more, "--row", "probe", "--row", "two-stage"
    )
    assert text.startswith("| test F1 | seeds | plain | more | more - plain |")
    assert "| NER politics two-stage | 1 | 30.0 | 20.0 | -10.0 [" in text
    assert "| types politics probe | 2 | 55.0 ± 7.1 | 85.0 ± 7.1 | +30.0 [" in text
    assert "Left out" not in text


@pytest.mark.parametrize(
    "other",
    [{"learn_rate": 2e-4}, {"seed": 1}],
)
def test_runs_that_differ_otherwise_are_left_out(write, capsys, other):
    a = write("a", run("x", 5), run("x", 5, data="ai"))
    files = a, write("b", run("y", 8, **other), run("y", 8, data="literature"))
    text = rendered(capsys, "--of", "a", files[0], "--of", "b", files[1], "--row", "probe")
    assert "types politics probe: other settings or seeds" in text
    assert "types ai probe: not run with every encoder" in text
    assert "types literature probe: not run with every encoder" in text
    assert "| types" not in text


def test_what_is_compared_with_has_to_be_there(write, capsys):
    a = write("a", run("x", 5))
    for wrong in (["--against", "c"], ["--of", "b", "nowhere.jsonl"], ["--of", "b"]):
        with pytest.raises(SystemExit):
            encoder_tables.main(["--of", "a", a, "--row", "probe", *wrong])
    told = capsys.readouterr().err
    assert "name one of a" in told and "no such file: nowhere.jsonl" in told
    assert "none is named" in told


def test_a_size_has_its_name_in_every_file_if_one_file_has_several(write, capsys):
    first = [run("a", n, kind="run", train_limit=size) for n, size in ((4, 100), (8, 1000))]
    a = write("a.jsonl", *first)
    b = write("b.jsonl", run("b", 6, kind="run", train_limit=100))
    shown = rendered(capsys, "--of", "a", a, "--of", "b", b, "--row", "probe")
    assert "NER politics, 100 sentences probe" in shown
    assert "politics, 1,000 sentences probe: not run with every encoder" in shown
