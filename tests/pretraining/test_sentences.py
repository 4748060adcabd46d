"""Sentences by rules on text."""

import time

import pytest

from benchmarks.sentences import FILES, Paragraph, read_paragraphs
from spacy_luke.pretraining.sentences import sentence_starts

PARAGRAPHS = [paragraph for path in FILES for paragraph in read_paragraphs(path)]
ENGLISH = next(x.text for x in PARAGRAPHS if x.language == "en")

# Not solved: the beginnings of sentences that are missed (-) or wrong (+).
UNSOLVED = {
    # A number before a period may be an ordinal, and a letter an initial.
    "da": ["-Kommer"], "pl": ["-Przyszedł"], "cs": ["-Přišel"], "sr": ["-Долазиш"],
    "sk": ["-Prídeš"], "lv": ["-Vai"], "et": ["-Kas"], "is": ["-Kemurðu"], "tr": ["-M.Ö."],
    "de": ["-Dort", "-1945"], "fr": ["-Fin.", "+2", "+Voltaire."], "es": ["-¿Y", "-Fin."],
    "cy": ["-Diwedd."],
    # Small letters, and emoji without a mark before them.
    "en": ["-he", "-(See", "-He", "-Next.", "+Open", "-Vitamin", "-World", "-The", "+3", "+3",
           "-Done!!!", "-He"],
    # Names with marks, and quotations without one.
    "ja": ["+Japanは検", "+は歌手だ。3.", "-3.5％増えた"],
    # Abbreviations that no table has, or that end a sentence.
    "lt": ["-Pabaiga."], "it": ["+2"], "nl": ["-Einde."], "ro": ["+3.", "-Știai"],
    "ru": ["+2.", "-В"],
    "hr": ["-Dr.", "+Ana"], "vi": ["+Bách"], "ta": ["+ஜி."], "te": ["+టి."],
    # Spaces in Thai are boundaries.
    "th": ["+ก."],
}  # fmt: skip


def differences(paragraph: Paragraph) -> list[str]:
    """Missed and wrong boundaries, each with its next word."""
    language, text, gold = paragraph
    starts = set(sentence_starts(text, language))
    return [
        ("-" if x in gold else "+")
        + text[x : x + (20 if language != "ja" else 7)].split()[0].rstrip("?,")
        for x in sorted(starts ^ set(gold))
    ]


@pytest.mark.parametrize("language", sorted({x.language for x in PARAGRAPHS}))
def test_sentences_of_a_language(language):
    found = [y for x in PARAGRAPHS if x.language == language for y in differences(x)]
    assert found == UNSOLVED.get(language, [])


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
        ("1. Open it. 2. Close it. 3. Go.", ["1. Open it.", "2. Close it.", "3. Go."]),
        ("It ended. 1999. Then peace.", ["It ended.", "1999.", "Then peace."]),
        ("He met E.A. Poe. M.M. Smith left.", ["He met E.A. Poe.", "M.M. Smith left."]),
        ("It broke! eBay paid. iPods sold.", ["It broke!", "eBay paid.", "iPods sold."]),
        ("Yes! 😀 No. ❤️👍 Maybe", ["Yes! 😀", "No. ❤️👍", "Maybe"]),
        ("“Why?” — asked Ada. — Well!", ["“Why?” — asked Ada.", "— Well!"]),
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


@pytest.mark.parametrize(
    "language,text,expected",
    [
        ("ru", "Рис и т. д. Это всё. В 5 км. Тут.", ["Рис и т. д.", "Это всё.", "В 5 км.", "Тут."]),
        ("nl", "Hij kwam. 's Avonds ging hij.", ["Hij kwam.", "'s Avonds ging hij."]),
        ("hi", "वह है. डॉ. राम थे. रु. ३.५० है.", ["वह है.", "डॉ. राम थे.", "रु. ३.५० है."]),
        ("bo", "ཁོང་ཡིན། །མིན།", ["ཁོང་ཡིན། །", "མིན།"]),
        ("yo", "Àd. 5 ni. Ó lọ. 1999 ni.", ["Àd. 5 ni.", "Ó lọ.", "1999 ni."]),
        ("ko", "네. 3.14는 원주율이다. 끝.", ["네.", "3.14는 원주율이다.", "끝."]),
        ("pl", "Żył Jan Paweł II. Umarł.", ["Żył Jan Paweł II.", "Umarł."]),
        ("zh", "“你来吗？”她问。“不。”", ["“你来吗？”她问。", "“不。”"]),
    ],
)  # fmt: skip
def test_forms_of_a_language(language, text, expected):
    assert sentences(text, language) == expected


def test_time_is_linear_in_the_text():
    start = time.process_time()
    for mark in (". ", "a.", "。", "«.»", "\u0e01 "):
        sentence_starts(mark * 50_000, "th")
    assert time.process_time() - start < 5
