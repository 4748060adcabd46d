"""sdist and wheel: complete, and installed they work outside of the clone."""

import email
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {str(x.relative_to(ROOT)) for x in (ROOT / "spacy_luke").rglob("*.py")}
TRY = """
import sys
import spacy
import spacy_luke
from spacy.training import Example

folder, encoder, out = sys.argv[1:]
assert spacy_luke.__file__.startswith(folder), spacy_luke.__file__
nlp = spacy.blank("en")
model = {"encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "name": encoder}}
nlp.add_pipe("luke_ner", config={"model": model})
doc = nlp.make_doc("Ada lives in Tokyo")
examples = [Example.from_dict(doc, {"entities": [(0, 3, "PER")]})]
optimizer = nlp.initialize(lambda: examples)
for _ in range(3):
    losses = nlp.update(examples, sgd=optimizer)
assert losses["luke_ner"] > 0
nlp.to_disk(out)
spans = [
    [(x.start, x.end, x.label_) for x in y("Ada lives in Tokyo").spans["luke_ner"]]
    for y in (nlp, spacy.load(out))
]
assert spans[0] == spans[1]
"""


def run(*args, **kwargs) -> subprocess.CompletedProcess:
    command = [sys.executable, *map(str, args)]
    result = subprocess.run(command, capture_output=True, text=True, **kwargs)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """sdist, and the wheel that is built from it."""
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    source = tmp_path_factory.mktemp("source") / "clone"
    skipped = shutil.ignore_patterns(
        ".*", "*.egg-info", "build", "project", "deploy", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=skipped)
    out = tmp_path_factory.mktemp("dist")
    run("-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", out, source)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_they_contain_all_modules(built):
    sdist, wheel = built
    names = set(zipfile.ZipFile(wheel).namelist())
    assert MODULES | {"spacy_luke/py.typed"} <= names
    assert not [x for x in names if not x.startswith("spacy_luke")]  # nor tests, nor benchmarks
    with tarfile.open(sdist) as file:
        inside = {x.partition("/")[2] for x in file.getnames()}
    assert MODULES | {"LICENSE", "README.md", "setup.cfg", "pyproject.toml"} <= inside


@pytest.mark.slow
def test_metadata_are_complete(built):
    archive = zipfile.ZipFile(built[1])
    (path,) = (x for x in archive.namelist() if x.endswith(".dist-info/METADATA"))
    metadata = email.message_from_string(archive.read(path).decode("utf8"))
    for key in ("Name", "Version", "Summary", "Author", "License", "Requires-Python", "Keywords"):
        assert metadata[key], key
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Two commands" in metadata.get_payload()
    extras = {"transformers", "pretraining", "dask", "gpu", "tests", "benchmarks"}
    assert extras == set(metadata.get_all("Provides-Extra"))


@pytest.mark.slow
def test_what_is_installed_trains_saves_and_loads(built, bert_dir, tmp_path):
    target = tmp_path / "site"
    run("-m", "pip", "install", "-q", "--no-deps", "--target", target, built[1])
    env = {**os.environ, "PYTHONPATH": str(target)}
    run("-c", TRY, target, bert_dir, tmp_path / "model", cwd=tmp_path, env=env)
    assert "to-jsonl" in run("-m", "spacy", "luke", "--help", cwd=tmp_path, env=env).stdout
