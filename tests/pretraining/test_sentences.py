"""Sentences by rules on text."""

import time

import pytest
import spacy

from benchmarks.sentences import read_paragraphs
from spacy_luke.pretraining.sentences import sentence_starts

PARAGRAPHS = read_paragraphs()

# Not solved: (missed, wrong) boundaries.
UNSOLVED = {
    "da": (1, 0),  # a number before a period may be an ordinal: "Gade nr. 5. Kommer"
    "pl": (1, 0),
    "cs": (1, 0),
    "zh": (0, 1),  # a quotation within a sentence: “你来吗？”她问。
    "uk": (0, 1),  # an abbreviation that is not in the table: "Див. рис."
}


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_sentences_of_a_language(language):
    text, gold = PARAGRAPHS[language]
    starts = set(sentence_starts(text, language))
    missed, wrong = set(gold) - starts, starts - set(gold)
    around = [text[max(0, x - 15) : x + 10] for x in sorted(missed | wrong)]
    assert (len(missed), len(wrong)) == UNSOLVED.get(language, (0, 0)), around


def sentences(text: str, language: str = "en") -> list[str]:
    starts = sentence_starts(text, language)
    return [text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)])]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", [""]),
        (" . ", ["."]),
        ("...", ["..."]),
        ("Well... yes. Wait... No?! (Yes.) [No.] End", None),
        ("See Acme.com or v1.2.3 now", ["See Acme.com or v1.2.3 now"]),
        ("No. 5 is alive. He said no. Then he left.", None),
        ("1. First", ["1. First"]),
        ("At 5 p.m. Then at 6 p.m. in Rome.", ["At 5 p.m.", "Then at 6 p.m. in Rome."]),
        ("J. R. R. Tolkien met C. S. Lewis.", ["J. R. R. Tolkien met C. S. Lewis."]),
    ],
)
def test_periods(text, expected):
    if expected is None:
        expected = {
            "W": ["Well... yes.", "Wait...", "No?!", "(Yes.)", "[No.]", "End"],
            "N": ["No. 5 is alive.", "He said no.", "Then he left."],
        }[text[0]]
    assert sentences(text) == expected


def test_an_unknown_language_and_the_code_of_a_wiki():
    assert sentences("Dr. Ada. Eda.", "qqq") == ["Dr. Ada.", "Eda."]
    assert sentences("Den 3. Mai. Ja.", "no") == sentences("Den 3. Mai. Ja.", "nb")
    assert sentences("來。去。", "zh-yue") == ["來。", "去。"]


def test_rules_take_a_small_part_of_the_time_of_tokens():
    texts = [PARAGRAPHS["en"][0]] * 300
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    list(nlp.pipe(texts[:2]))
    start = time.process_time()
    list(nlp.pipe(texts))
    by_tokens = time.process_time() - start
    start = time.process_time()
    for text in texts:
        sentence_starts(text, "en")
    assert (time.process_time() - start) * 3 < by_tokens


def test_time_is_linear_in_the_text():
    start = time.process_time()
    for mark in (". ", "a.", "。", "«.»", "\u0e01 "):
        sentence_starts(mark * 50_000, "th")
    assert time.process_time() - start < 5
