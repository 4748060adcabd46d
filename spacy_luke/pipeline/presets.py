"""Settings with which published fine-tuned checkpoints behave as published.

A preset maps the name of a component to its settings. A preset without a suffix is the protocol of
the paper (Yamada et al. 2020, section 4; for entity disambiguation Yamada et al. 2022). The suffix
``.examples`` means the protocol of the newer training scripts in the official repository, and
``.local`` disambiguation of all mentions in one pass. ``docs/reproduce.md`` explains how they
differ, and what else is needed to reproduce a published result.
"""

from copy import deepcopy
from typing import Any

from ..errors import ConfigError

Preset = dict[str, Any]


def _ner(spaces: str) -> Preset:
    return {
        "luke_ner": {
            "nested": False,
            "threshold": 0.0,
            "nil_bias": 0.0,
            "suggester": {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 16},
            "model": {
                "@architectures": "spacy-luke.SpanScorer.v1",
                "mode": "full",
                "label_weight": None,
                "layout": "context",
                "max_pieces": 16,
                "max_entities": 128,
                "encoder": {"tokenization": "tokens", "spaces": spaces},
            },
        }
    }


def _relation(spaces: str, max_mention_pieces: int | None) -> Preset:
    return {
        "luke_relation": {
            "multi_label": False,
            "threshold": 0.0,
            "pair_order": "both",
            "merge_entities": False,
            "candidates": {
                "@misc": "spacy-luke.relation_candidates.v1",
                "max_distance": None,
                "head_ids": ["subj"],
                "tail_ids": ["obj"],
            },
            "model": {
                "@architectures": "spacy-luke.PairScorer.v1",
                "mode": "markers",
                "view": "document",
                "typed_markers": False,
                "max_mention_pieces": max_mention_pieces,
                "encoder": {"tokenization": "tokens", "spaces": spaces},
            },
        }
    }


def _typing(spaces: str, max_mention_pieces: int | None) -> Preset:
    return {
        "luke_entity_typing": {
            "multi_label": True,
            "threshold": 0.5,
            "ancestors": False,
            "model": {
                "@architectures": "spacy-luke.EntityScorer.v1",
                "mode": "markers",
                "view": "document",
                "typed_markers": False,
                "max_mention_pieces": max_mention_pieces,
                # Text is cut only around mentions, so that spaCy's tokens do not change the pieces.
                "encoder": {"tokenization": "mentions", "spaces": spaces},
            },
        }
    }


def _linking(inference: str) -> Preset:
    return {
        "luke_linker": {
            "incl_prior": False,
            "threshold": 0.0,
            "nil_bias": 0.0,
            "get_candidates_batch": {
                "@misc": "spacy-luke.alias_candidates_batch.v1",
                "k": 30,
                "fuzzy": "never",
            },
            "model": {
                "@architectures": "spacy-luke.CandidateScorer.v1",
                "rows": "only",
                "attention": "full",
                "inference": inference,
                "max_rounds": 128,
                "max_entities": 128,
                "max_mention_pieces": 30,
                "encoder": {"tokenization": "mentions"},
            },
        }
    }


PRESETS: dict[str, Preset] = {
    "conll-2003": _ner("conll"),
    "conll-2003.examples": _ner("words"),
    "tacred": _relation("words", 30),
    "tacred.examples": _relation("text", None),
    "open-entity": _typing("words", 30),
    "open-entity.examples": _typing("text", None),
    "disambiguation": _linking("global"),
    "disambiguation.local": _linking("local"),
}


def preset_settings(preset: str, component: str) -> dict[str, Any]:
    """The settings of a preset for the component that a checkpoint becomes.

    Raises ConfigError for an unknown preset, and for a preset of another component.
    """
    if preset not in PRESETS:
        raise ConfigError(f"preset {preset!r} is not known; choose one of {', '.join(PRESETS)}.")
    (owner,) = PRESETS[preset]
    if owner != component:
        raise ConfigError(
            f"preset {preset!r} is for a checkpoint of {owner}; this one becomes {component}."
        )
    return deepcopy(PRESETS[preset][owner])
