"""What holds for every page, sound or broken."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_luke.pretraining.wiki.markup import MarkupSettings, Parsed, parse
from spacy_luke.pretraining.wiki.tidy import Edit, Link, apply

WORD = st.text("abcdéßžабв東京", min_size=1, max_size=6)
TITLE = st.text("abcdé ", min_size=1, max_size=8).filter(str.strip)
LINK = st.tuples(TITLE, WORD)
NOISE = st.sampled_from(
    [" ", ", ", ". ", "\n", "\n\n", "<ref>x [[y]]</ref>", "{{x|[[y]]}}", " ({{x}}) ", "<!-- x -->",
     "[[File:x.jpg|thumb|the [[y]]]]", " &amp; ", "<br>", "== x ==\n", "\n* ", "''", "  ", "<b>",
     "\n{|\n| [[y]]\n|}\n", " http://x.example ", " <nowiki>[[y]]</nowiki> "]
)  # fmt: skip


@given(st.lists(st.one_of(WORD, NOISE, LINK), max_size=30))
@settings(max_examples=3000, deadline=None)
def test_the_text_at_the_offsets_is_the_anchor(parts: list[str | tuple[str, str]]) -> None:
    anchors = [part[1] for part in parts if isinstance(part, tuple)]
    # The space behind each link keeps the next word from being its trail.
    markup = "".join(f"[[{p[0]}|{p[1]}]] " if isinstance(p, tuple) else p for p in parts)
    headings = [line for line in markup.split("\n") if line.startswith("=")]
    parsed = parse(markup)
    with_tables = parse(markup, settings=MarkupSettings(tables=True))
    assert len(with_tables.links) >= len(parsed.links)
    for start, end, _ in with_tables.links:
        assert with_tables.text[start:end].strip()
    if not headings:  # a link in a line that became a heading goes with it
        assert [parsed.text[start:end] for start, end, _ in parsed.links] == anchors


PIECES = st.sampled_from(
    ["{{", "}}", "[[", "]]", "{|", "|}", "|", "\n", "\n\n", "==", "'", "''", "'''", "<ref>",
     "</ref>", "<ref name=a/>", "<b>", "</b>", "<nowiki>", "</nowiki>", "<!--", "-->", "[", "]",
     "http://a.b", "lang|fr|", "nowrap|", "File:", "Category:", "fr:", ":", "#", "*", ";", "=", "&",
     "&amp;", "&#91;", "-{", "}-", "__TOC__", "<br>", "<poem>", "</poem>", "<math>", "a", "b ", " ",
     "(", ")", ",", ".", "\x02", "\x0b", "\u200e", "\u00a0", "é", "東", "𝔘", "<", ">", "!",
     "convert|5|km", "[[a| b]]", "[[c|d ]]", "{{nowrap|", "{{q|", "{{nowrap|[[a| b]]}}"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=60).map("".join))
@settings(max_examples=500, deadline=None)
def test_any_page_is_read(markup: str) -> None:
    for tables in (False, True):
        parsed = parse(markup, settings=MarkupSettings(tables))
        check(parsed)
        assert parse(markup, settings=MarkupSettings(tables)) == parsed


def check(parsed: Parsed) -> None:
    end = 0
    for link in parsed.links:
        assert end <= link.start < link.end <= len(parsed.text)
        anchor = parsed.text[link.start : link.end]
        assert anchor == anchor.strip()
        assert link.target and link.target == link.target.strip()
        end = link.end
    assert parsed.text == parsed.text.strip()
    assert not set(parsed.text) & set("\x02\x03\x0b\u200e\u00a0")
    assert "\n\n\n" not in parsed.text
    assert all(count > 0 for count in parsed.dropped.values())


SPANS = st.lists(st.integers(0, 20), min_size=0, max_size=12, unique=True).map(sorted)


@given(SPANS, SPANS, st.text("xyz", max_size=2))
def test_offsets_move_with_the_text(links: list[int], edits: list[int], new: str) -> None:
    """Each character of an anchor that no edit touches is still in it."""
    text = "abcdefghijklmnopqrstu"
    spans = [Link(a, b, "T") for a, b in zip(links[::2], links[1::2])]
    changes = [Edit(a, b, new) for a, b in zip(edits[::2], edits[1::2])]
    moved, found = apply(text, spans, changes)
    gone = {i for change in changes for i in range(change.start, change.end)}
    for before, after in zip(spans, found):
        kept = [text[i] for i in range(before.start, before.end) if i not in gone]
        assert [x for x in moved[after.start : after.end] if x not in "xyz"] == kept
