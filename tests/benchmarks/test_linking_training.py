"""The table of trained links: folds are put together, and rows compared on the same mentions."""

from benchmarks.linking_training import table


def record(row, fold, seed, right, **more):
    settings = {"fold": fold, "encoder": "e", "set": []}
    found = {"data": "places", "row": row, "seed": seed, "settings": settings, "right": right}
    return {**found, "prior": [1, 0, 0, 0], "docs": [0, 0, 1, 2], **more}


def test_folds_are_put_together_and_rows_compared():
    records = [
        record("luke_linker", 0, 0, [1, 1, 1, 0], initialised=[1, 1, 0, 0], untrained=[0] * 4),
        record("luke_linker", 1, 0, [1, 1, 1, 1], initialised=[1] * 4, untrained=[1, 0, 0, 0]),
        record("entity_linker", 0, 0, [0, 0, 0, 0]),
    ]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    rows = {line[3]: line for line in lines[2:]}
    assert rows["luke_linker, trained"][1:3] == ["2", "8"]
    assert rows["luke_linker, trained"][5] == "87.5"
    assert rows["luke_linker, initialised"][5] == "75.0" and rows["prior"][5] == "25.0"
    assert rows["luke_linker, untrained"][5] == "12.5"
    assert rows["entity_linker, trained"][1:3] == ["1", "4"]
    assert rows["entity_linker, trained"][6].startswith("+75.0 [")
    assert rows["luke_linker, initialised"][6].startswith("+12.5 [")
