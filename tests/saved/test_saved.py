"""Pipelines saved by an earlier revision load, and answer and learn as they did then."""

import json
from pathlib import Path
from typing import Any

import pytest
from spacy.language import Language

from tests.saved.make import WITHOUT, answers, load

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def compare(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            compare(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected)):
            compare(one, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5), where
    else:
        assert found == expected, where


def load_saved(name: str) -> Language:
    if "spacy-transformers." in (FOLDER / name / "config.cfg").read_text("utf8"):
        pytest.importorskip("spacy_transformers")
    return load(FOLDER / name)


@pytest.mark.parametrize("name", NAMES)
def test_a_pipeline_of_an_earlier_revision_answers_and_learns_as_it_did(name: str) -> None:
    nlp = load_saved(name)
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf8"))
    compare(answers(nlp), expected, name)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_saved_to_the_same_files(name: str, tmp_path: Path) -> None:
    nlp = load_saved(name)
    nlp.to_disk(tmp_path, exclude=WITHOUT)
    files = [{x.relative_to(y) for x in y.rglob("*")} for y in (tmp_path, FOLDER / name)]
    assert files[0] == files[1]


def test_every_component_is_there() -> None:
    metas = [json.loads((FOLDER / name / "meta.json").read_text("utf8")) for name in NAMES]
    names = {component for meta in metas for component in meta["pipeline"]}
    assert {"luke", "luke_ner", "luke_relation", "luke_entity_typing", "tagger"} <= names
