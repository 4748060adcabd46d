"""Counts that tell how much of the package a reader has to know.

    python -m tests.structure            # a table of counts
    python -m tests.structure --names    # and what was counted

The rules:

lines
    Of all Python files of the package, blank ones and docstrings included.
classes and files on the path
    One document is predicted and one is learned from (with an optimizer's step) by a ``luke_ner``
    with an encoder of its own (``tests/saved/ner_two_stage``, which has done the same once
    before), under ``sys.setprofile``. A file counts if a function of it ran; a class if a method of
    it, or the constructor of one of its instances, did. Exceptions do not count.
returns upward
    On that walk, and on one through a ``luke_ner`` that listens to a ``luke`` component
    (``tests/saved/joint``), pairs of functions of ours of which the first called the second,
    directly or through a library, and lives on a lower floor (``FLOORS`` of
    ``tests/test_package.py``).
functions over 40 lines
    From ``def`` to the last line, docstring included.
functions above complexity 15
    Cyclomatic complexity, as radon counts it for functions and methods.
``Any`` in signatures
    How often the name stands in annotations of parameters and of returned values.
comment lines
    Lines that hold nothing but a comment.
"""

import argparse
import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from tests.test_package import PACKAGE, floor_of

MOST_LINES, MOST_COMPLEX = 40, 15


def sources() -> Iterator[tuple[str, str]]:
    """Name and text of every module, in order."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), path.read_text(encoding="utf8")


def functions(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(ast.parse(text))
    return [x for x in nodes if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef)]


def long_functions() -> list[str]:
    return [
        f"{name}:{node.name}"
        for name, text in sources()
        for node in functions(text)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > MOST_LINES
    ]


def complex_functions() -> list[str]:
    from radon.complexity import cc_visit
    from radon.visitors import Function

    return [
        f"{name}:{block.fullname}"
        for name, text in sources()
        for block in cc_visit(text)
        if isinstance(block, Function) and block.complexity > MOST_COMPLEX
    ]


def any_in_signatures() -> list[str]:
    found = []
    for name, text in sources():
        for node in functions(text):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            every += [x for x in (node.args.vararg, node.args.kwarg) if x is not None]
            annotations = [x.annotation for x in every] + [node.returns]
            for annotation in filter(None, annotations):
                names = [x for x in ast.walk(annotation) if isinstance(x, ast.Name)]
                found += [f"{name}:{node.name}" for x in names if x.id == "Any"]
    return found


def comment_lines() -> int:
    return sum(line.lstrip().startswith("#") for _, text in sources() for line in text.splitlines())


class Walk:
    """The classes, files and upward calls of what runs between :meth:`start` and :meth:`stop`."""

    def __init__(self) -> None:
        self.classes: set[str] = set()
        self.files: set[str] = set()
        self.upward: set[str] = set()
        self._modules: dict[str, str] = {}

    def record(self, run: Callable[[], Any]) -> None:
        sys.setprofile(self._call)
        try:
            run()
        finally:
            sys.setprofile(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        module = self._module(frame)
        if module is None:
            return
        self.files.add(module)
        self._add_classes(frame)
        caller = frame.f_back
        while caller is not None and self._module(caller) is None:
            caller = caller.f_back
        if caller is not None:
            before = self._module(caller)
            if before is not None and self._floor(before) < self._floor(module):
                names = (caller.f_code.co_name, frame.f_code.co_name)
                self.upward.add(f"{before}:{names[0]} -> {module}:{names[1]}")

    def _floor(self, module: str) -> int:
        return floor_of(module.split(".")[1])

    def _module(self, frame: FrameType) -> str | None:
        """The module of ours that a frame's function is from. Constructors of dataclasses and
        named tuples are in no file: they are of their class."""
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_filename.startswith("<"):
            name = getattr(self._owner(frame), "__module__", "")
        elif not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        return name if name.startswith("spacy_luke.") else None

    def _owner(self, frame: FrameType) -> type | None:
        if frame.f_code.co_varnames[:1] in (("cls",), ("_cls",)):
            owner = frame.f_locals.get(frame.f_code.co_varnames[0])
            return owner if isinstance(owner, type) else None
        if frame.f_code.co_varnames[:1] == ("self",):
            return type(frame.f_locals.get("self"))
        return None

    def _add_classes(self, frame: FrameType) -> None:
        owner = self._owner(frame)
        if owner is None:
            return
        defining = [
            kind
            for kind in owner.__mro__
            if any(
                getattr(_function(x), "__code__", None) is frame.f_code for x in vars(kind).values()
            )
        ]
        for kind in (owner, *defining):
            if kind.__module__.startswith("spacy_luke."):
                self.classes.add(f"{kind.__module__}.{kind.__qualname__}")


def _function(member: Any) -> Any:
    """What a property, a class method or a plain method runs."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def walk(saved: str) -> Walk:
    """Through one of the saved pipelines."""
    from tests.saved.make import documents, examples, load

    nlp = load(Path(__file__).parent / "saved" / saved)
    doc, example = documents(nlp, gold=False)[0], examples(nlp)[1]
    optimizer = nlp.resume_training()
    result = Walk()
    nlp.select_pipes(enable=[x for x in ("luke", "luke_ner") if x in nlp.pipe_names])
    nlp(doc.copy())
    nlp.update([example], sgd=optimizer)
    result.record(lambda: nlp(doc))
    result.record(lambda: nlp.update([example], sgd=optimizer))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts of the package's structure.")
    parser.add_argument("--names", action="store_true", help="also say what was counted")
    args = parser.parse_args()
    path, shared = walk("ner_two_stage"), walk("joint")
    n_lines = sum(len(text.splitlines()) for _, text in sources())
    counts: dict[str, int | list[str]] = {
        "lines": n_lines,
        "classes on the path": sorted(path.classes),
        "files on the path": sorted(path.files),
        "returns upward": sorted(path.upward | shared.upward),
        f"functions over {MOST_LINES} lines": long_functions(),
        f"functions above complexity {MOST_COMPLEX}": complex_functions(),
        "Any in signatures": any_in_signatures(),
        "comment lines": comment_lines(),
    }
    for name, found in counts.items():
        print(f"{name}: {found if isinstance(found, int) else len(found)}")
        if args.names and not isinstance(found, int):
            print("".join(f"    {x}\n" for x in found), end="")


if __name__ == "__main__":
    main()
