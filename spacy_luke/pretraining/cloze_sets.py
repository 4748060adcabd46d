"""Cloze sets from articles: a sentence in which a link is hidden, and a passage of the same article
that links to the same entity."""

import hashlib
import heapq
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from unicodedata import category

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..annotations.queries import PLACEHOLDER, Completion, set_completions, set_queries
from ..corpora.conversion_report import Report
from ..corpora.lines import Advance, ignore_progress
from ..corpora.options import ConvertOptions
from ..kb.normalize import fold_name
from .article_docs import read_article_docs
from .linked_entities import language_of
from .sentences import sentence_starts
from .settings import ClozeSettings

PARTS = ("train", "dev", "test")
QUERY_WORDS = (5, 60)
"""Fewest and most words of a sentence that becomes a query; white space does not count."""
LINKS, LINKED_AGAIN, QUERIES = "links", "links to an entity that another sentence links", "queries"

Range = tuple[int, int]


@dataclass(frozen=True)
class ClozeSet:
    """Documents with one query each, by part, in the order of the articles. counts: of links, by
    what became of them."""

    parts: dict[str, list[Doc]]
    counts: dict[str, int]


def make_cloze_set(
    path: Path, nlp: Language, settings: ClozeSettings, advance: Advance = ignore_progress
) -> ClozeSet:
    """Make queries from a folder of ``spacy luke articles``.

    A link is usable if another sentence of the article links to the same entity. The query is its
    sentence with the link hidden; the passage is a run of other sentences, at a random place around
    such a link. Its links are the entities, with the titles as ``kb_id_``. The result depends on
    the articles and the settings only.

    nlp: its tokenizer is used. Raises StageError if the folder is incomplete or damaged.
    """
    report, language = Report(), language_of(path)
    found: Iterator[tuple[str, int, Doc]] = (
        (key, number, doc)
        for number, article in enumerate(
            read_article_docs(path, nlp, ConvertOptions(), report, advance)
        )
        for key, doc in _queries(article, language, settings, report)
    )
    # The keys are hashes: the smallest are a random sample, whatever the order of the articles.
    chosen = heapq.nsmallest(settings.limit, found) if settings.limit else list(found)
    parts: dict[str, list[Doc]] = {part: [] for part in PARTS}
    for _, _, doc in sorted(chosen, key=lambda x: (x[1], x[2].user_data["link"])):
        parts[part_of(doc.user_data["title"], settings)].append(doc)
    counts = {what: event.count for what, event in report.events.items()}
    return ClozeSet(parts, {LINKS: 0, LINKED_AGAIN: 0, QUERIES: 0, **counts})


def part_of(title: str, settings: ClozeSettings) -> str:
    """The part that an article belongs to."""
    share = int(_hash(settings.seed, title)[:12], 16) / 16**12
    if share < settings.dev:
        return "dev"
    return "test" if share < settings.dev + settings.test else "train"


def _queries(
    article: Doc, language: str, settings: ClozeSettings, report: Report
) -> Iterator[tuple[str, Doc]]:
    """Documents with one query each, and the keys that they are drawn by."""
    title = str(article.user_data["title"])
    sentences = _sentences(article, language)
    of_token = [i for i, (start, end) in enumerate(sentences) for _ in range(start, end)]
    linked_in: dict[str, set[int]] = defaultdict(set)
    for link in article.ents:
        linked_in[link.kb_id_].add(of_token[link.start])
    for link in article.ents:
        own = of_token[link.start]
        others = linked_in[link.kb_id_] - {own}
        report.count(LINKS, title)
        if not others:
            continue
        report.count(LINKED_AGAIN, title)
        query = _query(article, link, sentences[own])
        if not query:
            continue
        key = _hash(settings.seed, title, link.start_char)
        passage = _passage(sentences, own, others, settings.max_words, random.Random(key))
        doc = _document(article, link, query, [sentences[i] for i in passage])
        if doc is not None:
            report.count(QUERIES, title)
            yield key, doc


def _sentences(article: Doc, language: str) -> list[Range]:
    """Token ranges of sentences. A line break ends one, and no sentence starts inside a link."""
    inside = {token.i for link in article.ents for token in link[1:]}
    ends = [token.idx + len(token) for token in article]
    lines = article.text.split("\n")
    line_starts = accumulate((len(line) + 1 for line in lines), initial=0)
    chars = [
        at + start
        for at, line in zip(line_starts, lines)
        if line.strip()
        for start in sentence_starts(line, language)
    ]
    # The first token that ends after the start of the sentence.
    starts = {bisect_right(ends, char) for char in chars} - inside
    ordered = sorted({0} | starts)
    return list(zip(ordered, [*ordered[1:], len(article)]))


def _query(article: Doc, link: Span, sentence: Range) -> str:
    """The sentence with the link hidden. Empty if it is too short or long, or if the rest of it
    contains what is hidden."""
    start, end = sentence
    before, after = article[start : link.start].text_with_ws, article[link.end : end].text_with_ws
    n_words = sum(not token.is_space for token in article[start:end])
    fewest, most = QUERY_WORDS
    inside = [x for x in article.ents if start <= x.start < end and x.kb_id_ == link.kb_id_]
    rest, hidden = _plain(f"{before}\n{after}"), _plain(link.text)
    if not fewest <= n_words <= most or len(inside) > 1 or hidden in rest:
        return ""
    space = link[-1].whitespace_
    text = " ".join(f"{before}{PLACEHOLDER}{space}{after}".split())
    return text if text.count(PLACEHOLDER) == 1 else ""


def _plain(text: str) -> str:
    """However it is written: without marks, soft hyphens and case, with single spaces."""
    visible = (x for x in text.replace("\u2011", "-") if category(x) != "Cf")
    return " ".join(fold_name("".join(visible)).split())


def _passage(
    sentences: Sequence[Range], own: int, others: set[int], max_words: int, draw: random.Random
) -> list[int]:
    """The sentences of a passage: as many in a row, without ``own``, as have at most ``max_words``
    words, with one of ``others`` among them. Empty if that is impossible.

    Of all such runs one is drawn, so that the place in the passage does not tell the answer.
    """
    rest = [i for i in range(len(sentences)) if i != own]
    totals = [0, *accumulate(sentences[i][1] - sentences[i][0] for i in rest)]
    runs, high = [], 0
    for low in range(len(rest)):
        reached = high
        high = max(high, low)
        while high < len(rest) and totals[high + 1] - totals[low] <= max_words:
            high += 1
        # A run that ends where the last one ended is a part of it.
        if (high > reached or low == 0) and others & {*rest[low:high]}:
            runs.append(rest[low:high])
    return draw.choice(runs) if runs else []


def _document(article: Doc, link: Span, query: str, sentences: Sequence[Range]) -> Doc | None:
    """A document of a passage, with the query; None if the passage links to one entity only.
    sentences: token ranges."""
    tokens = [token for start, end in sentences for token in article[start:end]]
    words, spaces = [x.text for x in tokens], [bool(x.whitespace_) for x in tokens]
    doc = Doc(article.vocab, words=words, spaces=spaces)
    moved = {token.i: i for i, token in enumerate(tokens)}
    links = [
        Span(doc, moved[x.start], moved[x.start] + len(x), x.label_, kb_id=x.kb_id_)
        for x in article.ents
        if x.start in moved
    ]
    if len({x.kb_id_ for x in links}) < 2:
        return None
    doc.set_ents(links, default="missing")
    doc.user_data.update(title=article.user_data["title"], link=link.start_char)
    set_queries(doc, [query])
    right = [x for x in links if x.kb_id_ == link.kb_id_]
    by_text = {text: [x for x in right if x.text == text] for text in (y.text for y in right)}
    set_completions(doc, [[Completion(text, tuple(spans)) for text, spans in by_text.items()]])
    return doc


def _hash(*parts: object) -> str:
    return hashlib.sha256("\t".join(map(str, parts)).encode()).hexdigest()
