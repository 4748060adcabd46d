"""Lists of names, and what is found of them in texts."""

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.names.find import find_names
from spacy_luke.names.listed_name import ListedName
from spacy_luke.names.name_list import NameList


def listed(*names: str | tuple[str, ...], lang: str = "en") -> NameList:
    """A list; a text alone has the label X."""
    entries = [(x, "X") if isinstance(x, str) else x for x in names]
    return NameList.build([ListedName(*x) for x in entries], lang)


def found(names: NameList, doc: Doc, match: str = "normalised", k: int = 30) -> list[tuple]:
    """(text, label, id, match) of every name."""
    return [
        (doc[x.start : x.end].text, x.label, x.id, x.match)
        for x in find_names(names, doc, match, k)
    ]


def texts(names: NameList, doc: Doc, match: str = "normalised") -> list[str]:
    return [x[0] for x in found(names, doc, match)]


@pytest.fixture(scope="session")
def nlp() -> Language:
    return spacy.blank("en")
