"""Arrays mapped from files, also from damaged ones, also where Python refuses a header."""

import ast
from pathlib import Path

import numpy as np
import pytest

from spacy_luke.errors import VocabError
from spacy_luke.mapped_array import map_array, save_array
from tests.full_disk import no_more_space

ERROR = "AST constructor recursion depth mismatch (before=39, after=36)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "ids.npy", np.arange(7))
    return tmp_path / "ids.npy"


@pytest.mark.parametrize("scattered", [True, False])
def test_it_is_the_saved_array_and_cannot_be_written(file: Path, scattered: bool) -> None:
    array = map_array(file, VocabError, scattered)
    assert type(array) is np.ndarray and array.tolist() == list(range(7))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("n", [0, 1, 7, 4_000])
def test_a_saved_array_is_the_same(tmp_path: Path, n: int) -> None:
    save_array(tmp_path / "a.npy", np.arange(n))
    assert np.load(tmp_path / "a.npy").tolist() == list(range(n))


@pytest.mark.parametrize("n", [3_990, 40_000])
def test_an_array_whose_end_is_not_written_is_an_error(tmp_path: Path, n: int) -> None:
    with no_more_space(4_096), pytest.raises(OSError):
        save_array(tmp_path / "a.npy", np.zeros(n, np.uint8))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells how files are read")
@pytest.mark.parametrize("scattered", [True, False])
def test_the_system_reads_ahead_unless_reads_are_scattered(file: Path, scattered: bool) -> None:
    array = map_array(file, VocabError, scattered)
    _, _, of_file = Path("/proc/self/smaps").read_text().partition(str(file))
    flags = next(x for x in of_file.splitlines() if x.startswith("VmFlags:"))
    assert ("rr" in flags.split()) == scattered and len(array)


def test_an_empty_array_can_be_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.zeros((0, 3), np.float32))
    assert map_array(tmp_path / "ids.npy", VocabError, scattered=True).shape == (0, 3)


def test_a_missing_and_a_damaged_file_are_the_given_error(file: Path) -> None:
    for content in (b"", b"\x93NUMPY\x01\x00\x06\x00{'desc", file.read_bytes()[:-1]):
        file.write_bytes(content)
        with pytest.raises(VocabError, match="ids.npy cannot be read"):
            map_array(file, VocabError, scattered=True)
    file.unlink()
    with pytest.raises(VocabError, match="ids.npy cannot be read"):
        map_array(file, VocabError, scattered=True)


def failing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """The parser of headers fails so often, as it does beside another thread in some Pythons."""
    calls: list[int] = []
    parse = ast.literal_eval

    def parse_or_fail(text: str) -> object:
        calls.append(1)
        if len(calls) <= times:
            raise SystemError(ERROR)
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", parse_or_fail)
    return calls


def test_a_header_that_python_refuses_for_another_thread_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = failing(monkeypatch, 2)
    assert map_array(file, VocabError, scattered=True).tolist() == list(range(7))
    assert len(calls) == 3


def test_a_header_that_python_always_refuses_is_the_given_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, 10_000)
    with pytest.raises(VocabError, match="recursion depth mismatch"):
        map_array(file, VocabError, scattered=True)
