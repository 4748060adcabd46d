"""Parts of vocabularies, and two joined, also of several languages."""

import pytest

from spacy_luke.vocab.editing import joined, keep_entities, lite
from spacy_luke.vocab.entity_vocab import EntityVocab

MANY = EntityVocab(
    {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "en:Tokyo": 3, "ja:東京": 3, "de:Tokio": 3, "en:Japan": 4}
)


@pytest.mark.parametrize("vocab", [MANY, MANY.indexed()], ids=["names", "index"])
def test_an_entity_keeps_all_of_its_names(vocab):
    kept = keep_entities(vocab, ["ja:東京", "en:Atlantis"])
    assert dict(kept.vocab.names.items()) == {
        "[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "en:Tokyo": 3, "ja:東京": 3, "de:Tokio": 3,
    }  # fmt: skip
    assert kept.missing == ["en:Atlantis"]


def test_names_without_a_language_are_looked_up_in_the_pipelines():
    kept = keep_entities(MANY, ["Japan"], "en")
    assert "en:Japan" in kept.vocab and not kept.missing


def test_joined_vocabularies_know_an_entity_by_all_its_names():
    own = {"[MASK]": 0, "ja:東京": 1, "fr:Tokyo": 1, "en:Halden": 2, "no:Halden": 2, "[MASK2]": 3}
    assert dict(joined(MANY, EntityVocab(own)).names.items()) == {
        **dict(MANY.names.items()), "fr:Tokyo": 3, "en:Halden": 5, "no:Halden": 5, "[MASK2]": 6,
    }  # fmt: skip


def test_special_entities_cannot_be_asked_for_as_titles():
    assert keep_entities(MANY, ["[PAD]"]).missing == ["[PAD]"]


def test_lite_has_the_published_order_and_what_is_there():
    vocab = EntityVocab({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Tokyo": 3})
    assert lite(vocab).names == {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2}
    assert lite(EntityVocab({**vocab.names, "[MASK2]": 4})).names == {
        "[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3,
    }  # fmt: skip
