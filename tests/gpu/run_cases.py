"""Runs cases on the emulated device: ``python -m tests.gpu.run_cases FOLDER [NAME ...]``.

FOLDER has the tiny checkpoints ``luke`` and ``bert``. Prints a line of JSON per case: its name,
what it found, and the traceback if it raised. With ``--real`` before FOLDER they run on a GPU, but
those that count copies, which only the emulated device can.
"""

import json
import logging
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

REAL = sys.argv[1:2] == ["--real"]

if not REAL:
    from tests.gpu.emulation import install

    install()

import spacy  # noqa: E402

from tests.configs.test_configs import PIPELINES  # noqa: E402
from tests.gpu import cases  # noqa: E402


def named(folder: Path) -> dict[str, Callable[[], Any]]:
    luke, bert = folder / "luke", folder / "bert"

    def work(name: str) -> Path:
        path = folder / "work" / name.replace(" ", "-")
        path.mkdir(parents=True)
        return path

    found: dict[str, Callable[[], Any]] = {}
    for case in cases.CASES:
        found[case] = lambda case=case: cases.there_and_back(case, str(luke), work(case))
        if not REAL:
            found[f"counts {case}"] = partial(cases.counts, case, str(luke))
    for config in PIPELINES:
        name = f"config {config}"
        found[name] = lambda config=config, name=name: cases.config(config, str(bert), work(name))
    found["commands"] = lambda: cases.commands(str(bert), work("commands"))
    found["threads"] = partial(cases.threads, str(luke))
    found["rules"] = partial(cases.rules, not REAL)
    found["moving"] = partial(cases.moving, str(luke))
    found["pretraining"] = lambda: cases.pretraining(bert, work("pretraining"))
    return found


def main(folder: Path, only: list[str]) -> None:
    logging.getLogger("spacy").setLevel(logging.ERROR)
    spacy.require_gpu(0)
    for name, run in named(folder).items():
        if only and name not in only:
            continue
        record: dict[str, Any] = {"case": name}
        try:
            record["found"] = run()
        except Exception:
            record["error"] = traceback.format_exc()
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    folder, *names = sys.argv[1 + REAL :]
    main(Path(folder), names)
