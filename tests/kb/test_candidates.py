"""Candidates: exact, normalised, fuzzy; their priors, their order."""

import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import ConfigError, InputError
from spacy_luke.kb.candidates import CandidateSettings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.whole_words import join_unspaced
from tests.kb.conftest import build, found


def priors(kb, text):
    return {x.id: pytest.approx(x.prior) for x in kb.candidates([text])[0]}


def test_exact_aliases_come_before_normalised_ones_and_each_by_prior(kb):
    assert found(kb, "Paris") == [("Q1", "exact"), ("Q2", "exact"), ("Q3", "normalised")]
    assert found(kb, " paris ") == [
        ("Q1", "normalised"), ("Q3", "normalised"), ("Q2", "normalised")
    ]  # fmt: skip
    assert found(kb, "PARIS")[0] == ("Q3", "exact")


def test_whether_a_prior_was_counted_is_told_of_equal_aliases(kb):
    def counted(text):
        return {x.id: x.counted for x in kb.candidates([text])[0]}

    assert counted("Paris") == {"Q1": True, "Q2": True, "Q3": True}
    assert counted("Parkinson's disease") == {"8": False, "8b": False}
    assert counted("Münchenn") == {"7": False}  # similar


def test_priors_are_shares_of_the_counts_of_the_alias_or_of_the_entity(kb):
    # 90, 10 as it is written; of all spellings (PARIS: 30) a tenth counts.
    expected = {"Q1": 0.9 * 0.9 + 9 / 130, "Q2": 0.9 * 0.1 + 1 / 130, "Q3": 3 / 130}
    assert priors(kb, "Paris") == pytest.approx(expected)
    assert sum(expected.values()) == pytest.approx(1)
    assert priors(kb, "paris") == {"Q1": 90 / 130, "Q2": 10 / 130, "Q3": 30 / 130}
    expected = {"Q3": 0.9 + 3 / 130, "Q1": 9 / 130, "Q2": 1 / 130}
    assert priors(kb, "PARIS") == pytest.approx(expected)


def test_entities_without_counts_are_equally_probable_and_in_the_order_of_the_file(kb):
    assert priors(kb, "Parkinson's disease") == {"8": 0.5, "8b": 0.5}
    assert found(kb, "parkinson diseases") == [("8", "normalised"), ("8b", "normalised")]


def test_names_of_any_script(kb):
    assert found(kb, "ميونخ") == found(kb, "ミュンヘン") == [("7", "exact")]
    assert found(kb, "MUNCHEN") == [("7", "normalised")]
    assert found(kb, "ﾐｭﾝﾍﾝ") == [("7", "normalised")]


def test_a_name_that_was_broken_into_lines_is_found_in_scripts_without_spaces(tmp_path):
    names = ["北京", "New York", "ที่ดิน", "မြန်မာနိုင်ငံ", "北京上海"]
    build(tmp_path / "kb", [{"id": i, "name": x} for i, x in enumerate(names, 1)])
    kb, exact = MappedKB.open(tmp_path / "kb", Vocab()), CandidateSettings(fuzzy="never")
    assert found(kb, "北 京", exact) == found(kb, "北\n京", exact) == [("1", "normalised")]
    assert found(kb, "ที่\nดิน", exact) == [("3", "normalised")]
    assert found(kb, "မြန်မာ\nနိုင်ငံ", exact) == [("4", "normalised")]
    assert found(kb, "NewYork", exact) == found(kb, "北京、上海", exact) == []
    assert join_unspaced(" 北 京 A 株 b ") == " 北京 A 株 b "


def test_similar_aliases_are_found_and_say_how_similar_they_are(kb):
    (first, *_) = kb.candidates(["Parkinsen disease"])[0]
    assert (first.id, first.match, first.alias_) == ("8", "fuzzy", "Parkinson's disease")
    assert 0.9 < first.likeness < 1 and first.prior == 0.5
    assert first.prior_prob == pytest.approx(first.likeness * 0.5)
    assert found(kb, "disease parkinson")[:2] == [("8", "fuzzy"), ("8b", "fuzzy")]
    assert found(kb, "zzzz") == []


def test_when_similar_aliases_are_searched(kb):
    always = CandidateSettings(fuzzy="always", min_likeness=0.3)
    assert found(kb, "Munich", CandidateSettings(fuzzy="never")) == [("7", "exact")]
    assert found(kb, "Munick", CandidateSettings(fuzzy="never")) == []
    assert ("Q2", "fuzzy") in found(kb, "Paris Texas", always)
    assert len(found(kb, "Paris Texas", CandidateSettings(k=2, fuzzy="always"))) <= 2
    assert found(kb, "Parkinsen", CandidateSettings(min_likeness=1.0)) == []


@pytest.mark.parametrize("text", ["", " ", "\n\u3000\t"])
def test_an_empty_mention_has_no_candidates(kb, text):
    assert found(kb, text) == []


def test_text_that_cannot_be_an_alias_has_no_candidates(kb):
    assert found(kb, "\ud800") == [] and found(kb, "?" * 5000) == []


def test_long_and_short_aliases(tmp_path):
    long = "An act " + "and so on " * 20
    build(tmp_path / "kb", [{"id": 1, "name": long[:200]}, {"id": 2, "name": "東京"}])
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    assert found(kb, long[:200]) == [("1", "exact")]
    assert found(kb, long[:199] + "x") == [("1", "fuzzy")]
    assert found(kb, "東京都") == [("2", "fuzzy")]


def test_only_the_best_k_are_given_and_ties_are_broken_by_the_file(tmp_path):
    build(tmp_path / "kb", [{"id": i, "name": "it", "count": i // 10} for i in range(100)])
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    best = [str(x) for x in (*range(90, 100), *range(80, 85))]
    assert [x for x, _ in found(kb, "it", CandidateSettings(k=15))] == best
    assert [x for x, _ in found(kb, "IT", CandidateSettings(k=15))] == best


def test_a_batch_has_the_candidates_of_each_text(kb):
    texts = ["Paris", "", "Munich", "Paris", "nothing at all"]
    batch = kb.candidates(texts)
    assert [[x.id for x in row] for row in batch] == [
        [x.id for x in kb.candidates([text])[0]] for text in texts
    ]


@pytest.mark.parametrize("name, value", [("k", 0), ("min_likeness", 0.0), ("fuzzy", "sometimes")])
def test_settings_are_checked(name, value):
    with pytest.raises(ConfigError, match=f"candidates.{name} is {value!r}"):
        CandidateSettings(**{name: value})


def test_the_trigram_index_finds_what_a_search_of_all_names_finds(tmp_path):
    names = [
        f"{a} {b}{c}"
        for a in ("north", "south", "eastern")
        for b in ("hill", "port", "field")
        for c in ("", "ton", "ford")
    ]
    build(tmp_path / "kb", [{"id": x, "name": x} for x in names], lang="")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    for name in names:
        assert found(kb, name.replace("o", "0", 1) + "s")[0][0] == name


def test_spellings_of_one_name_count_once(tmp_path):
    spellings = {"id": "A", "name": "US", "aliases": ["U.S.", "us"], "count": 100}
    counted = {"id": "C", "name": "US", "aliases": {"US": 30, "u.s": 40}, "count": 100}
    build(tmp_path / "kb", [spellings, {"id": "B", "name": "us", "count": 200}, counted])
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    assert priors(kb, "Us") == {"B": 200 / 370, "A": 100 / 370, "C": 70 / 370}


def test_huge_and_tiny_counts_have_priors(tmp_path):
    for i, count in enumerate((1e100, 5e-324)):
        build(tmp_path / f"{i}", [{"id": x, "name": "it", "count": count} for x in (1, 2)])
        assert priors(MappedKB.open(tmp_path / f"{i}", Vocab()), "it") == {"1": 0.5, "2": 0.5}


def test_one_text_is_not_taken_for_a_list_of_letters(kb):
    with pytest.raises(InputError, match="mentions is the text 'Paris'"):
        kb.candidates("Paris")


def test_a_trigram_that_is_not_indexed_does_not_count_for_the_next(tmp_path):
    """Shared with "ebdcee": "dce" by the first, "bdc" by the second, which is longer. "ebd" is not
    indexed; its place is that of a trigram that both the second and the mention have."""
    build(tmp_path / "kb", [{"id": x, "name": x} for x in ("dcec", "bdcddc")])
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    settings = CandidateSettings(shortlist=1, min_likeness=0.5)
    assert [x for x, _ in found(kb, "ebdcee", settings)] == ["dcec"]


def test_one_entity_with_all_of_the_most_similar_aliases_does_not_hide_others(tmp_path):
    many = [f"the house of mr {letter}{other}" for letter in "abcdefghij" for other in "klmnopqrst"]
    records = [{"id": 1, "name": many[0], "aliases": many}, {"id": 2, "name": "house of x"}]
    build(tmp_path / "kb", records)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    for k in (1, 2, 3):
        settings = CandidateSettings(k=k, min_likeness=0.3)
        results = kb.candidates(["the house of mr xy"], settings)[0]
        assert [x.id for x in results] == ["1", "2"][:k] and results[0].likeness > 0.8


def test_similar_aliases_of_the_same_likeness_are_ordered_by_prior_then_by_the_file(tmp_path):
    records = [{"id": i, "name": f"house {'abcdefghij'[i % 10]}", "count": i} for i in range(40)]
    build(tmp_path / "kb", records, lang="")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    (results,) = kb.candidates(["house x"], CandidateSettings(k=40))
    assert len({x.likeness for x in results}) == 1
    expected = sorted(results, key=lambda x: (-x.prior, x.row))
    assert [x.id for x in results] == [x.id for x in expected]
    for k in (1, 5, 17):
        fewer = kb.candidates(["", "house x", "house"], CandidateSettings(k=k))[1]
        assert [x.id for x in fewer] == [x.id for x in results[:k]]
