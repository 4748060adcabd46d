"""The table of entities that are found by names written differently."""

from benchmarks.linking_finding import table


def test_shares_are_of_mentions_with_an_entity_and_times_of_all():
    counts = {"mentions": 8, "nil_mentions": 2, "right": 4, "among_30": 6}
    record = {"row": "aliases", **counts, "nil": 3, "nil_right": 1, "seconds": 0.5}
    line = [x.strip() for x in table([record]).split("\n")[2].split("|")[1:-1]]
    assert line == ["aliases", "50.0", "75.0", "1 of 3", "50"]
