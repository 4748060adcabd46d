"""Mentions of one entity are related together, also in parts of a document."""

from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations.relations import gold_offsets
from spacy_luke.corpora.parts import cut, join
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import make_pipeline


def make(directory, **config):
    return make_pipeline("luke_relation", directory, "probe", **config)


def test_mentions_of_one_entity_are_related_together(bert_dir):
    words = ["Tokyo", "is", "old", ".", "Tokyo", "lies", "in", "Japan"]
    nlp = make(bert_dir, merge_entities=True, threshold=0.0)
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [
        Span(doc, 0, 1, "LOC", kb_id="Q1"),
        Span(doc, 4, 5, "LOC", kb_id="Q1"),
        Span(doc, 7, 8, "LOC"),
    ]
    reference = doc.copy()
    first, _, japan = reference.ents
    reference._.relations = [(first, japan, "located_in")]
    examples = [Example(doc, reference)]
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    assert pipe._query([doc]).pairs.tolist() == [[0, 1], [1, 0]]
    fit(nlp, examples, 60)
    found = nlp(doc.copy())._.relations
    assert [(r.head.start, r.tail.start) for r in found] == [(0, 7)]
    # Gold may be written on any mention; it is the same entity, learned and scored.
    _, second, japan = reference.ents
    reference._.relations = [(second, japan, "located_in")]
    limits = pipe._count_limits([Example(doc, reference)])
    assert limits["gold"] == 1 and not limits["no entity"]
    assert nlp.evaluate([Example(doc.copy(), reference)])["rels_strict_f"] == 1.0


MERGED = ["Tokyo", "is", "old", ".", "Japan", "is", "new", ".", "Tokyo", "lies", "in", "Japan", "."]


def merged_doc(nlp, relations=True, ents=((0, "Q1"), (4, "Q2"), (8, "Q1"), (11, "Q2"))):
    starts = [i in (0, 4, 8) for i in range(len(MERGED))]
    doc = Doc(nlp.vocab, words=MERGED, sent_starts=starts)
    doc.ents = [Span(doc, i, i + 1, "LOC", kb_id=kb_id) for i, kb_id in ents]
    if relations:  # of the first mentions, as corpora of documents have it
        doc._.relations = [(doc[0:1], doc[4:5], "located_in")]
    return doc


def test_a_part_with_other_mentions_of_related_entities_is_not_unrelated(bert_dir):
    nlp = make(bert_dir, merge_entities=True)
    nlp.initialize(lambda: [Example(merged_doc(nlp, False), merged_doc(nlp))])
    pipe = nlp.get_pipe("luke_relation")
    references = cut(merged_doc(nlp), [0, 4, 8])[0]
    predicted = cut(merged_doc(nlp, False), [0, 4, 8])[0]
    assert [doc._.relations for doc in references] == [()] * 3
    examples = [Example(x, y) for x, y in zip(predicted, references)]
    query = pipe._query(predicted)
    classes, _ = pipe._targets(examples, query)
    assert query.pairs.tolist() == [[2, 3], [3, 2]]
    assert classes[:, 0].tolist() == [1.0, 0.0]
    # Cut again, and joined: the same, and nothing of another text.
    (again,) = cut(references[2], [0])[0]
    assert pipe._gold(again) == pipe._gold(references[2]) != []
    assert pipe._gold(cut(references[2], [0, 2])[0][0]) == []
    assert pipe._gold(join([references[2], merged_doc(nlp, False)])) != []
    assert nlp.evaluate(examples)["rels_r"] is not None  # gold of the third part, for scores, too
    pipe.cfg["merge_entities"] = False
    assert pipe._gold(references[2]) == []


def test_parts_are_told_only_of_their_own_entities(bert_dir):
    """Of another group with other mentions, of another text with the same numbers, or of gold that
    says there is none, nothing is said."""
    nlp = make(bert_dir, merge_entities=True)
    gold = merged_doc(nlp)
    gold.spans["coref"] = [Span(gold, 9, 10, "PRON", kb_id="Q2"), *gold.ents]
    third = cut(gold, [0, 4, 8])[0][2]
    assert [x[:2] for x in gold_offsets(third, True)] == [((0, 5), (14, 19))]  # not "lies"
    assert [x[:2] for x in gold_offsets(third, True, "coref")] == [((0, 5), (6, 10))]
    joined = join([merged_doc(nlp), merged_doc(nlp, False)])
    parts = cut(joined, [0, 4, 8, 13, 17, 21])[0]
    assert [bool(gold_offsets(part, True)) for part in parts] == [False, False, True, *[False] * 3]
    unrelated = merged_doc(nlp, False)
    unrelated._.relations = [(*unrelated.ents[:2], "located_in", 0.0)]
    assert not any(gold_offsets(x, True) for x in cut(unrelated, [0, 4, 8])[0])
    third._.relations = []
    assert gold_offsets(third, True) == []


def test_what_a_part_says_itself_comes_first(bert_dir):
    nlp = make(bert_dir, merge_entities=True)
    gold = merged_doc(nlp)
    gold._.relations = [
        (gold[0:1], gold[4:5], "capital_of"),
        (gold[0:1], gold[11:12], "capital_of"),
        (gold[8:9], gold[11:12], "located_in"),
        (gold[8:9], gold[11:12], "near"),
    ]
    third = cut(gold, [0, 4, 8])[0][2]
    found = [item.label for item in gold_offsets(third, True)]
    assert found == ["located_in", "near", "capital_of"]


def test_gold_is_learned_from_whichever_mention_was_found(bert_dir):
    nlp = make(bert_dir, merge_entities=True)
    found = merged_doc(nlp, False, ents=[(8, "Q1"), (11, "Q2")])
    nlp.initialize(lambda: [Example(found, merged_doc(nlp))])
    pipe = nlp.get_pipe("luke_relation")
    assert pipe.limits == {**dict.fromkeys(pipe.limits, 0), "gold": 1}
    classes, _ = pipe._targets([Example(found, merged_doc(nlp))], pipe._query([found]))
    assert classes[:, 0].tolist() == [1.0, 0.0]


def test_texts_that_are_joined_may_number_their_entities_alike(bert_dir):
    nlp = make(bert_dir, merge_entities=True)
    joined = join([merged_doc(nlp), merged_doc(nlp)])
    pipe = nlp.get_pipe("luke_relation")
    entities = pipe._query([joined]).by_doc[0]
    assert [[span.start for span in mentions] for mentions in entities] == [
        *([0, 8], [4, 11]),
        *([13, 21], [17, 24]),
    ]


def test_a_merging_that_merges_nothing_is_warned_of(bert_dir, caplog):
    nlp = make(bert_dir, merge_entities=True)
    unlinked = merged_doc(nlp, False, ents=[(i, "") for i in (0, 4, 8, 11)])
    nlp.initialize(lambda: [Example(unlinked, merged_doc(nlp))])
    assert "merge_entities is true, but no document" in caplog.text
    caplog.clear()
    nlp.initialize(lambda: [Example(merged_doc(nlp, False), merged_doc(nlp))])
    assert "merge_entities" not in caplog.text


def test_entities_that_are_linked_to_nothing_are_not_one_entity(bert_dir):
    nlp = make(bert_dir, merge_entities=True)
    doc = Doc(nlp.vocab, words=["Tokyo", "lies", "in", "Japan"])
    doc.ents = [Span(doc, 0, 1, "LOC", kb_id="NIL"), Span(doc, 3, 4, "LOC", kb_id="NIL")]
    assert nlp.get_pipe("luke_relation")._query([doc]).pairs.tolist() == [[0, 1], [1, 0]]
