"""Offsets that count UTF-16 units, as JavaScript does, to offsets that count characters.

Both differ in texts with characters beyond U+FFFF, such as most emoji: these are two units.
"""

from ..errors import CorpusError

CHARACTERS, UTF16 = "characters", "utf16"
_LAST_OF_ONE_UNIT = "\uffff"


def has_wide_characters(text: str) -> bool:
    """Whether the two units differ in a text."""
    return max(text, default="") > _LAST_OF_ONE_UNIT


def from_utf16(text: str, offset: int) -> int:
    """The number of characters before an offset in UTF-16 units. An offset outside the text stays
    as far outside. Raises CorpusError if it is inside a character.

    Example: in "🚀 Ada", "Ada" begins at unit 3 and character 2.
    """
    units = text.encode("utf-16-le", "surrogatepass")
    if offset <= 0:
        return offset
    if 2 * offset > len(units):
        return offset - len(units) // 2 + len(text)
    try:
        return len(units[: 2 * offset].decode("utf-16-le"))
    except UnicodeDecodeError as err:
        raise CorpusError(f"the offset {offset}, in UTF-16 units, is inside a character.") from err
