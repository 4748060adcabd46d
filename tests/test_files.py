"""Files and folders appear whole or not at all, whoever writes beside us."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_luke import files
from spacy_luke.files import (
    remove_folder,
    remove_unfinished,
    sha256_of,
    whole_file,
    whole_folder,
)


def names(folder: Path) -> list[str]:
    return sorted(x.name for x in folder.iterdir())


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127, "京" * 85])
def test_names_may_be_as_long_as_the_system_allows(tmp_path, name):
    with whole_file(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_when_it_is_complete(tmp_path, durable):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with path.open() as mapped:
        with whole_file(path, durable) as temporary:
            temporary.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new" and names(tmp_path) == ["a.txt"]
        assert mapped.read() == "old"  # replaced, not written over


@pytest.mark.skipif(sys.platform == "win32", reason="links, modes and pipes of POSIX")
def test_links_are_followed_modes_kept_and_pipes_written_to(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real.name)
    with whole_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o600
    read, written = os.pipe()
    with whole_file(Path(f"/dev/fd/{written}")) as path:
        path.write_text("through")
    assert os.read(read, 9) == b"through" and names(tmp_path) == ["link.txt", "real.txt"]
    os.close(read)
    os.close(written)
    with whole_file(Path(os.devnull)) as path:
        path.write_text("nothing")
    assert Path(os.devnull).is_char_device()


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
@pytest.mark.parametrize("is_there", [True, False])
def test_of_a_link_the_folder_is_replaced(tmp_path, is_there):
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    (real if is_there else real.parent).mkdir(parents=True)
    link.symlink_to(real)
    with whole_folder(link) as temporary:
        (temporary / "b.txt").write_text("new")
    assert link.is_symlink() and names(real) == ["b.txt"]
    assert names(tmp_path) == ["disk", "link"] and names(real.parent) == ["real"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_folder_is_replaced_when_it_is_complete(tmp_path, durable):
    path = tmp_path / "a"
    for word in ("old", "new"):
        with whole_folder(path, durable) as temporary:
            (temporary / "sub").mkdir()
            (temporary / "sub" / word).touch()
            assert not (path / "sub" / word).exists()
    assert names(path / "sub") == ["new"] and names(tmp_path) == ["a"]


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_an_error_leaves_what_was_there(tmp_path, whole):
    with whole(tmp_path / "a") as temporary:
        temporary.touch()
    before = (tmp_path / "a").stat()
    with pytest.raises(RuntimeError), whole(tmp_path / "a") as temporary:
        temporary.touch()
        raise RuntimeError
    assert names(tmp_path) == ["a"] and (tmp_path / "a").stat() == before


def test_an_interruption_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").touch()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if target.name == "a" and not (self / "old").exists():
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "a"):
        pass
    assert names(tmp_path) == ["a"] and names(tmp_path / "a") == ["old"]


def test_a_folder_may_decide_at_the_end_that_the_old_one_stays(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").touch()
    with whole_folder(tmp_path / "a", keep=(tmp_path / "a" / "old").exists) as temporary:
        (temporary / "new").touch()
    assert names(tmp_path) == ["a"] and names(tmp_path / "a") == ["old"]


def test_durable_means_that_content_is_synced_before_the_name(tmp_path, monkeypatch):
    synced = []

    def sync(path: Path) -> None:
        synced.append((path.name.partition(".0")[0], names(tmp_path)))

    monkeypatch.setattr(files, "_sync", sync)
    monkeypatch.setattr(files.uuid, "uuid4", lambda: files.uuid.UUID(int=0))
    with whole_folder(tmp_path / "a", durable=True) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "file").touch()
    hidden = [".a.00000000"]
    assert synced[:3] == [("sub", hidden), ("file", hidden), (".a", hidden)]
    assert synced[3:] == [(tmp_path.name, ["a"])]
    synced.clear()
    with whole_file(tmp_path / "b", durable=True) as temporary:
        temporary.touch()
    assert synced == [(".b", [".b.00000000", "a"]), (tmp_path.name, ["a", "b"])]


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    code = f"""
import os
from pathlib import Path
from spacy_luke.files import whole_file, whole_folder
folder = Path({str(tmp_path)!r})
with whole_file(folder / "a.json") as one, whole_folder(folder / "b") as two:
    one.touch()
    (two / "c").touch()
    os._exit(1)
"""
    subprocess.run([sys.executable, "-c", code])
    assert len(names(tmp_path)) == 2
    for name in ("kept", ".lock", ".a.json"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert names(tmp_path) == [".a.json", ".lock", "kept"]


def test_a_removed_folder_is_gone_by_its_name_first(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    seen = []
    monkeypatch.setattr(files, "_remove", lambda path: seen.append(path.name))
    remove_folder(tmp_path / "a")
    assert names(tmp_path) == seen != ["a"]


def test_the_hash_of_files_is_that_of_one_after_the_other(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "b").write_bytes(b"y")
    expected = hashlib.sha256(b"x" * 3_000_000 + b"y").hexdigest()
    assert sha256_of(tmp_path / "a", tmp_path / "b") == expected


WRITERS = {
    "folder": """
with whole_folder(folder / "a") as temporary:
    (temporary / "b").write_text(str(os.getpid()))
""",
    "archive": """
Archive("encoder", {}, {"a": torch.zeros(8)}).to_file(folder / "encoder.safetensors")
""",
    "vocabulary": """
EntityIndex.build([("[MASK]", 0), ("Ada", 1)]).save(folder / "entities")
""",
}


@pytest.mark.parametrize("kind", WRITERS)
def test_two_processes_write_to_one_place(tmp_path, kind):
    """The last one wins; neither finds its files gone."""
    code = f"""
import os
from pathlib import Path
import torch
from spacy_luke.files import whole_folder
from spacy_luke.layers.archive import Archive
from spacy_luke.vocab.entity_index import EntityIndex
folder = Path({str(tmp_path)!r})
print(flush=True)
input()  # start together
for _ in range(100):
    {WRITERS[kind].strip().replace(chr(10), chr(10) + "    ")}
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [x.returncode for x in processes] == [0, 0], errors
    assert not any(x.startswith(".") for x in names(tmp_path))
