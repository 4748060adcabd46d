"""The package as installed: entry points, light imports, floors."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_luke"

# A floor imports only from floors below it; rooms of one floor do not see each other.
FLOORS = [
    {"errors", "files", "forked_locks", "report", "sorted_hashes", "ties"},
    {"json_file", "mapped_array", "validation"},
    {"calibration"},
    {"annotations", "kb", "model", "vocab"},
    {"inputs", "checkpoint", "corpora", "metrics", "names"},
    {"layers", "pretraining"},
    {"pipeline"},
    {"cli"},
]


def entry_points() -> list[tuple[str, str, str]]:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    section = config["options.entry_points"]
    rows = []
    for group in section:
        for line in section[group].strip().splitlines():
            name, _, target = line.partition("=")
            rows.append((group, name.strip(), target.strip()))
    return rows


@pytest.mark.parametrize("group,name,target", entry_points())
def test_every_entry_point_names_something(group: str, name: str, target: str) -> None:
    module, _, attribute = target.partition(":")
    assert callable(getattr(import_module(module), attribute))


def test_every_registered_name_is_an_entry_point() -> None:
    names = {name for _, name, _ in entry_points()}
    registered = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and decorator.args:
                        first = decorator.args[0]
                        if isinstance(first, ast.Constant) and str(first.value).startswith(
                            "spacy-luke."
                        ):
                            registered.add(first.value)
    assert registered
    assert registered <= names


def test_importing_the_package_imports_nothing_but_spacy_and_its_annotations() -> None:
    code = """
import sys, spacy
spacys = set(sys.modules)
import spacy_luke
new = {x for x in set(sys.modules) - spacys}
print(*sorted({".".join(x.split(".")[:2]) for x in new}))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    own = ["annotations", "errors", "ties"]  # what annotations need
    assert result.stdout.split() == ["spacy_luke", *(f"spacy_luke.{x}" for x in own)]


IMPORT_EVERYTHING = """
import ast, logging, os, pkgutil, sys, threading, warnings
from importlib import import_module
from pathlib import Path

import spacy_luke

package = Path(spacy_luke.__file__).parent
names = [x.name for x in pkgutil.walk_packages([str(package)], "spacy_luke.")]
for path in package.rglob("*.py"):  # what others do when they are imported is theirs
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.Import):
            [import_module(x.name) for x in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = import_module(node.module)
            for x in node.names:
                if not hasattr(module, x.name):
                    import_module(f"{node.module}.{x.name}")

import dask, distributed, matplotlib, torch

forks = []
os.register_at_fork = lambda **hooks: forks.append(hooks)


def state():
    return {
        "backend": dict.__getitem__(matplotlib.rcParams, "backend"),
        "dask": dask.config.collect() and repr(dask.config.config),
        "environment": dict(os.environ),
        "fork hooks": len(forks),
        "handlers": list(logging.getLogger().handlers),
        "path": list(sys.path),
        "precision": torch.get_default_dtype(),
        "pyplot": "matplotlib.pyplot" in sys.modules,
        "threads": (threading.active_count(), torch.get_num_threads()),
        "warnings": list(warnings.filters),
    }


before = state()
for name in names:
    import_module(name)
after = state()
wrong = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
sys.exit(f"changed: {wrong}" if wrong else 0)
"""


def test_importing_every_module_changes_nothing_in_the_process() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def floor_of(module: str) -> int:
    return next(i for i, floor in enumerate(FLOORS) if module in floor)


def test_floors_import_downwards_only() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        here = floor_of(parts[0])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = ("spacy_luke", *parts)[: -node.level]
                target = (*base, *(node.module or "").split("."))[1:]
                name = target[0] if target and target[0] else node.names[0].name
                if name != parts[0] and name != "__version__" and floor_of(name) >= here:
                    wrong.append(f"{'.'.join(parts)} imports {name}")
    assert not wrong


def test_wiki_imports_nothing_of_the_pretraining_around_it() -> None:
    for path in (PACKAGE / "pretraining" / "wiki").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                target = f"{node.module}, level {node.level}"
                assert node.level == 1 or floor_of(str(node.module)) == 0, (path.name, target)


def test_the_components_work_with_transformers_uninstalled(luke_dir: Path, tmp_path: Path) -> None:
    """The two packages are hidden from imports and from entry points."""
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("transformers", "spacy_transformers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import importlib.metadata as metadata
every = metadata.distributions
absent = ("transformers", "spacy-transformers")
metadata.distributions = lambda **kw: (d for d in every(**kw) if d.metadata["Name"] not in absent)
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("luke", config={{"model": {{"name": {str(luke_dir)!r}}}}})
nlp.add_pipe("luke_ner", config={{"model": {{"encoder": {{
    "@architectures": "spacy-luke.LukeListener.v1"}}}}}})
from spacy.training import Example
doc = nlp.make_doc("Ada lives in Tokyo")
eg = Example.from_dict(doc, {{"entities": [(0, 3, "PER")]}})
nlp.initialize(lambda: [eg])
nlp.update([eg])
nlp.to_disk({str(tmp_path)!r})
nlp = spacy.load({str(tmp_path)!r})
nlp("Ada lives in Tokyo")._.luke.token_vectors
assert not any(m.split(".")[0] in ("transformers", "spacy_transformers") for m in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
