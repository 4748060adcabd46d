"""Tokenizers and documents."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_luke.vocab.pieces import PieceTokenizer


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("en")


@pytest.fixture(scope="session")
def bpe(luke_dir):
    return PieceTokenizer.from_directory(luke_dir)


@pytest.fixture(scope="session")
def wordpiece(bert_dir):
    return PieceTokenizer.from_directory(bert_dir)


@pytest.fixture(scope="session")
def unigram(xlmr_dir):
    return PieceTokenizer.from_directory(xlmr_dir)


@pytest.fixture
def make_doc(nlp):
    """A document of ``n`` words, with sentences that start at ``starts``."""

    def make(n: int, starts=(0,), word="to") -> Doc:
        flags = np.isin(np.arange(n), list(starts)).tolist()
        return Doc(nlp.vocab, words=[word] * n, sent_starts=flags if n else None)

    return make
