"""A batcher that varies the case of training examples.

Word shapes tell names apart, so a model learns to rely on them, and then finds little in text that
is all lower-cased or all upper-cased. Training on some of it keeps the model from relying on case.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations.queries import change_queries
from ..annotations.questions import change_questions
from ..errors import ConfigError
from ..validation import Probability, check_settings
from .contexts import Batcher

Case = Literal["lower", "upper"]


@registry.batchers("spacy-luke.vary_case.v1")
def vary_case(batcher: Batcher, lower: Probability = 0.2, upper: Probability = 0.1) -> Batcher:
    """Make a batcher that shows some examples all lower-cased or all upper-cased.

    batcher: makes batches of the resulting examples, e.g. ``spacy.batch_by_words.v1``.
    lower, upper: probabilities that an example is lower-cased or upper-cased. It replaces the
        original, so the size of an epoch does not change.

    Tokens and all annotation are kept; questions and queries change as the text does. With an
    uncased encoder only word shapes change, with a cased one the word pieces.

    This is a batcher, not an augmenter of the corpus reader, because ``spacy train`` reads a corpus
    once if it is not streamed: an augmenter would draw the same examples for all epochs.
    (``spacy.lower_case.v1`` also loses user data, which includes relations and types, entity ids,
    blocked tokens and preset entities.)

    Raises ConfigError if a value is not a probability, or if their sum is above 1.
    """
    arguments = {k: v for k, v in locals().items() if k != "batcher"}
    check_settings("vary_case", vary_case, arguments)
    if lower + upper > 1:
        raise ConfigError(f"vary_case: lower + upper is {lower + upper:g}; at most 1 is possible.")
    return CaseVarier(batcher, lower, upper) if lower + upper else batcher


class CaseVarier:
    """See :func:`vary_case`. Uses Python's ``random``, which ``spacy train`` seeds."""

    def __init__(self, batcher: Batcher, lower: float, upper: float):
        self.batcher = batcher
        self.shares = [lower, upper, max(0.0, 1 - lower - upper)]

    def __call__(self, examples: Iterable[Example]) -> Iterator[list[Example]]:
        """One epoch's batches. Every example is drawn anew, also if the corpus is streamed."""
        yield from self.batcher(self.vary(examples))

    def vary(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, some of them with changed case."""
        for example in examples:
            (case,) = random.choices([*get_args(Case), None], self.shares)
            yield example if case is None else change_example(example, case)


def change_example(example: Example, case: Case) -> Example:
    """A copy with both documents in lower or upper case."""
    return Example(change_doc(example.predicted, case), change_doc(example.reference, case))


def change_doc(doc: Doc, case: Case) -> Doc:
    """A copy in lower or upper case, with the same tokens and annotation."""
    # User data is copied apart: as bytes, its tuples would become lists.
    content = doc.to_dict(exclude=("user_data", "user_hooks"))
    content["text"] = change_text(doc.text, case)
    changed = Doc(doc.vocab).from_dict(content)
    changed.user_data = dict(doc.user_data)
    change_questions(changed, lambda text: change_text(text, case))
    change_queries(changed, lambda text: change_text(text, case))
    return changed


def change_text(text: str, case: Case) -> str:
    """Text in lower or upper case, with the same number of characters.

    Character by character, because spans, relations and types are stored by character offsets, and
    so that two tokenisations of a text stay aligned. A character whose changed form has another
    length, such as "ß" in upper case, stays as it is, but "İ" becomes "i". Georgian letters stay as
    they are: their capitals, in Unicode, are those of headlines, which few encoders know.
    """
    change = _lower if case == "lower" else _upper
    return "".join(x if len(x) == 1 else char for char, x in zip(text, map(change, text)))


def _lower(character: str) -> str:
    return "i" if character == "İ" else character.lower()


def _upper(character: str) -> str:
    return character if "\u10d0" <= character <= "\u10ff" else character.upper()
