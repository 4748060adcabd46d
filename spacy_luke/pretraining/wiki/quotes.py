"""Apostrophes that mean bold and italic, by MediaWiki's rule for those that do not pair."""

import re

_RUN = re.compile("''+")


def without_quotes(line: str) -> str:
    """The line without runs of apostrophes that are markup.

    Two are italic, three bold, five both; of four and of more than five the rest are text. Where
    both bold and italic are left open, one bold was an apostrophe before italic: ``l'''Iliade''``
    reads "l'Iliade".
    """
    runs = list(_RUN.finditer(line))
    sizes = [len(run[0]) for run in runs]
    n_bold = sum(size == 3 or size == 4 or size >= 5 for size in sizes)
    n_italic = sum(size == 2 or size >= 5 for size in sizes)
    apostrophe = -1
    if n_bold % 2 and n_italic % 2:
        apostrophe = _mistaken(line, runs)
    out: list[str] = []
    at = 0
    for index, run in enumerate(runs):
        size = len(run[0])
        left = 1 if size == 4 else max(0, size - 5)
        out += (line[at : run.start()], "'" * (left + (index == apostrophe)))
        at = run.end()
    out.append(line[at:])
    return "".join(out)


def _mistaken(line: str, runs: list[re.Match[str]]) -> int:
    """Which run of three begins with an apostrophe: one after a word of one letter, else one after
    a longer word, else one after a space; -1 for none."""
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
