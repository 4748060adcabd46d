"""Relations of a page: pictures of sentences with arcs, and the types behind entities."""

from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_luke.cli.pages.pictures import CONTEXT, MAX_ARCS, MAX_WORDS, draw_relations
from spacy_luke.cli.pages.relations import links
from spacy_luke.cli.pages.text import Entity, cut_text, type_chips
from spacy_luke.metrics.relations import relation_score
from tests.cli.pages.page_data import FAMILY, related, texts


def test_relations_that_agree_are_missed_or_spurious_are_told_apart():
    predicted = related([("Ada", "Byron", "child", 0.75), ("Ada", "Byron", "friend", 0.5)])
    gold = related([("Ada", "Byron", "child"), ("Byron", "Ada", "parent")])
    assert [(x.kind, x.text) for x in links(predicted, gold, compare=True)] == [
        ("agreed", "child 0.75"),
        ("spurious", "\N{BALLOT X} friend 0.50"),
        ("missed", "missed parent"),
    ]
    assert [x.kind for x in links(predicted, gold, compare=False)] == ["plain", "plain"]


def test_gold_with_a_low_score_is_not_missed():
    predicted = related([("Byron", "Ada", "parent", 0.75)])
    gold = related([("Ada", "Byron", "child", 0.0), ("Byron", "Ada", "parent", 0.0)])
    assert [x.kind for x in links(predicted, gold, compare=True)] == ["spurious"]


def test_pairs_annotated_as_having_no_relation_are_not_missed():
    predicted = related([("Byron", "Ada", "parent", 0.75)])
    gold = related([("Ada", "Byron", "no_relation"), ("Byron", "Ada", "parent")])
    assert [x.kind for x in links(predicted, gold, compare=True)] == ["agreed"]


def test_mentions_of_one_entity_are_one_side():
    words = ["Tokyo", "is", "old", ";", "Tokyo", "lies", "in", "Japan"]

    def doc(first: bool, head: int) -> Doc:
        doc = Doc(Vocab(), words=words)
        mentions = [Span(doc, i, i + 1, "LOC", kb_id="Q1") for i in ([0, 4] if first else [4])]
        doc.ents = [*mentions, Span(doc, 7, 8, "LOC")]
        doc._.relations = [(doc[head : head + 1], doc[7:8], "in")]
        return doc

    for predicted in (doc(True, 0), doc(False, 4)):
        gold = doc(True, 4)
        assert [x.kind for x in links(predicted, gold, True, merge_entities=True)] == ["agreed"]
        example = Example(predicted, gold)
        assert relation_score([example], merge_entities=True)["rels_f"] == 1.0
    assert [x.kind for x in links(doc(True, 0), gold, True)] == ["spurious", "missed"]


def test_heads_and_tails_of_symmetric_labels_may_be_exchanged():
    relations = [("Ada", "Byron", "met", 0.5), ("Ada", "Byron", "child", 0.5)]
    predicted = related(relations)
    gold = related([("Byron", "Ada", "met"), ("Byron", "Ada", "child")])
    found = links(predicted, gold, compare=True, symmetric=["met"])
    assert sorted((x.kind, x.label) for x in found) == [
        ("agreed", "met"),
        ("missed", "child"),
        ("spurious", "child"),
    ]


def test_a_sentence_with_relations_is_one_picture_and_others_are_none():
    relations = [("Ada", "Byron", "child"), ("Babbage", "London", "in")]
    first, second = draw_relations(related(relations), related([]), True).pictures
    words, arcs = texts(first)
    assert words == ["Ada", "PER", "is", "the", "daughter", "of", "Byron", "PER", "."]
    assert arcs == [("spurious", "\N{BALLOT X} child 1.00")]
    words, _ = texts(second)
    assert words == ["Ada", "met", "Babbage", "PER", "in", "London", "LOC", "."]


def test_sentences_that_a_relation_joins_are_one_picture():
    relations = [("Ada", "Babbage", "knows"), ("Babbage", "London", "in")]
    (picture,) = draw_relations(related(relations), related(relations), True).pictures
    words, arcs = texts(picture)
    assert words.count(".") == 3
    assert [kind for kind, _ in arcs] == ["agreed", "agreed"]


def test_without_sentences_the_words_around_a_relation_are_shown():
    (picture,) = draw_relations(
        related([("Babbage", "London", "in")], starts=()), related([]), True
    ).pictures
    words, _ = texts(picture)
    assert words == [".", "Ada", "met", "Babbage", "PER", "in", "London", "LOC", "."]


def test_words_far_from_relations_are_left_out_of_a_long_stretch():
    text = FAMILY.replace("Byron wrote", "Byron" + " wrote" * 500)
    doc = related([], text=text, starts=())
    doc._.relations = [(doc[0:1], doc[-4:-3], "knows")]
    (picture,) = draw_relations(doc, doc.copy(), True).pictures
    words, _ = texts(picture)
    assert "\N{HORIZONTAL ELLIPSIS}" in words and len(words) <= 4 * CONTEXT + 6 < MAX_WORDS


def test_a_mention_within_another_has_no_arc_but_a_line():
    relations = [("daughter of Byron", "Byron", "of"), ("Ada", "daughter of Byron", "is")]
    drawn = draw_relations(related(relations), related([]), False)
    (line,) = drawn.lines
    assert line[:4] == ("plain", "daughter of Byron", "of 1.00", "Byron")
    words, arcs = texts(drawn.pictures[0])
    assert "daughter of Byron" in words and arcs == [("plain", "is 1.00")]


def test_mentions_of_one_relation_that_another_mention_covers_have_no_arc():
    doc = related([])
    doc._.relations = [
        (doc[0:1], doc[2:3], "a"),
        (doc[0:4], doc[5:6], "b"),
    ]
    drawn = draw_relations(doc, related([]), True)
    assert [line.label for line in drawn.lines] == ["\N{BALLOT X} a 1.00"]
    assert [label for _, label in texts(drawn.pictures[0])[1]] == ["\N{BALLOT X} b 1.00"]


def test_types_are_compared_where_they_are_annotated():
    predicted = related([], types={"Ada": {"a": 0.75, "b": 0.5}, "London": {"c": 1.0}})
    gold = related([], types={"Ada": {"a": 1.0, "d": 1.0}, "Byron": {"e": 1.0}})
    chips = type_chips(predicted, gold)
    ada, byron, london = sorted(chips)
    assert chips[ada] == [("agreed", "a", 0.75), ("spurious", "b", 0.5), ("missed", "d", None)]
    assert (chips[byron], chips[london]) == ([("missed", "e", None)], [("plain", "c", 1.0)])
    (piece,) = cut_text("Ada", [Entity(0, 3, "X")], [Entity(0, 3, "Y")], {(0, 3): chips[ada]})
    assert len(piece.tags) == 2 and piece.types == chips[ada]


def test_a_type_that_a_path_implies_is_right_where_the_component_implies_it():
    predicted = related([], types={"Ada": {"/person": 0.9, "/person/poet": 0.75}})
    gold = related([], types={"Ada": {"/person/poet": 1.0}})
    place = (0, 3)
    kinds = [kind for kind, *_ in type_chips(predicted, gold)[place]]
    assert kinds == ["spurious", "agreed"]
    kinds = [kind for kind, *_ in type_chips(predicted, gold, ancestors=True)[place]]
    assert kinds == ["agreed", "agreed"]


def test_types_where_the_annotation_has_no_span_are_wrong():
    predicted = related([], types={"Ada": {"a": 0.75}})
    gold = related([])
    assert [x.kind for x in type_chips(predicted, gold)[0, 3]] == ["plain"]
    gold.ents = [ent for ent in gold.ents if ent.text != "Ada"]
    assert [x.kind for x in type_chips(predicted, gold)[0, 3]] == ["spurious"]


def test_types_of_a_group_stand_behind_its_spans():
    predicted, gold = related([]), related([])
    for doc, types in ((predicted, {"a": 0.5}), (gold, {"a": 1.0, "b": 1.0})):
        doc.spans["things"] = [doc[2:6]]  # the daughter of Byron: no entity
        doc[2:6]._.types = types
    assert type_chips(predicted, gold) == {}
    chips = type_chips(predicted, gold, spans_key="things")
    assert chips == {(7, 28): [("agreed", "a", 0.5), ("missed", "b", None)]}
    pieces = cut_text(predicted.text, [], None, chips)
    assert [len(x.types) for x in pieces] == [2, 0]
    assert pieces[0].text == "Ada is the daughter of Byron"


def test_a_crowded_range_has_arcs_within_sentences_and_lines_for_the_rest():
    across = [("Ada", "Babbage", f"r{i}") for i in range(MAX_ARCS)]
    within = [("Ada", "Byron", "child"), ("Babbage", "London", "in")]
    (picture,) = draw_relations(related(across), related([]), True).pictures
    assert len(texts(picture)[1]) == MAX_ARCS
    drawn = draw_relations(related(across + within), related([]), True)
    assert [x[1][0][1] for x in map(texts, drawn.pictures)] == [
        "\N{BALLOT X} child 1.00",
        "\N{BALLOT X} in 1.00",
    ]
    assert len(drawn.lines) == MAX_ARCS and drawn.n_errors == MAX_ARCS + 2
    many = [("Ada", "Byron", f"r{i}") for i in range(MAX_ARCS + 1)]
    drawn = draw_relations(related(many), related([]), True)
    assert drawn.pictures == [] and len(drawn.lines) == drawn.n_errors == MAX_ARCS + 1
