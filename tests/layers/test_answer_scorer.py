"""Scores of answers equal those of ``transformers``: pieces, types, entities, heads."""

import numpy as np
import pytest
import torch
from spacy.tokens import Doc, Span

from spacy_luke.layers.answer_scorer import AnswerScorer
from spacy_luke.layers.encoder import module_of
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of
from spacy_luke.pipeline.published import import_checkpoint

transformers = pytest.importorskip("transformers")

TEXT = "Ada Lovelace was born in London and worked with Charles Babbage."
QUESTION = "Who worked with Charles Babbage in Tokyo?"


def linked(nlp, text: str, *entities: tuple[str, str]) -> Doc:
    doc = nlp.make_doc(text)
    spans = []
    for mention, title in entities:
        start = text.index(mention)
        span = doc.char_span(start, start + len(mention))
        spans.append(Span(doc, span.start, span.end, label="X", kb_id=title))
    doc.ents = spans
    return doc


def scores_of(nlp, doc: Doc, question) -> tuple[Doc, np.ndarray]:
    doc._.questions = [question]
    _, scores = nlp.get_pipe("luke_qa").predict([doc])
    return scores


def at_tokens(doc: Doc, offsets, starts, ends) -> np.ndarray:
    """(1 + n_tokens, 2) of the reference's logits: [CLS], then each token's first and last piece.

    offsets: (n_pieces, 2) characters of the passage's pieces, None for all others."""
    rows = [(starts[0], ends[0])]
    for token in doc:
        stop = token.idx + len(token)
        own = [i for i, x in enumerate(offsets) if x and x[0] < stop and x[1] > token.idx]
        rows.append((starts[own[0]], ends[own[-1]]))
    return np.asarray(rows)


@pytest.mark.parametrize("kind", ["luke", "lite"])
@pytest.mark.parametrize("aware", [True, False])
def test_a_published_luke(make_checkpoint, kind, aware):
    model = "LukeForQuestionAnswering"
    path = make_checkpoint(kind, model, use_entity_aware_attention=aware)
    nlp = import_checkpoint(str(path), "en")
    scorer: AnswerScorer = nlp.get_pipe("luke_qa").model.attrs["settings"]
    assert scorer.entities == "known"
    linked_names = (("London", "London"), ("Charles Babbage", "Charles Babbage"))
    doc = linked(nlp, TEXT, *linked_names, ("Ada Lovelace", "nobody"))
    question = linked(nlp, QUESTION, ("Charles Babbage", "Charles Babbage"), ("Tokyo", "Tokyo"))
    scores = scores_of(nlp, doc, question)

    tokenizer = transformers.LukeTokenizer(
        *(str(path / x) for x in ("vocab.json", "merges.txt", "entity_vocab.json"))
    )
    known = [x.kb_id_ for x in (*question.ents, *doc.ents) if kind == "luke"]
    entities = {}
    if known:
        of = {x.kb_id_: (x.start_char, x.end_char) for x in doc.ents}
        of_question = {x.kb_id_: (x.start_char, x.end_char) for x in question.ents}
        titles = ["London", "Charles Babbage"]
        entities = {
            "entity_spans": [list(of_question.values())],
            "entities": [list(of_question)],
            "entity_spans_pair": [[of[x] for x in titles]],
            "entities_pair": [titles],
        }
    inputs = tokenizer([QUESTION], [TEXT], **entities, return_tensors="pt")
    network = transformers.LukeForQuestionAnswering.from_pretrained(path).eval()
    with torch.no_grad():
        output = network(**inputs)
    # What is read: the same pieces (spaCy cuts no text here beyond the mentions).
    words = scores.windows.words(0, 1)
    assert words.piece_ids.tolist() == inputs["input_ids"][0].tolist()
    if known:
        of_question, of_passages = (
            nlp.get_pipe("luke_qa")
            .model.attrs["settings"]
            .place(
                encoder_below(nlp.get_pipe("luke_qa").model), nlp.get_pipe("luke_qa")._query([doc])
            )[1:]
        )
        given, _ = scores.windows.entities(0, 1, of_question, of_passages, 30)
        theirs = inputs["entity_ids"][0].tolist()
        places = [[x for x in row if x >= 0] for row in inputs["entity_position_ids"][0].tolist()]
        ours = [list(range(a, b)) for a, b in zip(given.starts, given.ends)]
        # Ours are in the order of the text.
        assert sorted(zip(given.ids.tolist(), ours)) == sorted(zip(theirs, places))
    rows = scores.offsets[1]
    expected = np.stack([output.start_logits[0].numpy(), output.end_logits[0].numpy()], 1)
    first = np.asarray([0, *scores.tokens.first])
    last = np.asarray([0, *scores.tokens.last])
    assert rows == len(doc) + 1
    np.testing.assert_allclose(scores.logits[:, 0], expected[first, 0], atol=1e-5)
    np.testing.assert_allclose(scores.logits[:, 1], expected[last, 1], atol=1e-5)


def test_a_bert_with_token_types(make_checkpoint):
    path = make_checkpoint("bert", "BertForQuestionAnswering")
    nlp = import_checkpoint(str(path), "en", {"model": {"encoder": {"tokenization": "tokens"}}})
    reference = transformers.BertForQuestionAnswering.from_pretrained(path).eval()
    doc = nlp.make_doc(TEXT)
    scores = scores_of(nlp, doc, QUESTION)
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"), do_lower_case=True)
    inputs = tokenizer(QUESTION, TEXT, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0].tolist()
    words = scores.windows.words(0, 1)
    assert words.piece_ids.tolist() == inputs["input_ids"][0].tolist()
    assert words.types.tolist() == inputs["token_type_ids"][0].tolist()
    assert 0 < sum(words.types) < len(words.types)
    with torch.no_grad():
        output = reference(**inputs)
    of_passage = [x if kind and x[1] else None for x, kind in zip(offsets, words.types)]
    expected = at_tokens(doc, of_passage, output.start_logits[0], output.end_logits[0])
    np.testing.assert_allclose(scores.logits, expected, atol=1e-5)
    # Without the types it is another network.
    with torch.no_grad():
        inputs["token_type_ids"][:] = 0
        other = reference(**inputs).start_logits[0]
    assert (other - output.start_logits[0]).abs().max() > 1e-2


def test_a_roberta(make_checkpoint):
    path = make_checkpoint("roberta", "RobertaForQuestionAnswering")
    nlp = import_checkpoint(str(path), "en")
    scores = scores_of(nlp, nlp.make_doc(TEXT), QUESTION)
    tokenizer = transformers.RobertaTokenizer(
        *(str(path / x) for x in ("vocab.json", "merges.txt"))
    )
    inputs = tokenizer(QUESTION, TEXT, return_tensors="pt")
    assert scores.windows.words(0, 1).piece_ids.tolist() == inputs["input_ids"][0].tolist()
    with torch.no_grad():
        output = transformers.RobertaForQuestionAnswering.from_pretrained(path).eval()(**inputs)
    starts = output.start_logits[0].numpy()[[0, *scores.tokens.first]]
    ends = output.end_logits[0].numpy()[[0, *scores.tokens.last]]
    np.testing.assert_allclose(scores.logits, np.stack([starts, ends], 1), atol=1e-5)


@pytest.mark.parametrize("entities", ["all", "known", "none"])
def test_entities_enter_as_the_setting_says(make_checkpoint, entities):
    path = make_checkpoint("luke", "LukeForQuestionAnswering")
    nlp = import_checkpoint(str(path), "en", {"model": {"entities": entities}})
    pipe = nlp.get_pipe("luke_qa")
    doc = linked(nlp, TEXT, ("London", "London"), ("Ada Lovelace", "nobody"))
    doc._.questions = [QUESTION]
    _, of_question, of_passages = pipe.model.attrs["settings"].place(
        encoder_below(pipe.model), pipe._query([doc])
    )
    vocab = module_of(encoder_below(pipe.model)).entities
    expected = {"all": [vocab.mask_id, vocab.find("London")], "known": [vocab.find("London")]}
    assert of_passages.ids.tolist() == expected.get(entities, [])
    assert not len(of_question.ids)


def test_a_linked_entity_changes_the_answer_s_scores(make_checkpoint):
    nlp = import_checkpoint(str(make_checkpoint("luke", "LukeForQuestionAnswering")), "en")
    plain = scores_of(nlp, nlp.make_doc(TEXT), QUESTION).logits
    known = scores_of(nlp, linked(nlp, TEXT, ("London", "London")), QUESTION).logits
    unknown = scores_of(nlp, linked(nlp, TEXT, ("London", "nobody")), QUESTION).logits
    assert np.abs(known - plain).max() > 1e-2
    np.testing.assert_allclose(unknown, plain, atol=1e-6)


def test_a_short_window_cuts_long_questions(make_checkpoint, caplog):
    path = make_checkpoint("luke", "LukeForQuestionAnswering")
    encoder = {"window": 24, "overlap": 2}
    nlp = import_checkpoint(str(path), "en", {"model": {"encoder": encoder, "stride": 4}})
    scores = scores_of(nlp, nlp.make_doc(TEXT), "Tokyo " * 30)
    assert scores.windows.lengths.tolist() == [12] and scores.windows.sizes().max() <= 26
    assert "or half a window" in caplog.text


def test_the_head_is_read_from_the_checkpoint(make_checkpoint):
    path = make_checkpoint("luke", "LukeForQuestionAnswering")
    pipe = import_checkpoint(str(path), "en").get_pipe("luke_qa")
    others = encoder_of(pipe.model).others
    assert torch.equal(head_of(pipe.model).classifier.weight, others["qa_outputs.weight"])
    assert torch.equal(head_of(pipe.model).classifier.bias, others["qa_outputs.bias"])
