"""Which entities a mention looks for, by the masked-entity head of ``transformers``' formula."""

from dataclasses import replace

import pytest
import spacy
import torch
from spacy.tokens import Doc, Span

from spacy_luke.errors import ConfigError
from spacy_luke.layers.encoder import module_of, set_encoder, to_checkpoint
from spacy_luke.pipeline.entity_store import replace_entities
from spacy_luke.pipeline.published import import_checkpoint
from spacy_luke.vocab.editing import lite
from spacy_luke.vocab.entity_vocab import EntityVocab

TEXT = "Ada Lovelace was born in London and worked with Charles Babbage."


@pytest.fixture(scope="module")
def directory(make_checkpoint):
    return make_checkpoint("luke", "LukeForMaskedLM")


@pytest.fixture()
def nlp(directory):
    return import_checkpoint(str(directory), "en")


def test_probabilities_are_those_of_the_published_head(nlp, directory):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.LukeForMaskedLM.from_pretrained(directory).eval()
    luke = nlp.get_pipe("luke")
    doc = nlp.make_doc(TEXT)
    mentions = [doc[0:2], doc[5:6], doc[9:11]]
    doc.ents = [Span(doc, x.start, x.end, "X") for x in mentions]  # no id: they enter as [MASK]
    states = torch.tensor(luke(doc)._.luke.entity_vectors)
    with torch.no_grad():
        logits = theirs.entity_predictions(states)
    names = dict(module_of(luke.model).entities.names.items())
    specials = [index for name, index in names.items() if name.startswith("[")]
    logits[:, specials] = -torch.inf
    expected = logits.softmax(1)
    found = luke.masked_entities(mentions, n=30)
    assert len(found) == 3 and all(len(x) == len(names) - len(specials) for x in found)
    for row, ranked in zip(expected, found):
        assert [share for _, share in ranked] == sorted((x for _, x in ranked), reverse=True)
        assert sum(share for _, share in ranked) == pytest.approx(1.0, abs=1e-5)
        for title, share in ranked:
            assert share == pytest.approx(row[names[title]].item(), abs=1e-5)
    assert luke.masked_entities(mentions[:2], n=3)[0] != luke.masked_entities([doc[5:6]], n=3)[0]


def test_mentions_of_many_documents_come_back_in_their_order(nlp):
    luke = nlp.get_pipe("luke")
    docs = [nlp.make_doc(f"{name} is large.") for name in ("Tokyo", "London", "Paris")]
    mentions = [doc[i : i + 1] for i in (0, 2) for doc in docs]
    together = luke.masked_entities(mentions, n=2)
    apart = [luke.masked_entities([doc[0:1], doc[2:3]], n=2) for doc in docs]
    for k, ranked in enumerate(together):
        expected = apart[k % 3][k // 3]
        assert [title for title, _ in ranked] == [title for title, _ in expected]
        assert [x for _, x in ranked] == pytest.approx([x for _, x in expected], abs=1e-5)


def test_titles_are_in_the_language_of_the_document(nlp):
    luke = nlp.get_pipe("luke")
    checkpoint = to_checkpoint(module_of(luke.model))
    names = {}
    for name, index in checkpoint.entities.names.items():
        names |= {name: index} if name[0] == "[" else {f"de:{name}": index, f"en:{name}": index}
    set_encoder(luke.model, replace(checkpoint, entities=EntityVocab(names)))
    doc = nlp.make_doc("Tokyo is large.")
    (found,) = luke.masked_entities([doc[0:1]])
    assert len(found) == 10 and all(title.startswith("en:") for title, _ in found)


def test_what_has_no_pieces_finds_nothing(make_checkpoint):
    nlp = import_checkpoint(str(make_checkpoint("bert-luke", "LukeForMaskedLM")), "en")
    doc = Doc(nlp.vocab, words=["Tokyo", " ", "lies"], spaces=[True, False, False])
    found = nlp.get_pipe("luke").masked_entities([doc[1:2], doc[0:1]], n=1)
    assert found[0] == [] and len(found[1]) == 1
    assert nlp.get_pipe("luke").masked_entities([]) == []
    with pytest.raises(ConfigError, match="n is 0; it must be at least 1"):
        nlp.get_pipe("luke").masked_entities([doc[0:1]], n=0)


def test_a_vocabulary_of_special_entities_has_none_to_find(nlp):
    luke = nlp.get_pipe("luke")
    doc = nlp.make_doc("Tokyo is large.")
    replace_entities(luke.model, lite(module_of(luke.model).entities))
    assert luke.masked_entities([doc[0:1], doc[2:3]]) == [[], []]


def test_many_mentions_are_scored_some_at_a_time(nlp):
    luke = nlp.get_pipe("luke")
    doc = nlp.make_doc("Tokyo is large. " * 40)
    mentions = [doc[i : i + 1] for i in range(0, 160, 4)]
    found = luke.masked_entities(mentions, n=2)
    again = luke.masked_entities(mentions[::-1], n=2)[::-1]
    assert len(found) == 40 and [[x for x, _ in y] for y in found] == [
        [x for x, _ in y] for y in again
    ]


def test_an_encoder_without_the_head_is_told(bert_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.initialize()
    with pytest.raises(ConfigError, match="has no masked-entity head"):
        nlp.get_pipe("luke").masked_entities([nlp.make_doc("Tokyo")[0:1]])
