"""Brackets as the Penn Treebank escapes them, and what a reader makes of them."""

# -LRB- and -RRB- are round, -LSB- square, -LCB- curly: left, then right.
_ROUND, _SQUARE, _CURLY = (("-LRB-", "-RRB-"), ("-LSB-", "-RSB-"), ("-LCB-", "-RCB-"))
PLAIN, ROUND, KEEP = "plain", "round", "keep"
TABLES: dict[str, dict[str, str]] = {
    PLAIN: dict(zip((*_ROUND, *_SQUARE, *_CURLY), "()[]{}")),
    ROUND: dict(zip((*_ROUND, *_SQUARE, *_CURLY), "()()()")),
    KEEP: {},
}
"""Escaped bracket -> what is written instead, by the setting ``brackets``."""


def unescape(text: str, form: str) -> str:
    """A text or a word with its escaped brackets written in a form of ``TABLES``."""
    for escaped, bracket in TABLES[form].items():
        text = text.replace(escaped, bracket)
    return text
