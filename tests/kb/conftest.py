"""A small knowledge base, built from records."""

import json
from pathlib import Path

import pytest
from spacy.vocab import Vocab

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.read_records import read_entities

ENTITIES = [
    {"id": "Q1", "name": "Paris", "aliases": {"Paris": 90, "City of Light": 2}, "count": 100,
     "type": "place", "description": "The capital of France."},
    {"id": "Q2", "name": "Paris Hilton", "aliases": {"Paris": 10}, "type": "person"},
    {"id": "Q3", "name": "Paris, Texas", "aliases": ["PARIS"], "count": 30},
    {"id": "7", "name": "München", "aliases": ["Munich", "ميونخ", "ミュンヘン"], "count": 5},
    {"id": "8", "name": "Parkinson's disease", "aliases": ["PD"]},
    {"id": "8b", "name": "Parkinson's disease"},
]  # fmt: skip


def write_jsonl(path: Path, records: list) -> Path:
    path.write_text("".join(json.dumps(x) + "\n" for x in records), "utf8")
    return path


def build(folder: Path, records: list, lang: str = "en", **settings) -> Findings:
    """Write records to a file beside a folder, and the knowledge base to the folder."""
    findings = Findings()
    path = write_jsonl(folder.with_suffix(".jsonl"), records)
    return build_kb(read_entities(path, findings), folder, lang, findings=findings, **settings)


@pytest.fixture(scope="module")
def kb_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb") / "things"
    build(folder, ENTITIES)
    return folder


@pytest.fixture
def kb(kb_dir: Path) -> MappedKB:
    return MappedKB.open(kb_dir, Vocab())


def found(kb: MappedKB, text: str, settings=None) -> list[tuple[str, str]]:
    """(id, match) of the candidates of a text."""
    return [(x.id, x.match) for x in kb.candidates([text], settings)[0]]
