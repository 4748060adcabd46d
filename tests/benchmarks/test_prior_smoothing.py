"""What the share of all spellings does to the most probable candidate."""

from spacy.vocab import Vocab

from benchmarks.prior_smoothing import right
from spacy_luke.kb import candidates
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.knowledge_base import MappedKB


def test_only_ambiguous_mentions_count_by_the_share(tmp_path):
    firm = Entity("firm", "Apple", {"Apple": 70.0})
    fruit = Entity("fruit", "Apple", {"Apple": 30.0})
    tape = Entity("tape", "APPLE", {"APPLE": 900.0})
    build_kb(iter([firm, fruit, tape, Entity("ada", "Ada", {"Ada": 1.0})]), tmp_path / "kb", "en")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    mentions = [("Apple", "firm"), ("Ada", "ada"), ("Apple", "ada"), ("APPLE", "tape")]
    assert right(kb, mentions, 0.0) == right(kb, mentions, 0.1) == [True, True]
    assert right(kb, mentions, 1.0) == [False, True]
    assert candidates.SMOOTHING == 0.1
