"""Tokens to pieces: what each token gets, by both rules."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_luke.inputs.alignment import MAX_TOKEN_PIECES, align, ranges
from spacy_luke.inputs.shapes import LOWER, MIXED, TITLE, UNCASED, UPPER, word_shape

TOKENIZERS = ["bpe", "wordpiece", "unigram"]
TEXTS = [
    "Tokyo is the capital of Japan.",
    "",
    "two  spaces   and\ttabs \n lines",
    " leading and trailing ",
    "👩‍👩‍👧 at 東京 cafe\u0301 naïve",
    "שלום עולם مرحبا بالعالم",
    "   ",
    "\n",
    "\u200b\u2028\u00a0x",
]
fixtures_are_constant = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return request.getfixturevalue(request.param)


def no_spans(docs):
    return [np.zeros((0, 2), dtype=np.int64) for _ in docs]


def check(pieces, docs):
    """The arrays fit the documents and each other."""
    assert pieces.token_offsets.tolist() == [0, *np.cumsum([len(doc) for doc in docs])]
    assert pieces.piece_offsets[-1] == len(pieces.ids)
    assert len(pieces.token_starts) == len(pieces.token_ends) == pieces.token_offsets[-1]
    assert (pieces.token_starts <= pieces.token_ends).all()
    for i in range(pieces.n_docs):
        a, b = pieces.token_offsets[i : i + 2]
        low, high = pieces.piece_offsets[i : i + 2]
        starts, ends = pieces.token_starts[a:b], pieces.token_ends[a:b]
        assert ((low <= starts) & (ends <= high)).all()
        assert (np.diff(starts) >= 0).all()
        assert (np.diff(ends) >= 0).all()


@pytest.mark.parametrize("rule", ["tokens", "mentions"])
def test_a_batch_gives_what_its_documents_give_alone(rule, tokenizer, nlp):
    docs = [nlp(text) for text in TEXTS]
    spans = no_spans(docs)
    spans[0], spans[2] = np.asarray([[0, 2]]), np.asarray([[1, 3], [2, 4]])
    together = align(docs, tokenizer, rule, spans, shapes=True)
    check(together, docs)
    for i, doc in enumerate(docs):
        alone = align([doc], tokenizer, rule, [spans[i]], shapes=True)
        a, b = together.piece_offsets[i : i + 2]
        c, d = together.token_offsets[i : i + 2]
        assert together.ids[a:b].tolist() == alone.ids.tolist()
        assert together.shapes[a:b].tolist() == alone.shapes.tolist()
        assert (together.token_starts[c:d] - a).tolist() == alone.token_starts.tolist()
        assert (together.token_ends[c:d] - a).tolist() == alone.token_ends.tolist()


@given(text=st.text(max_size=40))
@fixtures_are_constant
def test_under_tokens_pieces_belong_to_one_token_each(text, bpe, wordpiece, unigram, nlp):
    doc = nlp(text)
    for tokenizer in (bpe, wordpiece, unigram):
        pieces = align([doc], tokenizer)
        check(pieces, [doc])
        assert ranges(pieces.token_starts, pieces.token_ends).tolist() == list(
            range(len(pieces.ids))
        )


@given(text=st.text(max_size=40), data=st.data())
@fixtures_are_constant
def test_under_mentions_pieces_do_not_cross_a_mention(text, data, bpe, nlp):
    doc = nlp(text)
    bounds = st.integers(0, len(doc))
    spans = data.draw(st.lists(st.tuples(bounds, bounds).map(sorted), max_size=3))
    spans = np.asarray([(a, b) for a, b in spans if a < b], dtype=np.int64).reshape(-1, 2)
    pieces = align([doc], bpe, "mentions", [spans])
    check(pieces, [doc])
    everything = "".join(bpe.model._tokenizer.id_to_token(i) for i in pieces.ids)
    assert byte_length(everything) == byte_length(doc[:].text, plain=True)
    for start, end in spans.tolist():
        a, b = pieces.token_starts[start], pieces.token_ends[end - 1]
        shown = "".join(bpe.model._tokenizer.id_to_token(i) for i in pieces.ids[a:b])
        first = doc[start].idx
        first -= first > 0 and doc.text[first - 1] == " "
        last = doc[end - 1].idx + len(doc[end - 1])
        last -= doc.text[last - 1] == " "
        assert byte_length(shown) == byte_length(doc.text[first:last], plain=True)


def byte_length(text, plain=False):
    """Byte-level pieces write each byte as one character."""
    return len(text.encode("utf8")) if plain else len(text)


@pytest.mark.parametrize("text", TEXTS)
def test_under_tokens_no_character_is_lost_by_byte_level_bpe(text, bpe, nlp):
    doc = nlp(text)
    pieces = align([doc], bpe)
    shown = bpe.model._tokenizer.decode(pieces.ids.tolist(), skip_special_tokens=False)
    # The space that spaCy stores with the last token has no token to join.
    assert shown == (doc.text[:-1] if len(doc) and doc[-1].whitespace_ else doc.text)


def test_a_token_s_pieces_do_not_depend_on_the_spans_under_tokens(tokenizer, nlp):
    doc = nlp(TEXTS[0])
    cut = align([doc], tokenizer, "tokens", [np.asarray([[1, 3]])])
    assert cut.ids.tolist() == align([doc], tokenizer).ids.tolist()


WORDS = ["Anna", "'s", "isn't", "(", "''", "…", "€", "$", "'", "Oslo"]
SPACED = {
    "text": "Anna Ġ's Ġisn't Ġ( Ġ'' Ġ… Ġ€ Ġ$ Ġ' ĠOslo",
    "words": "ĠAnna Ġ's Ġisn't Ġ( Ġ'' Ġ… Ġ€ Ġ$ Ġ' ĠOslo",
    "conll": "ĠAnna 's Ġisn't ( '' … Ġ€ $ ' ĠOslo",
}


@pytest.mark.parametrize("spaces", SPACED)
def test_which_tokens_have_a_space_before_them(spaces, bpe, nlp):
    doc = Doc(nlp.vocab, words=WORDS)
    pieces = align([doc], bpe, spaces=spaces)
    assert shown(bpe, pieces) == [x.replace("Ġ", " ") for x in SPACED[spaces].split(" ")]


@pytest.mark.parametrize("spaces", ["words", "conll"])
def test_a_space_of_the_text_stays_where_the_rule_says_so(spaces, bpe, nlp):
    """Tokens that touch in the text are parted, and white space is as it was."""
    doc = nlp("Anna's isn't\n  here .")
    found = shown(bpe, align([doc], bpe, spaces=spaces))
    close = spaces == "conll"
    expected = [" Anna", "'s" if close else " 's", " is", " n't", "\n ", " here"]
    assert found == [*expected, "." if close else " ."]


def shown(tokenizer, pieces):
    """The text of every token's pieces."""
    pairs = zip(pieces.token_starts.tolist(), pieces.token_ends.tolist())
    decode = tokenizer.model._tokenizer.decode
    return [decode(pieces.ids[a:b].tolist(), skip_special_tokens=False) for a, b in pairs]


def test_the_default_is_what_the_tokenizer_s_files_say(bpe, nlp, monkeypatch):
    doc = nlp(TEXTS[0])
    assert same(align([doc], bpe), align([doc], bpe, spaces="text"))
    monkeypatch.setattr(bpe, "prefix_space", True)
    for rule in ("tokens", "mentions"):
        assert same(align([doc], bpe, rule), align([doc], bpe, rule, spaces="words"))
    assert not same(align([doc], bpe), align([doc], bpe, spaces="text"))


def same(one, other):
    return one.ids.tolist() == other.ids.tolist() and (
        one.token_starts.tolist() == other.token_starts.tolist()
    )


@pytest.mark.parametrize("rule", ["tokens", "mentions"])
@pytest.mark.parametrize("fixture", ["wordpiece", "unigram"])
def test_where_spaces_make_no_difference_nothing_changes(rule, fixture, request, nlp):
    tokenizer, docs = request.getfixturevalue(fixture), [nlp(text) for text in TEXTS]
    cuts = no_spans(docs)
    cuts[0] = np.asarray([[2, 4]])
    expected = align(docs, tokenizer, rule, cuts, spaces="text")
    assert same(align(docs, tokenizer, rule, cuts, spaces="words"), expected)


@pytest.mark.parametrize("spaces", ["text", "words"])
def test_no_piece_is_made_of_the_space_after_the_last_token(spaces, bpe, nlp):
    made_of_words = Doc(nlp.vocab, words=["Tokyo", "is", "Japan"])
    assert made_of_words.text.endswith(" ")
    written = nlp("Tokyo is Japan")
    for cuts in ([[0, 1]], [[2, 3]], [[0, 3]], []):
        spans = [np.asarray(cuts, dtype=np.int64).reshape(-1, 2)]
        one = align([made_of_words], bpe, "mentions", spans, spaces=spaces)
        assert same(one, align([written], bpe, "mentions", spans, spaces=spaces))
        assert one.token_ends[-1] == len(one.ids)


def test_spans_outside_a_document_cut_nothing(bpe, nlp):
    doc = nlp(TEXTS[0])
    wrong = np.asarray([[-2, 1], [3, 3], [4, 2], [5, 99]])
    cut = align([doc], bpe, "mentions", [wrong])
    assert cut.ids.tolist() == align([doc], bpe, "mentions", no_spans([doc])).ids.tolist()
    assert cut.ids.tolist() == align([doc], bpe, "mentions").ids.tolist()


@pytest.mark.parametrize("rule", ["tokens", "mentions"])
def test_white_space_has_no_pieces_in_wordpiece(rule, wordpiece, nlp):
    doc = Doc(nlp.vocab, words=["Tokyo", " \n ", "Japan"], spaces=[False, False, False])
    pieces = align([doc], wordpiece, rule)
    assert pieces.token_starts[1] == pieces.token_ends[1] == pieces.token_ends[0]
    assert pieces.token_starts[2] == pieces.token_ends[1]
    assert pieces.token_ends[2] == len(pieces.ids)
    blank = align([nlp("  \n")], wordpiece, rule)
    assert len(blank.ids) == 0
    assert not blank.token_ends.any()


@pytest.mark.parametrize("rule", ["tokens", "mentions"])
def test_a_batch_may_be_empty_or_hold_nothing(rule, tokenizer, nlp):
    nothing = align([], tokenizer, rule, [], shapes=True)
    check(nothing, [])
    docs = [nlp(""), nlp("")]
    check(align(docs, tokenizer, rule, no_spans(docs), shapes=True), docs)


def test_a_very_long_token_keeps_its_first_pieces_and_is_counted(bpe, nlp):
    words = ["Tokyo", "xq" * 2500, "Japan"]
    docs = [Doc(nlp.vocab, words=words), nlp("Tokyo")]
    pieces = align(docs, bpe)
    check(pieces, docs)
    assert pieces.n_cut.tolist() == [1, 0]
    lengths = pieces.token_ends - pieces.token_starts
    assert lengths[1] == MAX_TOKEN_PIECES
    whole = bpe.encode_words([" " + words[1]])[0]
    a = pieces.token_starts[1]
    assert pieces.ids[a : a + MAX_TOKEN_PIECES].tolist() == whole[:MAX_TOKEN_PIECES].tolist()
    assert align(docs, bpe, "mentions").n_cut.tolist() == [0, 0]


def test_pieces_carry_the_shape_of_their_word(bpe, nlp):
    doc = Doc(nlp.vocab, words=["Tokyo", "iPhone", "USA", "city", "42"])
    pieces = align([doc], bpe, shapes=True)
    for i, shape in enumerate([TITLE, MIXED, UPPER, LOWER, UNCASED]):
        of_token = pieces.shapes[pieces.token_starts[i] : pieces.token_ends[i]]
        assert set(of_token.tolist()) == {shape}
    assert align([doc], bpe).shapes is None


@pytest.mark.parametrize(
    ("text", "shape"),
    [("city", LOWER), ("Tokyo", TITLE), ("A", TITLE), ("NATO", UPPER), ("iOS", MIXED)]
    + [("東京", UNCASED), ("42", UNCASED), ("", UNCASED), ("don't", LOWER)]
    + [("Schro\u0308der", TITLE), ("Vie\u0323\u0302t", TITLE), ("KO\u0308LN", UPPER)]
    + [("Donau\u00addampf", TITLE), ("\u200dcity", LOWER), ("\u0308", UNCASED)],
)
def test_shapes(text, shape):
    assert word_shape(text) == shape


def test_ranges_stand_one_after_the_other():
    assert ranges(np.asarray([3, 5, 9]), np.asarray([5, 5, 12])).tolist() == [3, 4, 9, 10, 11]
    assert ranges(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []
