"""Word shapes: the case of a word's letters, which an uncased encoder does not see."""

LOWER, TITLE, UPPER, MIXED, UNCASED, SPECIAL = range(6)


def word_shape(text: str) -> int:
    """The number of a shape: lower, Title, UPPER, mIxed, or without cased letters."""
    if text.islower():
        return LOWER
    if text.istitle():
        return TITLE
    if text.isupper():
        return UPPER
    return MIXED if any(char.isupper() for char in text) else UNCASED
