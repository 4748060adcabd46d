"""Words of texts in any script, and texts that occur as whole words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marisa_trie import Trie

from spacy_luke.kb.whole_words import MAX_CHARACTERS, is_whole, normalize_words, occurrences, words


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


def occurring(texts: list[str], text: str) -> list[tuple[int, str]]:
    return [(start, text[start:end]) for start, end, _ in occurrences(Trie(texts), text)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("New York-based", "New|York|-|based"),
        ("Parkinson's, C++ & snake_case 3.14", "Parkinson|'|s|,|C|+|+|&|snake_case|3|.|14"),
        ("cafe\u0301 i\u0307", "cafe\u0301|i\u0307"),  # marks belong to their letters
        ("Москва́ и Київ", "Москва́|и|Київ"),
        ("हिन्दी भाषा", "हिन्दी|भाषा"),
        ("می\u200cخواهم کتاب", "می\u200cخواهم|کتاب"),  # a joiner inside a word
        ("서울은 크다", "서울은|크다"),  # particles belong to their word
        ("東京は大きい", "東|京|は|大|き|い"),
        ("iPhoneケースとカバー2個", "iPhone|ケース|と|カバー|2|個"),
        ("ภาษาไทย", "ภ|า|ษ|า|ไ|ท|ย"),
        ("ខ្មែរ", "ខ្|មែ|រ"),
        ("", ""),
    ],
)
def test_words(text, expected):
    assert "|".join(cut(text)) == expected


def test_case_white_space_and_the_final_sigma_do_not_matter():
    assert normalize_words(" New\u00a0 YORK\n\tCity ") == "new york city"
    assert normalize_words("ΟΔΟΣ ΟΔΟΣ'Α") == normalize_words("οδος οδοσ'α")


@given(st.lists(st.text(st.sampled_from("aZ9ς.'-_ \u0301\u200d東カー่กé"), max_size=9), max_size=4))
def test_the_lower_case_of_parts_is_that_of_the_whole(parts):
    whole = normalize_words(" ".join(parts))
    assert whole == " ".join(x for x in map(normalize_words, parts) if x)


def test_texts_occur_as_whole_words_and_may_overlap():
    texts = ["new york", "york", "york city", "new", "y", "c++", "+"]
    assert occurring(texts, "new york city, newer c++") == [
        (0, "new"),
        (0, "new york"),
        (4, "york"),
        (4, "york city"),
        (21, "c++"),
        (22, "+"),
        (23, "+"),
    ]


def test_texts_occur_anywhere_in_scripts_without_spaces():
    assert occurring(["東京", "京都", "カ", "カバー"], "東京都のカバー") == [
        (0, "東京"),
        (1, "京都"),
        (4, "カバー"),
    ]


def test_the_longest_text_is_found():
    text = "a" * MAX_CHARACTERS
    assert occurring([text], f"b {text} b") == [(2, text)]


@given(st.text(st.sampled_from("aZ9.'-_ \u0301\u200d東カーก"), min_size=1, max_size=12), st.data())
def test_whole_is_from_the_start_to_the_end_of_words(text, data):
    i = data.draw(st.integers(0, len(text) - 1))
    j = data.draw(st.integers(i + 1, len(text)))
    if not text[i].isspace() and not text[j - 1].isspace():
        starts, ends = zip(*words(text))
        assert is_whole(text, i, j) == (i in starts and j in ends)
