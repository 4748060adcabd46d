"""What is read of dumps: pages, links kept and dropped, residue of markup, speed and memory.

python -m benchmarks.wiki_markup FILES...
python -m benchmarks.wiki_markup --compare FILES...

A file may have its language in front, ``fr=FILE``, if the export says another one.

``--compare`` needs ``wikipedia2vec`` (2.0) beside ``mwparserfromhell``, for instance in an
environment of its own, with this checkout as the working folder: linked titles of every article
by its parser and by ours, and the differences by class.
"""

import argparse
import multiprocessing
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pandas as pd

from spacy_luke.pretraining.dump_settings import markup_settings, site_of
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.balance import Blocks, without_blocks, without_side_links
from spacy_luke.pretraining.wiki.export import Page, partitions, read_pages
from spacy_luke.pretraining.wiki.html_tags import without_tags
from spacy_luke.pretraining.wiki.links import resolve
from spacy_luke.pretraining.wiki.markup import Parsed, parse
from spacy_luke.pretraining.wiki.names import DumpNames
from spacy_luke.pretraining.wiki.pages import disambiguation_mark
from spacy_luke.pretraining.wiki.sites import Site
from spacy_luke.pretraining.wiki.templates import Rules

from . import results
from .markdown import markdown

RESIDUE = ("[[", "{{", "''", "<ref", "|thumb")
_LINK = re.compile(r"\[\[([^\[\]|\n]+)")
_WRITTEN = re.compile(r"\[\[([^\[\]|\n]+)(?:\|((?:[^\[\]\n]|\[(?!\[)|\](?!\]))*))?\]\](\w*)")
_NOT_TEXT = re.compile(r"<[^<>]*>|'{2,}|[\u200e\u00ad]|\s+")
_HEADING = re.compile(r"^==.*==\s*$", re.MULTILINE)


@dataclass
class Measured:
    """counts: pages by kind. dropped: of all articles. seconds: processor time of the markup, and
    of everything. peak_mib: most memory that the process held, its imports included."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    residue: Counter[str] = field(default_factory=Counter)
    n_bytes: int = 0
    markup_seconds: float = 0.0
    seconds: float = 0.0
    peak_mib: float = 0.0


def articles(
    file: str, counts: Counter[str], settings: DumpSettings
) -> Iterator[tuple[Page, Site]]:
    """Articles, lists of meanings included; pages of all kinds are counted."""
    language, path = _named(file)
    parts = [
        replace(part, site=site_of(part.site, language or part.site.language, settings))
        for part in partitions(path)
    ]
    names = DumpNames()
    for part in parts:
        for page in read_pages(part):
            names.add(page, part.site)
    for part in parts:
        site = replace(part.site, names=names.names(part.site))
        for page in read_pages(part, counts):
            counts["pages"] += 1
            if page.redirect is not None:
                counts["redirects"] += 1
            elif page.namespace not in site.content or page.model != "wikitext":
                counts["other namespaces"] += 1
            else:
                kind = "disambiguations" if disambiguation_mark(page, site) else "articles"
                counts[kind] += 1
                yield page, site


def _named(file: str) -> tuple[str, Path]:
    """The language and the path of ``fr=FILE``; the language of ``FILE`` is empty."""
    language, mark, path = file.partition("=")
    if mark and "/" not in language:
        return language, Path(path)
    return "", Path(file)


def measure(file: str, settings: DumpSettings) -> Measured:
    """One dump, on one core; run in a process of its own for its peak memory."""
    found = Measured(_named(file)[1].name)
    markup = markup_settings(settings, ())
    begun = time.process_time()
    for page, site in articles(file, found.counts, settings):
        start = time.process_time()
        parsed = parse(page.text, site, page.title, markup)
        found.markup_seconds += time.process_time() - start
        found.n_bytes += len(page.text.encode())
        found.counts["characters"] += len(parsed.text)
        found.counts["links"] += len(parsed.links)
        found.counts["unaccounted"] += abs(_unaccounted(page.text, parsed))
        found.counts["other anchors"] += len(other_anchors(page.text, parsed))
        found.dropped += parsed.dropped
        for mark in RESIDUE:
            found.residue[mark] += parsed.text.count(mark)
    found.seconds = time.process_time() - begun
    found.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def other_anchors(markup: str, parsed: Parsed) -> list[str]:
    """Texts of links, by their characters, that no link of the markup seems to have: found by a
    pattern, which knows nothing of templates and links within links."""
    written: Counter[str] = Counter()
    for target, anchor, trail in _WRITTEN.findall(markup):
        # Languages differ in what continues a word.
        for end in {trail, trail[: len(trail) - len(trail.lstrip(ascii_lowercase))]}:
            written[_bare((anchor or target.replace("_", " ")) + end)] += 1
    ours = Counter(_bare(parsed.text[link.start : link.end]) for link in parsed.links)
    return list((ours - written).elements())


def _bare(text: str) -> str:
    return _NOT_TEXT.sub("", unescape(text))


def _unaccounted(markup: str, parsed: Parsed) -> int:
    """Openings of links that are neither links of the text nor counted as dropped."""
    dropped = sum(n for kind, n in parsed.dropped.items() if kind.startswith("link "))
    known = len(parsed.links) + dropped + parsed.dropped["unclosed link"]
    return markup.count("[[") - known


def dump_tables(found: Sequence[Measured]) -> str:
    """Three Markdown tables: dumps, links dropped by reason, other things left out."""
    counts = pd.DataFrame([x.counts for x in found]).fillna(0).astype(int)
    kinds = ["pages", "redirects", "disambiguations", "articles", "characters", "links"]
    kinds += ["unaccounted", "other anchors"]
    frame = counts.reindex(columns=kinds, fill_value=0)
    frame.insert(0, "dump", [x.name for x in found])
    dropped = pd.DataFrame([x.dropped for x in found]).fillna(0).astype(int)
    frame["dropped"] = dropped.filter(regex="^link ").sum(axis=1)
    residue = pd.Series([sum(x.residue.values()) for x in found])
    frame["residue per million"] = (1e6 * residue / frame.characters.clip(lower=1)).round(2)
    megabytes = pd.Series([x.n_bytes for x in found]) / 1e6
    for name, seconds in (
        ("markup MB/s", [x.markup_seconds for x in found]),
        ("all MB/s", [x.seconds for x in found]),
    ):
        frame[name] = (megabytes / pd.Series(seconds).clip(lower=1e-9)).round(2)
    frame["peak MiB"] = [round(x.peak_mib) for x in found]
    total = dropped.join(counts.filter(regex="^page ")).sum().sort_values(ascending=False)
    is_link = total.index.str.startswith("link ")
    return "\n\n".join(
        markdown(shown)
        for shown in (
            frame,
            total[is_link].rename_axis("links dropped").reset_index(name="number"),
            total[~is_link].rename_axis("left out").reset_index(name="number"),
        )
    )


@dataclass
class Difference:
    """both, ours, theirs: linked titles (with repetitions) that both have, or one only, by class.
    agreement: sum over articles of shared over all titles. examples: "page: title" by class."""

    name: str
    n_articles: int = 0
    n_failed: int = 0
    both: int = 0
    agreement: float = 0.0
    ours: Counter[str] = field(default_factory=Counter)
    theirs: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, side: str, kind: str, n: int, page: Page, title: str) -> None:
        (self.ours if side == "ours" else self.theirs)[kind] += n
        found = self.examples.setdefault(f"{side}: {kind}", [])
        if len(found) < 3:
            found.append(f"{page.title}: {title}")

    def shown(self, side: str, kind: str) -> str:
        return "; ".join(self.examples[f"{side}: {kind}"]).replace("|", "/")


def peer_titles(page: Page, language: str) -> list[str] | None:
    """Titles that wikipedia2vec's parser finds linked in an article; None where it fails."""
    import pickle
    import zlib

    from wikipedia2vec import dump_db
    from wikipedia2vec.utils.wiki_page import WikiPage

    parser: Any = dump_db._parse_page
    try:
        found = parser(WikiPage(page.title, language, page.text, None), None)
    except Exception:  # it has no guard of its own but around the library's parser
        return None
    if found is None:
        return None
    paragraphs, _ = pickle.loads(zlib.decompress(found[1][1]))
    return [link[0] for _, links, _ in paragraphs for link in links]


def compare(file: str) -> Difference:
    """Linked titles of every article by both parsers."""
    found = Difference(_named(file)[1].name)
    for page, site in articles(file, Counter(), DumpSettings()):
        found.n_articles += 1
        titles = peer_titles(page, site.language or "en")
        if titles is None:
            found.n_failed += 1
            continue
        ours = Counter(link.target for link in parse(page.text, site, page.title).links)
        theirs: Counter[str] = Counter()
        for title in titles:
            kind, normal = resolve(title, site)
            if kind == "article":
                theirs[normal] += 1
            else:
                found.note("theirs", f"link to {kind}", 1, page, title)
        both = ours & theirs
        found.both += both.total()
        every = (ours | theirs).total()
        found.agreement += both.total() / every if every else 1.0
        _classify(page, site, ours - theirs, theirs - ours, found)
    return found


def _classify(
    page: Page, site: Site, ours: Counter[str], theirs: Counter[str], found: Difference
) -> None:
    """By the place in the page where links to such a title stand."""
    dropped: Counter[str] = Counter()
    bare = without_tags(page.text, dropped)
    blockless = without_blocks(bare, Blocks(dropped), Rules(site.language))
    sideless = without_side_links(blockless, site, dropped, [])
    headings = "\n".join(_HEADING.findall(sideless))
    stages = [_targets(text, site) for text in (page.text, bare, blockless, sideless)]
    places = {
        "in a reference, comment or gallery": stages[0] - stages[1],
        "in a template or table": stages[1] - stages[2],
        "in the caption of a file": stages[2] - stages[3],
        "in a heading": _targets(headings, site),
    }
    for title, n in theirs.items():
        for place, titles in places.items():
            here = min(n, titles[title])
            if here:
                found.note("theirs", place, here, page, title)
                n -= here
        if n:
            found.note("theirs", "elsewhere", n, page, title)
    kept = _targets("\n".join(re.findall(r"\{\{.*?\}\}", sideless)), site)
    labels = _targets("\n".join(re.findall(r"(?<!\[)\[\w*:?//.*", sideless)), site)
    for title, n in ours.items():
        for place, titles in (
            ("in a template that carries text", kept),
            ("in the label of an external link", labels),
        ):
            here = min(n, titles[title])
            if here:
                found.note("ours", place, here, page, title)
                n -= here
        if n:
            found.note("ours", "elsewhere", n, page, title)


def _targets(markup: str, site: Site) -> Counter[str]:
    found = (resolve(raw, site) for raw in _LINK.findall(markup))
    return Counter(target.title for target in found if target.kind == "article")


def difference_tables(found: Sequence[Difference]) -> str:
    frame = pd.DataFrame(
        {
            "dump": x.name,
            "articles": x.n_articles,
            "not parsed by the peer": x.n_failed,
            "both": x.both,
            "ours only": x.ours.total(),
            "theirs only": x.theirs.total(),
            "agreement per article": f"{x.agreement / max(1, x.n_articles - x.n_failed):.4f}",
        }
        for x in found
    )
    classes = pd.DataFrame(
        {"side": f"{side} only", "class": kind, "links": n, "examples": x.shown(side, kind)}
        for side in ("theirs", "ours")
        for x in found
        for kind, n in getattr(x, side).items()
    )
    if len(classes):
        grouped = classes.groupby(["side", "class"], sort=False)
        classes = grouped.agg({"links": "sum", "examples": "first"}).reset_index()
        classes = classes.sort_values(["side", "links"], ascending=False)
    return f"{markdown(frame)}\n\n{markdown(classes)}"


def main(argv: Sequence[str] | None = None) -> None:
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.wiki_markup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("files", nargs="+", help="MediaWiki exports")
    p.add_argument("--namespaces", nargs="*", default=[], help="further ones with articles")
    p.add_argument("--templates", nargs="*", default=[], help="whose text is kept")
    p.add_argument("--tables", action="store_true", help="keep their text")
    p.add_argument("--compare", action="store_true", help="with the parser of wikipedia2vec")
    p.add_argument("--results", type=Path, help="file that the records are added to")
    args = p.parse_args(argv)
    if args.compare:
        differences = [compare(file) for file in args.files]
        _keep(args.results, "parsers", differences)
        print(difference_tables(differences))
        return
    found = []
    settings = DumpSettings(
        namespaces=tuple(args.namespaces), templates=tuple(args.templates), tables=args.tables
    )
    for file in args.files:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found.append(pool.submit(measure, file, settings).result())
    _keep(args.results, "markup", found)
    print(dump_tables(found))


def _keep(path: Path | None, kind: str, found: Sequence[Measured] | Sequence[Difference]) -> None:
    for x in found:
        if path:
            results.append(path, {"kind": kind, **vars(x)})


if __name__ == "__main__":
    main()
