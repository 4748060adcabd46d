"""``known_names`` with invented names: building, files, opening, speed and memory.

python -m benchmarks.known_names --names 1000000
python -m benchmarks.known_names --names 100000 --kinds known span_ruler
python -m benchmarks.known_names --data FOLDER
python -m benchmarks.known_names --table --results benchmarks/results/known_names.jsonl

The first two are about invented names. The third finds the names of the Disease Ontology in BC5CDR
and compares them with the diseases there: what a list is worth alone.

Texts are sentences of the project's encyclopedia, into which a listed name, in capitals, is set
after every tenth word. Beside the component alone, a ``luke_ner`` (untrained, on ``--encoder``) is
timed without and with it. ``span_ruler`` has the same names and compares them in lower case. Every
figure is of a process of its own. The results are appended to ``results.jsonl`` in ``--work``.
"""

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.formats import get_format
from spacy_luke.corpora.lines import ignore_progress
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.names.listed_name import ListedName

from . import linking_data, results, runtime
from .markdown import markdown
from .peer_data import ARTICLES

KINDS = {"known": "known_names", "span_ruler": "span_ruler"}
LABELS = ("PERSON", "ORG", "GPE", "PRODUCT")
KEY = "known_names"
N_NAMES_IN_TEXT = 2_000
WORDS_PER_NAME = 10
N_NER_DOCS = 40
ROUNDS = 3


def invented(n: int) -> Iterator[ListedName]:
    """The names, without aliases, of invented entities."""
    for i, entity in enumerate(linking_data.invented(n)):
        yield ListedName(entity.name, LABELS[i % len(LABELS)], entity.id)


def texts(n: int) -> list[str]:
    """Texts of about a hundred words with names of the list."""
    step = max(n // N_NAMES_IN_TEXT, 1)
    names = [x.text.upper() for x in islice(invented(n), 0, None, step)]
    random.Random(0).shuffle(names)
    lines = [json.loads(x)["text"] for x in ARTICLES.read_text("utf8").splitlines()]
    words = " ".join(lines).split()
    parts = []
    for i, name in enumerate(names[:N_NAMES_IN_TEXT]):
        at = i * WORDS_PER_NAME % (len(words) - WORDS_PER_NAME)
        parts.append(" ".join([*words[at : at + WORDS_PER_NAME], name]))
    return [" ".join(parts[i : i + 10]) for i in range(0, len(parts), 10)]


def build(n: int, work: Path, kind: str) -> results.Record:
    """Make a list and save its component."""
    folder = work / f"{kind}-{n}"
    shutil.rmtree(folder, ignore_errors=True)
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe(KEY) if kind == "known" else _ruler(nlp)
    names = list(invented(n))
    before = runtime.resident()
    record: results.Record = {}
    with runtime.Clock() as clock:
        if kind == "known":
            record["findings"] = dict(pipe.set_names(names).counts)
        else:
            pipe.add_patterns([{"label": x.label, "pattern": x.text, "id": x.id} for x in names])
        nlp.to_disk(folder)
    record |= _seconds("build", clock)
    record["build_mib"] = runtime.peak_memory(-1) - before
    record["disk_mib"] = sum(x.stat().st_size for x in folder.glob(f"*{KEY}/**/*")) / 2**20
    return record


def find(n: int, work: Path, kind: str) -> results.Record:
    """Open a saved component, find names, and change the list."""
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe(KEY) if kind == "known" else _ruler(nlp)
    docs = [nlp.make_doc(text) for text in texts(n)]
    before = runtime.resident_trimmed()
    with runtime.Clock() as clock:
        pipe.from_disk(work / f"{kind}-{n}" / KEY)
    record = _seconds("open", clock)
    record["open_mib"] = runtime.resident_trimmed() - before
    record["words"] = sum(map(len, docs))
    seconds = []
    for _ in range(ROUNDS):
        copies = [doc.copy() for doc in docs]
        with runtime.Clock() as clock:
            for doc in copies:
                pipe(doc)
        seconds.append(clock.process)
    record["words_per_second"] = record["words"] / min(seconds)
    record["first_words_per_second"] = record["words"] / seconds[0]
    record["spans"] = sum(len(doc.spans[KEY]) for doc in copies)
    record["find_mib"] = runtime.resident() - before
    with runtime.Clock() as clock:
        if kind == "known":
            pipe.add([ListedName("Nobody Listed", "PERSON")])
        else:
            pipe.add_patterns([{"label": "PERSON", "pattern": "Nobody Listed"}])
    return record | _seconds("add", clock)


def ner(n: int, work: Path, kind: str, encoder: str) -> results.Record:
    """Words per second of a pipeline with luke_ner: without names, with names before it, and with
    names as its input."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    model = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": encoder}
    component: Any = nlp.add_pipe("luke_ner", config={"model": {"encoder": model}, "known": KEY})
    doc = nlp.make_doc("Ada met Bo")
    doc.spans[KEY] = [Span(doc, 0, 1, label=x) for x in LABELS]
    examples = [spacy.training.Example.from_dict(doc, {"entities": [(0, 3, x)]}) for x in LABELS]
    nlp.initialize(lambda: examples)
    pipe: Any = nlp.add_pipe(KEY, first=True) if kind == "known" else _ruler(nlp, first=True)
    pipe.from_disk(work / f"{kind}-{n}" / KEY)
    given = texts(n)[:N_NER_DOCS]
    words = sum(len(nlp.make_doc(x)) for x in given)

    def measure(row: str) -> runtime.Clock:
        disabled = [KEY] if row == "without" else []
        component.known = KEY if row == "input" else None
        with runtime.Clock() as clock, nlp.select_pipes(disable=disabled):
            list(nlp.pipe(given))
        return clock

    process = runtime.interleave(["without", "with", "input"], ROUNDS, measure, -1)[0]["seconds"]
    return {f"ner_{row}_per_second": words / min(seconds) for row, seconds in process.items()}


def alone(data: Path) -> Iterator[results.Record]:
    """Strict precision, recall and F1 of the entities that a list alone gives."""
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe(KEY, config={"annotate_ents": True})
    pipe.set_names(data / "disease-ontology" / "kb.jsonl", label="Disease")
    path = data / "bc5cdr" / "CDR_DevelopmentSet.PubTator.txt"
    read = get_format("pubtator").reader
    gold = list(read(path, spacy.blank("en"), ConvertOptions(), Report(), ignore_progress))
    for match in ("exact", "normalised"):
        pipe.match = match
        right = n_found = n_gold = 0
        for doc in gold:
            entities = {x for x in _places(doc) if x[2] == "Disease"}
            found = _places(pipe(nlp.make_doc(doc.text)))
            right, n_found = right + len(found & entities), n_found + len(found)
            n_gold += len(entities)
        p, r = right / n_found, right / n_gold
        scores = {"precision": p, "recall": r, "f": 2 * p * r / (p + r), "gold": n_gold}
        yield {"row": "list alone", "match": match, "names": len(pipe.names.forms), **scores}


def _places(doc: Doc) -> set[tuple[int, int, str]]:
    return {(x.start_char, x.end_char, x.label_) for x in doc.ents}


def _seconds(what: str, clock: runtime.Clock) -> results.Record:
    """Of the process, and by the wall clock, which other work on the machine makes longer."""
    return {f"{what}_seconds": clock.process, f"{what}_wall_seconds": clock.wall}


def _ruler(nlp: Language, first: bool | None = None) -> Any:
    config = {"spans_key": KEY, "phrase_matcher_attr": "LOWER", "spans_filter": None}
    return nlp.add_pipe("span_ruler", name=KEY, config=config, first=first)


def tables(records: Sequence[results.Record]) -> str:
    rows = [
        {
            "match": x["match"],
            "names": f"{x['names']:,}",
            "P": f"{100 * x['precision']:.1f}",
            "R": f"{100 * x['recall']:.1f}",
            "F1": f"{100 * x['f']:.1f}",
        }
        for x in records
        if x["row"] == "list alone"
    ]
    parts = [markdown(pd.DataFrame(rows))] if rows else []
    sizes = [x for x in records if x["row"] != "list alone"]
    return "\n\n".join([*parts, *([size_table(sizes)] if sizes else [])])


def size_table(records: Sequence[results.Record]) -> str:
    columns: dict[str, dict[str, str]] = {}
    for x in records:
        columns[f"{x['row']}, {x['n']:,} names"] = {
            "build and save, s": _both(x, "build", 1),
            "build, most memory, MiB": f"{x['build_mib']:.0f}",
            "size, MiB": f"{x['disk_mib']:.1f}",
            "open, s": _both(x, "open", 3),
            "memory after opening, MiB": f"{x['open_mib']:.0f}",
            "memory after finding, MiB": f"{x['find_mib']:.0f}",
            "words per second, first time": f"{x['first_words_per_second']:,.0f}",
            "words per second": f"{x['words_per_second']:,.0f}",
            "spans": f"{x['spans']:,} in {x['words']:,} words",
            "adding a name, s": _both(x, "add", 1),
            "luke_ner without, words per second": f"{x['ner_without_per_second']:,.0f}",
            "luke_ner with, words per second": f"{x['ner_with_per_second']:,.0f}",
            "luke_ner, names as input, words per second": f"{x['ner_input_per_second']:,.0f}",
        }
    return markdown(pd.DataFrame(columns).rename_axis("").reset_index())


def _both(record: results.Record, what: str, digits: int) -> str:
    seconds, wall = record[f"{what}_seconds"], record[f"{what}_wall_seconds"]
    return f"{seconds:.{digits}f} ({wall:.{digits}f})"


def main(argv: Sequence[str] | None = None) -> None:
    p = runtime.parser("known_names", __doc__, "build/known_names", "results.jsonl")
    runtime.add_encoder(p)
    p.add_argument("--names", type=int, nargs="+", default=[1_000_000], help="numbers of names")
    p.add_argument("--data", type=Path, help="folder with disease-ontology/ and bc5cdr/")
    p.add_argument("--kinds", nargs="+", choices=KINDS, default=["known"])
    p.add_argument("--table", action="store_true", help="print the results")
    p.add_argument("--step", choices=("build", "find", "ner"), help="what one process does")
    args = runtime.parsed(p, argv)
    if args.table:
        print(tables(results.read([args.results])))
        return
    args.work.mkdir(parents=True, exist_ok=True)
    if args.step:
        runtime.start(-1, threads=1)
        n, kind = args.names[0], args.kinds[0]
        if args.step == "ner":
            print(json.dumps(ner(n, args.work, kind, args.encoder)))
        else:
            print(json.dumps({"build": build, "find": find}[args.step](n, args.work, kind)))
        return
    if args.data:
        for record in alone(args.data):
            results.append(args.results, record)
        return
    for n in args.names:
        for kind in args.kinds:
            record = {"row": KINDS[kind], "n": n}
            for step in ("build", "find", "ner"):
                options = ["--step", step, "--names", str(n), "--kinds", kind]
                options += ["--work", str(args.work), "--encoder", args.encoder]
                record |= runtime.in_fresh_process("known_names", options)
            results.append(args.results, record)


if __name__ == "__main__":
    main()
