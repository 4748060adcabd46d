import tracemalloc

import numpy as np

from spacy_luke.layers.known_spans import RELATIONS, Known, known_features


def known(*spans):
    """Spans (document, start, end, label, title)."""
    table = np.asarray([x[:4] for x in spans], dtype=np.int64).reshape(-1, 4)
    return Known(*table.T, [x[4] for x in spans])


def features_of(candidates, spans, n_labels=2):
    """Of each candidate {(relation, label): weight}, and its titles."""
    table = np.asarray(candidates, dtype=np.int64).reshape(-1, 3)
    found = known_features(table[:, 1:], table[:, 0], known(*spans), n_labels)
    bounds, titles = found.offsets, found.title_offsets
    names = [(RELATIONS[x // n_labels], x % n_labels) for x in found.features.tolist()]
    pairs = list(zip(names, found.weights.tolist()))
    return [
        (dict(pairs[bounds[i] : bounds[i + 1]]), found.titles[titles[i] : titles[i + 1]])
        for i in range(len(table))
    ]


def test_how_candidates_lie_to_a_known_span():
    spans = [(1, 2, 5, 0, "Q1")]
    candidates = [(0, 2, 5), (1, 0, 2), (1, 1, 5), (1, 1, 6), (1, 2, 4), (1, 2, 5), (1, 3, 4)]
    candidates += [(1, 4, 6), (1, 5, 6), (2, 2, 5)]
    found = [next(iter(x), ("apart", 0))[0] for x, _ in features_of(candidates, spans)]
    assert found == [
        *("apart", "apart", "around", "around", "inside", "equal", "inside"),
        *("crossing", "apart", "apart"),
    ]
    assert [i for i, (_, titles) in enumerate(features_of(candidates, spans)) if titles] == [5]


def test_several_labels_are_averaged_and_repeated_ones_count_once():
    spans = [(0, 0, 1, 0, "b"), (0, 0, 1, 1, "a"), (0, 0, 1, 1, "a"), (0, 0, 2, 1, "")]
    (one, titles), (two, _) = features_of([(0, 0, 1), (0, 0, 2)], spans)
    assert one == {("nested", 0): 0.5, ("nested", 1): 0.5, ("inside", 1): 1.0}
    assert titles == ["a", "b"]
    assert two == {("equal", 1): 1.0, ("around", 0): 0.5, ("around", 1): 0.5}


def test_a_known_span_inside_a_longer_one_is_nested():
    spans = [(0, 0, 2, 0, ""), (0, 1, 2, 1, ""), (0, 1, 3, 0, ""), (1, 1, 2, 1, "")]
    found = [x for x, _ in features_of([(0, 0, 2), (0, 1, 2), (1, 1, 2)], spans)]
    assert found == [
        {("equal", 0): 1.0, ("around", 1): 1.0, ("crossing", 0): 1.0},
        {("nested", 1): 1.0, ("inside", 0): 1.0},
        {("equal", 1): 1.0},
    ]


def test_labels_that_were_not_learned_say_nothing_and_their_ids_do():
    assert features_of([(0, 0, 1)], [(0, 0, 1, -1, "Q1")]) == [({}, ["Q1"])]


def test_no_candidates_or_no_known_spans():
    assert features_of([], [(0, 0, 1, 0, "")]) == []
    assert features_of([(0, 0, 1)], []) == [({}, [])]


def test_it_equals_a_comparison_of_all_pairs():
    rng = np.random.default_rng(0)

    def draw(n, *more):
        docs, starts = np.sort(rng.integers(0, 3, n)), rng.integers(0, 12, n)
        widths = np.where(rng.random(n) < 0.2, 15, rng.integers(1, 6, n))
        return np.stack([docs, starts, starts + widths, *more], 1)

    candidates = draw(60)
    spans = [(*row, "") for row in draw(25, rng.integers(0, 3, 25)).tolist()]

    def relation(doc, a, b):
        if a == b:
            longer = [x[1:3] for x in spans if x[0] == doc and x[1] <= a[0] and a[1] <= x[2]]
            return "nested" if set(longer) - {a} else "equal"
        if b[0] <= a[0] and a[1] <= b[1]:
            return "inside"
        return "around" if a[0] <= b[0] and b[1] <= a[1] else "crossing"

    for (doc, start, end), (found, _) in zip(
        candidates.tolist(), features_of(candidates, spans, n_labels=3)
    ):
        near = [x for x in spans if x[0] == doc and x[1] < end and x[2] > start]
        assert set(found) == {(relation(doc, (start, end), x[1:3]), x[3]) for x in near}


def test_a_name_as_long_as_the_document_makes_no_pairs_of_all_spans():
    n = 4000
    starts = np.arange(n)
    table = [(0, i, j) for i in range(n) for j in range(i + 1, min(i + 9, n + 1))] + [(0, 0, n)]
    table = np.asarray(table)
    spans = [(0, i, i + 1, 0, "") for i in starts[::5].tolist()] + [(0, 0, n, 0, "")]
    tracemalloc.start()
    found = known_features(table[:, 1:], table[:, 0], known(*spans), 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.asked.sum() == len(spans)
    assert peak < 64 * 2**20  # all pairs: 205 MB for each array of them


def test_rows_of_the_entity_table():
    table = np.asarray([(0, 0, 1), (0, 1, 2), (0, 2, 3)])
    spans = known((0, 0, 1, 0, "a"), (0, 0, 1, 0, "b"), (0, 0, 1, 0, "c"), (0, 2, 3, 0, "a"))
    found = known_features(table[:, 1:], table[:, 0], spans, 1)
    given = {("a", 0): 7, ("c", 0): 9, ("a", 2): 5}  # a title and its candidate
    offsets, rows = found.rows_of(lambda *asked: given.get(asked), absent=3)
    assert offsets.tolist() == [0, 2, 3, 4] and rows.tolist() == [7, 9, 3, 5]
