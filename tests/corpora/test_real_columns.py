"""Published corpora are read whole."""

import pytest

from spacy_luke.corpora.columns import read_columns
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from tests.conftest import DATA, blank, require_data

# file: sentences, words, entities (each B- tag of these clean IOB2 files begins one)
SIZES = {
    "wnut17/wnut17train.conll": (3394, 62730, 1975),
    "wnut17/emerging.dev.conll": (1009, 15733, 836),
    "wnut17/emerging.test.annotated": (1287, 23394, 1079),
    "crossner/ai/train.txt": (100, 3782, 532),
    "crossner/ai/dev.txt": (350, 10919, None),
    "crossner/literature/test.txt": (416, 16157, None),
    "crossner/politics/test.txt": (651, 27585, None),
}


@pytest.mark.parametrize("name", SIZES)
def test_no_sentence_word_or_entity_is_lost(name):
    path = DATA / name
    require_data(path)
    report = Report()
    for _ in read_columns(path, blank("en"), ConvertOptions(), report):
        pass
    begins = sum("\tB-" in line for line in path.read_text(encoding="utf-8").split("\n"))
    sentences, words, entities = SIZES[name]
    assert (report.sentences, report.tokens) == (sentences, words)
    assert sum(report.labels.values()) == begins == (entities or begins)
    assert report.scheme == "IOB2 (detected)"
    assert not report.events
