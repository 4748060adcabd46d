"""Mentions found in documents by a link table."""

import pickle
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import registry

from spacy_luke.errors import ConfigError
from spacy_luke.kb.link_table import LinkedText, write_link_table
from spacy_luke.kb.linked_mentions import LinkedMentions, build_linked_mentions
from tests.conftest import blank

ENTRIES = [
    LinkedText("new york", "New York City", 0.5),
    LinkedText("new york times", "The New York Times", 0.9),
    LinkedText("times square", "Times Square", 0.8),
    LinkedText("square", "Square", 0.02),
    LinkedText("u.s.", "United States", 0.3),
    LinkedText("l'aquila", "L'Aquila", 0.4),
    LinkedText("aquila", "Aquila", 0.1),
    LinkedText("mother-in-law", "Mother-in-law", 0.1),
    LinkedText("москва", "Москва", 0.5),
    LinkedText("ميونخ", "ميونخ", 0.5),
    LinkedText("दिल्ली", "दिल्ली", 0.5),
    LinkedText("서울", "서울", 0.5),
    LinkedText("東京", "東京", 0.5),
    LinkedText("東京都", "東京都", 0.5),
    LinkedText("กรุงเทพ", "กรุงเทพมหานคร", 0.5),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "links"
    write_link_table(path, "en", lambda: ENTRIES)
    return path


def mentions(source: LinkedMentions, doc: Doc) -> list[tuple[str, str]]:
    (spans,) = source.find([doc])
    assert not any(span.label_ for span in spans)
    return [(span.text, span.kb_id_) for span in spans]


def test_the_longest_text_from_the_left_is_the_mention(folder):
    doc = blank("en")("New York Times Square is in the New York of the New York Times.")
    assert mentions(LinkedMentions(folder), doc) == [
        ("New York Times", "The New York Times"),
        ("Square", "Square"),
        ("New York", "New York City"),
        ("New York Times", "The New York Times"),
    ]


def test_case_and_white_space_do_not_matter_and_words_are_whole(folder):
    doc = blank("en")(" NEW \n york-based, in the U.S.A., the U.S. and the Squares")
    assert mentions(LinkedMentions(folder), doc) == [
        ("NEW \n york", "New York City"),
        ("U.S.", "United States"),
    ]


def test_the_folder_is_that_of_the_time_when_it_was_named(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    found = LinkedMentions(Path(folder.name))
    monkeypatch.chdir("/")
    assert mentions(found, blank("en")("the Times Square")) == [("Times Square", "Times Square")]


def test_mentions_begin_and_end_at_tokens(folder):
    text = "l'Aquila e la mother-in-law"
    assert mentions(LinkedMentions(folder), blank("it")(text)) == [
        ("l'Aquila", "L'Aquila"),
        ("mother-in-law", "Mother-in-law"),
    ]
    words = ["l'Aquila", "e", "la", "mother", "-", "in", "-", "law"]
    spaces = [True, True, True, False, False, False, False, False]
    doc = Doc(spacy.blank("xx").vocab, words, spaces)
    assert mentions(LinkedMentions(folder), doc)[0] == ("l'Aquila", "L'Aquila")
    doc = Doc(doc.vocab, ["nell'Aquila", "New York", "-", "Times"], [True, False, False, False])
    assert mentions(LinkedMentions(folder), doc) == [("New York", "New York City")]


def test_limits(folder):
    doc = blank("en")("The New York Times on Times Square, a square.")
    assert mentions(LinkedMentions(folder, max_tokens=2), doc) == [
        ("New York", "New York City"),
        ("Times Square", "Times Square"),
        ("square", "Square"),
    ]
    assert mentions(LinkedMentions(folder, min_probability=0.6), doc) == [
        ("New York Times", "The New York Times"),
        ("Times Square", "Times Square"),
    ]


@pytest.mark.parametrize(
    "lang, text, expected",
    [
        ("ru", "Москва, о Москвам.", ["Москва"]),
        ("ar", "ميونخ مدينة", ["ميونخ"]),
        ("hi", "दिल्ली में दिल्लीवाले", ["दिल्ली"]),
        ("zh", "東京都和東京。", ["東京都", "東京"]),  # a token per character
    ],
)
def test_scripts(folder, lang, text, expected):
    doc = blank(lang)(text)
    assert [text for text, _ in mentions(LinkedMentions(folder), doc)] == expected


def test_a_tokenizer_of_a_script_without_spaces_decides_what_is_found(folder):
    vocab, source = spacy.blank("xx").vocab, LinkedMentions(folder)
    for words, expected in (
        (["東京", "都", "は"], ["東京都"]),
        (["東京", "は"], ["東京"]),
        (["東京は"], []),
        (["ที่", "กรุงเทพ", "นี้"], ["กรุงเทพ"]),
        (["서울", "은"], []),  # a token, but the word is longer: Korean particles
        (["서울", ",", "서울"], ["서울", "서울"]),
    ):
        doc = Doc(vocab, words, [False] * len(words))
        assert [text for text, _ in mentions(source, doc)] == expected


def test_documents_without_mentions(folder):
    docs = [blank("en")(text) for text in ("", "  \n ", "nothing here")]
    assert LinkedMentions(folder).find(docs) == [[], [], []]
    assert LinkedMentions(folder).find([]) == []


def test_a_missing_table_is_told_when_it_is_needed(tmp_path):
    source = build_linked_mentions(tmp_path / "absent")
    with pytest.raises(ConfigError, match="absent.*spacy luke link-table"):
        source.find([])


class Marker(Pipe):
    """A component that has a source of entities and is saved with it."""

    def __init__(self, source: LinkedMentions):
        self.source = source

    def __call__(self, doc: Doc) -> Doc:
        (doc.spans["links"],) = self.source.find([doc])
        return doc

    def to_disk(self, path, *, exclude=()):
        path.mkdir()
        self.source.to_disk(path / "source", exclude=exclude)

    def from_disk(self, path, *, exclude=()):
        self.source.from_disk(path / "source", exclude=exclude)
        return self

    def to_bytes(self, *, exclude=()):
        return self.source.to_bytes(exclude=exclude)

    def from_bytes(self, data, *, exclude=()):
        self.source.from_bytes(data, exclude=exclude)
        return self


@pytest.fixture
def nlp(tmp_path) -> Language:
    if not Language.has_factory("links_marker"):
        Language.factory("links_marker", func=lambda nlp, name, source: Marker(source))
    write_link_table(tmp_path / "links", "en", lambda: ENTRIES)
    nlp = spacy.blank("en")
    source = {"@misc": "spacy-luke.linked_mentions.v1", "path": str(tmp_path / "links")}
    nlp.add_pipe("links_marker", config={"source": source})
    return nlp


def test_a_pipeline_keeps_its_table_if_the_folder_is_gone(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    (tmp_path / "links").rename(tmp_path / "moved")
    loaded = spacy.load(tmp_path / "pipeline")
    copied = spacy.util.get_lang_class("en").from_config(nlp.config).from_bytes(data)
    for pipeline in (loaded, copied, pickle.loads(pickle.dumps(loaded))):
        doc = pipeline("in New York")
        assert [x.kb_id_ for x in doc.spans["links"]] == ["New York City"]
    loaded.to_disk(tmp_path / "again")
    doc = spacy.load(tmp_path / "again")("in New York")
    assert [x.text for x in doc.spans["links"]] == ["New York"]


def test_the_registered_function_checks_its_settings(folder):
    settings = {"@misc": "spacy-luke.linked_mentions.v1", "path": str(folder)}
    assert registry.resolve({"x": settings})["x"].find([]) == []
    for wrong in ({"max_tokens": 0}, {"min_probability": 1.5}):
        with pytest.raises(ConfigError, match=f"linked_mentions.{next(iter(wrong))}"):
            registry.resolve({"x": settings | wrong})
