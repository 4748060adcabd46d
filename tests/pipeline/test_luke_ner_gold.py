"""What luke_ner learns from, keeps and overwrites: annotation on either side of an example."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.gold import gold_spans
from tests.pipeline.conftest import ANNOTATED, entities, fit, make_examples, trained


def test_nested_mode_reads_and_writes_only_the_spans_group(ner):
    nlp = ner(nested=True, spans_key="nested")
    spans = [(1, 4, "ORG"), (3, 4, "LOC")]
    words = ["The", "University", "of", "Tokyo", "was", "founded", "in", "1877", "."]
    reference = Doc(nlp.vocab, words=words)
    reference.spans["nested"] = [Span(reference, a, b, label=x) for a, b, x in spans]
    examples = [Example(Doc(nlp.vocab, words=words), reference)]
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    doc = nlp(Doc(nlp.vocab, words=words))
    assert [(s.start, s.end, s.label_) for s in doc.spans["nested"]] == spans
    assert not doc.ents
    scores = nlp.evaluate(examples)
    assert scores["spans_nested_f"] == 1.0


def test_a_document_without_the_spans_group_is_not_annotated(ner, caplog):
    spacy.util.logger.propagate = True
    nlp = ner(nested=True, spans_key="nested")
    words = ["Ada", "Lovelace", "was", "born", "in", "London", "."]
    with_group, without, empty = (Doc(nlp.vocab, words=words) for _ in range(3))
    with_group.spans["nested"] = [Span(with_group, 0, 2, "PER")]
    empty.spans["nested"] = []
    examples = [Example(Doc(nlp.vocab, words=words), x) for x in (with_group, without, empty)]
    nlp.initialize(lambda: examples)
    assert "1 documents have no spans group 'nested'" in caplog.text
    losses = [nlp.update([eg], sgd=False)["luke_ner"] for eg in examples]
    assert losses[0] > 0 and losses[1] == 0.0 and losses[2] > 0


def test_a_document_whose_entities_were_never_set_is_not_annotated(ner, caplog):
    nlp = ner()
    words = ["Nobody", "came", "."]
    never, none = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words)
    none.ents = []
    examples = make_examples(nlp, ANNOTATED)
    examples += [Example(Doc(nlp.vocab, words=words), x) for x in (never, none)]
    spacy.util.logger.propagate = True
    nlp.initialize(lambda: examples)
    assert "1 documents have no annotation in Doc.ents" in caplog.text
    losses = [nlp.update([eg], sgd=False)["luke_ner"] for eg in examples[-2:]]
    assert losses[0] == 0.0 < losses[1]


def test_existing_entities_are_overwritten_unless_told_otherwise(ner):
    nlp = ner()
    trained(nlp)
    words = ANNOTATED[0][0].split(" ")

    def with_entity() -> Doc:
        doc = Doc(nlp.vocab, words=words)
        doc.ents = [Span(doc, 1, 4, label="OLD")]
        return doc

    assert entities(nlp(with_entity())) == ANNOTATED[0][1]
    nlp.get_pipe("luke_ner").overwrite = False
    assert entities(nlp(with_entity())) == [(1, 4, "OLD"), (5, 6, "LOC")]


def test_gold_entities_on_the_predicted_side_do_not_reach_the_score(ner):
    nlp = ner()
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    for eg in examples:
        eg.predicted.ents = [
            Span(eg.predicted, s.start, s.end, s.label_) for s in eg.reference.ents
        ]
    assert nlp.evaluate(examples)["ents_f"] < 1.0


def test_tokens_without_annotation_stay_out_of_the_loss(ner):
    nlp = ner(mode="probe")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    words = ANNOTATED[0][0].split(" ")
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([Span(reference, 0, 2, label="PER")], default="missing")
    eg = Example(Doc(nlp.vocab, words=words), reference)
    query, scores = pipe.predict([eg.predicted])
    _, gradient = pipe.get_loss([eg], (query, scores))
    table = query.spans.dataXd[gradient.rows]
    moved = np.abs(gradient.logits).sum(-1) > 0
    assert moved.any()
    assert (table[moved][:, 1] <= 2).all()


def test_a_document_without_any_annotation_has_no_loss(ner):
    nlp = ner()
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    bare = Example(nlp.make_doc("Ada was here ."), nlp.make_doc("Ada was here ."))
    losses = nlp.update([bare], sgd=False)
    assert losses["luke_ner"] == 0.0


def test_gold_that_cannot_be_predicted_is_counted_and_told(ner, caplog):
    nlp = ner(max_pieces=15)  # more than any annotated name has
    data = [
        *ANNOTATED,
        ("a b c d e f g h i j k", [(0, 10, "LOC")]),  # longer than the suggester's 8 words
        (" ".join(["Londonlondon"] * 8), [(0, 8, "LOC")]),  # two pieces a word at least
    ]
    examples = make_examples(nlp, data)
    reference = Doc(nlp.vocab, words=["New", "York"])
    reference.set_ents([Span(reference, 0, 1, label="LOC")], default="outside")
    examples.append(Example(Doc(nlp.vocab, words=["New York"], spaces=[False]), reference))
    spacy.util.logger.propagate = True
    nlp.initialize(lambda: examples)
    assert "3 of 11 gold spans cannot be predicted: 1 do not fit" in caplog.text
    limits = nlp.get_pipe("luke_ner").limits
    assert limits["gold"] == sum(len(spans) for _, spans in data) + 1
    assert (limits["unsuggested"], limits["too long"], limits["misaligned"]) == (1, 1, 1)
    assert "with white space at an end; 'a b c d e f g h i j': 10 tokens)" in caplog.text


def test_white_space_at_an_end_is_named(ner, caplog):
    nlp = ner()
    words = ["Ada", "\n", "met", "Bob", "."]
    reference = Doc(nlp.vocab, words=words)
    reference.ents = [Span(reference, 0, 2, "PER")]
    examples = [*make_examples(nlp, ANNOTATED), Example(Doc(nlp.vocab, words=words), reference)]
    spacy.util.logger.propagate = True
    nlp.initialize(lambda: examples)
    assert r"'Ada \n': white space at an end)" in caplog.text


def test_names_that_a_sentence_start_cuts_are_told_with_the_word(ner, caplog):
    nlp = ner()
    examples = make_examples(nlp, [*ANNOTATED, ("Capt . Ruiz was here .", [(0, 3, "PER")])])
    examples[-1].predicted[2].is_sent_start = True
    spacy.util.logger.propagate = True
    nlp.initialize(lambda: examples)
    assert "'Capt . Ruiz': a sentence starts at 'Ruiz')" in caplog.text


def test_gold_is_counted_in_the_sentences_of_training(ner):
    """A sentencizer that annotates cuts an entity; without it the document is one sentence."""
    text = "St . Marrow is near . London too"
    for annotating, lost in (([], 0), (["sentencizer"], 1)):
        nlp = ner()
        nlp.add_pipe("sentencizer", first=True)
        nlp.config["training"]["annotating_components"] = annotating
        examples = make_examples(nlp, [(text, [(0, 3, "LOC"), (6, 7, "LOC")])])
        nlp.initialize(lambda examples=examples: examples)
        assert nlp.get_pipe("luke_ner").limits["unsuggested"] == lost
        assert not examples[0].predicted.has_annotation("SENT_START")


def test_a_loaded_component_has_counted_nothing(ner, tmp_path):
    nlp = ner()
    trained(nlp, steps=1)
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("luke_ner").limits == {}


def test_what_is_asked_for_examples_must_be_a_function(ner):
    with pytest.raises(TypeError, match="E930"):
        ner().get_pipe("luke_ner").initialize([])


@pytest.mark.parametrize("unfit", [False, True])
def test_tokens_of_which_parts_are_not_known_stay_out_of_the_loss(ner, unfit):
    """The predicted side has one token where the reference has two."""
    nlp = ner(mode="probe")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    reference = Doc(
        nlp.vocab, words=["New", "York", "is", "big"], spaces=[False, True, True, False]
    )
    if unfit:
        reference.set_ents([Span(reference, 1, 2, "LOC")])
    else:
        reference.set_ents([], missing=[reference[1:2]], default="outside")
    predicted = Doc(nlp.vocab, words=["NewYork", "is", "big"])
    eg = Example(predicted, reference)
    query, scores = pipe.predict([predicted])
    _, gradient = pipe.get_loss([eg], (query, scores))
    moved = np.abs(gradient.logits).sum(-1) > 0
    starts = query.spans.dataXd[gradient.rows][:, 0]
    assert moved.tolist() == (starts > 0).tolist() and moved.any()


def test_ids_of_what_is_overwritten_do_not_stay(ner):
    nlp = ner()
    trained(nlp)
    doc = Doc(nlp.vocab, words=ANNOTATED[0][0].split(" "))
    doc.ents = [Span(doc, 0, len(doc), "OLD", span_id="subj", kb_id="Q1")]
    nlp(doc)
    assert entities(doc) == ANNOTATED[0][1]
    assert not any(ent.id_ or ent.kb_id_ for ent in doc.ents)
    nlp.get_pipe("luke_ner").overwrite = False
    doc.ents = [Span(doc, 0, 1, "OLD", span_id="subj")]
    nlp(doc)
    assert doc.ents[0].id_ == "subj" and not any(ent.id_ for ent in doc.ents[1:])


@pytest.mark.parametrize("overwrite", [True, False])
def test_blocked_tokens_stay_blocked(ner, overwrite):
    nlp = ner(overwrite=overwrite)
    trained(nlp)
    start, end, _ = ANNOTATED[0][1][0]
    doc = Doc(nlp.vocab, words=ANNOTATED[0][0].split(" "))
    doc.set_ents([], blocked=[doc[start : start + 1]], default="missing")
    nlp(doc)
    assert entities(doc) == ANNOTATED[0][1][1:]
    assert (doc[start].ent_iob_, doc[start].ent_type_) == ("B", "")


def test_nested_mode_writes_a_span_once_and_says_what_training_should_be_scored_by(ner, caplog):
    @spacy.registry.misc("test_twice_suggester")
    def make():
        def suggest(docs, *, ops):
            rows = [[0, 2], [0, 2], [5, 6]]
            return spacy.pipeline.spancat.Ragged(
                ops.asarray2i(rows * len(docs)), ops.asarray1i([len(rows)] * len(docs))
            )

        return suggest

    nlp = ner(nested=True, spans_key="both", suggester={"@misc": "test_twice_suggester"})
    examples = make_examples(nlp, ANNOTATED[:1])
    for eg in examples:
        eg.reference.spans["both"] = list(eg.reference.ents)
    spacy.util.logger.propagate = True
    nlp.initialize(lambda: examples)
    assert "spans_both_f = 1.0" in caplog.text
    fit(nlp, examples, 40)
    doc = nlp(Doc(nlp.vocab, words=ANNOTATED[0][0].split(" ")))
    spans = [(s.start, s.end, s.label_) for s in doc.spans["both"]]
    assert spans == ANNOTATED[0][1]


def test_one_token_without_annotation_takes_no_other_entity_away():
    """Tokens of the two sides may align many to one, and white space to none."""
    vocab = spacy.blank("en").vocab
    words = ["New", "-", "York", "is", "big", "x"]
    reference = Doc(vocab, words=words, spaces=[False, False, True, True, True, False])
    ents = [Span(reference, 0, 3, label="LOC")]
    reference.set_ents(ents, missing=[reference[5:6]], default="outside")
    predicted = Doc(
        vocab, words=["New-York", " ", "is", "big", "x"], spaces=[True, False, *[True] * 3]
    )
    gold = gold_spans([Example(predicted, reference)], None)
    assert (gold.starts.tolist(), gold.ends.tolist(), gold.labels) == ([0], [1], ["LOC"])
    assert gold.missing[0].tolist() == [False, False, False, False, True]


def test_white_space_in_the_last_token_has_no_annotation_of_its_own():
    """spaCy's alignment then has one length more than there are tokens."""
    vocab = spacy.blank("en").vocab
    words, spaces = ["Ada", "in", "London", "\n"], [True, True, True, True]
    reference = Doc(vocab, words=words, spaces=spaces)
    ents = [Span(reference, 2, 3, label="LOC")]
    reference.set_ents(ents, missing=[reference[1:2]], default="outside")
    predicted = Doc(vocab, words=["Ada", "in", "London", "\n "], spaces=[True, True, True, False])
    example = Example(predicted, reference)
    assert len(example.alignment.x2y.lengths) == 5
    gold = gold_spans([example], None)
    assert (gold.starts.tolist(), gold.ends.tolist(), gold.labels) == ([2], [3], ["LOC"])
    assert gold.missing[0].tolist() == [False, True, False, False]


def test_white_space_before_all_tokens_is_unknown_if_some_annotation_is():
    vocab = spacy.blank("en").vocab
    reference = Doc(vocab, words=["Ada", "left"])
    predicted = Doc(vocab, words=["  ", "Ada", "left"])
    gold = gold_spans([Example(predicted, reference)], None)
    assert gold.missing[0].all()


def test_a_second_label_of_the_same_tokens_is_counted_as_such(ner, caplog):
    nlp = ner(nested=True, spans_key="g")
    reference = nlp.make_doc("Tokyo is big")
    places = [(0, 1, "LOC"), (0, 1, "ORG"), (0, 3, "X"), (0, 3, "X")]  # the last is no loss
    reference.spans["g"] = [Span(reference, a, b, label) for a, b, label in places]
    nlp.initialize(lambda: [Example(nlp.make_doc("Tokyo is big"), reference)])
    limits = nlp.get_pipe("luke_ner").limits
    assert (limits["gold"], limits["second label"], limits["unsuggested"]) == (3, 1, 0)
    assert "1 have the tokens of another with another label" in caplog.text


def test_a_repeated_span_does_not_hide_that_nothing_can_be_learned(ner):
    nlp = ner(nested=True, spans_key="g", max_pieces=1)
    reference = nlp.make_doc("Tokyo Tokyo Tokyo")
    reference.spans["g"] = [Span(reference, 0, 3, "X")] * 2
    with pytest.raises(ConfigError, match="nothing can be learned"):
        nlp.initialize(lambda: [Example(nlp.make_doc("Tokyo Tokyo Tokyo"), reference)])
