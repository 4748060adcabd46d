"""The tokenizer of a pipeline: for components that read texts of their own (questions, queries,
names of entities), and compared with that of its language."""

import json
from collections.abc import Callable

from spacy.language import Language
from spacy.tokens import Doc

from ..report import LOGGER

Tokenizer = Callable[[str], Doc]

_SPACES = "spacy.Tokenizer.v1"


def warn_of_tokenizer(nlp: Language) -> None:
    """Log a warning if the config names spaCy's tokenizer, and the language has its own: text
    without spaces would be one token."""
    own = type(nlp).default_config["nlp"]["tokenizer"]
    if nlp.config["nlp"]["tokenizer"]["@tokenizers"] == _SPACES != own["@tokenizers"]:
        LOGGER.warning(
            "nlp.tokenizer of the config is %s, and the language %r has its own, which finds other "
            "words (text without spaces is one token now). To use it, give spacy train "
            "--nlp.tokenizer '%s'; it may need a package.",
            _SPACES,
            nlp.lang,
            json.dumps(own),
        )
