"""Candidates on real data: not fewer than were measured (``docs/knowledge_base.md``)."""

from pathlib import Path

import pytest
from spacy.vocab import Vocab

from benchmarks.knowledge_base import SETTINGS, mapped_lookup, scores
from benchmarks.linking_data import diseases, places
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.knowledge_base import MappedKB
from tests.conftest import require_data


@pytest.mark.parametrize(
    "read, folder, part, row, least",
    [
        (diseases, "disease-linking", "NCBI develop", "normalised", (0.38, 0.38)),
        (diseases, "disease-linking", "NCBI develop", "similar (default)", (0.5, 0.6)),
        (places, "geovirus-linking", "GeoVirus", "normalised", (0.9, 0.94)),
    ],
)
def test_recall(data_dir: Path, tmp_path: Path, read, folder, part, row, least):
    require_data(data_dir / folder)
    entities, parts = read(data_dir, tmp_path)
    build_kb(entities, tmp_path / "kb", "en")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    measured = scores(parts[part], mapped_lookup(kb, SETTINGS[row]))
    assert measured["recall_1"] >= least[0] and measured["recall_30"] >= least[1]
