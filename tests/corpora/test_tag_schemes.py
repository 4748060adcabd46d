"""Tags become the same entities in every scheme, and departures are told."""

import pytest

from spacy_luke.corpora.tag_schemes import (
    NO_BEGIN,
    NO_LAST,
    NO_NEIGHBOUR,
    SchemeDetector,
    parse_tag,
    read_entities,
)

# One sentence of ten words in each scheme: two neighbours of one label, then a lone word.
SAME_ENTITIES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC O O I-ORG I-ORG I-ORG",
    "IOB2": "B-PER I-PER B-PER O B-LOC O O B-ORG I-ORG I-ORG",
    "BILOU": "B-PER L-PER U-PER O U-LOC O O B-ORG I-ORG L-ORG",
    "IOBES": "B-PER E-PER S-PER O S-LOC O O B-ORG I-ORG E-ORG",
}
ENTITIES = [(0, 2, "PER"), (2, 3, "PER"), (4, 5, "LOC"), (7, 10, "ORG")]


def tags_of(text):
    tags = [parse_tag(cell) for cell in text.split()]
    assert None not in tags
    return tags


def detect(*sentences):
    detector = SchemeDetector()
    for sentence in sentences:
        tags = tags_of(sentence)
        detector.add(tags, range(1, len(tags) + 1))
    return detector


@pytest.mark.parametrize("scheme", SAME_ENTITIES)
def test_every_scheme_gives_the_same_entities_without_repairs(scheme):
    assert read_entities(tags_of(SAME_ENTITIES[scheme]), scheme) == (ENTITIES, [])


@pytest.mark.parametrize("scheme", SAME_ENTITIES)
def test_every_scheme_is_detected_without_a_note(scheme):
    assert detect(SAME_ENTITIES[scheme]).result() == (scheme, "")


@pytest.mark.parametrize(
    "sentence, scheme",
    [("U-PER O", "BILOU"), ("S-PER", "IOBES"), ("I-PER O I-PER", "IOB1"), ("B-PER O", "IOB2")],
)
def test_one_prefix_is_enough_to_detect_a_scheme(sentence, scheme):
    assert detect(sentence).result() == (scheme, "")


def test_a_file_without_entities_is_called_iob2_with_a_note():
    scheme, note = detect("O O", "O").result()
    assert scheme == "IOB2"
    assert "no entities" in note


def test_tags_of_neither_iob_scheme_are_called_iob2_with_a_note():
    scheme, note = detect("B-PER O", "O I-PER").result()
    assert scheme == "IOB2"
    assert "neither clean IOB2 (1 departures) nor clean IOB1 (1)" in note


def test_prefixes_of_two_schemes_clash():
    assert detect("U-PER O S-PER").clash() == ("U", "S")
    assert detect("U-PER O L-PER").clash() is None


@pytest.mark.parametrize(
    "sentence, scheme, entities, repairs",
    [
        ("O I-PER I-PER", "IOB2", [(1, 3, "PER")], [(1, NO_BEGIN)]),
        ("B-PER I-LOC", "IOB2", [(0, 1, "PER"), (1, 2, "LOC")], [(1, NO_BEGIN)]),
        ("O B-PER", "IOB1", [(1, 2, "PER")], [(1, NO_NEIGHBOUR)]),
        ("I-LOC B-PER", "IOB1", [(0, 1, "LOC"), (1, 2, "PER")], [(1, NO_NEIGHBOUR)]),
        ("B-PER I-PER O", "BILOU", [(0, 2, "PER")], [(1, NO_LAST)]),
        ("B-PER I-PER", "IOBES", [(0, 2, "PER")], [(1, NO_LAST)]),
        ("L-PER L-PER", "BILOU", [(0, 1, "PER"), (1, 2, "PER")], [(0, NO_BEGIN), (1, NO_BEGIN)]),
        ("B-PER S-PER", "IOBES", [(0, 1, "PER"), (1, 2, "PER")], [(0, NO_LAST)]),
        (
            "E-PER I-PER E-PER",
            "IOBES",
            [(0, 1, "PER"), (1, 3, "PER")],
            [(0, NO_BEGIN), (1, NO_BEGIN)],
        ),
    ],
)
def test_forbidden_transitions_are_read_as_conlleval_does_and_told(
    sentence, scheme, entities, repairs
):
    assert read_entities(tags_of(sentence), scheme) == (entities, repairs)


def test_a_label_keeps_its_own_hyphens():
    assert parse_tag("B-creative-work") == ("B", "creative-work")


@pytest.mark.parametrize(
    "cell", ["", "B", "I-", "-PER", "o", "O-PER", "X-PER", "PER", "B_PER", "b-PER"]
)
def test_a_cell_that_is_no_tag_is_none(cell):
    assert parse_tag(cell) is None
