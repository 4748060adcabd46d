"""Word shapes: the case of a word's letters, which an uncased encoder does not see."""

from unicodedata import category, normalize

LOWER, TITLE, UPPER, MIXED, UNCASED, SPECIAL = range(6)
_INVISIBLE = ("Mn", "Cf")


def word_shape(text: str) -> int:
    """The number of a shape: lower, Title, UPPER, mIxed, or without cased letters.

    Accents that are characters of their own (NFD), and invisible ones such as the soft hyphen, do
    not count: a letter after one would begin a word.
    """
    if not text.isascii():
        text = "".join(x for x in normalize("NFC", text) if category(x) not in _INVISIBLE)
    if text.islower():
        return LOWER
    if text.istitle():
        return TITLE
    if text.isupper():
        return UPPER
    return MIXED if any(char.isupper() for char in text) else UNCASED
