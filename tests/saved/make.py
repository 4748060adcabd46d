"""Makes the pipelines in this folder, and what they are expected to answer.

    python -m tests.saved.make FOLDER

The ones that are kept here were made with revision 1072d9c, so that later revisions can be
compared with it. Run the script with an older revision only: pipelines that are made and read by
the same revision show nothing.
"""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 80,
}
ENCODER, LISTENER = "spacy-luke.LukeEncoder.v1", "spacy-luke.LukeListener.v1"
NARROW = {"window": 24, "overlap": 6}
STOCK = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}
ANY_PAIR = {"@misc": "spacy-luke.relation_candidates.v1", "max_distance": None}

WITHOUT = ["tokenizer"]
"""Of the language, and large."""

# Text; entities: start, end, label, identifier, types; relations: head and tail by number, label.
TEXTS: list[tuple[str, list[tuple], list[tuple]]] = [
    (
        "Ada Lovelace was born in London . She worked with Charles Babbage in London .",
        [
            (0, 2, "PER", "Q1", ["/person", "/person/scientist"]),
            (5, 6, "LOC", "Q2", ["/place"]),
            (10, 12, "PER", "Q3", ["/person"]),
            (13, 14, "LOC", "Q2", ["/place"]),
        ],
        [(0, 1, "born_in"), (0, 2, "knows"), (2, 1, "lives_in")],
    ),
    (
        "Tokyo is the capital of Japan , and its largest city .",
        [(0, 1, "LOC", "Q4", ["/place"]), (5, 6, "LOC", "Q5", ["/place"])],
        [(0, 1, "lives_in")],
    ),
    (
        " ".join(["The University of Tokyo was founded in 1877 by the Meiji government ."] * 4),
        [
            (1, 4, "ORG", "Q6", ["/organisation"]),
            (14, 17, "ORG", "Q6", ["/organisation"]),
            (29, 30, "LOC", "Q4", ["/place"]),
        ],
        [(0, 2, "lives_in")],
    ),
    ("She disagreed , of course !", [], []),
]


def configs(encoder: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Pipeline -> component -> its config."""

    def own(**settings: Any) -> dict[str, Any]:
        return {"@architectures": ENCODER, "name": encoder, **settings}

    listener = {"@architectures": LISTENER}
    spans = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 4}
    relation = {"candidates": ANY_PAIR, "threshold": 0.0}
    return {
        "luke": {"luke": {"model": own(**NARROW, entity_labels=["PER", "LOC"]), "eager": True}},
        "ner_two_stage": {
            "luke_ner": {"model": {"encoder": own(**NARROW)}, "suggester": spans, "nil_bias": 4.0}
        },
        "ner_full": {
            "luke_ner": {
                "model": {
                    "mode": "full",
                    "max_entities": 16,
                    "encoder": own(**NARROW, tokenization="mentions"),
                },
                "suggester": spans,
                "nil_bias": 4.0,
            }
        },
        "relation_probe": {
            "luke_relation": {
                "model": {"mode": "probe", "encoder": own(**NARROW)},
                "merge_entities": True,
                "pair_order": "text",
                "symmetric": ["knows"],
                **relation,
            }
        },
        "relation_markers": {
            "luke_relation": {
                "model": {
                    "mode": "markers",
                    "typed_markers": True,
                    "max_mention_pieces": 5,
                    "encoder": own(),
                },
                "multi_label": True,
                **relation,
            }
        },
        "typing_markers": {
            "luke_entity_typing": {
                "model": {"mode": "markers", "view": "sentence", "encoder": own(**NARROW)},
                "threshold": 0.0,
            }
        },
        "joint": {
            "luke": {"model": own(**NARROW)},
            "tagger": {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": STOCK}},
            "luke_ner": {"model": {"encoder": listener}, "suggester": spans, "nil_bias": 1.0},
            "luke_relation": {"model": {"encoder": listener}, "multi_label": True, **relation},
            "luke_entity_typing": {"model": {"encoder": listener}, "threshold": 0.0},
        },
    }


def documents(nlp: Language, gold: bool = True) -> list[Doc]:
    """The texts with their entities and, as gold, with all that is learned from."""
    docs = []
    for text, entities, relations in TEXTS:
        words = text.split()
        starts = [i == 0 or words[i - 1] == "." for i in range(len(words))]
        tags = ["NNP" if word.istitle() else "X" for word in words] if gold else None
        doc = Doc(nlp.vocab, words=words, sent_starts=starts, tags=tags)
        spans = [Span(doc, a, b, label=label, kb_id=qid) for a, b, label, qid, _ in entities]
        doc.set_ents(spans, default="outside")
        if gold:
            for span, (*_, types) in zip(spans, entities):
                span._.types = dict.fromkeys(types, 1.0)
            doc._.relations = [(spans[a], spans[b], label) for a, b, label in relations]
        docs.append(doc)
    return docs


def examples(nlp: Language) -> list[Example]:
    return [Example(*both) for both in zip(documents(nlp, gold=False), documents(nlp))]


def make(parts: dict[str, dict[str, Any]]) -> Language:
    """A pipeline trained for a few steps."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    for name, config in parts.items():
        nlp.add_pipe(name, config=config)
    nlp.initialize(lambda: examples(nlp))
    optimizer = Adam(5e-3, L2=0.0, use_averages=False)
    for _ in range(15):
        nlp.update(examples(nlp), sgd=optimizer, drop=0.0)
    return nlp


def answers(nlp: Language) -> dict[str, Any]:
    """What a pipeline answers: the arrays of every component's scores, what ends up on the
    documents, and the losses and gradients of an update."""
    found: dict[str, Any] = {"scores": {}, "losses": {}, "gradients": {}}
    for name, pipe in nlp.pipeline:
        if name.startswith("luke_"):
            _, scores = pipe.predict(documents(nlp, gold=False))
            found["scores"][name] = [np.asarray(x, dtype=float).tolist() for x in scores]
    found["documents"] = [_written(doc) for doc in nlp.pipe(documents(nlp, gold=False))]
    if any(name.startswith("luke_") for name in nlp.pipe_names):
        nlp.update(examples(nlp), sgd=False, drop=0.0, losses=found["losses"])
        for name, pipe in nlp.pipeline:
            found["gradients"][name] = _gradients(pipe)
    return found


def load(path: Path) -> Language:
    return spacy.load(path, exclude=WITHOUT)


def rounded(value: Any) -> Any:
    """Floats with seven digits, in whatever holds them."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _written(doc: Doc) -> dict[str, Any]:
    def place(span: Span) -> list:
        return [span.start, span.end, span.label_]

    written: dict[str, Any] = {"entities": [place(span) for span in doc.ents]}
    if "luke_ner" in doc.spans:
        written["probabilities"] = doc.spans["luke_ner"].attrs["scores"].tolist()
    written["tags"] = [token.tag_ for token in doc]
    written["relations"] = [
        [place(x.head), place(x.tail), x.label, float(x.score)] for x in doc._.relations
    ]
    written["types"] = [dict(span._.types or {}) for span in doc.ents]
    if doc.has_extension("luke") and doc._.luke is not None:
        written["token_vectors"] = doc._.luke.token_vectors.tolist()
        written["entity_vectors"] = [span._.luke_vector.tolist() for span in doc.ents]
    return written


def _gradients(pipe: Any) -> float:
    """The sum of all magnitudes."""
    total = 0.0
    for node in pipe.model.walk():
        for shim in node.shims:
            for parameter in shim.module.parameters():
                total += 0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
    return total


def main(folder: Path) -> None:
    from tests.conftest import write_checkpoint

    folder = folder.resolve()
    with TemporaryDirectory() as directory:
        os.chdir(directory)  # the encoder's name goes into the pipelines
        Path("tiny").mkdir()
        write_checkpoint(Path("tiny"), "bert-luke", None, **TINY)
        for name, parts in configs("tiny").items():
            nlp = make(parts)
            nlp.to_disk(folder / name, exclude=WITHOUT)
            found = json.dumps(rounded(answers(load(folder / name))), ensure_ascii=False)
            (folder / f"{name}.json").write_text(found + "\n", encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
