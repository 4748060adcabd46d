"""Every name of a list is found where a text is equal to it, word by word."""

import random
import re
import time

import pytest
import spacy
from spacy.tokens import Doc

from spacy_luke.kb.normalize import fold_name, normalize_name, normalize_tokens
from spacy_luke.names.find import find_names
from spacy_luke.names.streams import normalised, written
from tests.names.conftest import found, listed, texts


def test_names_are_found_as_written_and_normalised(nlp):
    names = listed(("Ada", "PERSON", "Q1"), ("New York", "GPE"), ("Spider-Man", "FICTION"))
    doc = nlp("ada likes New York, NEW YORK and Spider Man.")
    assert found(names, doc) == [
        ("ada", "PERSON", "Q1", "normalised"),
        ("New York", "GPE", "", "exact"),
        ("NEW YORK", "GPE", "", "normalised"),
        ("Spider Man", "FICTION", "", "normalised"),
    ]
    assert texts(names, doc, "exact") == ["New York"]


def test_names_of_one_word_in_s_are_no_plurals(nlp):
    names = listed("AIDS", "Jobs", "Windows", "allergy", "McDonald's", "Great Apes")
    text = "First aid in a window, a job, allergies and a great ape by McDonald"
    assert texts(names, nlp(text)) == ["allergies", "great ape", "McDonald"]
    text = "Aids, WINDOWS' jobs and Jobs's allergy"
    assert texts(names, nlp(text)) == ["Aids", "WINDOWS", "jobs", "Jobs", "allergy"]
    names = listed("Glasses", "Viruses", "box")
    assert texts(names, nlp("A glass, a virus, boxes, glasses and viruses")) == [
        *("boxes", "glasses", "viruses"),
    ]


def test_german_names_in_s_are_no_genitives():
    german = spacy.blank("de")
    names = listed("Siemens", "Berlin", lang="de")
    assert texts(names, german("Siemen und Siemens, Berlins Kanal")) == ["Siemens", "Berlins"]


def test_matches_may_overlap(nlp):
    names = listed("New York", "New York Times", "York", "Times Square")
    doc = nlp("New York Times Square")
    assert texts(names, doc) == ["New York", "New York Times", "York", "Times Square"]


def test_names_begin_and_end_with_tokens(nlp):
    names = listed("art", "Ada", "can", "U.S")
    assert texts(names, nlp("Party Adam (Ada) cannot")) == ["Ada", "can"]  # "can" is a token of it


def test_a_name_with_several_labels_and_ids_has_a_span_for_each(nlp):
    names = listed(("Paris", "GPE", "Q90"), ("Paris", "PERSON"), ("PARIS", "GPE", "Q90"),
                   ("PARIS", "ORG"), ("Paris", "GPE", "Q1"))  # fmt: skip
    doc = nlp("Paris")
    assert found(names, doc) == [
        ("Paris", "GPE", "Q90", "exact"),
        ("Paris", "PERSON", "", "exact"),
        ("Paris", "GPE", "Q1", "exact"),
        ("Paris", "ORG", "", "normalised"),
    ]
    assert found(names, doc, k=2) == found(names, doc)[:2]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Yahoo! is", [("Yahoo!", "exact")]),  # not also "Yahoo" in it
        ("YAHOO! is", [("YAHOO!", "normalised")]),
        ("YAHOO? is", [("YAHOO", "normalised")]),
        ("St John", [("St John", "normalised")]),
        ("the !!! play", [("!!!", "exact")]),
        ("!! and !", []),
        ("St John’s", [("St John’s", "normalised")]),
        ("(New) York; New, York. New. York", []),
        ("New-York", [("New-York", "normalised")]),
        ("smith, john, bob", [("smith, john", "normalised")]),
        ("Smith John", [("Smith John", "normalised")]),
        ("C# or c++ or C", [("C#", "exact"), ("c++", "normalised")]),
        ("at&t", [("at&t", "normalised")]),
        ("Parkinson's diseases", [("Parkinson's diseases", "normalised")]),
        ("Parkinson's", []),
        ("as AS As, ngo or NGOs", [("AS", "exact"), ("NGOs", "normalised")]),
        ("it was us, U.S. and US", [("U.S.", "exact"), ("US", "normalised")]),
        ("the who, IRAN and Iran", [("IRAN", "exact"), ("Iran", "normalised")]),
    ],
)  # fmt: skip
def test_punctuation(nlp, text, expected):
    names = listed("Yahoo!", "!!!", "St John's", "New York", "Smith, John", "C#", "C++", "AT&T",
                   "Parkinson disease", "AS", "U.S.", "WHO", "NGO", "IRAN")  # fmt: skip
    assert [(x[0], x[3]) for x in found(names, nlp(text))] == expected


def test_white_space_of_any_kind_is_one_space(nlp):
    names = listed(" New \t York ", "Ada  King")
    doc = nlp("  New\n\nYork and Ada\u00a0 King New York\n")
    assert found(names, doc) == [
        ("New\n\nYork", "X", "", "exact"),
        ("Ada\u00a0 King", "X", "", "exact"),
        ("New York", "X", "", "exact"),
    ]
    words = Doc(nlp.vocab, words=["New\n York", "Ada", "\u00a0King"])
    assert [x[:2] for x in find_names(names, words, "normalised", 1)] == [(0, 1), (1, 3)]


def test_sentence_starts_do_not_matter_as_in_the_phrase_matcher(nlp):
    doc = nlp("He met Ada Lovelace")
    doc[3].is_sent_start = True
    assert texts(listed("Ada Lovelace"), doc) == ["Ada Lovelace"]


def test_a_name_longer_than_a_window_is_one_span(nlp):
    words = [f"word{i}" for i in range(3000)]
    names = listed(" ".join(words), "word0 word1", " ".join([*words[:100], "other"]))
    doc = nlp("The " + " ".join(words).upper() + " end")
    assert [x[:2] for x in find_names(names, doc, "normalised", 1)] == [(1, 3), (1, 3001)]


def test_a_list_of_one_letter(nlp):
    assert texts(listed("a"), nlp("A cat a-b")) == ["A", "a"]
    assert texts(listed("a"), nlp("A cat a-b"), "exact") == ["a"]


def test_an_empty_list_and_an_empty_text(nlp):
    assert found(listed(), nlp("Ada")) == [] == found(listed("Ada"), nlp(""))
    assert found(listed("Ada"), nlp(" \n ")) == []


@pytest.mark.parametrize(
    "text,expected",
    [
        ("我见了大卫·李和王五", ["大卫·李"]),
        ("我见了大卫・李", ["大卫・李"]),
        ("大卫、李明和王五", []),
        ("我见了大卫。李很远", []),
        ("大卫（李）", []),
        ("《红楼梦》（小说）", []),
        ("红楼梦（小说）", ["红楼梦（小说）"]),
        ("红楼梦(小说)", ["红楼梦(小说)"]),
    ],
)
def test_wide_punctuation_has_its_own_space(text, expected):
    names = listed("大卫·李", "红楼梦(小说)", lang="zh")
    assert texts(names, spacy.blank("zh")(text)) == expected


def test_scripts_without_white_space():
    doc = spacy.blank("zh")("我在北京大学学习。" * 50)
    names = listed("北京", "北京大学", "大学", lang="zh")
    assert texts(names, doc) == ["北京", "北京大学", "大学"] * 50


@pytest.mark.parametrize("text", ["a ", "a", "A! ", "a\u4e00", "+a+"])
def test_time_grows_with_the_text(text):
    """Of the same name again and again, also without white space."""
    nlp = spacy.blank("zh")
    words = list(text.strip())
    spaces = [*([False] * (len(words) - 1)), text.endswith(" ")]
    doc = Doc(nlp.vocab, words=words * 10_000, spaces=spaces * 10_000)
    names = listed("a", "a a a", "aaa", "x" * 5000, "a" * 300, lang="zh")
    start = time.process_time()
    assert len(find_names(names, doc, "normalised", 30)) >= 10_000
    assert time.process_time() - start < 10


def test_normalisation_is_that_of_the_language():
    text = "Diseases of Parkinson's"
    for lang, expected in (("en", ["Diseases", "Parkinson"]), ("it", ["Parkinson"])):
        doc = spacy.blank("en")(text)
        assert texts(listed("disease", "PARKINSON", lang=lang), doc) == expected


def test_tokens_of_a_stream():
    assert normalize_tokens(("Spider", "-", "Man")) == ("spider man", ((0, 6), (0, 0), (7, 10)))
    assert normalize_tokens(("ponies", "'", "-x"), "en") == ("pony x", ((0, 4), (0, 0), (5, 6)))
    assert normalize_tokens(("(", ")")) == ("", ((0, 0), (0, 0)))
    english = ("St. John's", "3.5 km", "O'Neil", "don't", "\u0130", "ﬁ\u00ad", "U.S.", "a.b")
    for text in (*english, "Berlins", "Hans'"):
        for lang in ("", "en", "de"):
            assert normalize_tokens((text,), lang)[0] == normalize_name(text, lang)


PARTS = ["Ada", "ada", "ADAS", "'s", "'", ".", ",", "!", "-", " ", "\n", "b", "3", "ü", "C", "+",
         "#", "ies", "\u0301", "(", "é", "北"]  # fmt: skip


def brute_force(names, doc):
    """All spans, compared one by one."""
    stream, forms = normalised(doc, names.lang), [x.text for x in names]
    lang_has_endings = names.lang == "en"
    kept = {token for _, token in stream.starts}
    visible = {token for _, token in written(doc).starts}
    spans = [(i, j) for i in range(len(doc)) for j in range(i + 1, len(doc) + 1)]
    text_of = {(i, j): " ".join(doc[i:j].text.split()) for i, j in spans}
    exact = [
        (i, j, text_of[i, j]) for i, j in spans if {i, j - 1} <= visible and text_of[i, j] in forms
    ]
    expected = {(i, j, "exact", text) for i, j, text in exact}
    for start, end in spans:
        if not {start, end - 1} <= kept:
            continue
        marks = {doc[i].text for i in stream.marks if start < i < end}
        for form in forms:
            key = normalize_name(form, names.lang)
            is_equal = normalize_name(doc[start:end].text, names.lang) == key
            if not is_equal or not all(mark in form for mark in marks):
                continue
            if lang_has_endings and " " not in key:
                possessive = r"(?<=\w)'s\b|(?<=s)'(?!\w)"
                folded = [fold_name(x) for x in (form, doc[start:end].text)]
                plain = [re.sub(possessive, "", x) for x in folded]
                bare = ["".join(x for x in y if x not in " '.,!-()") for y in plain]
                if [x != key for x in bare] == [True, False]:
                    continue
            letters = form.replace(".", "").replace(" ", "")
            capitals = sum(x.isupper() for x in doc[start:end].text)
            is_short = len(letters) <= 3 and letters.isalpha() and letters.isupper()
            if is_short and capitals < len(letters):
                continue
            wider = [
                (i, j)
                for i, j in spans
                if i <= start and end <= j and (i, j) != (start, end)
                and {*range(i, start), *range(end, j)} <= stream.dropped
                and fold_name(text_of[i, j]) == fold_name(form)
            ]  # fmt: skip
            i, j = wider[0] if wider else (start, end)
            if not any(a <= i and j <= b for a, b, x in exact if x == form):
                expected.add((i, j, "normalised", form))
    return expected


@pytest.mark.parametrize("lang", ["", "en"])
def test_random_texts_have_the_spans_of_a_comparison_of_all(nlp, lang):
    """Each name is its own label. Nothing is added. Only normalised English names that end inside a
    word, where it would be another plural or possessive, may be missed."""
    rng, n, missed = random.Random(0), 0, []
    for _ in range(300):
        words = rng.choices(PARTS, k=12)
        doc = Doc(nlp.vocab, words=words, spaces=[rng.random() < 0.4 for _ in words])
        cut = [doc[i : i + rng.randint(1, 4)].text for i in rng.sample(range(12), k=6)]
        changed = {rng.choice([str, str.upper, str.lower, str.title])(x).strip() for x in cut}
        names = listed(*((" ".join(x.split()),) * 2 for x in sorted(changed - {""})), lang=lang)
        found = find_names(names, doc, "normalised", 99)
        actual = {(x.start, x.end, x.match, x.label) for x in found}
        expected = brute_force(names, doc)
        assert actual <= expected, (doc.text, changed)
        n += len(expected)
        missed += expected - actual
    assert n > 2000 and len(missed) <= (n / 25 if lang else 0)
    assert all(match == "normalised" for _, _, match, _ in missed)
