"""Sentences by rules, by spaCy's sentencizer and by pysbd, if it is installed, on paragraphs whose
boundaries were marked by hand; and their speed on articles.

python -m benchmarks.sentences [ARTICLES_FOLDER]
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import spacy

from spacy_luke.pretraining.articles import STAGE
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.sentences import sentence_starts

PARAGRAPHS = Path(__file__).parents[1] / "tests" / "pretraining" / "paragraphs.tsv"
_LINES = 1_000
Splitter = Callable[[str], list[int]]


def read_paragraphs() -> dict[str, tuple[str, list[int]]]:
    """Language -> a paragraph and the characters at which its sentences start."""
    paragraphs = {}
    for line in PARAGRAPHS.read_text("utf8").splitlines():
        language, _, marked = line.partition("\t")
        starts, at = [], 0
        for part in marked.split("|"):
            starts.append(at + len(part) - len(part.lstrip()))
            at += len(part)
        paragraphs[language] = (marked.replace("|", ""), starts)
    return paragraphs


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


def compare(paragraphs: dict[str, tuple[str, list[int]]]) -> dict[str, dict[str, tuple[int, int]]]:
    """Language -> splitter -> missed and wrong boundaries."""
    results: dict[str, dict[str, tuple[int, int]]] = {}
    for language, (text, gold) in paragraphs.items():
        results[language] = {}
        for name, split in splitters(language).items():
            # Spaces may belong to either sentence.
            starts = {x + len(text[x:]) - len(text[x:].lstrip()) for x in split(text)}
            results[language][name] = len(set(gold) - starts), len(starts - set(gold))
    return results


def speed(folder: Path) -> dict[str, float]:
    """Splitter -> millions of characters per second of processor time in the first lines of a set
    of articles, the best of three rounds."""
    manifest = read_manifest(folder, STAGE)
    lines = [
        line
        for path in manifest.paths("articles.parquet")
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
    paragraphs = read_paragraphs()
    totals: Counter[tuple[str, str]] = Counter()
    for language, results in compare(paragraphs).items():
        n = len(paragraphs[language][1])
        for name, (missed, wrong) in results.items():
            totals.update({(name, "missed"): missed, (name, "wrong"): wrong, (name, "all"): n})
        print(language, n, *(f"{name} -{x} +{y}" for name, (x, y) in results.items()))
    for name in ("rules", "sentencizer", "pysbd"):
        print(name, *(f"{what} {totals[name, what]}" for what in ("missed", "wrong", "all")))
    for folder in arguments:
        print(folder, *(f"{name} {x:.2f} MB/s" for name, x in speed(Path(folder)).items()))


if __name__ == "__main__":
    main(sys.argv[1:])
