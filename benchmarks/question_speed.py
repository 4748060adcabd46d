"""Questions a second beside ``transformers``' pipeline on the same weights, and long documents.

    python -m benchmarks.question_speed --rounds 3 --results question_speed.jsonl
    python -m benchmarks.question_speed --long 20000 --results question_speed.jsonl

Both sides have the encoder's weights and one random head, and get the paragraphs of the English
XQuAD with their questions, without entities. Each round runs both, in turning order; how many best
answers are equal is counted before. ``--long`` asks one document of so many words instead, in a
process of its own, and measures how much memory that adds.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations.questions import clear_answers, question_texts
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.squad import read_squad
from spacy_luke.layers.task_layer import head_of

from . import results, runtime
from .datasets import default_folder
from .peer_speed import reset_memory

OURS, THEIRS = "luke_qa", "transformers"
XQUAD = "squad/xquad.en.json"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("question_speed", __doc__, "build/questions", "question_speed.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--paragraphs", type=int, default=40)
    p.add_argument("--batch-size", type=int, default=16, help="sequences that they pad together")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--long", type=int, default=0, help="words of one document")
    p.add_argument("--questions", type=int, default=5, help="about the long document")
    return runtime.parsed(p, argv)


def pipeline(args: argparse.Namespace) -> Language:
    """Text is cut as theirs is: not at spaCy's tokens."""
    nlp = spacy.blank("en")
    encoder = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": args.encoder,
        "tokenization": "mentions",
    }
    model = {"entities": "none", "encoder": encoder}
    nlp.add_pipe("luke_qa", config={"model": model, "no_answer": False})
    torch.manual_seed(0)
    nlp.initialize()
    with torch.no_grad():  # a fresh head hardly tells tokens apart
        for parameter in head_of(nlp.get_pipe("luke_qa").model).parameters():  # type: ignore[attr-defined]
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return nlp


def peer(args: argparse.Namespace, nlp: Language) -> Any:
    import transformers

    network = transformers.AutoModelForQuestionAnswering.from_pretrained(args.encoder)
    classifier = head_of(nlp.get_pipe("luke_qa").model).classifier  # type: ignore[attr-defined]
    with torch.no_grad():
        network.qa_outputs.weight.copy_(classifier.weight)
        network.qa_outputs.bias.copy_(classifier.bias)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.encoder)
    return transformers.pipeline("question-answering", model=network.eval(), tokenizer=tokenizer)


def paragraphs(args: argparse.Namespace, nlp: Language) -> list[Doc]:
    docs = read_squad(args.data / XQUAD, nlp, ConvertOptions(), Report())
    found = list(islice(docs, args.paragraphs))
    for doc in found:
        clear_answers(doc)
    return found


def compare(args: argparse.Namespace) -> list[results.Record]:
    nlp = pipeline(args)
    theirs, docs = peer(args, nlp), paragraphs(args, nlp)
    asked = [{"question": x, "context": d.text} for d in docs for x in question_texts(d)]
    settings = {"batch_size": args.batch_size, "max_answer_len": 30, "doc_stride": 128}
    found: dict[str, list[str]] = {}

    def timed(name: str) -> runtime.Clock:
        copies = [doc.copy() for doc in docs]
        with torch.inference_mode(), runtime.Clock() as clock:
            if name == OURS:
                answers = [x for doc in nlp.pipe(copies) for x in doc._.answers]
                found[name] = ["" if x.best is None else x.best.text for x in answers]
            else:
                found[name] = [x["answer"] for x in theirs(asked, **settings)]
        return clock

    clocks = runtime.interleave([OURS, THEIRS], args.rounds, timed, args.gpu_id)
    equal = sum(a.strip() == b.strip() for a, b in zip(found[OURS], found[THEIRS], strict=True))
    about = {
        "questions": len(asked),
        "equal": equal,
        "threads": args.threads,
        "device": runtime.device_name(args.gpu_id),
        "encoder": Path(args.encoder).name,
        "batch_size": args.batch_size,
        "torch": torch.__version__,
        "transformers": version("transformers"),
    }
    return [{"kind": "question_speed", **about, **seconds} for seconds in clocks]


def ask_long(args: argparse.Namespace) -> results.Record:
    nlp = pipeline(args)
    docs = paragraphs(args, nlp)
    words = [token.text for doc in docs * 200 for token in doc][: args.long]
    doc = Doc(nlp.vocab, words=words)
    doc._.questions = [x for d in docs for x in question_texts(d)][: args.questions]
    nlp(docs[0].copy())  # reads all weights
    before = reset_memory(args.gpu_id)
    with runtime.Clock() as clock:
        nlp(doc)
    return {
        "kind": "question_memory",
        "words": len(doc),
        "questions": args.questions,
        "seconds": clock.wall,
        "grown_mib": runtime.peak_memory(args.gpu_id) - before,
        "device": runtime.device_name(args.gpu_id),
        "encoder": Path(args.encoder).name,
    }


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    runtime.start(args.gpu_id, args.threads)
    args.results.parent.mkdir(parents=True, exist_ok=True)
    records = [ask_long(args)] if args.long else compare(args)
    for record in records:
        results.append(args.results, record)
        print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
