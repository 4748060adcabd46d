"""JSON files are read object by object, and what is wrong with them has a place."""

import pytest

from spacy_luke.corpora.objects import (
    read_json_lines,
    read_json_list,
    read_json_objects,
    read_json_values,
)
from spacy_luke.errors import CorpusError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.json"


def read(path, text, reader=read_json_list):
    path.write_bytes(text.encode("utf-8"))
    return list(reader(path))


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": 2}]', '\ufeff\r\n[\r\n{"a":\n1} ,{"a": 2}\n]\n']
)
def test_a_list_is_read_whatever_its_white_space(path, text):
    assert read(path, text) == [("record 1", {"a": 1}), ("record 2", {"a": 2})]


def test_an_empty_list_has_no_objects(path):
    assert read(path, " [ ] ") == []


def test_objects_are_read_line_by_line_and_blank_lines_counted(path):
    found = read(path, '{"a": 1}\n\n{"a": 2}\r\n', read_json_lines)
    assert found == [("line 1", {"a": 1}), ("line 3", {"a": 2})]


def test_progress_adds_up_to_the_file_but_for_its_last_bracket(path):
    path.write_text('[{"a": "é"}, {"b": 2}]', encoding="utf-8")
    told = []
    list(read_json_list(path, told.append))
    assert len(told) == 2 and sum(told) == path.stat().st_size - 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "a JSON list of objects is needed, but the file is empty"),
        ("  \n", "the file is empty"),
        ('{"a": 1}', "the file begins with '{'"),
        ("[", "record 1, line 1: not JSON: Expecting value"),
        ('[{"a": 1}', "record 1, line 1: .* not the end of the file"),
        ('[{"a": 1},\n {"a"', "record 2, line 2: not JSON: Expecting ':'"),
        ('[{"a": 1},]', "record 2, line 1: not JSON"),
        ('[{"a": 1}\n{"a": 2}]', "record 1, line 2: .* not '{'"),
        ('[{"a": 1}]\n[', "line 2: text follows the end of the list"),
        ("[1]", "record 1: the record is a whole number, not an object"),
        ("[" + "[" * 100_000, "record 1"),
        ("[" + "9" * 5000 + "]", "record 1"),
    ],
)
def test_a_file_that_is_no_list_of_objects_is_one_error(path, text, message):
    with pytest.raises(CorpusError, match=message) as caught:
        read(path, text)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text, message",
    [
        (b'{"a": 1,\n "b": 2}\n{"a": 1,\n "b": 2}\n', "line 3: text follows an object that is wr"),
        (b'{"a": 1,\n "b": 2}\n\n\xe9\n', "line 4.*not UTF-8"),
        (b'{"a": 1},\n{"a": 2}\n', "line 1: not JSON: Extra data: line 1 column 9"),
        (b'\n{"a": 1} {"a": 2}\n', "line 2: not JSON: Extra data"),
        (b'{"a": 1,\n "b"}\n', "line 1: not JSON"),
        (b'{"a": 1,\n{"b": 1}\n', "line 1: not JSON"),
    ],
)
def test_an_object_on_several_lines_is_the_only_one(path, text, message):
    path.write_bytes(text)
    with pytest.raises(CorpusError, match=message):
        list(read_json_values(path))


def test_a_file_cut_off_fails_after_the_objects_before(path):
    path.write_text('[{"a": 1}, {"a": 2}, {"a":')
    items = read_json_list(path)
    assert [next(items).data, next(items).data] == [{"a": 1}, {"a": 2}]
    with pytest.raises(CorpusError, match="record 3, line 1"):
        next(items)


def test_a_file_that_cannot_be_opened_is_an_error(path):
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read_json_list(path))


@pytest.mark.parametrize(
    "text, expected",
    [
        ('{"a": 1}\n{"a": 2}', [("line 1", {"a": 1}), ("line 2", {"a": 2})]),
        ('\ufeff\r\n{"a": 1}\r\n', [("line 2", {"a": 1})]),
        ('[{"a": 1}, {"a": 2}]', [("record 1", {"a": 1}), ("record 2", {"a": 2})]),
        ('[\n {"a": 1}\n]', [("record 1", {"a": 1})]),
        ('{\n "a": 1\n}\n', [("record 1", {"a": 1})]),
        ('["a", {}]\n["b", {}]', [("line 1", ["a", {}]), ("line 2", ["b", {}])]),
        ('[["a", {}],\n["b", {}]]', [("record 1", ["a", {}]), ("record 2", ["b", {}])]),
        ("[null]", [("record 1", None)]),
        ("[ ]", []),
        ("", []),
    ],
)
def test_the_shape_of_a_file_is_detected(path, text, expected):
    assert read(path, text, read_json_values) == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"a": 1,\n{"a": 2}', "in.json, line 1: not JSON"),
        ('{"a": 1}\n{"a": 2', "in.json, line 2: not JSON"),
        ("Ada B-PER", "in.json, line 1: not JSON"),
        ("[[1]]", "record 1: the record is a list, not an object"),
        ('["a", {}]', "line 1: the record is a list, not an object"),
    ],
)
def test_a_file_of_no_shape_is_an_error(path, text, message):
    with pytest.raises(CorpusError, match=message):
        read(path, text, read_json_objects)
