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


def test_other_settings_and_if_asked_for_folds_have_their_own_rows():
    records = [record("luke_linker", fold, 0, [1, 1, 1, fold]) for fold in (0, 1)]
    rate, length = ["components.luke_linker.model.rate", "2"], ["initialize.after_init.words", "1"]
    for other, settings in zip(records, ([length], [length, rate])):
        other["settings"] = {**other["settings"], "set": settings}
    found = [line.split("|")[1].strip() for line in table(records).split("\n")[2:]]
    assert list(dict.fromkeys(found)) == ["places", "places, model.rate 2"]
    by_fold = [line.split("|")[1].strip() for line in table(records, True).split("\n")[2:]]
    assert list(dict.fromkeys(by_fold)) == ["places, fold 0", "places, fold 1, model.rate 2"]
