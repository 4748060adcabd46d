"""Known spans as an input of luke_ner."""

import logging

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from thinc.api import fix_random_seed

from spacy_luke.calibration import sigmoid
from spacy_luke.errors import ConfigError
from spacy_luke.layers.known_spans import RELATIONS, Known
from spacy_luke.layers.span_network import NamePrior, set_prior
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of, scorer_of
from spacy_luke.pipeline.known_input import HIDDEN, hide_ids
from spacy_luke.pipeline.published import export_component
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.conftest import MULTILINGUAL
from tests.pipeline.conftest import ANNOTATED, entities, fit, make_examples, make_ner
from tests.pipeline.known_data import (
    TWO_WORDS,
    asked,
    listed_examples,
    make_known,
    with_group,
    words,
)

MODES = ["two-stage", "probe", "full"]


@pytest.fixture(scope="module")
def trained_nlp(bert_dir):
    nlp, examples = make_known(bert_dir)
    fit(nlp, examples, 60)
    return nlp


def test_each_document_is_read_in_its_own_language(make_checkpoint, monkeypatch):
    """One title may be another entity elsewhere; documents of a batch differ in language."""
    monkeypatch.setitem(MULTILINGUAL, "de:Paris", MULTILINGUAL["en:London"])
    nlp, examples = make_known(make_checkpoint("mluke"))
    fit(nlp, examples, 5)
    pipe = nlp.get_pipe("luke_ner")

    def logits(*languages):
        docs = []
        for language in languages:
            doc = Doc(spacy.blank(language).vocab, words=["Paris", "is", "big"])
            docs.append(with_group(doc, [(0, 1, "LOC", "Paris")]))
        query, scores = pipe.predict(docs)
        is_name = query.table[scores.rows].tolist()
        return [row for place, row in zip(is_name, scores.logits) if place == [0, 1]]

    (english,), (german,) = logits("en"), logits("de")
    assert not np.allclose(english, german, atol=1e-4)
    for order in ("en", "de"), ("de", "en"):
        expected = [{"en": english, "de": german}[x] for x in order]
        assert np.allclose(logits(*order), expected, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_where_no_name_matches_answers_are_those_without_the_setting(bert_dir, mode):
    nlp, examples = make_known(bert_dir, mode=mode)
    fit(nlp, examples, 5)
    pipe = nlp.get_pipe("luke_ner")
    texts = [text for text, _ in ANNOTATED]
    found = []
    for known, docs in (
        ("known", [with_group(words(nlp, x), []) for x in texts]),
        ("known", [words(nlp, x) for x in texts]),
        (None, [words(nlp, x) for x in texts]),
    ):
        pipe.known = known
        found.append(pipe.predict(docs)[1])
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other))


def test_a_name_with_white_space_at_an_end_is_not_asked_about(luke_dir):
    """Also by an encoder that has pieces for it."""
    nlp = make_ner(luke_dir, known="known", suggester=TWO_WORDS)
    nlp.initialize(lambda: listed_examples(nlp))
    doc = Doc(nlp.vocab, words=["in", "the", "old", "London", "\n\n", "there"])
    spans = [(3, 5, "place", ""), (4, 5, "place", ""), (1, 4, "place", "")]
    found = asked(nlp, with_group(doc, spans))
    assert (1, 4) in found and not {(3, 5), (4, 5)} & found.keys()


def test_a_group_that_is_set_later_is_checked_too(bert_dir, tmp_path, caplog):
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    pipe.known = "names"
    nlp("Ada was there .")
    assert "luke_ner.known is 'names', and a document has no such spans group" in caplog.text
    pipe.known = "luke_ner"
    for use in (lambda: nlp("Ada was there ."), lambda: nlp.to_disk(tmp_path)):
        with pytest.raises(ConfigError, match="the spans group that luke_ner itself writes"):
            use()


@pytest.mark.parametrize("mode", MODES)
def test_a_match_in_one_document_leaves_others_as_they_were(bert_dir, mode):
    nlp, examples = make_known(bert_dir, mode=mode)
    fit(nlp, examples, 5)
    other, near = "She disagreed , of course !", "Tokyo is the capital of Japan ."
    alone = asked(nlp, with_group(words(nlp, other), []))
    docs = [with_group(words(nlp, near)), with_group(words(nlp, other), [])]
    query, scores = nlp.get_pipe("luke_ner").predict(docs)
    own = query.of_doc[scores.rows] == 1
    places = [tuple(x) for x in query.table[scores.rows][own].tolist()]
    assert set(places) == set(alone)
    rows = zip(places, scores.logits[own])
    assert all(np.allclose(alone[place], row, atol=1e-5) for place, row in rows)


def test_new_names_are_found_where_only_the_list_can_tell(bert_dir):
    rng = np.random.default_rng(0)

    def draw(n):
        """Sentences "she saw X .", where X is invented; every other X is a place and listed."""
        names = ["".join(rng.choice(list("abdegiklnorstu"), 5)) for _ in range(n)]
        return [(f"she saw {x} .", [(2, 3, "LOC")] * (i % 2)) for i, x in enumerate(names)]

    def listed(docs):
        for i, doc in enumerate(docs):
            with_group(doc, [(2, 3, "place", "")] * (i % 2))
        return docs

    nlp = make_ner(bert_dir, known="known")
    examples = make_examples(nlp, draw(60))
    listed([eg.predicted for eg in examples])
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 40, rate=1e-3)
    texts = [text for text, _ in draw(20)]
    known = [entities(nlp(doc)) for doc in listed([words(nlp, x) for x in texts])]
    unknown = [entities(nlp(with_group(words(nlp, x), []))) for x in texts]
    assert sum(known[1::2], []) == [(2, 3, "LOC")] * 10
    assert len(sum(known[::2], [])) < 5 > len(sum(unknown, []))


def test_the_prior_is_how_much_more_likely_a_class_is_than_among_words(bert_dir):
    nlp, _ = make_known(bert_dir)
    head = head_of(nlp.get_pipe("luke_ner").model)
    assert head.config["known_labels"] == ["name", "place"]
    weight = head.part("known", NamePrior).classifier.weight.detach().numpy()
    classes = ["LOC", "ORG", "PER", "NIL"]
    n_words = sum(len(text.split(" ")) for text, _ in ANNOTATED)
    rate = np.asarray([6.5, 1.5, 1.5, n_words - 8])
    rate /= rate.sum()
    # Of places, London, Tokyo and Japan are LOC, and Tokyo in the name of the university is none.
    place = np.log((np.asarray([3, 0, 0, 1]) + rate) / 5) - np.log(rate)
    assert nlp.get_pipe("luke_ner")._classes() == classes
    assert np.allclose(weight[:, 1], place - place[-1], atol=1e-5)
    assert not weight[:, 2:].any()  # spans that only overlap a known one


@pytest.mark.parametrize("mode", MODES)
def test_known_spans_are_asked_about_wherever_they_are(bert_dir, mode):
    nlp, _ = make_known(bert_dir, mode=mode, filter_threshold=0.9, max_pieces=64)
    doc = words(nlp, "She disagreed , of course ! Tokyo is the capital of Japan .")
    doc[6].is_sent_start = True
    spans = [(4, 8, "place", ""), (0, 13, "place", ""), (5, 6, "name", "")]
    found = asked(nlp, with_group(doc, spans))
    assert {(a, b) for a, b, *_ in spans} <= set(found)


def test_known_spans_are_asked_about_beside_those_that_pass_the_filter(bert_dir):
    """Of single words, and of spans that are longer than those that are suggested."""
    nlp, _ = make_known(bert_dir, mode="two-stage", suggester=TWO_WORDS)
    text = ANNOTATED[0][0]
    without = asked(nlp, with_group(words(nlp, text), []))
    for width in (1, 3):
        n = len(text.split()) - width + 1
        spans = [(i, i + width, "place", "") for i in range(n)]
        found = asked(nlp, with_group(words(nlp, text), spans))
        assert set(found) == set(without) | {(a, b) for a, b, *_ in spans}
        assert len(found) > len(without)


def test_a_threshold_of_the_filter_is_tried_as_it_would_be_used(bert_dir):
    nlp, _ = make_known(bert_dir, mode="two-stage", suggester=TWO_WORDS)
    pipe = nlp.get_pipe("luke_ner")
    text = ANNOTATED[0][0]
    spans = [(0, 1, "place", ""), (3, 6, "place", "")]
    query, scores = pipe.predict([with_group(words(nlp, text), spans)])
    logits = np.sort(scores.filter_logits)
    threshold = float(sigmoid(np.asarray(logits[-2:]).mean()))  # one passes
    scorer = scorer_of(pipe.model)
    scorer.filter_threshold = threshold
    placed = scorer.place(encoder_below(pipe.model), query, is_train=False)
    tried = scorer.passing(placed, query, scores)
    _, used = pipe.predict([with_group(words(nlp, text), spans)])
    assert tried.rows.tolist() == used.rows.tolist() and len(used.rows) <= 3
    assert {(0, 1), (3, 6)} <= {tuple(x) for x in query.table[used.rows].tolist()}


def test_a_name_that_does_not_fit_is_not_asked_and_shifts_nothing(bert_dir):
    nlp, _ = make_known(bert_dir, mode="probe", max_pieces=8)
    doc = words(nlp, " ".join(["course"] * 300))
    plain = asked(nlp, with_group(doc.copy(), []))
    long = asked(nlp, with_group(doc.copy(), [(0, 300, "place", ""), (3, 90, "place", "")]))
    assert set(plain) == set(long)


def test_ids_of_rulers_and_titles_in_the_language_of_the_pipeline_have_rows(
    luke_dir, make_checkpoint, caplog
):
    """``span_ruler`` writes ``id_``; tables of several languages have ``en:London``."""
    for directory in (luke_dir, make_checkpoint("mluke")):
        nlp = make_ner(directory, lang="en", known="known", mode="probe")
        examples = listed_examples(nlp)
        london = [i for i, eg in enumerate(examples) if "London" in eg.predicted.text]
        for i in london:
            with_group(examples[i].predicted, [(5, 6, "place", x) for x in ("London", "nothing")])
        caplog.clear()
        with caplog.at_level(logging.INFO):
            nlp.initialize(lambda eg=examples: eg)
        assert "the encoder has rows of 1 of their 2 ids" in caplog.text
        doc = words(nlp, "Ada Lovelace was born in London .")
        found = []
        for ids in ({}, {"kb_id": "London"}, {"span_id": "London"}):
            doc.spans["known"] = [Span(doc, 5, 6, label="place", **ids)]
            found.append(asked(nlp, doc)[5, 6])
        mask, kb_id, span_id = found
        assert np.array_equal(kb_id, span_id) and not np.allclose(mask, kb_id, atol=1e-4)


@pytest.mark.parametrize("mode", ["two-stage", "probe"])
def test_ids_of_the_entity_table_enter_instead_of_the_mask(luke_dir, mode):
    nlp, _ = make_known(luke_dir, mode=mode, label_weight=None)  # the logits of the classifier
    doc = words(nlp, "Ada Lovelace was born in London .")

    def logits(*ids):
        spans = [(5, 6, "place", x) for x in ids]
        return asked(nlp, with_group(doc.copy(), spans))[5, 6]

    table = encoder_of(nlp.get_pipe("luke_ner").model).entities
    one, two = "London", "Tokyo"
    assert table.find(one) is not None and table.find(two) is not None
    mask = logits("")
    assert np.array_equal(mask, logits("not in the table"))
    assert not np.allclose(mask, logits(one), atol=1e-4)
    # The classifier is linear: the mean of the states gives the mean of the logits.
    assert np.allclose(logits(one, two), (logits(one) + logits(two)) / 2, atol=1e-5)
    assert np.array_equal(logits(one, one), logits(one))


def test_ids_are_hidden_by_place_and_labels_stay():
    fix_random_seed(0)
    n = 4000
    docs, labels = np.repeat(np.arange(n // 2), 2), np.tile([0, 1], n // 2)
    known = Known(docs, np.zeros(n, int), np.ones(n, int), labels, ["Q1", "Q2"] * (n // 2))
    hidden = hide_ids(known)
    kept = np.asarray([bool(x) for x in hidden.titles])
    assert abs(1 - kept.mean() - HIDDEN) < 0.03
    assert (kept[::2] == kept[1::2]).all()
    assert all(x is y for x, y in zip(hidden[:4], known[:4]))
    state = np.random.get_state()[1].tolist()
    without = known._replace(titles=[""] * n)
    assert hide_ids(without) is without and np.random.get_state()[1].tolist() == state


@pytest.mark.parametrize("listed_as", ["names", "every word", "more than is suggested"])
@pytest.mark.parametrize("mode", ["probe", "two-stage"])
def test_the_text_learns_as_without_the_list(bert_dir, mode, listed_as):
    """One step on the same weights: only what the list adds is learned from the list, also from
    known spans that would not be asked about without it."""
    learned = {}
    for listed in (True, False):
        fix_random_seed(0)
        nlp, examples = make_known(bert_dir, mode=mode, suggester=TWO_WORDS)
        pipe = nlp.get_pipe("luke_ner")
        if listed_as != "names":
            width = 1 if listed_as == "every word" else 3
            for eg in examples:
                n = len(eg.predicted) - width + 1
                with_group(eg.predicted, [(i, i + width, "place", "") for i in range(n)])
        if not listed:
            for eg in examples:
                with_group(eg.predicted, [])
        fit(nlp, examples, 1)
        head = head_of(pipe.model)
        prior = head.part("known", NamePrior).classifier.weight.detach().numpy().copy()
        others = {k: v.detach().numpy().copy() for k, v in head.state_dict().items()}
        others |= {k: v.detach().numpy() for k, v in encoder_of(pipe.model).state_dict().items()}
        learned[listed] = (prior, {k: v for k, v in others.items() if "known" not in k})
    (told, text), (untold, same) = learned[True], learned[False]
    equal = told.shape[1] // len(RELATIONS)  # features of candidates that equal a known span
    assert np.abs(told - untold)[:, :equal].max() > 1e-5
    # A step is 0.005; of biases of keys, whose gradients are 0, rounding remains.
    assert all(np.allclose(text[name], same[name], atol=5e-5) for name in same)


def test_a_saved_pipeline_and_added_labels_keep_the_prior(trained_nlp, tmp_path):
    nlp = trained_nlp
    doc = with_group(words(nlp, ANNOTATED[0][0]))
    before = asked(nlp, doc)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    after = asked(loaded, with_group(words(loaded, ANNOTATED[0][0])))
    assert set(before) == set(after)
    assert all(np.array_equal(before[x], after[x]) for x in before)
    assert loaded.get_pipe("luke_ner").add_label("EVENT") == 1
    more = asked(loaded, with_group(words(loaded, ANNOTATED[0][0])))
    for x in before:  # the probabilities of labels sum to that of an entity
        change = more[x][[0, 1, 2, 4]] - before[x]
        change -= change[3]  # logits have any constant
        assert np.ptp(change[:3]) < 1e-5 and abs(change[0]) < 0.05
    prior = head_of(loaded.get_pipe("luke_ner").model).part("known", NamePrior)
    assert not prior.classifier.weight[3].any()  # of the new class


def test_labels_that_the_list_gets_later_count_as_known_alone(trained_nlp):
    doc = words(trained_nlp, "She disagreed , of course !")
    found = asked(trained_nlp, with_group(doc, [(0, 1, "ship", "")]))
    assert (0, 1) in found and np.isfinite(found[0, 1]).all()


def test_labels_none_of_which_was_learned_are_told_once(trained_nlp, caplog):
    nlp = trained_nlp.from_config(trained_nlp.config).from_bytes(trained_nlp.to_bytes())
    doc = words(nlp, "She disagreed , of course !")
    with caplog.at_level(logging.WARNING):
        for _ in range(19):
            nlp(with_group(doc.copy(), [(0, 1, "ship", "")]))
        assert "None of" not in caplog.text  # may be chance
        for _ in range(2):
            nlp(with_group(doc.copy(), [(0, 1, "ship", "")]))
        assert caplog.text.count("None of the first 20 spans of the group 'known'") == 1
        assert "found: 'ship'" in caplog.text and "learned: 'name'" in caplog.text
        caplog.clear()
        nlp = trained_nlp.from_config(trained_nlp.config).from_bytes(trained_nlp.to_bytes())
        for label in ("place", *["ship"] * 25):
            nlp(with_group(doc.copy(), [(0, 1, label, "")]))
    assert not caplog.text


def test_known_spans_have_their_characters_after_tokens_were_merged(trained_nlp):
    nlp = trained_nlp
    doc = with_group(words(nlp, "Just now Ada Lovelace saw London"))
    assert {(2, 4), (5, 6)} <= set(asked(nlp, doc))
    merged, plain = with_group(doc), words(nlp, "Just now Ada Lovelace saw London")
    for x in (merged, plain):
        with x.retokenize() as retokenizer:
            retokenizer.merge(x[0:2])
    with_group(plain)
    (query, scores), (other, others) = (
        nlp.get_pipe("luke_ner").predict([x]) for x in (merged, plain)
    )
    assert np.array_equal(query.table[scores.rows], other.table[others.rows])
    assert np.array_equal(scores.logits, others.logits)


def test_a_missing_group_is_told_once_and_an_empty_one_is_not(trained_nlp, caplog):
    nlp = trained_nlp.from_config(trained_nlp.config).from_bytes(trained_nlp.to_bytes())
    with caplog.at_level(logging.WARNING):
        nlp(with_group(words(nlp, "She disagreed"), []))
        assert "spans group" not in caplog.text
        for _ in range(2):
            nlp(words(nlp, "She disagreed"))
    assert caplog.text.count("luke_ner.known is 'known', and a document has no such spans") == 1


def test_known_names_have_no_published_form(luke_dir, tmp_path):
    nlp, _ = make_known(luke_dir, mode="full")
    with pytest.raises(ConfigError, match="no published form"):
        export_component(nlp, tmp_path / "out", "luke_ner")


def test_the_bias_is_trust_in_known_spans(trained_nlp):
    nlp = trained_nlp.from_config(trained_nlp.config).from_bytes(trained_nlp.to_bytes())
    pipe = nlp.get_pipe("luke_ner")
    spans = [(0, 2, "place", ""), (1, 2, "place", ""), (4, 5, "place", "")]
    found = {}
    for bias in (-100.0, 0.0, 100.0):
        pipe.known_bias = bias
        doc = nlp(with_group(words(nlp, "She disagreed , of course !"), spans))
        found[bias] = [(a, b) for a, b, _ in entities(doc)]
    assert found[100.0] == [(0, 2), (4, 5)]  # the one inside another is not raised
    assert not set(found[-100.0]) & {(0, 2), (4, 5)}
    pipe.known_bias = 100.0
    doc = with_group(words(nlp, ANNOTATED[0][0]), [])
    assert entities(nlp(doc)) == ANNOTATED[0][1]


def test_tuning_chooses_the_bias(bert_dir):
    """The model has learned nothing: only the list can tell which names are entities."""
    nlp = make_ner(bert_dir, known="known")
    data = [(f"she saw {x} .", [(2, 3, "LOC")] * (i % 2)) for i, x in enumerate("abcdefghij")]
    examples = make_examples(nlp, data)
    for i, eg in enumerate(examples):
        with_group(eg.predicted, [(2, 3, "place", "")] * (i % 2))
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_ner")
    set_prior(pipe.model, np.zeros((5, 2)))
    (tuned,) = tune(nlp, examples, Goal())
    assert pipe.known_bias == tuned.settings["known_bias"] > 0
    assert tuned.after.f > tuned.before.f and tuned.after.f > 0.9


def test_without_known_names_no_bias_of_them_is_tuned(bert_dir):
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    (tuned,) = tune(nlp, examples, Goal())
    assert "known_bias" not in tuned.settings and nlp.get_pipe("luke_ner").known_bias == 0
