"""Remove apostrophes that mean bold and italic, by MediaWiki's rules."""

import re

_RUN = re.compile("''+")


def without_quotes(line: str) -> str:
    """Remove runs of apostrophes that are markup.

    Two mean italic, three bold, five both. Of four, and of more than five, the excess is text. If
    both bold and italic are unclosed, one bold is an apostrophe before italic: ``l'''Iliade''``
    reads "l'Iliade".
    """
    runs = list(_RUN.finditer(line))
    sizes = [len(run[0]) for run in runs]
    n_bold = sum(size >= 3 for size in sizes)
    n_italic = sum(size == 2 or size >= 5 for size in sizes)
    apostrophe = -1
    if n_bold % 2 and n_italic % 2:
        apostrophe = _find_apostrophe(line, runs)
    out: list[str] = []
    position = 0
    for index, run in enumerate(runs):
        size = len(run[0])
        excess = 1 if size == 4 else max(0, size - 5)
        out += (line[position : run.start()], "'" * (excess + (index == apostrophe)))
        position = run.end()
    out.append(line[position:])
    return "".join(out)


def _find_apostrophe(line: str, runs: list[re.Match[str]]) -> int:
    """The run of three that begins with an apostrophe: the first after a word of one letter, else
    after a longer word, else after a space; -1 if there is none."""
    after_word = after_space = -1
    for index, run in enumerate(runs):
        if len(run[0]) != 3:
            continue
        before = line[max(0, run.start() - 2) : run.start()]
        if before.endswith(" ") or not before:
            after_space = index if after_space < 0 else after_space
        elif before.startswith(" ") or len(before) == 1:
            return index
        elif after_word < 0:
            after_word = index
    return after_word if after_word >= 0 else after_space
