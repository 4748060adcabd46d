"""Tokenizers and documents."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("en")


@pytest.fixture(scope="session")
def bpe(luke_dir):
    return read_tokenizer(luke_dir)


@pytest.fixture(scope="session")
def wordpiece(bert_dir):
    return read_tokenizer(bert_dir)


@pytest.fixture(scope="session")
def unigram(xlmr_dir):
    return read_tokenizer(xlmr_dir)


@pytest.fixture
def make_doc(nlp):
    """A document of ``n`` words, with sentences that start at ``starts``."""

    def make(n: int, starts=(0,), word="to") -> Doc:
        flags = np.isin(np.arange(n), list(starts)).tolist()
        return Doc(nlp.vocab, words=[word] * n, sent_starts=flags if n else None)

    return make
