"""Entities read from files, and errors that name the line and the field."""

import math

import pytest

from spacy_luke.errors import CorpusError
from spacy_luke.kb.entity import Findings
from spacy_luke.kb.read_records import read_entities, read_ids
from tests.kb.conftest import write_jsonl


def read(path):
    findings = Findings()
    return list(read_entities(path, findings)), findings


def test_json_lines(tmp_path):
    records = [
        {"id": 42, "name": " Ada ", "aliases": ["A. L.", "Ada", "A. L.", " "], "count": 3},
        {"id": "x", "name": "Bo", "aliases": {"Bo": 5, "Beau": 1.5}, "type": None},
        {"id": "y", "name": None, "size": 3},
    ]
    entities, findings = read(write_jsonl(tmp_path / "a.jsonl", records))
    ada, bo = entities
    assert (ada.id, ada.name, ada.count, list(ada.aliases)) == ("42", "Ada", 3, ["Ada", "A. L."])
    assert all(map(math.isnan, ada.aliases.values()))
    assert bo.aliases == {"Bo": 5, "Beau": 1.5} and bo.type == ""
    assert list(findings.counts.values()) == [1, 1, 1, 1]
    assert "line 3" in findings.first["entities left out because their name is empty"]
    assert any("'size'" in reason for reason in findings.counts)


def test_white_space_of_ids_is_kept_and_reported(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,name\nQ1 ,Ada\nQ2,Bo\n")
    entities, findings = read(path)
    assert [x.id for x in entities] == ["Q1 ", "Q2"]
    (reason,) = findings.counts
    assert "white space" in reason and "line 2" in findings.first[reason]


def test_csv_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "a.csv"
    text = 'id,name,aliases,count\r\n01,"Doe, Jo",Jo|J. D.||,7\r\n\r\n2,"東京\nTokyo",,\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (jo, tokyo), findings = read(path)
    assert (jo.id, jo.name, list(jo.aliases), jo.count) == (
        "01",
        "Doe, Jo",
        ["Doe, Jo", "Jo", "J. D."],
        7,
    )
    assert (tokyo.name, tokyo.count) == ("東京\nTokyo", 0)
    assert findings.counts == {"empty aliases left out": 2}


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"id": "a"}', "name missing. Required keys: id, name; .* Found: 'id'"),
        ('{"qid": "a", "label": "b"}', "id and name missing.*Found: 'qid', 'label'"),
        ('{"id": "NIL", "name": "n"}', 'id is "NIL"'),
        ('{"id": "", "name": "n"}', "id is empty"),
        ('{"id": 1.5, "name": "n"}', "id is 1.5"),
        ('{"id": true, "name": "n"}', "id is True"),
        ('{"id": "a", "name": 3}', "name is 3, not text"),
        ('{"id": "a", "name": "\\ud800"}', "name is not valid text"),
        ('{"id": "a", "name": "n", "aliases": "m"}', "aliases is 'm'.*list"),
        ('{"id": "a", "name": "n", "aliases": [1]}', "aliases is 1, not text"),
        ('{"id": "a", "name": "n", "aliases": {"m": -1}}', r"aliases\['m'\] is -1"),
        ('{"id": "a", "name": "n", "count": "many"}', "count is 'many'"),
        ('{"id": "a", "name": "n", "count": 1e999}', "count is inf"),
        ('{"id": "a", "name": "n", "count": NaN}', "count is nan"),
        ('{"id": "a", "name": "n", "id": "b"}', "the key 'id' occurs twice"),
        ('{"id": "a", "name": "n", "aliases": {"m": 1, "m": 2}}', "the key 'm' occurs twice"),
        ("[1]", "is a list, not a JSON object"),
        ('{"id": ', "is not a JSON object"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "ok", "name": "fine"}\n' + line + "\n", "utf8")
    with pytest.raises(CorpusError, match=rf"a\.jsonl, line 2\b.*{message}"):
        read(path)


@pytest.mark.parametrize(
    "text, message",
    [
        ("Q1,Ada,poet\n", "line 1: id and name missing. Required columns.*'Q1', 'Ada', 'poet'"),
        ("id,name\na,b,c\n", "line 2 has 3 fields, and the header has 2"),
        ("id,name,name\n", "'name' occurs twice"),
        ("id,name,count\na,b,x\n", "line 2: count is 'x'"),
        ('id,name\na,"b\n', "after line"),
        ("id;name\n1;a\n", "id and name missing.*Found: 'id;name'"),
        ("", "is empty. A header with id and name is required"),
        ("id,name\na," + "b" * 140_000 + "\n", "field larger than.* Use JSON lines"),
    ],
)
def test_a_wrong_csv_file_is_named(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text, "utf8")
    with pytest.raises(CorpusError, match=message):
        read(path)


def test_files_that_are_not_text_or_missing(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "\xff"}\n')
    (tmp_path / "b.csv").write_bytes('id,name\n1,ä\n2,"a\nö"\n'.encode("latin1"))
    (tmp_path / "c.csv").write_bytes("id,name\n".encode("utf16"))
    for name, line in (("b", 2), ("c", 1)):
        with pytest.raises(CorpusError, match=rf"{name}\.csv, line {line} is not UTF-8"):
            read(tmp_path / f"{name}.csv")
    (tmp_path / "a.csv").write_bytes(b"id,name\n1,\xff\n")
    for name in ("a.jsonl", "a.csv", "none.csv", "a.xml"):
        with pytest.raises(CorpusError, match=name.replace(".", r"\.")):
            read(tmp_path / name)


def test_ids_are_one_per_line(tmp_path):
    (tmp_path / "ids.txt").write_bytes(b"\xef\xbb\xbfQ1\r\n\nQ 2\n")
    assert list(read_ids(tmp_path / "ids.txt")) == ["Q1", "Q 2"]


def test_empty_lines_before_a_header_and_capital_suffixes(tmp_path):
    (tmp_path / "A.CSV").write_bytes(b"\xef\xbb\xbf\r\n\r\nid,name\r\n1,a\r\n")
    (tmp_path / "A.JSONL").write_text('{"id": 1, "name": "a"}')
    for name in ("A.CSV", "A.JSONL"):
        assert [x.id for x in read(tmp_path / name)[0]] == ["1"]
