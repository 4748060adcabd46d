"""Documents with relations and types, a reader of pages, and a counter of operations."""

import re
import sys
from html.parser import HTMLParser

import spacy
from spacy.tokens import Doc, Span

VOID = {"meta", "line", "rect"}
CODE = {"style", "script"}


class Reader(HTMLParser):
    """Checks that tags are balanced; collects text, ids, and the addresses that a page names."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not CODE & set(self.open):
            self.text.append(data)


def read(html):
    """The text of a page, which refers to nothing but its own elements."""
    reader = Reader()
    reader.feed(html)
    assert not reader.open and len(set(reader.ids)) == len(reader.ids)
    assert set(reader.addresses) <= {f"#{name}" for name in reader.ids}
    assert html.count("<script") <= 1 and "://" not in html
    assert "url(" not in html and "default-src 'none'" in html
    return re.sub(r"\s+", " ", "".join(reader.text))


EN = spacy.blank("en")
FAMILY = "Ada is the daughter of Byron . Byron wrote . Ada met Babbage in London ."
PLACES = {"Ada": (0, 1, "PER"), "Byron": (5, 6, "PER"), "Babbage": (12, 13, "PER")}
PLACES |= {"daughter of Byron": (3, 6, ""), "London": (14, 15, "LOC")}


def related(relations, text=FAMILY, starts=(0, 7, 10), types=None):
    """A document with PLACES; starts: tokens that begin a sentence, none for no sentences."""
    words = text.split(" ")
    doc = Doc(EN.vocab, words=words)
    for i, token in enumerate(doc):
        if starts:
            token.is_sent_start = i in starts
    spans = {name: Span(doc, a, b, label=label) for name, (a, b, label) in PLACES.items()}
    doc.ents = [span for span in spans.values() if span.label_]
    doc._.relations = [(spans[head], spans[tail], *rest) for head, tail, *rest in relations]
    for name, scores in (types or {}).items():
        spans[name]._.types = scores
    return doc


def texts(picture):
    """Words and tags of a picture, and the labels of its arcs with their kinds."""
    words = [x for cell in picture.cells for x in (cell.word.text, cell.word.tag) if x]
    arcs = [(x.kind, x.label) for cell in picture.cells for x in cell.parts if x.label]
    return words, sorted(arcs)


def operations(run):
    """How many operations of the interpreter a function takes."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count
