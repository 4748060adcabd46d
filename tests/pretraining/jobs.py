"""Functions that workers run: importable, because they are sent to other processes by name."""

import os
import shutil
import signal
import time
from pathlib import Path

from spacy_luke.files import sha256_of
from spacy_luke.pretraining.disk import write_json
from spacy_luke.pretraining.manifest import part_of


def double(x: int) -> int:
    return 2 * x


def own_pid(x: int) -> int:
    return os.getpid()


def tell_and_sleep(folder: str) -> None:
    """Longer than any test waits."""
    Path(folder, f"worker-{os.getpid()}").touch()
    time.sleep(600)


def first_after_another(item: tuple[int, Path]) -> int:
    """The first item ends after the mark, which is set when the result of another one is there."""
    i, mark = item
    end = time.monotonic() + 120
    while i == 0 and not mark.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return i


def die_once(item: tuple[int, Path]) -> int:
    """Kills its own process the first time it is run on item 2."""
    i, folder = item
    mark = folder / f"died-{i}"
    if i == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def die_beside(item: tuple[str, int, Path]) -> None:
    """Kills its own process on "deadly", each time that so many others are at work beside it; they
    take longer than it may take to see that."""
    name, n_others, folder = item
    if name != "deadly":
        (folder / f"worker-{os.getpid()}").touch()
        time.sleep(30)
        return
    killed = folder / f"killed-{len(list(folder.glob('killed-*')))}"
    killed.touch()
    while len(list(folder.glob("worker-*"))) < n_others * len(list(folder.glob("killed-*"))):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def always_die(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def refuse(item: int) -> int:
    if item == 3:
        raise ValueError("item 3 is refused")
    return item


def write(partition: tuple[str, int], folder: Path) -> dict[str, int]:
    """Writes a word so many times, and counts."""
    word, n = partition
    (folder / "words.txt").write_text(word * n, encoding="utf8")
    return {"words": n, f"of {word}": 1}


def write_and_log(partition: tuple[str, int, Path], folder: Path) -> dict[str, int]:
    word, n, log = partition
    with log.open("a") as file:
        file.write(word + "\n")
    return write((word, n), folder)


def write_half(partition: tuple[str, int], folder: Path) -> dict[str, int]:
    """Dies in the middle of its second partition."""
    word, n = partition
    (folder / "words.txt").write_text(word * (n // 2), encoding="utf8")
    if word == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return write(partition, folder)


def write_half_once(partition: tuple[str, int, Path], folder: Path) -> dict[str, int]:
    """Dies in the middle of its second partition, the first time."""
    word, n, log = partition
    (folder / "words.txt").write_text(word * (n // 2), encoding="utf8")
    if word == "b" and not log.exists():
        log.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return write((word, n), folder)


def refuse_all(partition: tuple[str, int], folder: Path) -> dict[str, int]:
    raise ValueError("refused")


def write_too_late(partition: tuple[str, int], folder: Path) -> dict[str, int]:
    """Another worker finishes the partition first."""
    counts = write(partition, folder)
    other = folder.with_name(folder.name[1:].partition(".")[0])
    shutil.copytree(folder, other)
    claim = {"claim": sha256_of(folder.parent / "stage.json")}
    write_json(other / "part.json", {**claim, **part_of(other, other.name, counts)})
    (other / "first").touch()
    return counts


def full_disk(partition: tuple[str, int], folder: Path) -> dict[str, int]:
    with open("/dev/full", "w") as file:  # Linux: every write says that the disk is full
        file.write("x")
    return {}
