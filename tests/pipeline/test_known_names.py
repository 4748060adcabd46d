"""``known_names`` in a pipeline: its group, its entities, its files."""

import logging
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import registry

from spacy_luke.annotations.annotated import set_annotated
from spacy_luke.errors import ConfigError, CorpusError
from spacy_luke.names.listed_name import ListedName
from spacy_luke.names.name_list import NameList
from tests.kb.conftest import write_jsonl
from tests.pipeline.conftest import fit, make_examples

NAMES = [
    {"name": "Ada", "label": "PERSON", "id": "Q1", "aliases": ["Ada Lovelace"]},
    {"name": "New York", "label": "GPE"},
    {"name": "York", "label": "GPE", "id": "Q2"},
]
TEXT = "ada met Ada Lovelace in New York."


def make(names=NAMES, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names", config=config).set_names(names)
    return nlp


def spans(doc, key="known_names"):
    group = doc.spans[key]
    return [
        (span.text, span.label_, span.kb_id_, match)
        for span, match in zip(group, group.attrs["match"], strict=True)
    ]


FOUND = [
    ("ada", "PERSON", "Q1", "normalised"),
    ("Ada", "PERSON", "Q1", "exact"),
    ("Ada Lovelace", "PERSON", "Q1", "exact"),
    ("New York", "GPE", "", "exact"),
    ("York", "GPE", "Q2", "exact"),
]


def test_names_are_a_spans_group_with_label_id_and_match():
    doc = make()(TEXT)
    assert spans(doc) == FOUND and doc.ents == ()
    assert doc.spans["known_names"].name == "known_names"
    assert spans(make(spans_key="list", match="exact")(TEXT), "list") == FOUND[1:]
    assert [x[:2] for x in spans(make([*NAMES, {"name": "Ada", "label": "X"}], k=1)(TEXT))] == [
        x[:2] for x in FOUND
    ]


def test_a_span_ruler_in_its_place_writes_the_same_group():
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "known_names"})
    ruler.add_patterns([{"label": "GPE", "pattern": "York", "id": "Q2"}])
    docs = nlp(TEXT), make(NAMES[2:])(TEXT)
    (one,), (other,) = (doc.spans["known_names"] for doc in docs)
    assert (one.start, one.end, one.label_, one.id_) == (
        other.start, other.end, other.label_, other.id_,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["mcdonald", "'s"], "At McDonald's."),
        (["$", "5"], "It cost $5."),
        (["5", "mg"], "She took 5mg, then 5 mg."),
        (["covid", "-", "19"], "Covid-19 and covid - 19"),
        (["san", "francisco"], "in San Francisco"),
        (["st.", "john", "'s"], "at St. John's"),
        (["procter", "&", "gamble", "'s"], "Procter & Gamble's soap"),
        (["washington", ",", "d.c."], "in Washington, D.C."),
        (["boeing", "747"], "the Boeing747 and the Boeing 747"),
    ],
)
def test_patterns_of_several_tokens_are_found_where_a_span_ruler_finds_them(tokens, text):
    patterns = [{"label": "X", "pattern": [{"LOWER": x} for x in tokens]}]
    ruled = spacy.blank("en")
    ruled.add_pipe("span_ruler").add_patterns(patterns)
    ours, theirs = make(patterns)(text), ruled(text)
    found = {(x.start, x.end, x.label_) for x in ours.spans["known_names"]}
    expected = {(x.start, x.end, x.label_) for x in theirs.spans["ruler"]}
    # "Covid-19", which is one token, is found, too.
    assert expected and found - expected == ({(0, 1, "X")} if tokens[0] == "covid" else set())


def test_names_come_and_go_without_training(tmp_path):
    nlp = make()
    pipe = nlp.get_pipe("known_names")
    assert pipe.labels == ("PERSON", "GPE")
    pipe.add([ListedName("met", "VERB"), {"label": "X", "pattern": "in"}])
    pipe.add(write_jsonl(tmp_path / "more.jsonl", [{"name": "."}]), label="PUNCT")
    findings = pipe.remove(["New York"], ids=["Q1"], labels=["none"])
    assert findings.counts["names removed"] == 3
    assert findings.first["unknown labels, which were not removed"] == "none"
    assert [x[:2] for x in spans(nlp(TEXT))] == [
        ("met", "VERB"), ("in", "X"), ("York", "GPE"), (".", "PUNCT")
    ]  # fmt: skip
    findings = pipe.set_names(str(write_jsonl(tmp_path / "new.jsonl", NAMES[1:2])))
    assert findings.lines() == ["names: 1"]
    assert [x[0] for x in spans(nlp(TEXT))] == ["New York"]
    for bad in ([{"name": "Ada"}], [3], "absent.csv"):
        for change in (pipe.set_names, pipe.add):
            with pytest.raises(CorpusError):
                change(bad)
    assert [x[0] for x in spans(nlp(TEXT))] == ["New York"]
    pipe.set_names([])
    assert spans(nlp(TEXT)) == [] and nlp(TEXT).spans["known_names"].attrs == {"match": []}


def test_saved_lists_and_lists_of_another_language(tmp_path):
    NameList.build([ListedName("Ada Cats", "X")], "en").to_disk(tmp_path / "en")
    for lang, expected in (("en", ["ada cat"]), ("de", [])):
        nlp = spacy.blank(lang)
        pipe = nlp.add_pipe("known_names")
        assert pipe.set_names(tmp_path / "en").counts["names"] == 1
        assert pipe.names.lang == lang
        assert [x[0] for x in spans(nlp("ada cat"))] == expected


def test_a_component_of_another_language_is_normalised_again(tmp_path):
    english = make([{"name": "Ada Cats", "label": "X"}])
    pipe = english.get_pipe("known_names")
    pipe.to_disk(tmp_path)
    for read in (lambda x: x.from_disk(tmp_path), lambda x: x.from_bytes(pipe.to_bytes())):
        nlp = spacy.blank("de")
        other = read(nlp.add_pipe("known_names"))
        assert other.names.lang == "de" and spans(nlp("ada cat")) == []
        assert [x[0] for x in spans(nlp("ada cats"))] == ["ada cats"]
    assert [x[0] for x in spans(english("ada cat"))] == ["ada cat"]
    german = spacy.blank("de", vocab=True)
    shared = german.add_pipe("known_names", source=english)
    for _ in range(2):  # one component in both pipelines
        assert spans(german("ada cat")) == []
        assert [x[0] for x in spans(shared(english.make_doc("ada cat")))] == ["ada cat"]
    made = shared._others[1]["de"]
    spans(german("ada cats"))
    assert shared._others[1]["de"] is made and shared.names.lang == "en"
    shared.set_names([{"name": "Bo", "label": "X"}])
    assert [x[0] for x in spans(german("Bo saw ada cats"))] == ["Bo"]


def test_edits_in_threads_and_of_ids_that_are_numbers():
    pipe = make([{"name": f"Name {i}", "label": "X", "id": i} for i in range(500)]).get_pipe(
        "known_names"
    )
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: pipe.add([{"name": f"More {i}", "label": "Y"}]), range(4)))
    assert len(pipe.names) == 504
    assert pipe.remove(ids=[3, "4", ""]).counts["names removed"] == 2
    for wrong in ({"ids": [3.5]}, {"names": [None]}, {"labels": [1]}):
        with pytest.raises(CorpusError, match="not text"):
            pipe.remove(**wrong)
    assert len(pipe.names) == 502


def test_a_new_list_is_not_undone_by_an_edit_that_is_going_on(monkeypatch):
    pipe = make().get_pipe("known_names")
    edited, begun = NameList.edited, Event()

    def slow(self, *args, **kwargs):
        begun.set()
        sleep(0.2)
        return edited(self, *args, **kwargs)

    monkeypatch.setattr(NameList, "edited", slow)
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(pipe.add, [{"name": "Bo", "label": "X"}])
        assert begun.wait(10)
        pipe.set_names([{"name": "Cy", "label": "X"}])
        adding.result()
    assert [x.text for x in pipe.names] == ["Cy"]


def test_names_that_are_entities_have_scores():
    for annotated in (True, False):
        nlp = make(annotate_ents=annotated)
        (example,) = make_examples(nlp, [("Ada met Bo", [(0, 1, "PERSON"), (2, 3, "PERSON")])])
        scores = nlp.evaluate([example])
        assert scores.get("ents_f") == (pytest.approx(2 / 3) if annotated else None)
        assert ("ents_per_type" in scores) == annotated
    other = make_examples(nlp, [("Ada met Bo", [])])[0]
    set_annotated(other.reference, "ents", False)
    nlp = make(annotate_ents=True)
    assert nlp.evaluate([other])["ents_f"] is None


def test_a_component_without_names_warns_once(caplog):
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names")
    with caplog.at_level(logging.WARNING):
        assert len(nlp("Ada").spans["known_names"]) == len(nlp("Bo").spans["known_names"]) == 0
    assert [x.message for x in caplog.records] == [
        "known_names has no names: it finds nothing. See set_names."
    ]


def test_names_are_written_to_ents():
    nlp = make(annotate_ents=True)
    assert nlp.get_pipe("known_names").annotate_ents
    doc = nlp(TEXT)
    assert [(x.text, x.label_, x.kb_id_) for x in doc.ents] == [
        ("ada", "PERSON", "Q1"), ("Ada Lovelace", "PERSON", "Q1"), ("New York", "GPE", "")
    ]  # fmt: skip
    assert spans(doc) == FOUND
    both = make([{"name": "ADA", "label": "SHIP"}, {"name": "Ada", "label": "CAT"},
                 {"name": "Ada", "label": "DOG"}], annotate_ents=True)  # fmt: skip
    assert [x.label_ for x in both("Ada ADA").ents] == ["CAT", "SHIP"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_entities_before_names(overwrite):
    nlp = make(annotate_ents=True, overwrite=overwrite)
    doc = nlp.make_doc(TEXT)
    doc.set_ents([Span(doc, 1, 3, "OLD")], blocked=[doc[5:6]])
    doc = nlp.get_pipe("known_names")(doc)
    old = [("met Ada", "OLD")] if not overwrite else [("Ada Lovelace", "PERSON")]
    assert [(x.text, x.label_) for x in doc.ents] == [("ada", "PERSON"), *old, ("York", "GPE")]
    assert nlp.get_pipe("known_names")(doc).ents == doc.ents


def test_settings_are_validated():
    for settings in ({"match": "fuzzy"}, {"k": 0}, {"spans_key": ""}, {"overwrite": "no"}):
        with pytest.raises(ValueError, match=f"known_names.*{next(iter(settings))}"):
            make(**settings)
    pipe = make().get_pipe("known_names")
    with pytest.raises(ConfigError, match=r"known_names\.match is 'all'"):
        pipe.match = "all"


def test_initialize_reads_the_list_and_tells_what_is_lost(tmp_path, caplog):
    path = write_jsonl(tmp_path / "names.jsonl", [{"name": "York"}, {"name": ""}])
    nlp = spacy.blank("en")
    nlp.add_pipe("known_names")
    config = nlp.config.copy()
    config["initialize"]["components"]["known_names"] = {"names_path": str(path), "label": "GPE"}
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    with caplog.at_level(logging.WARNING):
        nlp.initialize()
    assert "names left out because they are empty: 1; names: 1" in caplog.text
    assert [x[:2] for x in spans(nlp(TEXT))] == [("York", "GPE")]
    nlp.config["initialize"]["components"] = {}
    nlp.initialize()
    assert [x[:2] for x in spans(nlp(TEXT))] == [("York", "GPE")]


def test_a_saved_pipeline_has_its_names(tmp_path):
    nlp = make(annotate_ents=True)
    nlp.get_pipe("known_names").match = "exact"
    nlp.to_disk(tmp_path / "a")
    loaded = spacy.load(tmp_path / "a")
    assert loaded.config["components"]["known_names"]["match"] == "exact"
    copies = [loaded, spacy.blank("en"), pickle.loads(pickle.dumps(nlp))]
    copies[1].add_pipe("known_names", config={"match": "exact"})
    copies[1].from_bytes(nlp.to_bytes())
    for copy in copies:
        assert spans(copy(TEXT)) == FOUND[1:] and len(copy(TEXT).ents) == 2
    loaded.to_disk(tmp_path / "b")
    for path in (tmp_path / "a" / "known_names" / "names").glob("*.npy"):
        assert os.path.samefile(path, tmp_path / "b" / "known_names" / "names" / path.name)
    loaded.get_pipe("known_names").add([{"name": "in", "label": "X"}])
    loaded.to_disk(tmp_path / "a")
    assert len(spans(spacy.load(tmp_path / "a")(TEXT))) == 5
    override = {"components": {"known_names": {"match": "normalised"}}}
    assert len(spans(spacy.load(tmp_path / "b", config=override)(TEXT))) == 5


def test_one_with_a_list_goes_back_to_what_was_saved(tmp_path, caplog):
    nlp = make()
    pipe = nlp.get_pipe("known_names")
    nlp.to_disk(tmp_path)
    before, found = dict(pipe.cfg), spans(nlp(TEXT))
    pipe.match = {"exact": "normalised"}.get(pipe.match, "exact")
    pipe.remove(["Tokyo"])
    nlp.from_disk(tmp_path)
    assert pipe.cfg == before and spans(nlp(TEXT)) == found and not caplog.text
    pipe.match = {"exact": "normalised"}.get(pipe.match, "exact")
    pipe.remove(labels=pipe.labels)
    assert not pipe.names
    nlp.from_disk(tmp_path)
    assert pipe.cfg == before and spans(nlp(TEXT)) == found and not caplog.text


def test_a_pipeline_saved_without_its_list(tmp_path, caplog):
    nlp = make()
    pipe = nlp.get_pipe("known_names")
    nlp.to_disk(tmp_path)
    pipe.to_disk(tmp_path / "alone", exclude=["names"])
    assert not (tmp_path / "alone" / "names").exists()
    pipe.to_disk(tmp_path / "again")
    pipe.to_disk(tmp_path / "again", exclude=["names"])  # nor is an earlier list left there
    assert not (tmp_path / "again" / "names").exists()
    pipe.from_disk(tmp_path / "alone", exclude=["names"])
    assert len(pipe.names) == 4
    pipe.from_bytes(pipe.to_bytes(exclude=["names"]))
    assert len(pipe.names) == 4
    with caplog.at_level(logging.WARNING):
        pipe.from_disk(tmp_path / "alone")
    assert "saved without its list: it has no names" in caplog.text
    assert spans(nlp(TEXT)) == []


def test_settings_are_not_read_where_they_are_excluded(tmp_path):
    nlp = make()
    pipe = nlp.get_pipe("known_names")
    pipe.to_disk(tmp_path / "whole")
    data, saved = pipe.to_bytes(), pipe.match
    pipe.match = other = {"exact": "normalised"}.get(saved, "exact")
    pipe.from_disk(tmp_path / "whole", exclude=["cfg"])
    pipe.from_bytes(data, exclude=["cfg"])
    pipe.from_bytes(make().get_pipe("known_names").to_bytes(exclude=["cfg"]))
    assert pipe.match == other and len(pipe.names) == 4
    pipe.to_disk(tmp_path / "list", exclude=["cfg"])
    assert [path.name for path in (tmp_path / "list").iterdir()] == ["names"]
    pipe.from_disk(tmp_path / "whole")
    assert pipe.match == saved


def test_batches_threads_and_processes_have_the_same_names():
    nlp = make()
    texts = [TEXT, "", "none", "York"] * 5
    expected = [spans(nlp(text)) for text in texts]
    assert [spans(doc) for doc in nlp.pipe(texts, batch_size=3)] == expected
    assert [spans(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=3)] == expected
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda text: spans(nlp(text)), texts * 20)) == expected * 20
    with nlp.memory_zone():
        assert [spans(doc) for doc in nlp.pipe(texts)] == expected


def test_docbin_and_bytes_keep_the_group():
    nlp = make()
    doc = nlp(TEXT)
    (copy,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    assert spans(copy) == spans(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == FOUND


def test_the_names_of_a_knowledge_base(tmp_path, kb_folder):
    nlp = make(kb_folder)
    assert spans(nlp("Ada was in paris")) == [
        ("Ada", "person", "Q1", "exact"), ("paris", "place", "Q2", "normalised")
    ]  # fmt: skip


@pytest.fixture
def kb_folder(tmp_path):
    from tests.kb.conftest import build

    build(tmp_path / "kb", [{"id": "Q1", "name": "Ada", "type": "person"},
                            {"id": "Q2", "name": "Paris", "type": "place"}])  # fmt: skip
    return tmp_path / "kb"


def test_names_before_a_model_that_keeps_entities(ner):
    """The recipe "ruler first"."""
    nlp = ner(overwrite=False)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 3)
    assert registry.has("factories", "known_names")
    alone = [(x.text, x.label_) for x in nlp("Ada Lovelace met the Meiji").ents]
    pipe = nlp.add_pipe("known_names", first=True, config={"annotate_ents": True})
    pipe.set_names([{"name": "Meiji", "label": "ERA", "id": "Q3"}])
    doc = nlp("Ada Lovelace met the Meiji")
    known = [(x.text, x.label_, x.kb_id_, x.ent_id_) for x in doc.ents]
    assert ("Meiji", "ERA", "Q3", "Q3") in known
    assert {(x.text, x.label_) for x in doc.ents} - {("Meiji", "ERA")} <= set(alone)
