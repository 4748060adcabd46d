"""Escaped brackets of the Penn Treebank, and the three forms in which readers write them."""

# (left, right)
_ROUND, _SQUARE, _CURLY = (("-LRB-", "-RRB-"), ("-LSB-", "-RSB-"), ("-LCB-", "-RCB-"))
PLAIN, ROUND, KEEP = "plain", "round", "keep"
TABLES: dict[str, dict[str, str]] = {
    PLAIN: dict(zip((*_ROUND, *_SQUARE, *_CURLY), "()[]{}")),
    ROUND: dict(zip((*_ROUND, *_SQUARE, *_CURLY), "()()()")),
    KEEP: {},
}
"""Setting ``brackets`` -> escaped bracket -> its replacement."""


def unescape(text: str, form: str) -> str:
    """Replace the escaped brackets of a text or word; ``form`` is a key of ``TABLES``."""
    for escaped, bracket in TABLES[form].items():
        text = text.replace(escaped, bracket)
    return text
