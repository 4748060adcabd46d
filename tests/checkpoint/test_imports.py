"""What the package imports."""

import ast
from pathlib import Path

import pytest

import spacy_luke

SOURCES = sorted(Path(spacy_luke.__file__).parent.rglob("*.py"))


def imported(path):
    """Every module that a file imports, at the top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            first = node.args[0] if node.args else None
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield first.value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_transformers_is_imported_nowhere(path):
    assert "transformers" not in {name.split(".")[0] for name in imported(path)}


def test_the_scan_sees_nested_imports(tmp_path):
    file = tmp_path / "nested.py"
    file.write_text(
        "def f():\n    from transformers.models import x\n"
        "def g():\n    import importlib\n    importlib.import_module('transformers')\n"
    )
    assert sorted(imported(file)) == ["importlib", "transformers", "transformers.models"]
