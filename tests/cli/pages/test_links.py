"""Links on the page and in ``spacy luke evaluate``, with gold entities but without gold links."""

import pytest
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.cli.evaluate import evaluate
from spacy_luke.cli.loading import preset_gold
from spacy_luke.cli.pages.links import ShownCandidate, show_links
from spacy_luke.cli.pages.page import make_page
from spacy_luke.cli.pages.render import render
from spacy_luke.metrics.links import link_score
from tests.pipeline.linker_data import TEXTS, make_doc, make_linker


def plain_examples(nlp):
    """As commands read them: the predicted documents have no entities."""
    references = [make_doc(nlp, text, True) for text in TEXTS]
    return [Example(nlp.make_doc(doc.text), doc) for doc in references]


def linker(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb")
    nlp.get_pipe("luke_linker").nil_bias = 1000.0
    return nlp


def test_mentions_are_shown_with_candidates_and_descriptions(bert_dir, tmp_path):
    nlp = linker(bert_dir, tmp_path)
    gold = make_doc(nlp, TEXTS[1], True)  # Tokyo, the band
    doc = nlp(make_doc(nlp, TEXTS[1], False))
    kb = nlp.get_pipe("luke_linker").kb
    (link,) = show_links(doc, gold, kb)
    (first, _), (second, _) = doc.ents[0]._.candidates
    assert (link.mention, link.n_others) == ("Tokyo", 0)
    names = {"city": "Tokyo", "band": "Tokyo (band)"}
    assert link.name == names[first] and link.description == kb.entity(first).description
    assert link.kind == ("agreed" if first == "band" else "spurious")
    assert link.gold == ("" if first == "band" else "Tokyo (band)")
    assert [x.name for x in link.candidates] == [names[first], names[second]]
    assert [x.is_gold for x in link.candidates] == [first == "band", second == "band"]
    assert isinstance(link.candidates[0], ShownCandidate)


def test_kinds_of_links(bert_dir, tmp_path):
    nlp = linker(bert_dir, tmp_path)
    gold = [make_doc(nlp, TEXTS[i], True) for i in (2, 5, 0)]
    docs = list(nlp.pipe(make_doc(nlp, TEXTS[i], False) for i in (2, 5, 0)))
    kb = nlp.get_pipe("luke_linker").kb
    shown = [show_links(*pair, kb) for pair in zip(docs, gold)]
    assert [x.kind for x in shown[0]] == ["agreed", "agreed"]  # ada; London: NIL
    assert shown[0][1].name == shown[0][1].description == ""
    assert [(x.kind, x.gold) for x in shown[1]] == [("spurious", "NIL")]
    assert shown[2][1].kind == "plain"  # Japan is not annotated
    nlp.get_pipe("luke_linker").nil_bias = -1000.0
    (doc,) = nlp.pipe([make_doc(nlp, TEXTS[2], False)])
    assert [(x.kind, x.gold) for x in show_links(doc, gold[0], kb)] == [
        ("missed", "Ada Lovelace"),
        ("agreed", ""),
    ]


def test_mentions_that_were_not_found_and_links_of_no_mention_are_errors(bert_dir, tmp_path):
    nlp = linker(bert_dir, tmp_path)
    gold, doc = (make_doc(nlp, TEXTS[2], x) for x in (True, False))
    doc = nlp(doc)
    kb = nlp.get_pipe("luke_linker").kb
    ada, london = doc.ents
    doc.set_ents([Span(doc, london.start, london.end, "X", kb_id="city")])
    shown = show_links(doc, gold, kb)
    assert [(x.mention, x.kind, x.gold, x.is_found) for x in shown] == [
        (ada.text, "missed", "Ada Lovelace", False),
        (london.text, "spurious", "NIL", True),
    ]
    gold.set_ents([gold.ents[0]], default="outside")
    assert [(x.kind, x.gold) for x in show_links(doc, gold, kb)] == [
        ("missed", "Ada Lovelace"),
        ("spurious", "no mention"),
    ]
    counted = link_score([Example(doc, gold)])
    assert (counted["nel_end_to_end_p"], counted["nel_end_to_end_r"]) == (0.0, 0.0)
    gold.set_ents([gold.ents[0]], missing=[gold[london.start : london.end]], default="outside")
    assert [x.kind for x in show_links(doc, gold, kb)] == ["missed", "plain"]  # not annotated
    # A mention that is found with a label that is not linked.
    doc.set_ents([Span(doc, ada.start, ada.end, "DATE"), london], default="outside")
    shown = show_links(doc, gold, kb, labels_discard=["DATE"])
    assert [(x.mention, x.kind, x.is_found) for x in shown] == [
        (ada.text, "missed", True),
        (london.text, "plain", True),
    ]
    ruler = nlp.add_pipe("entity_ruler", before="luke_linker")
    ruler.add_patterns([{"label": "X", "pattern": "London"}])
    page = make_page(nlp, [Example(nlp.make_doc(gold.text), gold)], 0, "Test")
    assert "mention not found" in " ".join(render(page).split())
    assert page.documents[0].errors["links"] == 1


def test_the_page_counts_and_draws_links(bert_dir, tmp_path):
    nlp = linker(bert_dir, tmp_path)
    page = make_page(nlp, plain_examples(nlp), 0, "Links & more")
    (tally,) = page.tallies
    scores = nlp.evaluate(
        [Example(make_doc(nlp, text, False), make_doc(nlp, text, True)) for text in TEXTS]
    )
    assert (tally.what, page.entities) == ("links", "given")
    assert tally.total.f == pytest.approx(scores["nel_end_to_end_f"])
    html = render(page)
    assert "the capital of Japan" in html and "Links &amp; more" in html
    assert html.count('class="links"') == len(TEXTS)
    assert [curve.component for curve in page.curves] == ["luke_linker"]


def test_commands_do_not_give_gold_links_to_the_linker(bert_dir, tmp_path):
    nlp = linker(bert_dir, tmp_path)
    nlp.get_pipe("luke_linker").cfg.update(nil_bias=-1000.0, overwrite=False)
    scores = evaluate(nlp, plain_examples(nlp))
    assert scores["gold_nel_micro_f"] == 0.0 and scores["gold_nel_nil_r"] == 1.0


def test_gold_links_for_merged_entities_are_not_answers_of_a_linker_that_keeps_links(
    bert_dir, tmp_path
):
    nlp = linker(bert_dir, tmp_path)
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    scorer = {"@architectures": "spacy-luke.PairScorer.v1", "mode": "probe", "encoder": encoder}
    nlp.add_pipe("luke_relation", config={"model": scorer, "merge_entities": True})
    pipe = nlp.get_pipe("luke_linker")
    for overwrite, links in ((True, True), (False, False)):
        pipe.cfg["overwrite"] = overwrite
        examples = plain_examples(nlp)
        preset_gold(examples, nlp)
        assert any(ent.kb_id_ for eg in examples for ent in eg.predicted.ents) is links
