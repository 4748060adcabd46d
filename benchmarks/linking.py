"""Choosing among candidates with an untrained encoder: which vectors tell them apart.

    python -m benchmarks.linking --encoder DIR --data FOLDER --results results.jsonl
    python -m benchmarks.linking --table --results results.jsonl

Only *ambiguous* mentions count: with several candidates by equal aliases, the right one among them.
An entity is the vector of its name and description, a mention one or the sum of these:

- ``mention``: the mean of its words' states;
- ``sentence``: that of its sentence; ``document``: that of its document;
- ``mask``: the state of the entity [MASK] at its place.

Cosines are compared alone, and divided by a temperature and added to the logarithm of the prior.
``luke_linker`` is the untrained component with its default settings, which may also say "NIL".
``type order`` is a rule without vectors: of places the country, else the state, else the most
populated one.
Folds of a wiki and of HIPE are by article: mentions are the links of a fold, and the counts of
aliases those of the others, where an entity is its title, or its most frequent mention.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Span

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.candidates import CandidateSettings
from spacy_luke.kb.entity import NIL, Entity, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.layers.doc_states import GivenEntities, encode_docs
from spacy_luke.layers.encoder import module_of
from spacy_luke.pipeline.entity_vectors import make_vectors

from . import results, runtime
from .datasets import default_folder
from .differences import interval
from .linking_data import LINKED_SETS, OF_OTHER_FOLDS, LinkedSet
from .markdown import markdown

VECTORS = ("mention", "sentence", "document", "mask")
SUMS = (("mention", "sentence"), ("mention", "mask"), ("mention", "sentence", "mask"))
TEMPERATURES = (0.02, 0.03, 0.05, 0.1, 0.3, 1.0)
TYPE_ORDER = "type order"
LINKER = "luke_linker"
_GROUP = "links"
_LEAST_PRIOR = 1e-3
Array = np.ndarray


class Case(NamedTuple):
    """An ambiguous mention. priors: (n,) of its candidates; ids: n of them; cosines: vector ->
    (n,); right: the number of the right candidate; doc: of its document; link: the linker's;
    text: of the mention; names: n of the candidates."""

    priors: Array
    ids: list[str]
    cosines: dict[str, Array]
    right: int
    doc: int
    link: str = ""
    text: str = ""
    names: Sequence[str] = ()


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("linking", __doc__, "build/linking", "linking.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=list(LINKED_SETS), default=list(LINKED_SETS))
    p.add_argument("--folds", nargs="+", type=int, default=[0], help="of the wiki and HIPE, 0 to 9")
    p.add_argument("--show", action="store_true", help="print where linker and prior differ")
    p.add_argument("--table", action="store_true", help="print what the results hold")
    return runtime.parsed(p, argv)


def make_encoder(lang: str, directory: str) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("sentencizer")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": directory}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    return nlp


def open_kb(nlp: Language, lang: str, entities: Sequence[Entity], folder: Path) -> MappedKB:
    """The knowledge base of a set, with vectors."""
    build_kb(iter(entities), folder, lang, findings=Findings())
    kb = MappedKB.open(folder, nlp.vocab)
    make_vectors(nlp, kb)
    return kb


def add_linker(nlp: Language, kb: MappedKB) -> None:
    """Add a linker that is not trained, with the same candidates, on the pipeline's encoder."""
    settings = {
        "spans_key": _GROUP,
        "model": {"encoder": {"@architectures": "spacy-luke.LukeListener.v1"}},
        "get_candidates_batch": {
            "@misc": "spacy-luke.alias_candidates_batch.v1",
            "fuzzy": "never",
        },
    }
    linker: Any = nlp.add_pipe("luke_linker", config=settings)
    linker.set_kb(lambda vocab: kb)
    linker.initialize(nlp=nlp)


def cases(nlp: Language, kb: MappedKB, data: LinkedSet) -> Iterator[Case]:
    settings = CandidateSettings(fuzzy="never")
    names = {entity.id: entity.name for entity in data.entities}
    for number, linked in enumerate(data.docs):
        doc = nlp.make_doc(linked.text)
        places = [doc.char_span(a, b, alignment_mode="expand") for a, b, _ in linked.mentions]
        doc.spans[_GROUP] = [span for span in places if span is not None]
        doc = nlp(doc)
        links = {(x.start, x.end): x.kb_id_ for x in doc.spans[_GROUP]}
        found = kb.candidates([linked.text[a:b] for a, b, _ in linked.mentions], settings)
        asked = [
            (span, [x.id for x in candidates], np.asarray([x.prior for x in candidates]), right)
            for span, candidates, (_, _, right) in zip(places, found, linked.mentions)
            if span is not None and len(candidates) > 1 and right in [x.id for x in candidates]
        ]
        if not asked:
            continue
        vectors = mention_vectors(nlp, [span for span, *_ in asked])
        for i, (span, ids, priors, right) in enumerate(asked):
            entities = np.stack([kb.get_vector(x) for x in ids])
            cosines = {name: entities @ _unit(table[i]) for name, table in vectors.items()}
            shown = links[span.start, span.end], span.text, [names[x] for x in ids]
            yield Case(priors, ids, cosines, ids.index(right), number, *shown)


def mention_vectors(nlp: Language, spans: Sequence[Span]) -> dict[str, Array]:
    """Vector -> (n_spans, hidden), of spans of one document."""
    encoder, doc = nlp.get_pipe("luke").model, spans[0].doc  # type: ignore[attr-defined]
    table = np.asarray([(span.start, span.end) for span in spans])
    ids = np.full(len(spans), module_of(encoder).mask_id)
    given = GivenEntities(table, ids, np.zeros(len(spans), dtype=np.int64))
    (states,) = encode_docs(encoder, [doc], [given], "probe")
    words = encoder.ops.to_numpy(states.token_vectors)
    return {
        "mention": np.stack([words[x.start : x.end].mean(0) for x in spans]),
        "sentence": np.stack([words[x.sent.start : x.sent.end].mean(0) for x in spans]),
        "document": np.repeat(words.mean(0)[None], len(spans), axis=0),
        "mask": encoder.ops.to_numpy(states.entity_vectors),
    }


def _unit(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def right_answers(found: Sequence[Case], names: Sequence[str], temperature: float) -> Array:
    """(n,) whether the best candidate is right. temperature: 0: without the prior."""
    chosen = []
    for case in found:
        score = np.sum([case.cosines[name] for name in names], axis=0) if names else 0.0
        if temperature or not names:
            prior = np.log(np.maximum(case.priors, _LEAST_PRIOR))
            score = prior + (score / temperature if names else 0.0)
        chosen.append(int(np.argmax(score)) == case.right)
    return np.asarray(chosen)


def by_type(found: Sequence[Case], data: LinkedSet) -> Array:
    """(n,) whether the candidate of the first type, of these the most probable, is right."""
    ranks = {entity.id: data.type_order.index(entity.type) for entity in data.entities}
    chosen = []
    for case in found:
        order = [(ranks[x], -prior, i) for i, (x, prior) in enumerate(zip(case.ids, case.priors))]
        chosen.append(min(order)[-1] == case.right)
    return np.asarray(chosen)


def difference(case: Case) -> str:
    """A mention on which the linker and the prior differ, and its candidates with their priors. Of
    equal priors the first candidate's counts."""
    linked = case.ids.index(case.link) if case.link in case.ids else None
    which = "linker" if linked == case.right else "prior"
    answer = NIL if linked is None else case.names[linked]
    candidates = ", ".join(f"{x} ({y:.2f})" for x, y in zip(case.names, case.priors))
    right = case.names[case.right]
    return f"{which} right: {case.text} is {right}; linked to {answer}; of {candidates}"


def run(args: argparse.Namespace, name: str) -> results.Record:
    found: list[Case] = []
    for fold in args.folds if name in OF_OTHER_FOLDS else [0]:
        of_fold = {"fold": fold} if name in OF_OTHER_FOLDS else {}
        data: LinkedSet = LINKED_SETS[name](args.data, args.work, **of_fold)
        nlp = make_encoder(data.lang, args.encoder)
        kb = open_kb(nlp, data.lang, data.entities, args.work / f"{name}.kb")
        add_linker(nlp, kb)
        # Documents of several folds have numbers of their own.
        found += [x._replace(doc=x.doc + 100_000 * fold) for x in cases(nlp, kb, data)]
    of_doc = np.asarray([case.doc for case in found])
    prior = right_answers(found, (), 0.0)
    linker = np.asarray([case.link == case.ids[case.right] for case in found])

    def row(names: Sequence[str], temperature: float, right: Array) -> list:
        """With the differences to the prior, and of the linker to this row."""
        gains = (right.astype(float) - prior, linker.astype(float) - right)
        shown = [[float(x.mean()), *interval(x, of_doc)] for x in gains]
        return [list(names), temperature, float(right.mean()), *shown]

    if args.show:
        for i in np.flatnonzero(linker != prior):
            print(difference(found[i]))
    rows = [row([LINKER], 0.0, linker)]
    for names in (*((x,) for x in VECTORS), *SUMS):
        for temperature in (0.0, *TEMPERATURES):
            rows.append(row(names, temperature, right_answers(found, names, temperature)))
    if data.type_order:
        rows.append(row([TYPE_ORDER], 0.0, by_type(found, data)))
    return {"n": len(found), "docs": len(set(of_doc)), "prior": float(prior.mean()), "rows": rows}


def table(records: Sequence[results.Record]) -> str:
    """Accuracy of each vector alone, and with the prior at each temperature (with 95 % of the
    difference to the prior); and the difference of the linker to the vector alone."""
    lines = []
    for record in records:
        of_names: dict[str, dict[float, list]] = {}
        for names, temperature, *figures in record["rows"]:
            of_names.setdefault(" + ".join(names), {})[temperature] = figures
        for shown, by_temperature in of_names.items():
            accuracy, to_prior, of_linker = by_temperature[0.0]
            is_linker = shown == LINKER
            line = {
                "set": f"{record['data']} ({record['n']} of {record['docs']} documents)",
                "prior": f"{record['prior']:.3f}",
                "vector": shown,
                "alone": f"{accuracy:.3f}" + (f" {_interval(to_prior)}" if is_linker else ""),
                "luke_linker is better by": "-" if is_linker else _difference(of_linker),
            }
            for t in [x for x in TEMPERATURES if x in by_temperature]:
                accuracy, to_prior, _ = by_temperature[t]
                line[f"/ {t:g} + prior"] = f"{accuracy:.3f} {_interval(to_prior)}"
            lines.append(line)
    return markdown(pd.DataFrame(lines))


def _interval(difference: Sequence[float]) -> str:
    _, low, high = difference
    return f"[{100 * low:+.1f}, {100 * high:+.1f}]"


def _difference(difference: Sequence[float]) -> str:
    return f"{100 * difference[0]:+.1f} {_interval(difference)}"


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.table:
        found = results.of_kind(args.results, "linking")
        print(table(list({x["data"]: x for x in found}.values())))
        return 0
    runtime.start(args.gpu_id, args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        record = {"kind": "linking", "data": name, "encoder": Path(args.encoder).name}
        results.append(args.results, {**record, "folds": args.folds, **run(args, name)})
        print(f"{name}: done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
