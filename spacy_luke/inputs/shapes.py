"""The shape of a word's letters: what an uncased encoder cannot see."""

LOWER, TITLE, UPPER, MIXED, UNCASED, SPECIAL = range(6)


def word_shape(text: str) -> int:
    """lower, Title, UPPER, mIxed, or no cased letters at all."""
    if text.islower():
        return LOWER
    if text.istitle():
        return TITLE
    if text.isupper():
        return UPPER
    return MIXED if any(char.isupper() for char in text) else UNCASED
