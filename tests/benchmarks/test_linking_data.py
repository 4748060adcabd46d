"""The sets of links that are made of files of this project."""

import pytest
import spacy
import srsly
from spacy.tokens import DocBin, Span

from benchmarks import linking_data


def test_entities_of_the_encyclopedia_are_counted_in_the_other_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(linking_data, "_PROJECT", tmp_path)
    with pytest.raises(FileNotFoundError, match="project run kb"):
        linking_data.encyclopedia(tmp_path, tmp_path)
    nlp = spacy.blank("en")
    texts = ["Voss met Voss.", "Voss sang.", "Voss slept.", "Voss left."]
    ids = [["Ada Voss", "Ada Voss"], ["Bo Voss"], ["Ada Voss"], ["NIL"]]
    docs = []
    for text, of_text in zip(texts, ids):
        doc = nlp(text)
        places = [token.i for token in doc if token.text == "Voss"]
        doc.ents = [Span(doc, i, i + 1, "P", kb_id=x) for i, x in zip(places, of_text)]
        docs.append(doc)
    for part, of_part in (("train", docs[:2]), ("dev", docs[2:3]), ("test", docs[3:])):
        DocBin(docs=of_part).to_disk(tmp_path / f"{part}.spacy")
    lines = [
        {"id": name, "name": name, "description": "A person.", "type": "P", "aliases": aliases}
        for name, aliases in (
            ("Ada Voss", {"Ada Voss": 0, "Voss": 1, "Miss Voss": 0}),
            ("Bo Voss", {"Bo Voss": 2, "Voss": 1}),
        )
    ]
    srsly.write_jsonl(tmp_path / "entities.jsonl", lines)

    found = linking_data.encyclopedia(tmp_path, tmp_path, fold=1, n_folds=2)

    assert [doc.text for doc in found.docs] == texts[1::2]
    assert found.docs[1].mentions == [(0, 4, "NIL")]
    assert [x.count for x in found.entities] == [2, 0]
    aliases = {x.id: x.aliases for x in found.entities}
    assert aliases == {
        "Ada Voss": {"Ada Voss": 0, "Miss Voss": 0, "Voss": 2},
        "Bo Voss": {"Bo Voss": 0},
    }
