"""Gold entities are on the predicted side of every example, wherever components look."""

import logging

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus
from spacy.util import registry

import spacy_luke.corpora.preset  # noqa: F401  (registers the reader)
from spacy_luke.annotations.queries import has_completions
from spacy_luke.annotations.questions import (
    answer_offsets,
    has_answers,
    n_questions,
    set_answers,
    set_questions,
)
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.annotations.types import get_types, set_types
from spacy_luke.errors import ConfigError

NAME = "spacy-luke.PresetEntsCorpus.v1"


def ids(doc):
    return [(e.text, e.label_, e.kb_id_, e.ent_id_) for e in doc.ents]


def make_doc(vocab, words, spaces=None, group=True):
    doc = Doc(vocab, words=words, spaces=spaces)
    doc.ents = [
        Span(doc, 0, 2, label="PER", kb_id="Q7259", span_id="ada"),
        Span(doc, 4, 5, label="LOC"),
    ]
    if group:
        doc.spans["all"] = [Span(doc, 1, 2, label="NAME", kb_id="Q1"), *doc.ents]
    return doc


@pytest.fixture
def nlp():
    return spacy.blank("en")


@pytest.fixture
def path(tmp_path, nlp):
    words = ["Ada", "Lovelace", "lived", "in", "London", "."]
    spaces = [True, True, True, True, False, False]
    DocBin(docs=[make_doc(nlp.vocab, words, spaces)] * 2).to_disk(tmp_path / "gold.spacy")
    return tmp_path / "gold.spacy"


@pytest.fixture
def cut_path(tmp_path, nlp):
    """The tokenizer makes one word of the two last ones, one of which is an entity."""
    words = ["Ada", "Lovelace", "lived", "in", "Lond", "on"]
    spaces = [True, True, True, True, False, False]
    docs = [make_doc(nlp.vocab, words, spaces, group=False)] * 3
    DocBin(docs=docs).to_disk(tmp_path / "cut.spacy")
    return tmp_path / "cut.spacy"


def reader(path, **settings):
    return registry.readers.get(NAME)(path, **settings)


LINKED = [("Ada Lovelace", "PER", "Q7259", "ada"), ("London", "LOC", "", "")]
EXPECTED = [("Ada Lovelace", "PER", "", "ada"), ("London", "LOC", "", "")]


@pytest.mark.parametrize(
    "factory, config, warned",
    [
        ("ner", {}, True),
        ("entity_ruler", {}, True),
        ("entity_ruler", {"overwrite_ents": True}, True),  # keeps what no new one overlaps
        ("future_entity_ruler", {}, True),
        ("luke_ner", {"overwrite": False}, True),
        ("known_names", {"annotate_ents": True}, True),
        ("known_names", {"annotate_ents": True, "overwrite": True}, False),
        ("known_names", {"annotate_ents": False}, False),
        ("luke_ner", {}, False),
        ("luke_relation", {}, False),
        ("merge_entities", {}, False),
    ],
)
def test_components_that_keep_preset_entities_are_warned_of(
    path, nlp, caplog, factory, config, warned
):
    nlp.add_pipe(factory, "mine", config=config)
    for settings in ({}, {"ents": False}):
        caplog.clear()
        read = reader(path, **settings)
        assert len(list(read(nlp))) == 2
        list(read(nlp))
        assert caplog.text.count("mine, which would find") == (warned and not settings)


def test_gold_entities_that_another_component_replaces_do_not_count(path, nlp, caplog):
    nlp.add_pipe("luke_ner", config={"nested": True, "overwrite": True})
    nlp.add_pipe("known_names", config={"annotate_ents": True})
    list(reader(path)(nlp))
    assert "known_names, which would find" in caplog.text
    caplog.clear()
    nlp.add_pipe("luke_ner", "flat")
    list(reader(path)(nlp))
    assert not caplog.text


def test_preset_entities_that_are_kept_count_as_found(path, nlp):
    nlp.add_pipe("ner")
    examples = list(Corpus(path)(nlp))
    nlp.initialize(lambda: examples)
    assert nlp.evaluate(list(Corpus(path)(nlp)))["ents_r"] < 1.0
    assert nlp.evaluate(list(reader(path)(nlp)))["ents_r"] == 1.0


def test_the_stock_corpus_has_no_predicted_entities_and_this_one_has_the_gold(path, nlp):
    assert all(not eg.predicted.ents for eg in Corpus(path)(nlp))
    examples = list(reader(path)(nlp))
    assert len(examples) == 2
    assert all(ids(eg.predicted) == EXPECTED for eg in examples)
    assert all(ids(eg.reference) == LINKED for eg in examples)
    assert all("all" not in eg.predicted.spans for eg in examples)


def test_every_pass_over_the_corpus_presets_entities(path, nlp):
    corpus = reader(path)
    for _ in range(2):
        assert [ids(eg.predicted) for eg in corpus(nlp)] == [EXPECTED, EXPECTED]


def test_a_spans_group_is_preset_with_overlaps_and_ids(path, nlp):
    for example in reader(path, spans_key="all")(nlp):
        spans = example.predicted.spans["all"]
        assert sorted((s.text, s.label_, s.id_) for s in spans) == [
            ("Ada Lovelace", "PER", "ada"),
            ("London", "LOC", ""),
            ("Lovelace", "NAME", ""),
        ]


def test_gold_links_are_preset_only_if_asked(path, nlp):
    for example in reader(path, spans_key="all")(nlp):
        doc = example.predicted
        assert not any(span.kb_id_ for span in (*doc.ents, *doc.spans["all"]))
        assert not any(token.ent_kb_id_ for token in doc)
        assert ids(example.reference) == LINKED
    for example in reader(path, spans_key="all", links=True)(nlp):
        assert ids(example.predicted) == LINKED
        assert {s.text: s.kb_id_ for s in example.predicted.spans["all"]} == {
            "Ada Lovelace": "Q7259",
            "London": "",
            "Lovelace": "Q1",
        }


def test_another_tokenisation_keeps_the_characters_of_an_entity(tmp_path, nlp):
    words, spaces = ["Ada", "Love", "lace", "lived"], [True, False, True, False]
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    doc.ents = [Span(doc, 1, 3, label="PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    (example,) = reader(tmp_path / "gold.spacy")(nlp)
    assert [t.text for t in example.predicted] == ["Ada", "Lovelace", "lived"]
    assert [(e.text, e.start, e.end) for e in example.predicted.ents] == [("Lovelace", 1, 2)]


def test_misaligned_entities_are_left_out_and_reported_once(cut_path, nlp, caplog):
    corpus = reader(cut_path)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [ids(eg.predicted) for eg in corpus(nlp)] == [EXPECTED[:1]] * 3
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("3 of 6 gold entities and spans do not align")
    assert "'Lond' in 'Ada Lovelace lived in London'" in caplog.messages[0]


def test_gold_tokens_align_every_entity(cut_path, nlp, caplog):
    examples = list(reader(cut_path, gold_preproc=True)(nlp))
    assert [len(eg.predicted.ents) for eg in examples] == [2, 2, 2]
    assert not caplog.messages


def test_documents_without_the_group_get_an_empty_one_and_are_reported(cut_path, nlp, caplog):
    examples = list(reader(cut_path, gold_preproc=True, spans_key="all")(nlp))
    assert all(len(eg.predicted.spans["all"]) == 0 for eg in examples)
    assert caplog.messages == ["3 of 3 documents have no spans group 'all'; they get an empty one."]


def test_limit_and_augmenter_reach_the_corpus(path, nlp):
    def twice(nlp, example):
        yield example
        yield example.copy()

    examples = list(reader(path, limit=1, augmenter=twice)(nlp))
    assert [ids(eg.predicted) for eg in examples] == [EXPECTED, EXPECTED]


@pytest.fixture
def annotated_path(tmp_path, nlp):
    """Entities with a relation, of which only London has types; a group with a nested span."""
    words = ["Ada", "Lovelace", "lived", "in", "London", "."]
    doc = make_doc(nlp.vocab, words)
    set_relations(doc, [(doc.ents[0], doc.ents[1], "lived_in")])
    set_types(doc.ents[1], {"/place/city": 1.0})
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "annotated.spacy")
    return tmp_path / "annotated.spacy"


@pytest.mark.parametrize("gold_preproc", [False, True])
def test_types_and_relations_stay_on_the_reference_side(annotated_path, nlp, gold_preproc):
    settings = {"types_from_labels": True, "spans_key": "all", "gold_preproc": gold_preproc}
    (example,) = reader(annotated_path, **settings)(nlp)
    assert [r.label for r in get_relations(example.reference)] == ["lived_in"]
    assert get_types(example.reference.ents[0]) is not None
    assert get_relations(example.predicted) == ()
    spans = [*example.predicted.ents, *example.predicted.spans["all"]]
    assert len(spans) == 5 and not any(get_types(span) is not None for span in spans)
    assert not example.predicted.user_data


@pytest.fixture
def sentences_path(tmp_path, nlp):
    """Three sentences; relations within the second and from it to the first; the third is long."""
    words = "Ada ran . In Rome Bo met Cy . Ada ran and ran and ran until dusk .".split()  # noqa: SIM905
    doc = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 3, 9) for i in range(len(words))])
    ada, rome, bo, cy = (
        Span(doc, i, i + 1, label="X", kb_id=f"Q{i}", span_id=f"s{i}") for i in (0, 4, 5, 7)
    )
    across = Span(doc, 8, 10, label="X")
    doc.ents = [ada, rome, bo, cy, across]
    doc.spans["all"] = [*doc.ents, Span(doc, 1, 5, label="LONG")]
    set_relations(doc, [(cy, bo, "met"), (bo, ada, "knows")])
    set_types(rome, {"/place": 1.0})
    set_types(across, {"/thing": 1.0})
    set_questions(doc, ["Who ran?", "Why?"])
    set_answers(doc, [[doc[0:1]], []])
    doc.cats = {"SPORT": 1.0}
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "sentences.spacy")
    return tmp_path / "sentences.spacy"


def test_a_document_of_one_sentence_keeps_its_categories(tmp_path, nlp, caplog):
    doc = Doc(nlp.vocab, words=["Ada", "ran"], sent_starts=[True, False])
    doc.cats = {"SPORT": 1.0, "ART": 0.0}
    DocBin(docs=[doc]).to_disk(tmp_path / "one.spacy")
    (example,) = reader(tmp_path / "one.spacy", gold_preproc=True)(nlp)
    assert example.reference.cats == {"SPORT": 1.0, "ART": 0.0}
    assert not caplog.messages


@pytest.mark.parametrize("settings", [{"max_length": 8}, {"gold_preproc": True}])
def test_sentences_of_a_document_that_is_cut_keep_what_lies_within(
    sentences_path, nlp, caplog, settings
):
    corpus = reader(sentences_path, spans_key="all", links=True, **settings)
    for _ in range(2):
        examples = list(corpus(nlp))
    assert len(examples) == (2 if "max_length" in settings else 3)
    first, second = (eg.reference for eg in examples[:2])
    assert get_relations(first) == ()
    assert [(r.head.text, r.tail.text, r.label) for r in get_relations(second)] == [
        ("Cy", "Bo", "met")
    ]
    assert [get_types(ent) for ent in second.ents] == [{"/place": 1.0}, None, None]
    for doc in (second, examples[1].predicted):
        found = [(span.text, span.kb_id_, span.id_) for span in doc.spans["all"]]
        assert found == [("Rome", "Q4", "s4"), ("Bo", "Q5", "s5"), ("Cy", "Q7", "s7")]
    # What is said about spans goes to one sentence each.
    assert sum(len(eg.reference.user_data) for eg in examples) <= 3
    (message,) = caplog.messages
    lost = "1 relations, 1 entities, types of 1 places, 2 spans of groups"
    assert lost in message and "questions about whole documents: 2" in message
    assert "of 1 documents" in message and not any(eg.reference.cats for eg in examples)
    assert not any(n_questions(doc) for eg in examples for doc in (eg.reference, eg.predicted))
    assert f"{3 - len(examples)} sentences of max_length" in message


def sent_starts(doc):
    return [token.is_sent_start for token in doc]


def test_sentence_starts_are_preset_if_asked_and_a_sentencizer_leaves_them(tmp_path, nlp):
    """The rule would see a sentence after "Ofl." and none before "At"."""
    words = "In Ofl . Gallen At noon".split()  # noqa: SIM905
    spaces = [True, False, True, True, True, False]
    doc = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=[i in (0, 4) for i in range(6)])
    doc.ents = [Span(doc, 1, 4, label="LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    (stock,) = reader(tmp_path / "gold.spacy")(nlp)
    assert not stock.predicted.has_annotation("SENT_START")
    (example,) = reader(tmp_path / "gold.spacy", sents=True, ents=False)(nlp)
    assert not example.predicted.has_annotation("ENT_IOB")
    tokens = [token.text for token in example.predicted]
    assert tokens == ["In", "Ofl", ".", "Gallen", "At", "noon"]
    assert sent_starts(example.predicted) == [True, False, False, False, True, False]
    sentencizer = nlp.add_pipe("sentencizer", config={"overwrite": False})
    assert [sent.text for sent in sentencizer(example.predicted).sents] == [
        "In Ofl. Gallen",
        "At noon",
    ]
    assert [sent.text for sent in sentencizer(stock.predicted).sents] != [
        "In Ofl. Gallen",
        "At noon",
    ]


def test_sentence_starts_follow_another_tokenisation(tmp_path, nlp):
    words, spaces = ["It", "s", "here", "!", "?", "Ok"], [False, True, False, False, True, False]
    starts = [True, False, False, False, False, True]
    doc = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    (example,) = reader(tmp_path / "gold.spacy", sents=True)(nlp)
    assert [t.text for t in example.predicted] != words
    starts = [token.text for token in example.predicted if token.is_sent_start]
    assert starts == [example.predicted[0].text, "Ok"]


def test_unknown_sentence_starts_are_left_to_the_pipeline(tmp_path, nlp):
    """spaCy's Doc.from_docs gives a start to the first token of each document, and no others."""
    doc = Doc.from_docs([nlp.make_doc("One. Two"), nlp.make_doc("Three. Four")])
    assert doc.has_annotation("SENT_START")
    DocBin(docs=[doc, nlp.make_doc("One. Two")]).to_disk(tmp_path / "gold.spacy")
    for example in reader(tmp_path / "gold.spacy", sents=True)(nlp):
        assert not example.predicted.has_annotation("SENT_START")


def test_sentences_that_are_cut_have_their_starts(sentences_path, nlp):
    for example in reader(sentences_path, sents=True, max_length=8)(nlp):
        assert sum(map(bool, sent_starts(example.predicted))) == 1
        assert example.predicted.has_annotation("SENT_START", require_complete=True)


def test_a_long_document_without_sentences_is_left_out_and_counted(annotated_path, nlp, caplog):
    assert list(reader(annotated_path, max_length=3)(nlp)) == []
    assert "and 1 documents of that length without sentence starts" in caplog.text


def test_labels_become_types_where_there_are_none(annotated_path, nlp):
    (example,) = reader(annotated_path, types_from_labels=True)(nlp)
    assert [get_types(ent) for ent in example.reference.ents] == [
        {"PER": 1.0},
        {"/place/city": 1.0},
    ]
    (nested, *_) = example.reference.spans["all"]
    assert nested.text == "Lovelace" and get_types(nested) is None


def test_labels_of_a_groups_spans_become_types_too(annotated_path, nlp):
    (example,) = reader(annotated_path, types_from_labels=True, spans_key="all")(nlp)
    found = {span.text: get_types(span) for span in example.reference.spans["all"]}
    assert found == {
        "Lovelace": {"NAME": 1.0},
        "Ada Lovelace": {"PER": 1.0},
        "London": {"/place/city": 1.0},
    }


def test_labels_of_spans_of_the_same_place_are_all_types(tmp_path, nlp):
    doc = Doc(nlp.vocab, words=["Ada", "ran"])
    doc.spans["all"] = [Span(doc, 0, 1, label=label) for label in ("A", "B", "")]
    set_types(doc[1:2], {})
    doc.ents = [Span(doc, 1, 2, label="ACT")]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "gold.spacy")
    settings = {"types_from_labels": True, "spans_key": "all"}
    (example,) = reader(tmp_path / "gold.spacy", **settings)(nlp)
    assert get_types(example.reference[0:1]) == {"A": 1.0, "B": 1.0}
    assert get_types(example.reference.ents[0]) == {}  # it was said to have none


def test_without_the_setting_labels_are_no_types(annotated_path, nlp):
    (example,) = reader(annotated_path)(nlp)
    assert [get_types(ent) is not None for ent in example.reference.ents] == [False, True]


class Consumer:
    """A component that notes the entities it is given and sets none."""

    def __init__(self):
        self.updated, self.called = [], []

    def __call__(self, doc):
        self.called.append(ids(doc))
        return doc

    def update(self, examples, **kwargs):
        self.updated.extend(ids(eg.predicted) for eg in examples)
        return kwargs["losses"]


@Language.factory("entity_consumer_of_tests")
def make_consumer(nlp, name):
    return Consumer()


def test_a_consuming_component_sees_the_entities_in_update_and_evaluate(path, nlp):
    consumer = nlp.add_pipe("entity_consumer_of_tests")
    examples = list(reader(path)(nlp))
    nlp.update(examples, sgd=False)
    assert consumer.updated == [EXPECTED, EXPECTED]
    nlp.evaluate(examples)
    assert consumer.called == [EXPECTED, EXPECTED]


def test_a_predicting_component_overwrites_the_entities(path, nlp):
    nlp.add_pipe("entity_ruler", config={"overwrite_ents": True}).add_patterns(
        [{"label": "RULE", "pattern": "Ada Lovelace lived"}]
    )
    consumer = nlp.add_pipe("entity_consumer_of_tests")
    nlp.evaluate(list(reader(path)(nlp)))
    expected = [("Ada Lovelace lived", "RULE", ""), ("London", "LOC", "")]
    assert [[ent[:3] for ent in found] for found in consumer.called] == [expected] * 2


def test_the_reader_resolves_from_a_training_config(path, nlp):
    config = {"train": {"@readers": NAME, "path": str(path), "spans_key": "all"}}
    corpus = registry.resolve(config)["train"]
    assert [ids(eg.predicted) for eg in corpus(nlp)] == [EXPECTED, EXPECTED]


@pytest.mark.parametrize("bad", [None, "nowhere.spacy"])
def test_a_path_that_cannot_be_read_is_a_config_error(bad):
    with pytest.raises(ConfigError, match="path of spacy-luke.PresetEntsCorpus.v1"):
        reader(bad)


@pytest.fixture
def asked_path(tmp_path, nlp):
    doc = nlp("Ada Lovelace lived in London. She wrote.")
    doc[6].is_sent_start = True
    question = nlp("Where did Ada live?")
    question.ents = [Span(question, 2, 3, label="PER", kb_id="Q7259")]
    set_questions(doc, ["Who?", question])
    set_answers(doc, [[doc[0:2]], [doc[4:5]]])
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "asked.spacy")
    return tmp_path / "asked.spacy"


def test_questions_are_preset_and_answers_never(asked_path, nlp):
    corpus = reader(asked_path)
    for _ in range(2):
        (eg,) = corpus(nlp)
        first, second = eg.predicted._.questions
        assert first == "Who?" and second.text == "Where did Ada live?"
        assert ids(second) == [("Ada", "PER", "Q7259", "")]
        assert not has_answers(eg.predicted) and len(answer_offsets(eg.reference)) == 2
        set_answers(eg.predicted, [[], []])  # what a component does


def test_questions_are_not_preset_if_switched_off(asked_path, nlp):
    (eg,) = reader(asked_path, questions=False)(nlp)
    assert eg.predicted._.questions == () and n_questions(eg.reference) == 2


def test_queries_are_preset_and_completions_are_not(tmp_path, nlp):
    doc = nlp("Ada Lovelace lived in London.")
    doc._.queries = [("@placeholder is a city.", [doc[4:5]])]
    doc._.completions = [[("London", [doc[4:5]])]]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "cloze.spacy")
    (example,) = reader(tmp_path / "cloze.spacy", ents=False)(nlp)
    assert has_completions(example.reference) and not has_completions(example.predicted)
    (query,) = example.predicted._.queries
    assert [x.text for x in query.candidates] == ["London"]
    assert query.candidates[0].doc is example.predicted


def test_a_sentence_that_begins_with_unaligned_white_space_starts_behind_it(tmp_path, nlp):
    words = ["Hi", ".", " ", "She", " ", "left"]
    starts = [i in (0, 2) for i in range(6)]
    doc = Doc(nlp.vocab, words=words, spaces=[False] * 6, sent_starts=starts)
    DocBin(docs=[doc]).to_disk(tmp_path / "white.spacy")
    (example,) = reader(tmp_path / "white.spacy", sents=True)(nlp)
    found = [(token.text, token.is_sent_start) for token in example.predicted]
    assert found == [("Hi", True), (".", False), ("She", True), ("left", False)]


def test_of_entities_that_meet_in_one_white_space_token_the_first_is_preset(tmp_path, nlp, caplog):
    doc = Doc(nlp.vocab, words=["Ada", "\n", "\n", "Bob"], spaces=[False] * 4)
    doc.ents = [Span(doc, 0, 2, label="PER"), Span(doc, 2, 4, label="PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "met.spacy")
    (example,) = reader(tmp_path / "met.spacy")(nlp)
    assert [ent.text.strip() for ent in example.predicted.ents] == ["Ada"]
    (message,) = caplog.messages
    assert "1 of 2 gold entities" in message and "Bob" in message
