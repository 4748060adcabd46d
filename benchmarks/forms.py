"""F1 of trained pipelines on the same test data in other forms: lower-cased, upper-cased, as single
sentences, and as documents of 20 sentences.

    python -m benchmarks.forms --pipelines DIR ... --test test.spacy --results results.jsonl
    python -m benchmarks.forms --table --results results.jsonl

Pipelines read text and find their own sentence starts; ``--gold-tokens`` gives them the words and
sentence starts of the data. ``--set`` overrides a value of their config when they are loaded. The
option ``--forms`` of ``ner_modes`` and ``recipe`` scores the same forms of what they train;
``--table`` prints these results, too.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import dot_to_dict

from spacy_luke.corpora.case import change_doc
from spacy_luke.corpora.parts import cut, join

from . import results, runtime
from .chosen import chosen_runs
from .datasets import bare, load
from .markdown import markdown, spread

OF_DOCUMENT = 20
FORMS = ("as given", "lower", "upper", "sentences", "documents")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("forms", __doc__, "build/forms", "results.jsonl")
    runtime.add_device(p)
    p.add_argument("--pipelines", nargs="+", type=Path, default=[], metavar="DIR")
    p.add_argument("--test", type=Path, help="annotated documents, .spacy")
    p.add_argument("--limit", type=int, default=0, help="documents of --test; 0: all")
    p.add_argument("--gold-tokens", action="store_true", help="give words and sentence starts")
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    p.add_argument("--table", action="store_true", help="print what the results hold")
    args = runtime.parsed(p, argv)
    if not args.table and not (args.pipelines and args.test):
        p.error("--pipelines and --test are required without --table")
    return args


def forms(docs: Sequence[Doc]) -> dict[str, list[Doc]]:
    """The documents in every form. Sentences need annotated sentence starts."""
    sentences = [part for doc in docs for part in cut(doc, [x.start for x in doc.sents])[0]]
    return {
        "as given": list(docs),
        "lower": [change_doc(doc, "lower") for doc in docs],
        "upper": [change_doc(doc, "upper") for doc in docs],
        "sentences": sentences,
        "documents": joined(sentences),
    }


def joined(docs: Sequence[Doc]) -> list[Doc]:
    """Documents of 20 neighbouring ones."""
    return [join(docs[i : i + OF_DOCUMENT]) for i in range(0, len(docs), OF_DOCUMENT)]


def predicted(nlp: Language, docs: Iterable[Doc], gold_tokens: bool = False) -> list[Example]:
    """What a pipeline finds, beside what is right. gold_tokens: the pipeline gets the words and
    sentence starts, not the text."""
    examples = [Example(_unannotated(nlp, doc, gold_tokens), doc) for doc in docs]
    for example, doc in zip(examples, nlp.pipe(eg.predicted for eg in examples)):
        example.predicted = doc
    return examples


def prf(examples: Sequence[Example]) -> dict[str, float]:
    """Strict precision, recall and F1 of ``Doc.ents``, in percent."""
    found = get_ner_prf(examples)
    return {x: 100 * (found[f"ents_{x}"] or 0.0) for x in "fpr"}


def score(nlp: Language, docs: Iterable[Doc], gold_tokens: bool = False) -> dict[str, float]:
    """The same of what a pipeline finds."""
    return prf(predicted(nlp, docs, gold_tokens))


def _unannotated(nlp: Language, doc: Doc, gold_tokens: bool) -> Doc:
    if gold_tokens:
        return bare(nlp, doc)
    if doc.has_unknown_spaces:  # as spaCy's corpus reader: there is no text to read
        return Doc(nlp.vocab, words=[token.text for token in doc])
    return nlp.make_doc(doc.text)


def table(records: Sequence[results.Record]) -> str:
    """Test F1 in each form, mean and standard deviation over seeds; by data, otherwise in the order
    of the records."""
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def data_of(record: results.Record) -> tuple[Any, ...]:
        settings = record["settings"]
        sizes = (settings.get(x) or 0 for x in ("size", "train_limit"))
        return record["data"], *sizes, settings.get("given") or ""

    for record in sorted(records, key=data_of):
        settings = record["settings"]
        data = [str(x) for x in data_of(record) if x]
        row = [record["row"], *(f"{name} {value}" for name, value in _changes(settings))]
        rows.setdefault((", ".join(data), ", ".join(row)), []).append(record["forms"])
    return markdown(
        pd.DataFrame(
            {
                "data": data,
                "row": row,
                "seeds": str(len(found)),
                **{f"F1 {form}": spread(x[form]["f"] for x in found) for form in FORMS},
            }
            for (data, row), found in rows.items()
        )
    )


def _changes(settings: dict[str, Any]) -> list[tuple[str, Any]]:
    """What was set, but for whole blocks: name and value."""
    changes = [*settings.get("set", []), *settings.get("overrides", {}).items()]
    return [(name, value) for name, value in changes if not isinstance(value, dict)]


def _shown(records: Sequence[results.Record]) -> list[results.Record]:
    """Of runs of ``ner_modes`` with the same overrides, those at the best rate; all others."""
    groups: dict[str, list[results.Record]] = {}
    for record in records:
        groups.setdefault(str(record["settings"].get("overrides")), []).append(record)
    best = [rows for group in groups.values() for rows in chosen_runs(group).values()]
    runs = [x for rows in best for found in rows.values() for x in found]
    return [x for x in (*runs, *(x for x in records if x["kind"] != "run")) if "forms" in x]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if args.table:
        print(table(_shown(results.read([args.results]))))
        return 0
    runtime.start(args.gpu_id, args.threads)
    from spacy import load as load_pipeline  # registered names first

    test = forms(load(args.test)[: args.limit or None])
    overrides = dot_to_dict({name: json.loads(value) for name, value in args.set})
    for path in args.pipelines:
        nlp = load_pipeline(path, config=overrides)
        record: results.Record = {
            "kind": "forms",
            "data": args.test.stem,
            "row": str(path),
            "seed": 0,
            "settings": {
                "limit": args.limit,
                "gold_tokens": args.gold_tokens,
                **({"set": args.set} if args.set else {}),
            },
            "forms": {form: score(nlp, docs, args.gold_tokens) for form, docs in test.items()},
        }
        results.append(args.results, record)
        print(table([record]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
