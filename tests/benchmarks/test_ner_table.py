"""The table of all sets: which runs are in it, and what is compared."""

import json

import pytest

from benchmarks import ner_table

GOLD = [[0, 0, 1, 0], [1, 0, 1, 0], [1, 2, 3, 0], [1, 4, 5, 0]]


def record(row, seed, right, data="ai", **settings):
    scores = {"f": 100.0 * right / 4, "p": 50.0, "r": 50.0}
    return {
        "kind": "run", "data": data, "row": row, "seed": seed, "n_docs": 2, "labels": ["A"],
        "settings": {"learn_rate": 2e-4, **settings},
        "dev": scores, "test": scores, "test_raw": scores,
        "recall_test": 97.5,
        "gold": GOLD, "predicted": GOLD[:right],
    }  # fmt: skip


@pytest.fixture
def path(tmp_path):
    records = [record("two-stage", seed, 4) for seed in (0, 1)]
    records += [record("token", seed, 2) for seed in (0, 1)]
    records += [record("ner", 0, 1), record("token", 0, 3, train_limit=100)]
    records += [record("token", 0, 2, data="wnut17")]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in records), "utf8")
    return path


def shown(capsys, *argv):
    assert ner_table.main([str(x) for x in argv]) == 0
    return capsys.readouterr().out.strip().splitlines()[2:]


def test_rows_are_compared_on_the_seeds_that_both_have(path, capsys):
    wnut, token, ner, ours = shown(capsys, path, "--samples", 200)
    assert wnut.startswith("| wnut17 | token | 1 |") and wnut.endswith("| - | - |")
    # F1 67 over 100; of the document with one entity alone 100 over 100.
    assert token.startswith("| ai | token | 2 | 50.0 ± 0.0 |")
    assert token.endswith("| +33.3 [+0.0, +50.0] |")
    assert ner.startswith("| ai | ner | 1 | 25.0 |")  # F1 40 over 100, of the first seed
    assert ner.endswith("| +60.0 [+0.0, +100.0] |")
    assert ours.startswith("| ai | two-stage | 2 | 100.0 ± 0.0 |") and ours.endswith("| - |")


def test_other_sizes_are_apart(path, capsys):
    (token,) = shown(capsys, path, "--train-limit", 100)
    assert token.startswith("| ai | token | 1 | 75.0 |")
    assert len(shown(capsys, path, "--rows", "ner")) == 1


def test_the_overview_has_a_line_per_set_and_size(path, capsys):
    small, wnut, ai = shown(capsys, path, "--overview", "--samples", 200)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (small, wnut, ai)]
    assert [x[:3] for x in cells] == [
        ["100", "ai", "75.0"], ["all", "wnut17", "50.0"], ["all", "ai", "50.0 ± 0.0"]
    ]  # fmt: skip
    assert [x[-2:] for x in cells[:2]] == [["", ""], ["", ""]]
    assert cells[2][-2:] == ["100.0 ± 0.0", "+33.3 [+0.0, +50.0]"]


def test_each_row_has_the_length_that_the_development_data_prefers(tmp_path, capsys):
    def run(row, seed, dev, right, steps, **settings):
        # "epochs" tells the lengths apart, as in the records of ner_modes.
        found = record(row, seed, right, epochs=steps // 7, **settings)
        return {**found, "dev": {**found["dev"], "f": dev}, "steps": steps}

    short = [run("two-stage", seed, 60.0, 3, 350) for seed in (0, 1)]
    short += [run("token", seed, 50.0, 2, 350) for seed in (0, 1)]
    short += [run("ner", 0, 40.0, 1, 350), run("probe", 0, 99.0, 4, 350)]
    short += [run("token", 0, 99.0, 4, 350, train_limit=1000)]  # a size without longer runs
    longer = [run("two-stage", 0, 59.0, 4, 1050), run("token", 0, 55.0, 1, 1050)]
    longer += [run("ner", 0, 45.0, 2, 1050)]
    paths = []
    for name, records in (("short", short), ("longer", longer)):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(x) + "\n" for x in records), "utf8")
    argv = [paths[0], "--longer", paths[1], "--samples", 200]
    rows = ["token", "ner", "two-stage"]
    (line,) = shown(capsys, *argv, "--rows", *rows)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:-2] == [
        "all", "ai", "25.0 (1,050)", "50.0 (1,050)", "75.0 (350)"
    ]  # fmt: skip
    # F1 of 3, 1 and 2 of 4 right: 86, 40 and 67.
    assert cells[-2].startswith("+45.7 [")
    assert cells[-1].startswith("+19.0 [") and cells[-1].endswith("] (ner)")
    with pytest.raises(SystemExit, match="On no set"):  # of spancat there are no longer runs
        ner_table.main([str(x) for x in argv])


def test_the_plot_shows_every_size_set_and_row(path, tmp_path, capsys):
    picture = tmp_path / "ner.svg"
    assert ner_table.main([str(path), "--plot", str(picture)]) == 0
    assert capsys.readouterr().out == ""
    text = picture.read_text("utf8")
    assert all(f"<!-- {x} -->" in text for x in ("100 sentences", "all sentences", "wnut17", "ai"))
    assert all(f"<!-- {row} -->" in text for row in ("token", "ner", "two-stage"))
