"""Normalise page titles to the form that MediaWiki stores."""

import re
import unicodedata
from html import unescape
from urllib.parse import unquote

_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]*|#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8});")
"""With its semicolon: ``Search&copy`` is a title."""
_SPACES = re.compile(r"[\s_]+")
_ODD = re.compile(r"[&%_<>\[\]{}|\t\n\r\x00-\x1f\x7f]|  |[^\x20-\x7e]")
_FORBIDDEN = re.compile(r"[<>\[\]{}|\x00-\x1f\x7f]")
_DOTTED_I = ("tr", "az", "kaa")  # wikis where the capital of i is İ


def unquoted(title: str) -> str:
    """A title without percent-encoding."""
    if "%" not in title:
        return title
    plain = unquote(title)
    return title if "\ufffd" in plain else plain


def decoded(title: str) -> str:
    """A title without percent-encoding and HTML entities."""
    return _ENTITY.sub(lambda x: unescape(x[0]), unquoted(title))


def normalize_title(title: str, case: str = "first-letter", language: str = "") -> str | None:
    """The title in the form of the export, or None if it is invalid.

    Entities and percent-encoding are decoded, underscores and runs of white space become one space,
    directional marks are removed, and the text is converted to Unicode NFC. With ``case``
    ``first-letter``, the first letter is capitalised.
    """
    if _ODD.search(title) is not None:
        title = unicodedata.normalize("NFC", _INVISIBLE.sub("", decoded(title)))
        title = _SPACES.sub(" ", title)
        if _FORBIDDEN.search(title) is not None:
            return None
    title = title.strip()
    if not title:
        return None
    return title if case == "case-sensitive" else _capitalize(title, language)


def _capitalize(title: str, language: str) -> str:
    first = title[0]
    if first == "i" and language in _DOTTED_I:
        return "İ" + title[1:]
    upper = first.upper()
    # ß and ligatures have no single capital, and Georgian titles have no capitals.
    if len(upper) != 1 or "ა" <= first <= "ჿ":
        return title
    return upper + title[1:]
