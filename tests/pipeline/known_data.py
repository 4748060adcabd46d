"""Documents with a group of known spans, and pipelines that read it."""

from spacy.tokens import Doc, Span

from tests.pipeline.conftest import ANNOTATED, make_examples, make_ner

TWO_WORDS = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 2}
LISTED = {"Ada Lovelace": "name", "London": "place", "Tokyo": "place", "Japan": "place"}


def with_group(doc, spans=None):
    """Known spans (start, end, label, id); by default the names of ``LISTED``."""
    if spans is None:
        words = [x.text for x in doc]
        spans = [
            (i, i + len(name.split()), label, "")
            for name, label in LISTED.items()
            for i in range(len(words))
            if words[i : i + len(name.split())] == name.split()
        ]
    doc.spans["known"] = [Span(doc, a, b, label=label, kb_id=kb) for a, b, label, kb in spans]
    return doc


def listed_examples(nlp, data=ANNOTATED):
    examples = make_examples(nlp, data)
    for eg in examples:
        with_group(eg.predicted)
    return examples


def make_known(directory, **config):
    nlp = make_ner(directory, known="known", **config)
    examples = listed_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp, examples


def words(nlp, text):
    return Doc(nlp.vocab, words=text.split(" "))


def asked(nlp, doc):
    """{(start, end): logits} of the candidates that were scored."""
    query, scores = nlp.get_pipe("luke_ner").predict([doc])
    places = query.table[scores.rows].tolist()
    return {tuple(place): row for place, row in zip(places, scores.logits)}
