"""Pipelines that give entities types, and what they say."""

from spacy.training import Example

from tests.pipeline.relation_data import SENTENCES, make_examples, make_pipeline

MODES = ("markers", "probe")
PATHS = {"/person", "/person/scientist", "/place"}


def make(directory, mode="probe", **config):
    return make_pipeline("luke_entity_typing", directory, mode, **config)


def types_of(nlp, make_examples=make_examples, **settings) -> list[list[set[str]]]:
    docs = nlp.pipe([eg.predicted for eg in make_examples(nlp)], **settings)
    return [[set(ent._.types) for ent in doc.ents] for doc in docs]


def scores_of(nlp, batch_size: int) -> list[dict[str, float]]:
    docs = nlp.pipe([eg.predicted for eg in make_examples(nlp)], batch_size=batch_size)
    return [dict(sorted(ent._.types.items())) for doc in docs for ent in doc.ents]


GOLD = [[set(types) for *_, types in ents] for _, ents, _ in SENTENCES]
LEAVES = {"/person/scientist", "/place"}


def one_type_each(nlp) -> list[Example]:
    """Every entity has exactly its most specific type."""
    examples = make_examples(nlp)
    for eg in examples:
        for ent in eg.reference.ents:
            ent._.types = {name: 1.0 for name in ent._.types if name in LEAVES} or {"/place": 1.0}
    return examples
