"""The same annotation becomes the same document in the formats of all tools."""

import csv
import json

import pytest

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.formats import get_format
from spacy_luke.corpora.options import ALIGNMENTS, ConvertOptions
from tests.conftest import blank

TEXT = "Ada 🚀 traf Frau Müller-Lüdenscheidt in Köln.\nSie blieb, in Köln-Süd, lange."
QUOTES = [
    ("Ada", "PER"),
    ("Frau Müller-Lüdenscheidt", "PER"),
    ("Müller", "NAME"),
    ("Köln", "LOC"),
    ("Köln", "LOC"),
    ("Köln", "CITY"),
    ("Sie ", "PER"),
    ("üd", "CUT"),
]
SPANS = [(TEXT.index(x), TEXT.index(x) + len(x), label) for x, label in QUOTES] + [(9, 9, "EMPTY")]
RELATIONS = [(0, 1, "traf"), (0, 7, "r"), (6, 8, "r"), (0, 1, "traf"), (0, 0, "r")]


def jsonl():
    spans = [{"start": a, "end": b, "label": label} for a, b, label in SPANS]
    relations = [
        {"label": label, "head_span": spans[head], "child_span": spans[tail]}
        for head, tail, label in RELATIONS
    ]
    return json.dumps({"text": TEXT, "spans": spans, "relations": relations})


def doccano(to_units=lambda offset: offset):
    entities = [
        {"id": i, "label": label, "start_offset": to_units(a), "end_offset": to_units(b)}
        for i, (a, b, label) in enumerate(SPANS)
    ]
    relations = [{"id": 1, "from_id": x, "to_id": y, "type": label} for x, y, label in RELATIONS]
    return json.dumps({"text": TEXT, "entities": entities, "relations": relations})


def utf16(offset):
    return len(TEXT[:offset].encode("utf-16-le")) // 2


def label_studio(to_units=lambda offset: offset):
    results = [
        {
            "id": str(i),
            "type": "labels",
            "value": {
                "start": to_units(a),
                "end": to_units(b),
                "labels": [x],
                **({"text": TEXT[a:b]} if b > a else {}),
            },
        }
        for i, (a, b, x) in enumerate(SPANS)
    ]
    results += [
        {"type": "relation", "from_id": str(x), "to_id": str(y), "labels": [label]}
        for x, y, label in RELATIONS
    ]
    return json.dumps([{"data": {"text": TEXT}, "annotations": [{"result": results}]}])


def brat(folder):
    lines = [f"T{i}\t{label} {a} {b}\t{TEXT[a:b]}" for i, (a, b, label) in enumerate(SPANS)]
    lines += [f"R{i}\t{x[2]} Arg1:T{x[0]} Arg2:T{x[1]}" for i, x in enumerate(RELATIONS)]
    (folder / "a.txt").write_text(TEXT, "utf8")
    (folder / "a.ann").write_text("\n".join(lines), "utf8")
    return folder


def table(folder):
    with (folder / "a.csv").open("w", encoding="utf8", newline="") as handle:
        rows = csv.writer(handle)
        rows.writerow(["text", "start", "end", "label"])
        rows.writerows([TEXT, *span] for span in SPANS)
    return folder / "a.csv"


def tuples():
    return json.dumps([[TEXT, {"entities": SPANS}]])


WITH_RELATIONS = {
    "doccano": doccano,
    "doccano in UTF-16 units": lambda: doccano(utf16),
    "label-studio": label_studio,
    "label-studio in UTF-16 units": lambda: label_studio(utf16),
    "brat": brat,
}
WITHOUT = {"csv": table, "spacy-tuples": tuples}


def read(name, write, folder, alignment):
    """The document without its ids, and what was counted."""
    if write in (brat, table):
        path = write(folder)
    else:
        path = folder / "in.json"
        path.write_text(write(), "utf8")
    report, options = Report(), ConvertOptions(alignment=alignment)
    reader = get_format(name.partition(" ")[0]).reader
    (doc,) = reader(path, blank("de"), options, report, lambda n: None)
    events = {what: event.count for what, event in report.events.items()}
    spans = [(x.start_char, x.end_char, x.label_) for x in doc.spans["luke_ner"]]
    relations = [(x.head.text, x.tail.text, x.label) for x in doc._.relations]
    return {
        "tokens": [(token.text, token.ent_iob_, token.ent_type_) for token in doc],
        "spans": spans,
        "relations": relations,
        "events": {what: n for what, n in events.items() if "UTF-16" not in what},
    }


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("name", [*WITH_RELATIONS, *WITHOUT])
def test_a_tool_gives_the_document_of_jsonl(tmp_path, name, alignment):
    expected = read("jsonl", jsonl, tmp_path, alignment)
    found = read(name, {**WITH_RELATIONS, **WITHOUT}[name], tmp_path, alignment)
    if name in WITHOUT:
        for result in (expected, found):
            events = result["events"].items()
            result["events"] = {what: n for what, n in events if "relations" not in what}
        expected["relations"] = []
    assert found == expected


def test_the_document_is_as_documented(tmp_path):
    found = read("jsonl", jsonl, tmp_path, "strict")
    assert [text for text, iob, _ in found["tokens"] if iob == "B"] == ["Ada", "Frau", "Sie"]
    assert found["relations"] == [("Ada", "Frau Müller-Lüdenscheidt", "traf")]
    assert found["events"] == {
        "spans left out: they contain no character": 1,
        "repeated spans taken once": 1,
        "spans with white space taken off their ends": 1,
        "spans left out: they cut a token (alignment strict)": 2,
        "overlapping spans kept in doc.spans['luke_ner'] and left out of doc.ents": 2,
        "relations left out: one of their spans was": 2,
        "repeated relations taken once": 1,
        "relations left out: both sides are the same span": 1,
    }
