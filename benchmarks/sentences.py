"""Sentences by rules, by spaCy's sentencizer and by pysbd, if it is installed, on paragraphs whose
boundaries were marked by hand; and their speed on articles.

python -m benchmarks.sentences [ARTICLES_FOLDER]
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import spacy

from spacy_luke.pretraining.articles import STAGE
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.sentences import sentence_starts
from spacy_luke.pretraining.tables import ARTICLES

FILES = [
    Path(__file__).parents[1] / "tests" / "pretraining" / name
    for name in ("paragraphs.tsv", "paragraphs_2.tsv", "paragraphs_3.tsv")
]
_LINES = 1_000
Splitter = Callable[[str], list[int]]


class Paragraph(NamedTuple):
    """starts: the characters at which its sentences start."""

    language: str
    text: str
    starts: list[int]


def read_paragraphs(path: Path) -> Iterator[Paragraph]:
    for line in path.read_text("utf8").splitlines():
        language, _, marked = line.partition("\t")
        starts, at = [], 0
        for part in marked.split("|"):
            starts.append(at + len(part) - len(part.lstrip()))
            at += len(part)
        yield Paragraph(language, marked.replace("|", ""), starts)


def splitters(language: str) -> dict[str, Splitter]:
    """Those that know the language; the sentencizer falls back to spaCy's tokenizer ``xx``."""
    try:
        nlp = spacy.blank(language)
    except ImportError:
        nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.max_length = 1 << 31
    named: dict[str, Splitter] = {
        "rules": lambda text: sentence_starts(text, language),
        "sentencizer": lambda text: [sent.start_char for sent in nlp(text).sents],
    }
    try:
        from pysbd import Segmenter

        segmenter = Segmenter(language=language, clean=False, char_span=True)
        named["pysbd"] = lambda text: [span.start for span in segmenter.segment(text)]
    except (ImportError, ValueError):
        pass
    return named


def compare(paragraphs: Sequence[Paragraph]) -> Counter[tuple[str, str]]:
    """(Splitter, what) -> number of boundaries that are missed or wrong, or of all. Prints them by
    language."""
    totals: Counter[tuple[str, str]] = Counter()
    ordered = sorted(paragraphs, key=lambda x: x.language)
    for language, group in groupby(ordered, lambda x: x.language):
        counts: Counter[tuple[str, str]] = Counter()
        several = list(group)
        named = splitters(language)
        for _, text, gold in several:
            for name, split in named.items():
                # Spaces may belong to either sentence.
                starts = {x + len(text[x:]) - len(text[x:].lstrip()) for x in split(text)}
                counts[name, "missed"] += len(set(gold) - starts)
                counts[name, "wrong"] += len(starts - set(gold))
                counts[name, "all"] += len(gold)
        shown = (f"{x} -{counts[x, 'missed']} +{counts[x, 'wrong']}" for x in named)
        print(language, sum(len(x.starts) for x in several), *shown)
        totals += counts
    return totals


def speed(folder: Path) -> dict[str, float]:
    """Splitter -> millions of characters per second of processor time in the first lines of a set
    of articles, the best of three rounds."""
    manifest = read_manifest(folder, STAGE)
    lines = [
        line
        for path in manifest.paths(ARTICLES.file)
        for text in pq.read_table(path, columns=["text"])["text"].to_pylist()
        for line in text.split("\n")
        if line.strip()
    ][:_LINES]
    n_characters = sum(map(len, lines))
    speeds: dict[str, float] = {}
    for _ in range(3):
        for name, split in splitters(str(manifest.settings["language"])).items():
            start = time.process_time()
            for line in lines:
                split(line)
            seconds = time.process_time() - start
            speeds[name] = max(speeds.get(name, 0.0), n_characters / 1e6 / seconds)
    return speeds


def main(arguments: Sequence[str]) -> None:
    for path in FILES:
        totals = compare(list(read_paragraphs(path)))
        for name in ("rules", "sentencizer", "pysbd"):
            print(name, *(f"{what} {totals[name, what]}" for what in ("missed", "wrong", "all")))
    for folder in arguments:
        print(folder, *(f"{name} {x:.2f} MB/s" for name, x in speed(Path(folder)).items()))


if __name__ == "__main__":
    main(sys.argv[1:])
