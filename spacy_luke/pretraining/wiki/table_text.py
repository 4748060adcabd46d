"""The text of tables: a line for each row, with its cells separated by bars."""

import re

from .html_tags import BREAK, HOLE

_OPENING = re.compile(r"[ \t:*#]*\{\|")
_MARKS = re.compile(r"\[\[|\]\]|\{\{|\}\}|\|\||!!|\|")
_ATTRIBUTE = r"[\w-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"']+)"
_ATTRIBUTES = re.compile(rf"{_ATTRIBUTE}(?:\s+{_ATTRIBUTE})*")
_LIST = re.compile(r"^[*#:;]+\s*")


def table_text(text: str) -> str:
    """Replace tables by items of a list, one for each row. Attributes are removed; a caption is a
    row. Nested tables follow the rows before them.

    text: markup whose brackets match, and whose templates are in one line.

    Example: ``{|\\n! a !! b\\n|-\\n| class=x | 1 || 2\\n|}`` becomes ``* a | b\\n* 1 | 2``.
    """
    out: list[str] = []
    depth = 0
    row: list[str] = []

    def end_row() -> None:
        cells = [cell for x in row if (cell := x.strip(f" \t{HOLE}{BREAK}"))]
        if cells:
            out.append("* " + " | ".join(cells))
        row.clear()

    for line in text.split("\n"):
        mark = line.lstrip(f" \t{HOLE}")
        if _OPENING.match(line) is not None:
            end_row()
            depth += 1
            out.append("")
        elif not depth:
            out.append(line)
        elif mark.startswith("|}"):
            end_row()
            depth -= 1
            out += ["", mark[2:]]
        elif mark.startswith("|-"):
            end_row()
        elif mark.startswith("|+"):
            end_row()
            row.append(_content(mark[2:]))
            end_row()
        elif mark.startswith(("|", "!")):
            row += map(_content, _cells(mark[1:], is_head=mark[0] == "!"))
        elif row:
            row[-1] += " " + _LIST.sub("", mark)
        elif mark:
            row.append(mark)
    end_row()
    return "\n".join(out)


def _cells(text: str, is_head: bool) -> list[str]:
    """The cells of a line, which may have attributes."""
    return _split(text, ("||", "!!") if is_head else ("||",))


def _content(cell: str) -> str:
    """A cell without its attributes, which end with a bar. The bar may be in a template that was
    left out, as in ``colspan=2 {{yes}}``."""
    before, *rest = _split(cell, ("|",), most=1)
    content = cell if not rest or "[[" in before else rest[0]  # a bar behind a link is text
    is_left_out = HOLE in content and _ATTRIBUTES.fullmatch(content.strip(f" \t{HOLE}"))
    return "" if is_left_out else content


def _split(text: str, marks: tuple[str, ...], most: int = 0) -> list[str]:
    """Split at marks outside links and templates; at most so many times, 0: at all of them."""
    parts: list[str] = []
    start = depth = 0
    for match in _MARKS.finditer(text):
        if match[0] in ("[[", "{{"):
            depth += 1
        elif match[0] in ("]]", "}}"):
            depth -= 1
        elif match[0] in marks and depth <= 0 and (not most or len(parts) < most):
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]
