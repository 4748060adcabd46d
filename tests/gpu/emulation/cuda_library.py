"""The library that answers for CUDA: built once per torch version, loaded before torch."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().with_name("cuda.cpp")
BUILT = SOURCE.parents[3] / "build" / "emulated-cuda"
COMPILER = "g++"


def missing() -> str:
    """Why there can be no emulation here; empty if there can."""
    if sys.platform != "linux":
        return f"the emulated GPU was written for Linux, this is {sys.platform}"
    return "" if shutil.which(COMPILER) else f"the emulated GPU needs the compiler {COMPILER}"


def build() -> Path:
    """Compile the library, unless an earlier process has. Takes some ten seconds.

    Raises CalledProcessError if the headers of this torch do not fit the source.
    """
    source = SOURCE.read_bytes()
    name = f"emulated-cuda-{version('torch')}-{hashlib.sha256(source).hexdigest()[:12]}.so"
    library = BUILT / name
    if not library.exists():
        torch = _torch_folder()
        BUILT.mkdir(parents=True, exist_ok=True)
        built = library.with_suffix(f".{os.getpid()}")
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", str(SOURCE)]
        command += [f"-I{torch / 'include'}", f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10"]
        subprocess.run([*command, "-o", str(built)], check=True)
        built.replace(library)
    return library


def load() -> None:
    """torch looks for CUDA once, while it is imported. Raises RuntimeError if that was before."""
    if "torch" in sys.modules:
        raise RuntimeError("the emulated device has to be loaded before torch is imported")
    ctypes.CDLL(str(_torch_folder() / "lib" / "libtorch_cpu.so"))
    ctypes.CDLL(str(build()))


def _torch_folder() -> Path:
    found = find_spec("torch")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent
