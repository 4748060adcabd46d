"""Stages: partitions finished once, folders that say what they hold."""

import errno
import shutil
from pathlib import Path

import pytest

from spacy_luke.errors import ConfigError, CorpusError, StageError, WorkerError
from spacy_luke.pretraining.disk import fingerprint
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.manifest import files_of_input, read_manifest
from spacy_luke.pretraining.stage import begin
from spacy_luke.pretraining.stage_lock import lock
from tests.pretraining import jobs

ALONE = Engine(workers=1)
TWO = Engine(workers=2)
PARTS = [("a", 3), ("b", 4), ("c", 5)]


def run(folder: Path, work=jobs.write, parts=PARTS, engine=ALONE, **changes):
    settings = {"size": 1, "rule": {"name": "x"}} | changes
    with begin("words", folder, settings, {"in": "1:ab"}, len(parts)) as stage:
        return stage.run(parts, work, engine, show_progress=False)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_finished_stage_says_what_it_holds(tmp_path):
    manifest = run(tmp_path)
    assert [path.read_text() for path in manifest.paths("words.txt")] == ["aaa", "bbbb", "ccccc"]
    assert manifest.counts == {"words": 12, "of a": 1, "of b": 1, "of c": 1}
    assert read_manifest(tmp_path, "words") == manifest
    manifest.verify()


def test_the_number_of_workers_changes_no_byte(tmp_path):
    run(tmp_path / "one")
    run(tmp_path / "two", engine=TWO)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_only_what_is_missing_is_computed(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "stage"
    parts = [(word, n, log) for word, n in PARTS]
    before = run(folder, jobs.write_and_log, parts)
    assert run(folder, jobs.write_and_log, parts) == before
    assert log.read_text() == "a\nb\nc\n"
    (folder / "part-00001" / "part.json").unlink()
    assert run(folder, jobs.write_and_log, parts) == before
    assert log.read_text() == "a\nb\nc\nb\n"


def test_what_a_killed_run_left_is_finished_by_the_next(tmp_path):
    with pytest.raises(WorkerError):
        run(tmp_path / "killed", jobs.write_half, engine=TWO)
    with pytest.raises(StageError, match="no finished stage 'words'"):
        read_manifest(tmp_path / "killed", "words")
    run(tmp_path / "killed")
    run(tmp_path / "whole")
    assert snapshot(tmp_path / "killed") == snapshot(tmp_path / "whole")


@pytest.mark.parametrize("name", ["local", "dask"])
def test_what_a_killed_worker_left_is_removed_at_the_end(tmp_path, name):
    if name == "dask":
        pytest.importorskip("distributed", reason="the Dask engine needs dask and distributed")
    parts = [(word, n, tmp_path / "log") for word, n in PARTS]
    run(tmp_path / "stage", jobs.write_half_once, parts, Engine(name, workers=2))
    assert (tmp_path / "log").exists()
    run(tmp_path / "whole")
    assert snapshot(tmp_path / "stage") == snapshot(tmp_path / "whole")


@pytest.mark.parametrize(
    "changes,message",
    [({"size": 2}, "settings.size = 1"), ({"rule": {"name": "y"}}, "settings.rule.name = 'x'")],
)
def test_a_folder_of_other_settings_is_refused(tmp_path, changes, message):
    run(tmp_path)
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, **changes)


def test_a_folder_where_nothing_is_finished_takes_other_settings(tmp_path):
    """They may be what ended the run."""
    with pytest.raises(ValueError, match="refused"):
        run(tmp_path, jobs.refuse_all)
    run(tmp_path, size=2)
    with pytest.raises(ConfigError, match="settings.size = 2"):
        run(tmp_path)


def test_settings_that_are_fewer_are_other_settings(tmp_path):
    """Of a list, of a mapping, of the inputs; and none at all."""
    for more, less in (({"of": [1, 2]}, {"of": [1]}), ({"of": {"a": 1, "b": 2}}, {"of": {"a": 1}})):
        for first, second in ((more, less), (less, more), (more, {"of": []}), (more, {})):
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            run(folder, **first)
            with pytest.raises(ConfigError, match="was started with settings.of"):
                run(folder, **second)


def test_what_is_finished_counts_also_where_its_parts_are_gone(tmp_path):
    run(tmp_path)
    for part in tmp_path.glob("part-*"):
        shutil.rmtree(part)
    with pytest.raises(ConfigError, match="settings.size = 1"):
        run(tmp_path, size=2)


def test_a_part_of_other_settings_is_no_part_of_ones_own(tmp_path):
    """A worker that outlived its run writes it when the settings have been corrected."""
    run(tmp_path / "late", parts=[("x", 1), *PARTS[1:]])
    with pytest.raises(ValueError, match="refused"):
        run(tmp_path / "mine", jobs.refuse_all, size=2)
    run(tmp_path / "whole")
    shutil.copytree(tmp_path / "late" / "part-00000", tmp_path / "mine" / "part-00000")
    with pytest.raises(ConfigError, match="settings.size = 2"):
        run(tmp_path / "mine")
    run(tmp_path / "mine", size=2).verify()
    assert (tmp_path / "mine" / "part-00000" / "words.txt").read_text() == "aaa"


def test_a_folder_that_is_at_work_is_not_taken(tmp_path):
    def other() -> None:
        with pytest.raises(StageError, match="Another run is using"):
            run(tmp_path, size=2)

    with begin("words", tmp_path, {"size": 1}, {}, 3):
        before = (tmp_path / "stage.json").read_bytes()
        other()
        assert (tmp_path / "stage.json").read_bytes() == before


def test_a_file_in_the_folders_place_is_named(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ConfigError, match="out is a file; choose a folder"):
        run(tmp_path / "out")


def test_a_file_that_is_given_twice_is_refused(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("b" if name == "c" else name)
    found = files_of_input([tmp_path / "a", tmp_path / "b"])
    assert list(found) == ["0 a", "1 b"] and len(set(found.values())) == 2
    with pytest.raises(ConfigError, match="c is a copy of .*b: it would count twice"):
        files_of_input([tmp_path / x for x in ("a", "b", "c")])


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        run(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_lock_of_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        run(tmp_path)
    assert not (tmp_path / ".lock").exists()
    (tmp_path / "thesis.txt").unlink()
    (tmp_path / ".lock").write_text("mine")
    run(tmp_path)
    assert (tmp_path / ".lock").read_text() == "mine"


def test_a_finished_stage_is_found_where_nothing_can_be_written(tmp_path, monkeypatch):
    first, opened = run(tmp_path), Path.open

    def read_only(path, mode="r", *args, **kwargs):
        if set(mode) & set("aw+"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", read_only)
    with lock(tmp_path):  # another reader
        assert run(tmp_path) == first
    with pytest.raises(PermissionError):
        run(tmp_path.parent / "other")


def test_what_is_not_finished_yet_keeps_no_settings(tmp_path):
    """A checkpoint that a killed run was writing is under another name."""
    with pytest.raises(ValueError, match="refused"):
        run(tmp_path, jobs.refuse_all)
    left = tmp_path / "checkpoints" / ".checkpoint-000000001.0a1b2c3d"
    left.mkdir(parents=True)
    (left / "state.json").write_text("{}")
    run(tmp_path, size=2)


def test_the_number_of_partitions_is_part_of_what_a_folder_is_for(tmp_path):
    with (
        begin("words", tmp_path, {}, {}, n_parts=2) as stage,
        pytest.raises(ValueError, match="3 partitions for a stage of 2"),
    ):
        stage.run(PARTS, jobs.write, ALONE, show_progress=False)


def test_folders_are_named_from_the_root(tmp_path, monkeypatch):
    """Workers of a cluster may have been started elsewhere."""
    monkeypatch.chdir(tmp_path)
    manifest = run(Path("here"))
    monkeypatch.chdir("/")
    manifest.verify()
    assert manifest.folder == tmp_path / "here"


@pytest.mark.parametrize("where", ["stage_lock", "stage"])
def test_a_full_disk_is_said_whatever_is_written(tmp_path, monkeypatch, where):
    def full(path: Path, data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"spacy_luke.pretraining.{where}.write_json", full)
        with pytest.raises(StageError, match=f"disk of {tmp_path}.* is full"):
            run(tmp_path / "out")
    run(tmp_path / "out").verify()


def test_a_stage_of_another_name_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(StageError, match="contains the stage 'words', not 'shards'"):
        read_manifest(tmp_path, "shards")


def test_damaged_and_missing_files_are_named(tmp_path):
    manifest = run(tmp_path)
    path = tmp_path / "part-00002" / "words.txt"
    path.write_text("ccccd")
    with pytest.raises(StageError, match="part-00002/words.txt is damaged"):
        manifest.verify()
    path.unlink()
    with pytest.raises(StageError, match="words.txt is missing"):
        manifest.verify()
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StageError, match="is not a manifest"):
        read_manifest(tmp_path, "words")


@pytest.mark.parametrize("data", [b"", b'{"stage": "wor', b"[1]", b"\xff\xfe"])
@pytest.mark.parametrize("name", ["stage.json", "part-00001/part.json", "manifest.json"])
def test_a_file_of_its_own_that_is_damaged_is_named(tmp_path, name, data):
    run(tmp_path)
    if name != "manifest.json":
        (tmp_path / "manifest.json").unlink()
    (tmp_path / name).write_bytes(data)
    with pytest.raises(StageError, match=f"{name} is damaged"):
        run(tmp_path)


def test_a_part_that_another_worker_has_finished_meanwhile_is_left(tmp_path):
    """One of a run before this, which was killed without it."""
    manifest = run(tmp_path, jobs.write_too_late)
    manifest.verify()
    assert len(list(tmp_path.glob("part-*/first"))) == len(PARTS)
    assert not list(tmp_path.glob(".part-*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    with pytest.raises(StageError, match="is full"):
        run(tmp_path, jobs.full_disk)
    assert not list(tmp_path.glob("*part-*"))
    run(tmp_path).verify()


def test_one_run_at_a_time(tmp_path):
    import fcntl

    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StageError, match="Another run is using"):
            run(tmp_path)


def test_fingerprints_differ_with_content(tmp_path):
    path = tmp_path / "dump"
    path.write_bytes(b"x" * 10)
    first = fingerprint(path)
    path.write_bytes(b"y" * 10)
    assert first != fingerprint(path)
    content = bytearray(b"x" * (5 << 20))
    path.write_bytes(content)
    first = fingerprint(path)
    content[len(content) // 2] = ord("y")  # as where a name or a date in a plain export is edited
    path.write_bytes(content)
    assert first != fingerprint(path)
    with pytest.raises(CorpusError, match="is not a file"):
        fingerprint(tmp_path)
