"""Speed of the NER rows, interleaved in one process: of prediction, or of training.

    python -m benchmarks.ner_speed --encoder DIR --data-sets wnut17 --results speed.jsonl
    python -m benchmarks.ner_speed --encoder DIR --data-sets wnut17 --training 4 --variants
    python -m benchmarks.ner_speed --encoder DIR --data-sets wnut17 --training 4 --rounds 99 --whole

Every round runs every row once on the same documents, in turning order, after a warm-up; figures
are medians of the ratios within a round. Pipelines saved by ``ner_modes --save`` in the same
``--work`` are used; where there is none, one is trained for a few steps (speed depends on the
weights only through the number of entities written). With ``--whole`` all rows begin untrained, and
a round is the next updates of each: what two-stage scores gets less as its filter learns.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_luke.layers.task_layer import scorer_of

from . import results, runtime
from .datasets import DATA_SETS, default_folder, load, prepare, sentences_corpus
from .rows import COMPONENT, ROWS, Settings, changed, make_config

# Rows that are another row with other settings at prediction.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"two-stage, k = {k:g}": ("two-stage", {"candidates_per_word": k, "filter_threshold": 0.0})
        for k in (0.5, 1.0, 2.0)
    },
    "two-stage, threshold 0.003": ("two-stage", {"filter_threshold": 0.003}),
    "full, sentences alone": ("full", {"layout": "sentence"}),
}
# Rows that are another row with other settings in training.
TRAINING_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"two-stage, k = {k:g} in training": ("two-stage", {"train_candidates_per_word": k})
    for k in (0.5, 1.0)
}
LONG_WORDS = 400
Words = tuple[list[str], list[bool | int | None]]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("ner_speed", __doc__, "build/ner", "speed.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--data-sets", nargs="+", choices=list(DATA_SETS), default=["wnut17"])
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--variants", action="store_true", help="other k; full without context")
    p.add_argument("--sentences", type=int, default=256)
    p.add_argument("--training", type=int, default=0, metavar="N", help="time N updates instead")
    p.add_argument("--whole", action="store_true", help="trainings, from their first update")
    p.add_argument("--train-batch", type=int, default=16, help="documents of an update")
    p.add_argument("--long-docs", type=int, default=8, help=f"of about {LONG_WORDS} words")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=128, help="documents of nlp.pipe")
    p.add_argument("--warm-docs", type=int, default=480, help="where no pipeline is saved")
    p.add_argument("--mixed-precision", action="store_true", help="bf16")
    args = runtime.parsed(p, argv)
    if args.whole and (args.variants or not args.training):
        p.error("--whole needs --training, and has no --variants: they share the weights of a row")
    return args


def pipeline(args: argparse.Namespace, data: str, row: str) -> Language:
    """A saved pipeline, or a new one, trained for a few steps; with ``--whole`` untrained."""
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

    saved = args.work / "models" / f"{data}.{row}"
    if saved.exists() and not args.whole:
        nlp = spacy.load(saved)
        pipe: Any = nlp.get_pipe(COMPONENT)
        encoder = next(x for x in pipe.model.walk() if x.name == "luke-encoder")
        encoder.attrs["settings"].mixed_precision = args.mixed_precision
    else:
        corpora = prepare(data, args.data, args.work, limit=args.warm_docs)
        settings = Settings(
            epochs=1, mixed_precision=args.mixed_precision, encoder=str(args.encoder)
        )
        nlp = init_nlp(
            make_config(row, corpora, settings, 0, args.gpu_id >= 0), use_gpu=args.gpu_id
        )
        if not args.whole:
            train(nlp, use_gpu=args.gpu_id, stdout=io.StringIO(), stderr=io.StringIO())
    nlp.add_pipe("sentencizer", first=True)  # for texts; made documents have sentence starts
    return nlp


def sentences(docs: Sequence[Doc], limit: int) -> list[Words]:
    return [([t.text for t in doc], [t.i == 0 for t in doc]) for doc in docs[:limit]]


def long_documents(docs: Sequence[Doc], limit: int) -> list[Words]:
    """Neighbouring sentences joined into documents of at least ``LONG_WORDS`` words; of a
    smaller corpus one shorter document."""
    made: list[Words] = []
    words: list[str] = []
    starts: list[bool | int | None] = []
    for doc in docs:
        words += [token.text for token in doc]
        starts += [token.i == 0 for token in doc]
        if len(words) >= LONG_WORDS:
            made.append((words, starts))
            words, starts = [], []
        if len(made) == limit:
            break
    return made or [(words, starts)]


def variant(nlp: Language, values: dict[str, Any]) -> AbstractContextManager[None]:
    """Change settings of the span network for a while."""
    if not values:
        return nullcontext()
    pipe: Any = nlp.get_pipe(COMPONENT)
    return changed(scorer_of(pipe.model), values)


class Bench:
    """The pipelines of one data set, all in memory."""

    def __init__(self, args: argparse.Namespace, data: str):
        self.args, self.data = args, data
        self.pipelines = {row: pipeline(args, data, row) for row in args.rows}
        self.rows: dict[str, tuple[str, dict[str, Any]]] = {row: (row, {}) for row in args.rows}
        if args.variants:
            variants = TRAINING_VARIANTS if args.training else VARIANTS
            self.rows |= {k: v for k, v in variants.items() if v[0] in args.rows}

    def predict(self, case: str, texts: list[Words]) -> None:
        """Time prediction from made documents (the component alone) and from texts (with
        tokenizer and sentencizer)."""
        args = self.args
        size = args.batch_size if case == "sentences" else max(1, args.batch_size // 16)
        n_words = sum(len(words) for words, _ in texts)

        def from_docs(row: str, values: dict[str, Any]) -> runtime.Clock:
            nlp = self.pipelines[row]
            docs = [Doc(nlp.vocab, words=words, sent_starts=starts) for words, starts in texts]
            with variant(nlp, values), runtime.Clock() as clock:
                for _ in nlp.get_pipe(COMPONENT).pipe(docs, batch_size=size):  # type: ignore[attr-defined]
                    pass
            return clock

        def from_texts(row: str, values: dict[str, Any]) -> runtime.Clock:
            nlp = self.pipelines[row]
            strings = [" ".join(words) for words, _ in texts]
            with variant(nlp, values), runtime.Clock() as clock:
                for _ in nlp.pipe(strings, batch_size=size):
                    pass
            return clock

        for source, measure in (("docs", from_docs), ("texts", from_texts)):
            self._interleave(case, source, n_words, measure)

    def train(self, path: Path) -> None:
        """Time updates of the network: the same batches for every row, and in every round, or in
        each round of a whole training those that follow."""
        size, rounds = self.args.train_batch, self.args.rounds
        number = self.args.training * size
        read = sentences_corpus(path, limit=0 if self.args.whole else number)
        optimizers = {row: Adam(2e-4) for row in self.pipelines}
        examples = {row: list(read(nlp)) for row, nlp in self.pipelines.items()}
        done = dict.fromkeys(self.pipelines, 0)

        def update(row: str, values: dict[str, Any]) -> runtime.Clock:
            nlp, all_ = self.pipelines[row], examples[row]
            chosen = [all_[(done[row] + i) % len(all_)] for i in range(min(number, len(all_)))]
            done[row] += len(chosen) if self.args.whole else 0
            with variant(nlp, values), runtime.Clock() as clock:
                for i in range(0, len(chosen), size):
                    nlp.update(chosen[i : i + size], sgd=optimizers[row], drop=0.1)
            return clock

        words = [len(eg.reference) for eg in examples[self.args.rows[0]]]
        seen = range(rounds * number if self.args.whole else len(words))
        n_words = sum(words[i % len(words)] for i in seen) // (rounds if self.args.whole else 1)
        case = "whole training" if self.args.whole else "training"
        self._interleave(case, "examples", n_words, update)

    def _interleave(
        self,
        case: str,
        source: str,
        n_words: int,
        measure: Callable[[str, dict[str, Any]], runtime.Clock],
    ) -> None:
        """Time every row, and append a record for each clock."""
        args = self.args
        about = {
            "kind": "speed",
            "data": self.data,
            "case": case,
            "input": source,
            "n_words": n_words,
            "threads": args.threads,
            "mixed_precision": args.mixed_precision,
            "device": runtime.device_name(args.gpu_id),
        }
        for found in runtime.interleave(
            list(self.rows),
            args.rounds,
            lambda name: measure(*self.rows[name]),
            args.gpu_id,
            warm_up=case != "whole training",
        ):
            results.append(args.results, {**about, **found})
        print(f"{self.data} {case} from {source}: done", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    runtime.start(args.gpu_id, args.threads)
    for data in args.data_sets:
        bench = Bench(args, data)
        if args.training:
            bench.train(prepare(data, args.data, args.work, limit=args.warm_docs).train)
            continue
        docs = load(prepare(data, args.data, args.work).test)
        bench.predict("sentences", sentences(docs, args.sentences))
        bench.predict("long", long_documents(docs, args.long_docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
