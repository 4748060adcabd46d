"""luke_linker: what it writes, how it scores, and what it does with unusual mentions."""

import shutil
from threading import Thread

import numpy as np
import pytest
import spacy
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.errors import ConfigError
from spacy_luke.kb.entity import NOT_GIVEN, Entity
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.layers.encoder_run import EncoderRun
from spacy_luke.layers.task_layer import encoder_below
from spacy_luke.layers.text_vectors import text_vectors
from spacy_luke.layers.token_vectors import encode_pieces
from spacy_luke.model.candidate_head import NAME_SHARE
from spacy_luke.pipeline import entity_task
from spacy_luke.pipeline.entity_vectors import find_encoder, make_vectors
from spacy_luke.pipeline.links import spans_to_link, write_links
from tests.kb.conftest import build
from tests.pipeline.linker_data import (
    RECORDS,
    TEXTS,
    linked,
    links,
    make_docs,
    make_examples,
    make_linker,
)


@pytest.fixture
def nlp(bert_dir, tmp_path):
    return make_linker(bert_dir, tmp_path / "kb")


def test_mentions_are_linked_and_have_scored_candidates(nlp):
    docs = linked(nlp)
    known = {"city", "band", "ada", "kyoto", "NIL"}
    for doc in docs:
        for ent in doc.ents:
            candidates = ent._.candidates
            scores = [score for _, score in candidates]
            assert ent.kb_id_ in known and scores == sorted(scores, reverse=True)
            assert ent.label_ == "X" and sum(scores) <= 1 + 1e-6
            if ent.kb_id_ != "NIL":
                assert candidates[0][0] == ent.kb_id_
    assert {x for x, _ in docs[0].ents[0]._.candidates} == {"city", "band"}
    assert docs[0].ents[1].kb_id_ == "NIL" and docs[0].ents[1]._.candidates == ()  # Japan
    assert docs[2].ents[0].kb_id_ == "ada"


def test_an_untrained_score_is_the_sum_of_log_prior_and_cosines(nlp, bert_dir, tmp_path):
    (doc,) = linked(nlp, TEXTS[3:4])  # one sentence: it has no sentence starts, and is one
    encoder = encoder_below(nlp.get_pipe("luke_linker").model)
    texts = ["Tokyo: the capital of Japan", "Tokyo (band): a band that sang songs"]
    vectors = text_vectors(encoder, [nlp.make_doc(x) for x in texts])
    with EncoderRun(encoder, [doc], is_train=False) as run:
        pieces, states = encode_pieces(run, [doc])
    states = states.numpy()
    a, b = pieces.token_starts[3], pieces.token_ends[3]

    def unit(x):
        return x / np.linalg.norm(x)

    cosines = vectors @ unit(states[a:b].mean(0)) + vectors @ unit(states.mean(0))
    logits = np.append(np.log([0.6, 0.4]) + cosines / 0.03, 0.0)
    expected = np.exp(logits) / np.exp(logits).sum()
    scores = dict(doc.ents[0]._.candidates)
    assert [scores["city"], scores["band"]] == pytest.approx(expected[:2], abs=1e-4)


def test_what_the_cosine_of_a_counted_name_lacks_counts_less(bert_dir, tmp_path):
    """Names alone: the prior of Tokyo is known, that of Kyoto was not counted."""
    names = {"Tokyo": ("Tokyo", "Japan and songs"), "Kyoto": ("Kyoto", "She disagreed")}
    records = [
        {"id": name, "name": name, "aliases": {alias: n} if alias == "Tokyo" else [alias]}
        for alias, pair in names.items()
        for name, n in zip(pair, (6, 4))
    ]
    texts = [("Tokyo is large .", [(0, 1, "")]), ("She sang in Kyoto .", [(3, 4, "")])]
    nlp = make_linker(bert_dir, tmp_path / "kb", records, texts=())
    docs, pipe = make_docs(nlp, texts), nlp.get_pipe("luke_linker")
    query, scores = pipe.predict(docs)
    encoder = encoder_below(pipe.model)
    with EncoderRun(encoder, docs, is_train=False) as run:
        pieces, states = encode_pieces(run, docs)
    for i, (token, alias) in enumerate(((0, "Tokyo"), (len(docs[0]) + 3, "Kyoto"))):
        vectors = text_vectors(encoder, [nlp.make_doc(x) for x in names[alias]])
        mention = states[pieces.token_starts[token] : pieces.token_ends[token]].numpy().mean(0)
        cosines = vectors @ (mention / np.linalg.norm(mention))
        prior = np.log([0.6, 0.4] if alias == "Tokyo" else [0.5, 0.5])
        if alias == "Tokyo":
            cosines = cosines.max() - NAME_SHARE * (cosines.max() - cosines)
        order = [query.kb.tables.ids[x] for x in query.rows[i][:2]]
        expected = dict(zip(names[alias], prior + cosines / 0.03))
        assert scores.logits[i][1:3] == pytest.approx([expected[x] for x in order], abs=0.02)


def test_groups_of_documents_have_the_same_scores(bert_dir, tmp_path, monkeypatch):
    records = [{k: v for k, v in x.items() if k != "description"} for x in RECORDS]
    nlp = make_linker(bert_dir, tmp_path / "kb", records)
    pipe, docs = nlp.get_pipe("luke_linker"), make_docs(nlp, TEXTS[::-1])
    query, whole = pipe.predict(docs)
    monkeypatch.setattr(entity_task, "MAX_WORDS", 10)
    _, parts = pipe.predict(docs)
    assert 0 < query.prior_known.any(1).sum() < len(query.prior_known)
    assert np.array_equal(whole.rows, parts.rows)
    assert np.allclose(whole.logits, parts.logits, atol=1e-4)


def test_predictions_do_not_depend_on_the_batch(nlp):
    together = linked(nlp, TEXTS * 3)
    for text, doc in zip(TEXTS * 3, together):
        (alone,) = linked(nlp, [text], batch_size=1)
        assert links(alone) == links(doc)
        for one, other in zip(alone.ents, doc.ents):
            assert dict(one._.candidates) == pytest.approx(dict(other._.candidates), abs=1e-5)


def test_candidates_and_links_survive_docbin(nlp):
    docs = linked(nlp)
    data = DocBin(docs=docs, store_user_data=True, attrs=["ENT_IOB", "ENT_TYPE", "ENT_KB_ID"])
    read = list(DocBin().from_bytes(data.to_bytes()).get_docs(nlp.vocab))
    for doc, other in zip(docs, read):
        assert links(doc) == links(other)
        assert [x._.candidates for x in doc.ents] == [x._.candidates for x in other.ents]


def ent_id(doc):
    return doc.ents[0].kb_id_


def test_settings(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb")
    pipe = nlp.get_pipe("luke_linker")
    assert "city" in sum(map(links, linked(nlp)), [])
    _, scores = pipe.predict(make_docs(nlp, TEXTS[:1]))
    nil, *others = scores.logits[0].tolist()
    pipe.nil_bias = nil - max(others) + 1  # the best candidate is a little more probable
    (doc,) = linked(nlp, TEXTS[:1])
    score = doc.ents[0]._.candidates[0][1]
    for threshold, expected in ((score - 0.01, ent_id(doc)), (score + 0.01, "NIL")):
        pipe.threshold = threshold
        assert ent_id(linked(nlp, TEXTS[:1])[0]) == expected
    pipe.threshold = 0.0
    pipe.nil_bias = -1000.0
    assert set(sum(map(links, linked(nlp)), [])) == {"NIL"}
    pipe.nil_bias = 1000.0
    (doc,) = linked(nlp, [("Tokyo grew .", [(0, 1, "")])])
    assert links(doc) != ["NIL"]
    pipe.labels_discard = ["X"]
    (doc,) = linked(nlp, TEXTS[:1])
    assert links(doc) == ["", ""] and doc.ents[0]._.candidates is None
    pipe.labels_discard = []
    pipe.overwrite = False
    doc = make_docs(nlp, TEXTS[:1])[0]
    doc.ents = [Span(doc, 0, 1, "X", kb_id="mine"), Span(doc, 5, 6, "X")]
    assert links(nlp(doc)) == ["mine", "NIL"]
    pipe.overwrite = True
    assert links(nlp(doc))[0] in ("city", "band")


def test_the_prior_counts_if_it_is_included(bert_dir, tmp_path):
    logits = {}
    for included in (True, False):
        nlp = make_linker(bert_dir, tmp_path / "kb", incl_prior=included)
        query, scores = nlp.get_pipe("luke_linker").predict(make_docs(nlp, TEXTS[:1]))
        logits[included] = scores.logits[0]  # of "Tokyo": NIL, city, band
    assert logits[True] - logits[False] == pytest.approx([0.0, np.log(0.6), np.log(0.4)], abs=1e-3)


def test_agreement_of_types_counts(nlp):
    docs = [make_docs(nlp, TEXTS[:1], label)[0] for label in ("X", "loc", "ORG")]
    scores = [dict(nlp(doc).ents[0]._.candidates) for doc in docs]
    odds = [np.log(x["city"] / x["band"]) for x in scores]
    assert odds[1] - odds[0] == pytest.approx(2.0, abs=1e-3)
    assert odds[2] - odds[0] == pytest.approx(-2.0, abs=1e-3)
    doc = make_docs(nlp, TEXTS[:1])[0]
    doc.ents[0]._.types = {"org": 0.9}
    assert dict(nlp(doc).ents[0]._.candidates)["band"] == pytest.approx(scores[2]["band"])


def test_vectors_are_made_by_the_encoder_of_the_linker(nlp, luke_dir):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(luke_dir)}
    nlp.add_pipe("luke", config={"model": encoder}, first=True)
    own = encoder_below(nlp.get_pipe("luke_linker").model)
    assert find_encoder(nlp) is own and find_encoder(nlp, "luke") is not own


def test_links_are_written_on_the_mentions_that_were_read_after_tokens_were_merged():
    """spaCy moves the characters of a group's spans then, but not their tokens."""
    doc = Doc(spacy.blank("xx").vocab, words=["In", "New", "York", "Ada", "met", "Rome"])
    doc.spans["found"] = [Span(doc, 3, 4, "PER", span_id="s1"), Span(doc, 5, 6, "LOC", kb_id="Q1")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    mentions, _ = spans_to_link(doc, "found", ())
    ids = {(span.start, span.end): f"of {span.text}" for span in mentions}
    write_links(doc, ids, {"spans_key": "found", "labels_discard": (), "overwrite": False})
    found = [(x.text, x.label_, x.kb_id_, x.id_) for x in doc.spans["found"]]
    assert found == [("Ada", "PER", "of Ada", "s1"), ("Rome", "LOC", "Q1", "")]


def test_spans_that_a_merge_has_cut_leave_the_group_with_their_scores():
    doc = Doc(spacy.blank("xx").vocab, words=["Ada", "Lovelace", "met", "New", "York"])
    spans = [(0, 1), (0, 2), (3, 5)]
    doc.spans["found"] = [Span(doc, a, b, "X") for a, b in spans]
    scores, kinds = np.array([0.1, 0.2, 0.3]), ["first", "whole", "place"]
    doc.spans["found"].attrs.update(scores=scores, kinds=kinds, source="list", two=[1, 2])
    doc.spans["found"].attrs.update(pairs=(1, 2, 3), one=np.array(5.0))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    ids = {(0, 1): "ada", (2, 4): "ny"}
    write_links(doc, ids, {"spans_key": "found", "labels_discard": (), "overwrite": True})
    group = doc.spans["found"]
    assert [(x.text, x.kb_id_) for x in group] == [("Ada Lovelace", "ada"), ("New York", "ny")]
    attrs = dict(group.attrs)
    assert attrs.pop("scores").tolist() == [0.2, 0.3] and [x._.score for x in group] == [0.2, 0.3]
    assert attrs.pop("pairs") == [2, 3] and attrs.pop("one") == 5
    assert attrs == {"kinds": ["whole", "place"], "source": "list", "two": [1, 2]}


def test_a_spans_group_is_replaced_as_a_whole(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb", spans_key="sc")
    doc = nlp.make_doc("Ada Lovelace saw Tokyo")
    spans = [(0, 2, "PER"), (1, 2, "NAME"), (0, 2, "ORG"), (3, 4, "LOC")]
    doc.spans["sc"] = [Span(doc, a, b, x, span_id="n") for a, b, x in spans]
    doc.spans["sc"].attrs["scores"] = [0.1, 0.2, 0.3, 0.4]
    group = nlp(doc).spans["sc"]
    assert [(x.start, x.end, x.label_) for x in group] == spans
    assert [x.kb_id_ for x in group][:3] == ["ada"] * 3 and group[3].kb_id_ != ""
    assert {x.id_ for x in group} == {"n"} and group.attrs["scores"] == [0.1, 0.2, 0.3, 0.4]
    assert group.name == "sc" and not doc.ents
    assert group[0]._.candidates[0][0] == "ada"
    empty = nlp(nlp.make_doc("Ada"))
    assert "sc" not in empty.spans


def test_unusual_mentions(nlp, caplog):
    long = ("Tokyo " * 200).strip()
    texts = [
        ("Tokyo", [(0, 1, "")]),
        (long, [(0, 200, "")]),
        (" ".join(["Tokyo sang"] * 500), [(2 * i, 2 * i + 1, "") for i in range(500)]),
        ("x" * 5000, [(0, 1, "")]),
        ("nothing here", []),
    ]
    docs = linked(nlp, texts)
    assert links(docs[1]) == ["NIL"] and docs[1].ents[0]._.candidates == ()
    assert "longer than a window" in caplog.text
    assert len(links(docs[2])) == 500 and set(links(docs[2])) <= {"city", "band", "NIL"}
    assert links(docs[3]) == ["NIL"]
    assert links(nlp("")) == []
    doc = Doc(nlp.vocab, words=["Ada", "\n", "x"])
    doc.ents = [Span(doc, 0, 1, "X")]
    nlp(doc)


def test_two_ids_of_one_entity_and_long_aliases(bert_dir, tmp_path):
    twins = [{"id": x, "name": "Tokyo", "description": "the capital"} for x in ("two", "one")]
    alias = "Tokyo " * 40 + "sang"
    records = [*twins, {"id": "duke", "name": "Duke", "aliases": [alias]}]
    nlp = make_linker(bert_dir, tmp_path / "kb", records, texts=())
    nlp.get_pipe("luke_linker").nil_bias = 1000.0
    texts = [("Tokyo grew", [(0, 1, "")]), (f"the {alias} sang", [(1, 42, "")])]
    for _ in range(3):
        docs = linked(nlp, texts)
        assert docs[0].ents[0].kb_id_ == "two"  # equal scores: the first of the file
        assert [x for x, _ in docs[0].ents[0]._.candidates] == ["two", "one"]
        assert docs[1].ents[0].kb_id_ == "duke"


def test_a_knowledge_base_is_required(bert_dir, tmp_path):
    config = {"model": {"encoder": {"name": str(bert_dir)}}}
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("luke_linker", config=config)
    with pytest.raises(ConfigError, match="knowledge base of luke_linker is empty"):
        nlp.initialize()
    with pytest.raises(ConfigError, match="needs a knowledge base of spacy-luke"):
        pipe.set_kb(lambda vocab: InMemoryLookupKB(vocab, 3))
    with pytest.raises(ConfigError, match="no labels"):
        pipe.add_label("A")


def test_another_knowledge_base_needs_no_training(nlp, tmp_path):
    before = [links(doc) for doc in linked(nlp)]
    build(tmp_path / "other", [{"id": "capital", "name": "Tokyo", "description": "the capital"}])
    pipe = nlp.get_pipe("luke_linker")
    pipe.set_kb(lambda vocab: MappedKB.open(tmp_path / "other", vocab))
    after = {x for doc in linked(nlp) for x in links(doc)}
    assert after <= {"capital", "NIL"} and "capital" in after
    pipe.set_kb(lambda vocab: MappedKB.open(tmp_path / "kb", vocab))
    assert [links(doc) for doc in linked(nlp)] == before


def test_entities_are_changed_by_one_call(nlp):
    before = [links(doc) for doc in linked(nlp)]
    pipe = nlp.get_pipe("luke_linker")
    old = pipe.kb
    new = Entity("new", "Japan", {"Japan": NOT_GIVEN})
    findings = pipe.edit_kb(add=[new], remove=["city", "band", "unheard"])
    assert any("unheard" in line for line in findings.lines())
    doc = nlp(make_docs(nlp, TEXTS[:1])[0])
    tokyo, japan = (dict(ent._.candidates) for ent in doc.ents)
    assert not tokyo.keys() & {"city", "band"} and list(japan) == ["new"]
    pipe.set_kb(lambda vocab: old)
    assert [links(doc) for doc in linked(nlp)] == before


def test_half_vectors_of_added_entities_are_those_that_are_saved(nlp, tmp_path):
    pipe = nlp.get_pipe("luke_linker")
    make_vectors(nlp, pipe.kb, half=True)
    pipe.edit_kb(add=[Entity("town", "Tokyo", {"Tokyo": 6.0}, "a large town of Japan", "LOC")])
    before = [candidates(doc) for doc in linked(nlp)]
    assert any("town" in x for found in before for x in found)
    nlp.to_disk(tmp_path / "half")
    assert [candidates(doc) for doc in linked(nlp)] == before
    assert [candidates(doc) for doc in linked(spacy.load(tmp_path / "half"))] == before


def candidates(doc):
    return [{x.id: round(x.score, 6) for x in ent._.candidates} for ent in doc.ents]


def test_edits_of_two_threads_are_both_made(nlp, monkeypatch):
    pipe = nlp.get_pipe("luke_linker")
    edited, others = MappedKB.edited, []

    def while_another_edits(self, add, remove, **settings):
        if not others:
            others.append(Thread(target=pipe.edit_kb, kwargs={"remove": ["band"]}))
            others[0].start()
            others[0].join(0.5)
        return edited(self, add, remove, **settings)

    monkeypatch.setattr(MappedKB, "edited", while_another_edits)
    pipe.edit_kb(remove=["city"])
    others[0].join()
    assert "city" not in pipe.kb and "band" not in pipe.kb and "kyoto" in pipe.kb


@pytest.mark.parametrize("ids", [["mine", ""], ["", "mine"]])
def test_a_mention_that_has_a_link_gets_no_other(bert_dir, tmp_path, ids):
    """Of spans with equal tokens, whatever their order."""
    nlp = make_linker(bert_dir, tmp_path / "kb", spans_key="sc", overwrite=False)
    doc = nlp.make_doc("Tokyo sang")
    doc.spans["sc"] = [Span(doc, 0, 1, label, kb_id=x) for label, x in zip("AB", ids)]
    doc = nlp(doc)
    assert [x.kb_id_ for x in doc.spans["sc"]] == ids
    assert doc.spans["sc"][0]._.candidates is None


def test_a_pipeline_whose_saved_knowledge_base_was_replaced_has_no_id_of_the_old_one(nlp, tmp_path):
    expected = {id for doc in linked(nlp) for ent in doc.ents for id, _ in ent._.candidates or ()}
    assert "city" in expected
    nlp.to_disk(tmp_path / "saved")
    folder = tmp_path / "saved" / "luke_linker" / "kb"
    shutil.rmtree(folder)
    others = [{"id": "town", "name": "Tokyo", "description": "a town"}, *RECORDS[2:]]
    build(folder, others)
    loaded = spacy.load(tmp_path / "saved")
    docs = linked(loaded)
    assert links(docs[1]) in (["town"], ["NIL"]) and len(docs[1].ents[0]._.candidates) == 1
    found = {id for doc in docs for ent in doc.ents for id, _ in ent._.candidates or ()}
    assert found <= {"town", "ada", "kyoto", "NIL"}


def test_an_untrained_linker_needs_no_examples(bert_dir, tmp_path):
    build(tmp_path / "kb", RECORDS)
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    linker = nlp.add_pipe("luke_linker", config={"model": {"encoder": encoder}})
    linker.set_kb(lambda vocab: MappedKB.open(tmp_path / "kb", vocab))
    linker.initialize(nlp=nlp)
    expected = list(map(links, linked(make_linker(bert_dir, tmp_path / "other"))))
    assert list(map(links, linked(nlp))) == expected


def test_predictions_belong_to_the_knowledge_base_that_they_were_made_with(nlp):
    pipe = nlp.get_pipe("luke_linker")
    docs = make_docs(nlp)
    prediction = pipe.predict(docs)
    examples = make_examples(nlp)
    loss, _ = pipe.get_loss(examples, prediction)
    first = Entity("aaa", "Aaa", {"Aaa": 1.0})
    other = pipe.kb.edited(add=[first], remove=["city", "band"])
    pipe.set_kb(lambda vocab: other)
    pipe.set_annotations(docs, prediction)
    assert docs[2].ents[0].kb_id_ == "ada"
    assert {x for doc in docs for x in links(doc)} <= {"city", "band", "ada", "kyoto", "NIL"}
    assert pipe.get_loss(examples, prediction)[0] == loss


def test_spans_with_equal_tokens_are_one_mention_with_all_labels(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb", spans_key="sc", labels_discard=["DATE"])
    scores = []
    for labels in (["LOC", "DATE", "ORG"], ["DATE", "ORG", "LOC"]):
        doc = nlp.make_doc("Tokyo grew")
        doc.spans["sc"] = [Span(doc, 0, 1, x, kb_id="mine" * (x == "DATE")) for x in labels]
        group = nlp(doc).spans["sc"]
        assert [x.kb_id_ == "mine" for x in group] == [x == "DATE" for x in labels]
        scores.append(group[0]._.candidates)
    assert scores[0] == scores[1]


def test_a_mention_that_keeps_its_link_keeps_its_candidates(nlp):
    nlp.get_pipe("luke_linker").overwrite = False
    doc = make_docs(nlp, TEXTS[:1])[0]
    doc.ents = [Span(doc, 0, 1, "X", kb_id="mine")]
    doc.ents[0]._.candidates = [("mine", 1.0)]
    doc = nlp(doc)
    assert links(doc) == ["mine"] and doc.ents[0]._.candidates == (("mine", 1.0),)


def test_vectors_of_another_text_are_not_used_without_a_word(nlp, bert_dir, tmp_path, caplog):
    make_vectors(nlp, nlp.get_pipe("luke_linker").kb, text="name")
    linked(nlp)
    assert (
        "made of another text (name) than the component's entity_text (description)" in caplog.text
    )
    caplog.clear()
    other = make_linker(bert_dir, tmp_path / "other", entity_text="name")
    make_vectors(other, other.get_pipe("luke_linker").kb, text="name")
    linked(other)
    assert "another text" not in caplog.text


def test_the_text_of_entities_can_be_changed(nlp, bert_dir, tmp_path):
    before = [x._.candidates for x in linked(nlp)[0].ents]
    nlp.get_pipe("luke_linker").entity_text = "name"
    after = [x._.candidates for x in linked(nlp)[0].ents]
    other = make_linker(bert_dir, tmp_path / "other", entity_text="name")
    assert after == [x._.candidates for x in linked(other)[0].ents] != before


@pytest.mark.parametrize(
    "name, value", [("temperature", 1.0), ("similarity", 0.5), ("rows", False)]
)
def test_settings_that_a_head_has_in_it_cannot_be_changed_at_loading(
    bert_dir, tmp_path, name, value
):
    make_linker(bert_dir, tmp_path / "kb").to_disk(tmp_path / "nlp")
    with pytest.raises(ConfigError, match=f"luke_linker.model.{name} is {value}"):
        spacy.load(tmp_path / "nlp", config={f"components.luke_linker.model.{name}": value})
