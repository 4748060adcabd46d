"""Long documents in passages: relations and links stand below the text that they belong to."""

import spacy
from spacy.tokens import Doc, Span

from spacy_luke.cli.pages.document import View, show
from spacy_luke.cli.pages.passages import LEAST, MOST, SHORT, passage_ends
from tests.cli.pages.page_data import operations, texts

EN = spacy.blank("en")
SENTENCE = ["Ada", "met", "Babbage", "in", "London", "."]
VIEW = View({"doc._.relations": {}, "span._.candidates": {}}, None, (), given=False)


def long_doc(n, sentences=True, words=SENTENCE, related=()):
    """n sentences; in some of them, Ada knows Babbage."""
    doc = Doc(EN.vocab, words=words * n)
    for token in doc if sentences else ():
        token.is_sent_start = token.i % len(words) == 0
    firsts = [i * len(words) for i in related]
    doc.ents = [Span(doc, i + k, i + k + 1, "PER", kb_id="x") for i in firsts for k in (0, 2)]
    doc._.relations = [(doc[i : i + 1], doc[i + 2 : i + 3], "knows") for i in firsts]
    return doc


def passages(doc):
    return show(doc, Doc(doc.vocab, words=[x.text for x in doc]), [], None, 1, VIEW).passages


def test_a_short_document_is_one_passage():
    assert passage_ends(long_doc(3)) == [len(long_doc(3).text)]
    assert passage_ends(Doc(EN.vocab, words=[])) == [0]


def test_passages_of_a_long_document_end_with_sentences_and_keep_the_text():
    doc = long_doc(300)
    assert len(doc) > SHORT
    cut = passages(doc)
    assert "".join(piece.text for x in cut for piece in x.pieces) == doc.text
    parts = ["".join(piece.text for piece in x.pieces) for x in cut]
    assert all(x.startswith("Ada") and x.rstrip().endswith(".") for x in parts)
    assert all(LEAST <= len(x.split()) <= LEAST + len(SENTENCE) for x in parts[:-1])


def test_without_sentences_passages_end_with_lines_or_are_cut_between_words():
    plain = Doc(EN.vocab, words=SENTENCE * 300)
    ends = passage_ends(plain)
    assert {len(plain.text[a:b].split()) for a, b in zip(ends, ends[1:-1])} == {MOST}
    lines = Doc(EN.vocab, words=[*SENTENCE, "\n"] * 300)
    assert all(lines.text[end - 2 : end].strip(" ") == "\n" for end in passage_ends(lines))


def test_an_entity_is_not_cut():
    doc = Doc(EN.vocab, words=["Ada"] * 1000)
    doc.ents = [Span(doc, MOST - 2, MOST + 5, "PER")]
    assert passage_ends(doc)[0] == doc[MOST + 5].idx


def test_relations_and_links_are_in_the_passage_of_their_sentence():
    related = (3, 150, 299)
    cut = passages(long_doc(300, related=related))
    with_pictures = [x for x in cut if x.relations.pictures]
    assert len(with_pictures) == 3 and with_pictures[-1] is cut[-1]
    assert all(texts(x.relations.pictures[0])[0].count("Ada") == 1 for x in with_pictures)
    assert [x.mention for x in with_pictures[1].links] == ["Ada", "Babbage"]


def test_work_grows_with_the_length():
    """Four times the text and relations, five times the work."""

    def cost(n):
        doc = long_doc(n, related=range(0, n, 2))
        return operations(lambda: passages(doc))

    cost(10)  # imports
    assert cost(400) < 5 * cost(100)
