"""Queries with a gap: what is scored, merged and kept."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.annotations.queries import get_completions, has_completions
from spacy_luke.calibration import sigmoid
from spacy_luke.cli.evaluate import evaluate
from spacy_luke.cli.loading import load_examples
from spacy_luke.cli.predicted import warn_of_predictions
from spacy_luke.errors import ConfigError
from spacy_luke.inputs.windows import Windows
from spacy_luke.layers import encoder_run
from spacy_luke.layers.cloze_scorer import ClozeScorer
from spacy_luke.layers.task_layer import encoder_below, scorer_of
from spacy_luke.pipeline.published import export_component, import_checkpoint
from tests.pipeline.cloze_data import (
    ANSWERS,
    ENTS,
    FILLER,
    PASSAGE,
    asked,
    best,
    close,
    long_text,
    make,
    make_examples,
    scores_of,
)
from tests.pipeline.conftest import fit
from tests.pipeline.published_data import same, tensors


@pytest.fixture(scope="module")
def trained(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 80)
    return nlp


@pytest.fixture(scope="module")
def untrained(luke_dir):
    nlp = make(luke_dir)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


# Learning and completing


def test_it_learns_a_toy_cloze_set(trained):
    (example,) = make_examples(trained)
    doc = trained(example.predicted)
    assert best(doc) == list(ANSWERS.values())
    scores = trained.evaluate(make_examples(trained))
    assert (scores["cloze_em"], scores["cloze_f1"], scores["cloze_queries"]) == (1, 1, 5)


def test_every_entity_is_scored_once_best_first(trained):
    doc = trained(asked(trained, *ANSWERS))
    for item in get_completions(doc):
        scores = [x.score for x in item.candidates]
        assert scores == sorted(scores, reverse=True) and all(0 < x < 1 for x in scores)
        by_text = {x.text: [y.start for y in x.mentions] for x in item.candidates}
        assert by_text == {
            "Ada": [0, 12],
            "London": [3],
            "Tokyo": [5],
            "Japan": [10],
            "Babbage": [14],
        }


def test_mentions_of_one_id_are_merged_with_the_text_of_the_best(trained):
    doc = asked(trained, "Charles @placeholder disagreed .")
    doc.ents = [Span(doc, a, b, "X", kb_id="1" if a in (0, 14) else "") for a, b in ENTS]
    (item,) = get_completions(trained(doc))
    assert item.best.text == "Babbage" and [x.start for x in item.best.mentions] == [0, 12, 14]
    assert len(item.candidates) == 4


def test_scores_are_those_of_the_best_mention(untrained):
    pipe = untrained.get_pipe("luke_cloze")
    doc = asked(untrained, "@placeholder lived .")
    query, values = pipe.predict([doc])
    logits = values.logits[:, 0]
    assert values.rows.tolist() == [0, 1, 2, 3, 4, 5]
    pipe.set_annotations([doc], (query, values))
    found = dict(scores_of(doc)[0])
    assert found["Ada"] == pytest.approx(sigmoid(logits[[0, 4]]).max(), abs=1e-6)
    assert found["Tokyo"] == pytest.approx(sigmoid(logits[2:3])[0], abs=1e-6)


def test_completions_with_scores_are_told_to_be_predictions(trained, caplog):
    (example,) = make_examples(trained)
    warn_of_predictions(trained, [example], Path("gold"))
    assert not caplog.text
    predicted = trained(example.predicted.copy())
    warn_of_predictions(trained, [Example(example.predicted, predicted)], Path("written"))
    assert "written: completions have scores" in caplog.text


def test_the_threshold_leaves_completions_out(trained):
    pipe = trained.get_pipe("luke_cloze")
    pipe.threshold = 0.5
    try:
        doc = trained(asked(trained, *ANSWERS))
        assert all(len(x.candidates) == 1 for x in get_completions(doc))
    finally:
        pipe.threshold = 0.0


def test_candidates_of_a_query_or_of_a_group(trained):
    doc = asked(trained, "@placeholder lived there .")
    doc._.queries = [("@placeholder lived there .", [doc[5:6], doc[10:11], doc[13:14]])]
    assert {x.text for x in get_completions(trained(doc))[0].candidates} == {
        "Tokyo",
        "Japan",
        "met",
    }
    doc = asked(trained, "@placeholder lived there .", ents=[])
    doc.spans["all"] = [doc[0:1], doc[0:3], doc[5:6], doc[0:1]]  # nested, and one twice
    trained.get_pipe("luke_cloze").spans_key = "all"
    try:
        (item,) = get_completions(trained(doc))
        assert {x.text for x in item.candidates} == {"Ada", "Ada lived in", "Tokyo"}
    finally:
        trained.get_pipe("luke_cloze").spans_key = None


# Defined behaviour for odd input


@pytest.mark.parametrize("words,ents", [([], []), (["\n", " "], [(0, 1)]), (PASSAGE.split(), [])])
def test_without_candidates_there_are_no_completions(trained, words, ents):
    doc = Doc(trained.vocab, words=words)
    doc._.queries = [("@placeholder lived .", [doc[a:b] for a, b in ents]), "@placeholder"]
    doc = trained(doc)
    assert [x.candidates for x in get_completions(doc)] == [(), ()]
    assert best(doc) == [None, None]


def test_documents_without_queries_are_left_as_they_are(trained):
    docs = [asked(trained), asked(trained, "@placeholder lived there ."), asked(trained)]
    docs = list(trained.pipe(docs))
    assert [len(get_completions(x)) for x in docs] == [0, 1, 0]
    assert best(docs[1]) == ["Ada"]


def test_a_placeholder_may_be_all_of_a_query_and_touch_words(untrained):
    doc = untrained(asked(untrained, "@placeholder", "(@placeholder's)", "x@placeholder!"))
    assert [len(x.candidates) for x in get_completions(doc)] == [5, 5, 5]


def test_equal_queries_have_equal_completions(trained):
    query = "The city of @placeholder is large ."
    doc = trained(asked(trained, query, "@placeholder lived there .", query))
    first, _, third = get_completions(doc)
    assert [x[:2] for x in first.candidates] == [x[:2] for x in third.candidates]
    assert best(doc) == ["Tokyo", "Ada", "Tokyo"]


def test_a_long_query_keeps_what_is_around_its_gap(bert_dir):
    nlp = make(bert_dir, model={"max_query_pieces": 12})
    nlp.initialize(lambda: make_examples(nlp))
    gap = "the city of @placeholder is large"
    queries = [f"{FILLER * 30}{gap} {FILLER * 30}", f"{FILLER * 31}{gap} {FILLER * 31}"]
    doc = nlp(asked(nlp, *queries, f"{FILLER * 30}@placeholder", f"@placeholder {FILLER * 30}"))
    found = scores_of(doc)
    assert dict(found[0]) == pytest.approx(dict(found[1]), abs=1e-5)
    assert all(len(x) == 5 for x in found)


def test_a_candidate_longer_than_a_window_is_counted_and_left_out(bert_dir, caplog):
    nlp = make(bert_dir, encoder={"window": 40})
    nlp.initialize(lambda: make_examples(nlp))
    ents = [(0, 2), (2, 60)]
    doc = asked(nlp, "@placeholder lived .", text=f"Ada met {FILLER * 30}".strip(), ents=ents)
    with caplog.at_level(logging.WARNING, logger="spacy.luke"):
        spacy.util.logger.propagate = True
        (item,) = get_completions(nlp(doc))
    assert [x.text for x in item.candidates] == ["Ada met"]
    assert nlp.get_pipe("luke_cloze").n_unscored == 1 and "1 of 2 rows" in caplog.text


# Windows and batches


def test_windows_cover_a_long_passage(untrained):
    pipe = untrained.get_pipe("luke_cloze")
    doc = long_text(untrained, "@placeholder lived there .", before=25, after=25)
    query, values = pipe.predict([doc])
    assert values.rows.tolist() == list(range(len(doc.ents)))
    settings = pipe.model.attrs["settings"]
    placed = settings.place(pipe.model.layers[0], query)
    windows, mentions = placed.windows.windows, placed.mentions
    assert len(windows) > 3
    for start, end in zip(windows.starts, windows.ends):
        inside = (mentions.starts >= start) & (mentions.ends <= end)
        assert inside.any()  # windows without candidates are left out
    sizes = placed.windows.sizes()
    assert sizes.max() <= 128 + 2
    for low in range(len(windows)):
        entities, rows = placed.windows.entities(low, low + 1, placed.gaps, placed.mentions, 30)
        words = placed.windows.words(low, low + 1).piece_ids
        assert rows[0] >= 0 and (rows[1:] < 0).all()
        assert entities.ends.max() < len(words)


def test_a_score_is_the_best_of_all_windows(bert_dir, monkeypatch):
    """An entity in the overlap of two windows is scored in both."""
    nlp = make(bert_dir, encoder={"window": 60}, model={"stride": 24})
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_cloze")
    doc = long_text(nlp, "@placeholder lived there .", before=9, after=9)
    query, whole = pipe.predict([doc])
    settings, node = pipe.model.attrs["settings"], pipe.model.layers[0]
    placed = settings.place(node, query)
    windows = placed.windows.windows
    counts = np.zeros(len(doc.ents), dtype=int)
    for start, end in zip(windows.starts, windows.ends):
        inside = (placed.mentions.starts >= start) & (placed.mentions.ends <= end)
        counts[placed.rows[inside]] += 1
    assert counts.min() >= 1 and counts.max() >= 2
    best_scores = np.full(len(doc.ents), -np.inf)
    for i in range(len(windows)):
        only = Windows(*(x[i : i + 1] for x in vars(windows).values()))
        one = placed._replace(windows=replace(placed.windows, windows=only))
        monkeypatch.setattr(ClozeScorer, "place", lambda *_, one=one: one)
        rows, logits = pipe.model.predict(query)
        best_scores[rows] = np.maximum(best_scores[rows], logits[:, 0])
    np.testing.assert_allclose(best_scores, whole.logits[:, 0], atol=1e-5)


@pytest.mark.parametrize("mode", ["unmarked", "markers"])
def test_batches_do_not_change_scores(luke_dir, mode, monkeypatch):
    nlp = make(luke_dir, model={"mode": mode})
    nlp.initialize(lambda: make_examples(nlp))

    def docs():
        return [
            asked(nlp, *ANSWERS),
            asked(nlp),
            long_text(nlp, "@placeholder lived .", "@placeholder met ."),
            asked(nlp, "@placeholder", text="Ada met", ents=[(0, 1)]),
        ]

    together = list(nlp.pipe(docs(), batch_size=8))
    for one, other in zip(together, [nlp(doc) for doc in docs()]):
        close(one, other)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 50)
    monkeypatch.setattr("spacy_luke.pipeline.entity_task.MAX_WORDS", 30)
    for one, other in zip(together, nlp.pipe(docs(), batch_size=8)):
        close(one, other)


def test_documents_with_many_queries_are_read_in_small_groups(trained, monkeypatch):
    docs = [asked(trained, *ANSWERS), asked(trained), asked(trained, *ANSWERS)]
    expected = list(trained.pipe([doc.copy() for doc in docs]))
    pipe, parts = trained.get_pipe("luke_cloze"), []
    part = pipe._part
    monkeypatch.setattr(pipe, "_part", lambda x, a, b: parts.append((a, b)) or part(x, a, b))
    words = len(docs[0])
    one_by_one = [(0, 1), (1, 2), (2, 3)]
    for most, wanted in ((11, []), (6, [(0, 2), (2, 3)]), (5, one_by_one)):
        parts.clear()
        monkeypatch.setattr("spacy_luke.pipeline.entity_task.MAX_WORDS", most * words)
        for one, other in zip(expected, trained.pipe([doc.copy() for doc in docs]), strict=True):
            close(one, other)
        assert parts == wanted


def test_it_has_no_labels(untrained):
    pipe = untrained.get_pipe("luke_cloze")
    assert pipe.labels == () and not pipe.is_resizable
    with pytest.raises(ConfigError, match="has no labels"):
        pipe.add_label("X")


def test_settings_are_checked(bert_dir):
    for model in ({"mode": "x"}, {"stride": 0}, {"max_query_pieces": 3}):
        with pytest.raises((ConfigError, ValueError)):
            make(bert_dir, model=model)


@pytest.mark.parametrize("mode", ["unmarked", "markers"])
def test_a_long_query_leaves_half_of_a_short_window_for_the_passage(bert_dir, caplog, mode):
    nlp = make(bert_dir, encoder={"window": 24}, model={"mode": mode, "stride": 8})
    nlp.initialize()
    doc = nlp(asked(nlp, f"{FILLER * 10}@placeholder {FILLER * 10}", "@placeholder lived ."))
    assert [len(x.candidates) for x in doc._.completions] == [5, 5]
    assert "1 of 2 queries are longer than max_query_pieces (90) or half a window" in caplog.text
    query = nlp.get_pipe("luke_cloze").predict([doc])[0]
    model = nlp.get_pipe("luke_cloze").model
    windows = scorer_of(model).place(encoder_below(model), query).windows
    assert windows.lengths[0] == 12 and windows.sizes().max() <= 26
    # The gap is among the pieces that are left.
    mask = windows.tokenizer.mask_id
    assert mask in windows.questions.ids[: windows.questions.piece_offsets[1]]


def test_it_is_evaluated_with_gold_entities_and_their_links(trained, tmp_path):
    (example,) = make_examples(trained)
    gold = example.reference
    gold.ents = [Span(gold, a, b, "X", kb_id="1" if a in (0, 14) else "") for a, b in ENTS]
    DocBin(docs=[gold], store_user_data=True).to_disk(tmp_path / "gold.spacy")
    (loaded,) = load_examples(tmp_path / "gold.spacy", trained)
    assert len(loaded.predicted._.queries) == 5 and not has_completions(loaded.predicted)
    scores = evaluate(trained, [loaded])
    assert scores["gold_cloze_queries"] == 5
    # Ada and Babbage are one entity, so the text may be that of either.
    assert scores["gold_cloze_em"] >= 0.8


# Files, published models


def test_a_saved_pipeline_completes_alike(trained, tmp_path):
    trained.to_disk(tmp_path / "nlp")
    before = trained(asked(trained, *ANSWERS))
    loaded = spacy.load(tmp_path / "nlp")
    close(before, loaded(asked(loaded, *ANSWERS)))
    again = spacy.blank("en")
    again.add_pipe("luke_cloze")
    again.from_bytes(trained.to_bytes())
    close(before, again(asked(again, *ANSWERS)))
    stored = DocBin(docs=[before], store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(stored).get_docs(loaded.vocab)
    close(before, doc)


def test_other_processes_complete_alike(trained):
    docs = [asked(trained, *ANSWERS) for _ in range(4)]
    expected = trained(asked(trained, *ANSWERS))
    for doc in trained.pipe(docs, n_process=2, batch_size=2):
        close(expected, doc)


def test_a_marked_component_is_exported_and_comes_back(luke_dir, tmp_path):
    nlp = make(luke_dir, model={"mode": "markers"}, encoder={"tokenization": "mentions"})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 5)
    assert export_component(nlp, tmp_path / "out") == "LukeForEntitySpanQA"
    again = import_checkpoint(str(tmp_path / "out"), "en")
    assert again.pipe_names == ["luke_cloze"]
    close(nlp(asked(nlp, *ANSWERS)), again(asked(again, *ANSWERS)))
    export_component(again, tmp_path / "second")
    same(tensors(tmp_path / "out"), tensors(tmp_path / "second"))


def test_an_unmarked_component_has_no_published_form(untrained, tmp_path):
    with pytest.raises(ConfigError, match="luke_cloze has no published form: .* mode unmarked"):
        export_component(untrained, tmp_path / "out", "luke_cloze")


def test_the_component_leaves_gold_documents_alone(trained):
    (example,) = make_examples(trained)
    trained.evaluate([example])
    assert has_completions(example.reference) and best(example.reference) == [*ANSWERS.values()]
