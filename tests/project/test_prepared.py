"""The encyclopedia as ``.spacy`` files: every mention, relation and type of its annotation."""

import json
import runpy
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from wasabi import Printer

from spacy_luke.annotations.questions import answer_offsets, question_texts
from spacy_luke.annotations.relations import get_relations
from spacy_luke.annotations.types import get_types

PROJECT = Path(__file__).parents[2] / "project"
ANNOTATIONS = PROJECT / "corpus" / "annotations.jsonl"
ARTICLES = {
    article["title"]: article
    for article in map(json.loads, ANNOTATIONS.read_text(encoding="utf8").splitlines())
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    out_dir = tmp_path_factory.mktemp("prepared")
    prepare = runpy.run_path(str(PROJECT / "scripts" / "encyclopedia.py"))["prepare"]
    prepare(ANNOTATIONS, out_dir, "en", Printer(no_print=True))
    vocab = spacy.blank("en").vocab
    bins = [DocBin().from_disk(path) for path in sorted(out_dir.glob("*.spacy"))]
    return [doc for doc_bin in bins for doc in doc_bin.get_docs(vocab)]


def test_every_mention_fits_the_tokens(docs: list[Doc]) -> None:
    assert len(docs) == len(ARTICLES)
    for doc in docs:
        mentions = ARTICLES[doc.user_data["title"]]["mentions"]
        assert [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents] == [
            (mention["start"], mention["end"], mention["type"]) for mention in mentions
        ]


def test_a_mention_without_an_article_is_judged_to_be_no_entity(docs: list[Doc]) -> None:
    for doc in docs:
        mentions = ARTICLES[doc.user_data["title"]]["mentions"]
        assert [ent.kb_id_ for ent in doc.ents] == [
            "NIL" if mention["article"] is None else mention["article"] for mention in mentions
        ]


def test_every_relation_is_between_its_mentions(docs: list[Doc]) -> None:
    total = 0
    for doc in docs:
        article = ARTICLES[doc.user_data["title"]]
        wanted = Counter(
            (doc.ents[relation["head"]], doc.ents[relation["tail"]], relation["label"])
            for relation in article["relations"]
        )
        found = Counter((r.head, r.tail, r.label) for r in get_relations(doc))
        assert found == wanted
        total += len(wanted)
    assert total == sum(len(article["relations"]) for article in ARTICLES.values())


def test_a_mention_has_the_types_of_its_article(docs: list[Doc]) -> None:
    for doc in docs:
        mentions = ARTICLES[doc.user_data["title"]]["mentions"]
        for ent, mention in zip(doc.ents, mentions, strict=True):
            if mention["article"] is None:
                assert get_types(ent) is None
            else:
                assert set(get_types(ent)) == set(ARTICLES[mention["article"]]["types"])


def test_every_question_has_its_answers(docs: list[Doc]) -> None:
    n_unanswerable = 0
    for doc in docs:
        questions = ARTICLES[doc.user_data["title"]]["questions"]
        assert question_texts(doc) == [question["question"] for question in questions]
        for offsets, question in zip(answer_offsets(doc), questions, strict=True):
            found = [(start, doc.text[start:end]) for start, end, _ in offsets.answers]
            assert found == [(answer["start"], answer["text"]) for answer in question["answers"]]
            assert offsets.no_answer == float(not found)
            n_unanswerable += not found
    assert n_unanswerable >= 15
