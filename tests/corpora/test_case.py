"""Some examples change case in every epoch, and nothing else of them changes."""

import random
from functools import partial
from itertools import islice, repeat

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.augment import create_lower_casing_augmenter
from spacy.training.batchers import minibatch_by_words
from spacy.util import registry

from spacy_luke.annotations.annotated import annotated_labels, joined_starts, set_annotated
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.annotations.types import get_types, set_types
from spacy_luke.corpora.case import change_doc, change_example, change_text, vary_case
from spacy_luke.corpora.contexts import join_examples, mix_contexts
from spacy_luke.corpora.joined import joined_corpora
from spacy_luke.corpora.preset import preset_ents_corpus
from spacy_luke.errors import ConfigError

NLP = spacy.blank("en")
by_words = partial(minibatch_by_words, size=50, get_length=len)


@pytest.fixture(autouse=True)
def _seed():
    random.seed(0)


WORDS = "Ada Lovelace met Babbage . They lived in London .".split()  # noqa: SIM905


def annotated(text: list[str] = WORDS) -> Doc:
    """A document with everything that training data may have."""
    doc = Doc(NLP.vocab, words=text, sent_starts=[i in (0, 5) for i in range(len(text))])
    ada, babbage = Span(doc, 0, 2, "PER", kb_id="Q1", span_id="e1"), Span(doc, 3, 4, "PER")
    london = Span(doc, 8, 9, "LOC")
    doc.set_ents([ada, babbage, london], blocked=[doc[4:5]], missing=[doc[5:6]], default="outside")
    doc.spans["sc"] = [ada, doc[0:1], Span(doc, 1, 9, "LONG", kb_id="Q2", span_id="s1")]
    doc.spans["sc"].attrs["scores"] = [0.5, 0.25, 1.0]
    doc.spans["empty"] = []
    set_relations(doc, [(ada, london, "lived_in", 0.5), (babbage, ada, "knows")])
    set_types(ada, {"/person": 1.0})
    set_types(london, {})
    set_annotated(doc, "types", False)
    set_annotated(doc, "relations", ["knows", "lived_in"])
    doc.user_data["id"] = {"any", "object"}
    doc.cats["history"] = 1.0
    for token in doc:
        token.lemma_, token.tag_ = token.text.lower(), f"T{token.i}"
    return doc


def content(doc: Doc) -> dict:
    """All but the words."""
    everything = doc.to_dict(exclude=("text", "strings", "user_data", "spans", "array_body"))
    names = ["SPACY", "LEMMA", "TAG", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID", "SENT_START"]
    spans = {
        name: (
            [(x.start, x.end, x.label_, x.kb_id_, x.id_) for x in group],
            group.attrs,
        )
        for name, group in doc.spans.items()
    }
    return {
        **{k: v for k, v in everything.items() if k != "tensor"},
        "array": doc.to_array(names).tolist(),
        "places": [(token.idx, len(token)) for token in doc],
        "spans": spans,
        "user_data": doc.user_data,
        "relations": [(r.head.start, r.tail.start, r.label, r.score) for r in get_relations(doc)],
        "types": [(get_types(ent) is not None, get_types(ent)) for ent in doc.ents],
        "annotated": [annotated_labels(doc, layer) for layer in ("ents", "relations", "types")],
        "joined": joined_starts(doc),
    }


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_everything_but_the_case_of_the_words_is_kept(case):
    doc = annotated()
    changed = change_doc(doc, case)
    assert [t.text for t in changed] == [getattr(word, case)() for word in WORDS]
    assert content(changed) == content(doc)
    assert len(changed.ents) == 3 and len(get_relations(changed)) == 2
    assert [t.text for t in doc] == WORDS


def test_the_stock_augmenter_would_lose_annotation():
    example = Example(NLP.make_doc(" ".join(WORDS)), annotated())
    example.predicted.ents = [Span(example.predicted, 0, 2, "PER")]
    (stock,) = create_lower_casing_augmenter(1.0)(NLP, example)
    assert not get_relations(stock.reference) and not stock.reference.user_data
    assert not stock.predicted.ents and stock.reference[4].ent_iob == 0
    assert not any(ent.id_ for ent in stock.reference.ents)


@pytest.mark.parametrize(
    "text,lower,upper",
    [
        ("Die Straße in Köln", "die straße in köln", "DIE STRAßE IN KÖLN"),
        ("İzmir ve IĞDIR", "izmir ve iğdir", "İZMIR VE IĞDIR"),
        ("თბილისი", "თბილისი", "თბილისი"),  # its capitals are those of headlines alone
        ("ΟΔΟΣ Σάς", "οδοσ σάς", "ΟΔΟΣ ΣΆΣ"),
        ("الرئيس 北京 123", "الرئيس 北京 123", "الرئيس 北京 123"),
        ("Ada\n\n  👩‍🚀 🇩🇪 O\u0301 ", "ada\n\n  👩‍🚀 🇩🇪 o\u0301 ", "ADA\n\n  👩‍🚀 🇩🇪 O\u0301 "),
        ("ŉ ﬁn", "ŉ ﬁn", "ŉ ﬁN"),
        ("", "", ""),
    ],
)
def test_the_number_of_characters_never_changes(text, lower, upper):
    assert change_text(text, "lower") == lower
    assert change_text(text, "upper") == upper
    for case in ("lower", "upper"):
        doc = NLP.make_doc(text)
        changed = change_doc(doc, case)
        assert [(t.idx, len(t), t.whitespace_) for t in changed] == [
            (t.idx, len(t), t.whitespace_) for t in doc
        ]
        assert changed.has_unknown_spaces == doc.has_unknown_spaces


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_two_tokenisations_stay_aligned(case):
    words, spaces = ["Stra", "ßen", "-", "Bahn", "İn", "ıt", "."], [0, 0, 0, 1, 0, 0, 0]
    reference = Doc(NLP.vocab, words=words, spaces=[bool(x) for x in spaces])
    example = Example(NLP.make_doc(reference.text), reference)
    changed = change_example(example, case)
    assert changed.predicted.text == changed.reference.text
    assert len(changed.predicted) == len(example.predicted) != len(words)
    for aligned in ("x2y", "y2x"):
        before, after = (getattr(eg.alignment, aligned) for eg in (example, changed))
        assert after.data.tolist() == before.data.tolist()
        assert after.lengths.tolist() == before.lengths.tolist()


def examples_of(n: int) -> list[Example]:
    doc = annotated()
    return [Example(NLP.make_doc(doc.text), doc) for _ in range(n)]


def cases(examples) -> list[str]:
    names = {str.islower: "lower", str.isupper: "upper"}
    return [next((x for f, x in names.items() if f(eg.reference.text)), "") for eg in examples]


def test_the_probabilities_say_how_many_and_every_epoch_is_drawn_anew():
    examples = examples_of(400)
    batcher = vary_case(by_words, lower=0.2, upper=0.1)
    epochs = [[eg for batch in batcher(examples) for eg in batch] for _ in range(2)]
    first, second = (cases(epoch) for epoch in epochs)
    assert first != second
    for shown in (first, second):
        assert len(shown) == 400
        assert 50 < shown.count("lower") < 110 and 20 < shown.count("upper") < 65
    same = [eg for eg, case in zip(epochs[0], first) if not case]
    assert same and all(eg in examples for eg in same)  # unchanged ones are the examples themselves
    random.seed(0)
    assert cases(eg for batch in batcher(examples) for eg in batch) == first


def test_batches_have_the_same_sizes():
    examples = examples_of(30)
    sizes = [len(batch) for batch in by_words(examples)]
    assert [len(batch) for batch in vary_case(by_words, 0.5, 0.5)(examples)] == sizes


def test_a_stream_without_end_is_read_as_it_comes():
    batches = vary_case(by_words, 0.5, 0.5)(repeat(examples_of(1)[0]))
    shown = {case for batch in islice(batches, 10) for case in cases(batch)}
    assert shown == {"lower", "upper"}


def test_zero_switches_it_off():
    assert vary_case(by_words, 0.0, 0.0) is by_words


@pytest.mark.parametrize(
    "values,message",
    [
        ({"lower": -0.1}, "vary_case.lower is -0.1"),
        ({"upper": 1.5}, "vary_case.upper is 1.5"),
        ({"lower": 0.6, "upper": 0.5}, r"lower \+ upper is 1.1; at most 1"),
    ],
)
def test_values_that_are_no_probabilities(values, message):
    with pytest.raises(ConfigError, match=message):
        vary_case(by_words, **values)


def test_documents_of_the_readers_keep_their_annotation_on_both_sides(tmp_path):
    """Gold entities and sentence starts preset, layers not annotated, cut and joined anew."""
    path = tmp_path / "gold.spacy"
    doc = annotated()
    doc.user_data["id"] = 7
    DocBin(docs=[doc] * 8, store_user_data=True).to_disk(path)
    corpora = {x: preset_ents_corpus(path, spans_key="sc", sents=True) for x in ("a", "b")}
    nlp = spacy.blank("en")
    examples = list(joined_corpora(corpora, {"a": ["ents"], "b": ["relations"]})(nlp))
    batcher = mix_contexts(vary_case(by_words, 0.5, 0.5), max_words=20)
    shown = [eg for batch in batcher(examples) for eg in batch]
    assert set(cases(shown)) == {"lower", "upper"}
    assert sum(len(eg.predicted.ents) for eg in shown) == 16 * 3
    for eg in shown:
        assert eg.predicted.text == eg.reference.text
        places = [[(x.start, x.end) for x in doc.ents] for doc in (eg.predicted, eg.reference)]
        assert places[0] == places[1]
        assert eg.predicted.has_annotation("SENT_START", require_complete=True)
        assert [annotated_labels(eg.reference, x) for x in ("ents", "relations")] in (
            [None, frozenset()],
            [frozenset(), frozenset({"knows", "lived_in"})],
        )


def test_joined_documents_know_where_each_begins():
    joined = join_examples(examples_of(3))
    changed = change_example(joined, "upper")
    assert joined_starts(changed.reference) == joined_starts(joined.reference) != []
    assert content(changed.reference) == content(joined.reference)


def test_it_is_made_from_a_config():
    config = {
        "batcher": {
            "@batchers": "spacy-luke.vary_case.v1",
            "lower": 1.0,
            "upper": 0.0,
            "batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": 2},
        }
    }
    (batch,) = registry.resolve(config)["batcher"](examples_of(2))
    assert cases(batch) == ["lower", "lower"]


def test_questions_change_as_the_text_does():
    nlp = spacy.blank("en")
    doc, question = nlp("Ada met Babbage."), nlp("Who met Ada?")
    question.ents = [Span(question, 2, 3, label="PER", kb_id="Q1")]
    doc._.questions = ["Who is ADA?", question]
    doc._.answers = [[doc[0:1]], []]
    changed = change_doc(doc, "upper")
    assert [str(x) for x in changed._.questions] == ["WHO IS ADA?", "WHO MET ADA?"]
    assert [(x.text, x.kb_id_) for x in changed._.questions[1].ents] == [("ADA", "Q1")]
    assert changed._.answers[0].best.text == "ADA" and changed._.answers[1].best is None
    assert [str(x) for x in doc._.questions] == ["Who is ADA?", "Who met Ada?"]


def test_queries_change_as_the_text_does_except_the_placeholder():
    doc = spacy.blank("en")("Ada met Babbage.")
    doc._.queries = [("Who met @placeholder?", [doc[2:3]]), "@placeholder met him."]
    doc._.completions = [[("Babbage", [doc[2:3]])], [("Ada", [doc[0:1]])]]
    changed = change_doc(doc, "upper")
    assert [x.text for x in changed._.queries] == ["WHO MET @placeholder?", "@placeholder MET HIM."]
    assert [x.text for x in changed._.queries[0].candidates] == ["BABBAGE"]
    assert [x.best.text for x in changed._.completions] == ["BABBAGE", "ADA"]
    assert [x.best.text for x in doc._.completions] == ["Babbage", "Ada"]
