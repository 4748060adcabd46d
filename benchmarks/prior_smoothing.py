"""The prior of a candidate, smoothed over the spellings of its alias: how often the most probable
candidate is the right one.

    python -m benchmarks.prior_smoothing --data FOLDER

Folds of a set are by article: mentions of one are looked up, and the others give the counts of
aliases. Mentions count that have several candidates by equal aliases, the right one among them.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from spacy.vocab import Vocab

from spacy_luke.kb import candidates
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import Findings
from spacy_luke.kb.knowledge_base import MappedKB

from . import runtime
from .datasets import default_folder
from .linking_data import LINKED_SETS
from .linking_training import N_FOLDS
from .markdown import markdown

SHARES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("prior_smoothing", __doc__, "build/linking", "prior_smoothing.jsonl")
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--sets", nargs="+", choices=list(LINKED_SETS), default=["italian", "hipe"])
    return runtime.parsed(p, argv)


def right(kb: MappedKB, mentions: Sequence[tuple[str, str]], share: float) -> list[bool]:
    """Of each ambiguous mention (text, id) whether its most probable candidate is the right one."""
    settings = candidates.CandidateSettings(k=10_000, fuzzy="never")
    with patch.object(candidates, "SMOOTHING", share):
        found = kb.candidates([text for text, _ in mentions], settings)
    return [
        max(own, key=lambda x: x.prior).id == gold  # of equal ones the first
        for own, (_, gold) in zip(found, mentions)
        if len(own) > 1 and gold in [x.id for x in own]
    ]


def count(args: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """A line for each share: mentions, and those whose most probable candidate is right."""
    of_share: dict[float, list[bool]] = {share: [] for share in SHARES}
    for fold in range(N_FOLDS):
        data = LINKED_SETS[name](args.data, args.work, fold, N_FOLDS)
        folder = args.work / f"{name}-{fold}.prior"
        build_kb(iter(data.entities), folder, data.lang, findings=Findings())
        kb = MappedKB.open(folder, Vocab())
        mentions = [(doc.text[a:b], kb_id) for doc in data.docs for a, b, kb_id in doc.mentions]
        for share, found in of_share.items():
            found += right(kb, mentions, share)
    return [
        {"set": name, "share": share, "mentions": len(found), "right": sum(found)}
        for share, found in of_share.items()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    args.work.mkdir(parents=True, exist_ok=True)
    print(markdown(pd.DataFrame([line for name in args.sets for line in count(args, name)])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
