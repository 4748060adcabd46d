"""The benchmark of the knowledge base, with few names."""

import numpy as np
import pytest
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from benchmarks import knowledge_base, linking_data, results
from spacy_luke.kb.knowledge_base import MappedKB


@pytest.mark.slow
def test_all_kinds_are_measured_and_shown(tmp_path, capsys):
    work = ["--work", str(tmp_path)]
    knowledge_base.main([*work, "--entities", "1500"])
    records = results.read([tmp_path / "results.jsonl"])
    mapped, lookup, sqlite = records
    assert [x["row"] for x in records] == list(knowledge_base.ROWS.values())
    assert mapped["exact_recall_30"] == lookup["exact_recall_30"] == 1
    assert mapped["similar_recall_30"] > 0.95 and sqlite["similar_recall_30"] > 0.8
    assert mapped["vectors_per_second"] > 0 and lookup["vectors_per_second"] > 0
    kb = MappedKB.open(tmp_path / "mapped-1500", Vocab())
    stock = InMemoryLookupKB(kb.vocab, knowledge_base.WIDTH)
    stock.from_disk(tmp_path / "lookup-1500")
    assert np.array_equal(kb.get_vector("E7"), np.asarray(stock.get_vector("E7"), np.float32))
    assert "vectors_per_second" not in sqlite and kb.get_vector("E7").any()
    knowledge_base.main([*work, "--table"])
    assert "misspelt names per second" in capsys.readouterr().out


def test_recall_counts_mentions_of_known_entities_only():
    mention = linking_data.LinkedMention
    ids = {"a": "x", "b": "yz", "c": ""}
    mentions = [mention(text, frozenset(x)) for text, x in ids.items()]
    answers = {"a": ["x", "y"], "b": ["x", "z"], "c": ["x"]}
    measured = knowledge_base.scores(mentions, lambda texts: [answers[x] for x in texts])
    assert (measured["recall_1"], measured["recall_30"]) == (0.5, 1.0)
    assert (measured["mentions"], measured["nil_candidates"]) == (2, 1.0)


def test_invented_names_are_the_same_every_time():
    first, again = (list(linking_data.invented(50)) for _ in range(2))
    assert [x.name for x in first] == [x.name for x in again]
    assert all(len(x.aliases) == 3 for x in first)
