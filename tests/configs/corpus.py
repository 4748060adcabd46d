"""Data that all shipped configs can be trained on, and the overrides that name it."""

from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations.queries import set_completions, set_queries
from spacy_luke.annotations.questions import set_answers, set_questions
from tests.kb.conftest import build
from tests.saved.make import documents


def write_corpus(name: str, encoder: str, folder: Path) -> dict[str, Any]:
    """Write documents, and a knowledge base of their entities, to a folder. Returns the paths of
    the config ``name``."""
    path = folder / "corpus.spacy"
    docs = documents(spacy.blank("en"))
    names = sorted({ent.text for doc in docs for ent in doc.ents})
    records = ({"id": f"{x} {i}", "name": x, "type": "X"} for x in names for i in range(2))
    build(folder / "kb", list(records))
    for doc in docs:
        for ent in doc.ents:
            for token in ent:
                token.ent_kb_id_ = f"{ent.text} 1"
        if doc.ents:
            set_queries(doc, ["@placeholder was there ."])
            set_completions(doc, [[(doc.ents[0].text, [doc.ents[0]])]])
            set_questions(doc, ["Who was there ?", "Why ?"])
            set_answers(doc, [[doc.ents[0]], []])
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    of_kb = {"linker": "paths.kb", "all": "paths.kb", "known": "paths.names"}
    return {
        **({of_kb[name]: str(folder / "kb")} if name in of_kb else {}),
        "paths.train": str(path),
        "paths.dev": str(path),
        "paths.encoder": encoder,
    }
