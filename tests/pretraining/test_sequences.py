"""Articles on pieces: links, sentences, sequences."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.pretraining.sequences import Article, SequenceLimits, cut_sequences, lay_out
from spacy_luke.vocab.pieces import PieceTokenizer
from spacy_luke.vocab.sentencepiece import SentencePieceModel

TEXT = "Ada lives in Tokyo. She met Kyoto.\n\nLondon is not in Japan! Tokyo is."


@pytest.fixture(scope="module", params=["bert_dir", "luke_dir"])
def tokenizer(request):
    return read_tokenizer(Path(request.getfixturevalue(request.param)))


def at_dots(texts):
    """Sentences begin after full stops and exclamation marks."""
    return [[0, *(i + 2 for i, c in enumerate(text[:-2]) if c in ".!")] for text in texts]


def laid_out(tokenizer, text=TEXT, links=(), max_mention=30, sentences=at_dots) -> Article:
    starts, ends = (np.asarray([x[i] for x in links], dtype=np.int64) for i in (0, 1))
    return lay_out(text, starts, ends, tokenizer, sentences, max_mention)


def spell(tokenizer: PieceTokenizer, ids) -> str:
    text = "".join(tokenizer.model._tokenizer.id_to_token(int(i)) for i in ids)
    return text.replace("Ġ", "").replace("##", "").lower()


def test_links_are_on_their_pieces(tokenizer):
    links = [(TEXT.index(x), TEXT.index(x) + len(x)) for x in ("Ada", "Tokyo", "Kyoto", "Japan")]
    article = laid_out(tokenizer, links=links)
    found = [spell(tokenizer, article.ids[a:b]) for a, b in zip(article.starts, article.ends)]
    assert found == ["ada", "tokyo", "kyoto", "japan"]
    assert article.links.tolist() == [0, 1, 2, 3] and not article.dropped


def test_sentences_and_paragraphs_begin_where_they_do(tokenizer):
    article = laid_out(tokenizer)
    parts = np.split(article.ids, article.cuts[1:])
    assert [spell(tokenizer, part) for part in parts] == [
        "adalivesintokyo.",
        "shemetkyoto.",
        "londonisnotinjapan!",
        "tokyois.",
    ]


def test_links_that_cut_pieces_or_are_too_long_are_counted(tokenizer):
    i = TEXT.index("Tokyo")
    article = laid_out(tokenizer, links=[(i, i + 5), (i + 6, i + 6)])
    assert article.links.tolist() == [0] and article.dropped["links not made of whole pieces"] == 1
    article = laid_out(tokenizer, links=[(0, 19)], max_mention=3)
    assert not len(article.links) and article.dropped["links with too many pieces"] == 1


@pytest.mark.parametrize("space", [" ", "\u00a0", "\t", "\u3000"])
@pytest.mark.parametrize("kind", ["bert", "luke", "mluke"])
def test_a_link_may_stand_behind_any_white_space(kind, space, make_checkpoint):
    tokenizer = read_tokenizer(make_checkpoint(kind))
    text = f"Ada lives in{space}Tokyo."
    start = text.index("Tokyo")
    article = laid_out(tokenizer, text, links=[(start, start + 5)])
    assert article.links.tolist() == [0] and not article.dropped


@pytest.fixture(scope="module")
def japanese(tmp_path_factory):
    """SentencePiece, whose pieces extend over the ends of words."""
    path = tmp_path_factory.mktemp("japanese") / "japanese.model"
    texts = ["京都は古い。", "東京は大きい。", "彼は東京と京都へ。", "彼は京都と東京へ。"] * 20
    with path.open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=file, vocab_size=24,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    ids = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 100}
    return PieceTokenizer(SentencePieceModel(path.read_bytes()), ids, {})


def test_a_link_of_whole_words_is_cut_out_of_a_piece(japanese):
    text = "京都は古い。\n彼は東京と京都へ。\n東京は大きい。"
    links = [(7, 8), (9, 11), (12, 14), (17, 19)]
    assert [text[a:b] for a, b in links] == ["彼", "東京", "京都", "東京"]
    plain = laid_out(japanese, text)
    assert japanese.encode_texts(["彼は東京と京都へ。"])[0][1][0].tolist() == [0, 2]  # one piece
    article = laid_out(japanese, text, links)
    assert article.links.tolist() == [0, 1, 2, 3] and not article.dropped
    space = japanese.id_of("▁")
    alone = [japanese.encode_texts([text[a:b]])[0][0].tolist() for a, b in links]
    found = [article.ids[a:b].tolist() for a, b in zip(article.starts, article.ends)]
    assert [[x for x in ids if x != space] for ids in found] == [ids[1:] for ids in alone]
    assert all(ids[0] == space for ids in alone)
    first = japanese.encode_texts([text.split("\n")[0]])[0][0]
    assert article.ids[: len(first)].tolist() == first.tolist() == plain.ids[: len(first)].tolist()
    inside_a_word = laid_out(japanese, "Tokyoite", [(0, 5)])
    assert inside_a_word.dropped["links not made of whole pieces"] == 1


def test_a_sentence_does_not_begin_inside_a_link(tokenizer):
    text = "In St. Louis we met."
    article = laid_out(tokenizer, text, [(3, 12)])
    assert article.cuts.tolist() == [0]


def test_a_text_without_words_has_no_pieces(tokenizer):
    for text in ("", "\n \n"):
        article = laid_out(tokenizer, text)
        assert not len(article.ids) and not list(cut_sequences(article, SequenceLimits(512, 128)))


def test_words_begin_where_the_tokenizer_begins_them(tokenizer):
    article = laid_out(tokenizer, "Ada disagreed")
    assert article.word_starts[0] and article.word_starts.sum() == 2


# Sequences


def article(n_pieces, cuts, links, words=None) -> Article:
    starts, ends = (np.asarray([x[i] for x in links], dtype=np.int64) for i in (0, 1))
    word_starts = np.ones(n_pieces, dtype=bool) if words is None else words
    return Article(
        np.arange(n_pieces), word_starts, np.asarray(cuts), starts, ends, np.arange(len(links))
    )


def test_sequences_hold_as_many_whole_sentences_as_fit():
    found = list(cut_sequences(article(10, [0, 3, 6, 8], []), SequenceLimits(8, 128)))
    assert found == [(0, 6), (6, 10)]


def test_a_sentence_that_is_too_long_is_cut_before_a_word():
    words = np.asarray([True, False, True, False, False, True, False, False])
    found = list(cut_sequences(article(8, [0], [], words), SequenceLimits(6, 128)))
    assert found == [(0, 2), (2, 5), (5, 8)]


def test_a_sentence_is_not_cut_inside_a_link():
    found = list(cut_sequences(article(8, [0], [(2, 5)]), SequenceLimits(6, 128)))
    assert found == [(0, 2), (2, 6), (6, 8)]


def test_sequences_hold_no_more_entities_than_they_may():
    links = [(i, i + 1) for i in range(6)]
    found = list(cut_sequences(article(6, [0], links), SequenceLimits(pieces=100, entities=4)))
    assert found == [(0, 4), (4, 6)]


@st.composite
def articles(draw):
    n = draw(st.integers(1, 60))
    cuts = draw(st.sets(st.integers(1, n), max_size=10))
    bounds = sorted(draw(st.sets(st.integers(0, n), max_size=16)))
    links = list(zip(bounds[::2], bounds[1::2]))
    words = np.asarray(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    inside = {i for a, b in links for i in range(a + 1, b)}
    return article(n, sorted({0, *(c for c in cuts if c < n and c not in inside)}), links, words)


@settings(max_examples=300, deadline=None)
@given(articles(), st.integers(8, 20), st.integers(1, 6))
def test_sequences_cover_every_piece_once_within_the_limits(article, pieces, entities):
    room = pieces - 2
    found = list(cut_sequences(article, SequenceLimits(pieces, entities)))
    assert [i for a, b in found for i in range(a, b)] == list(range(len(article.ids)))
    for a, b in found:
        assert b - a <= room
        assert np.searchsorted(article.starts, b) - np.searchsorted(article.starts, a) <= entities
    short = article.ends - article.starts <= room
    for start, end in zip(article.starts[short], article.ends[short]):
        assert any(a <= start and end <= b for a, b in found)
