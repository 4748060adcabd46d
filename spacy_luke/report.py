"""Where counted losses are told: a child of spaCy's logger, so ``spacy train`` shows warnings, and
everything with ``--verbose``."""

import logging

LOGGER = logging.getLogger("spacy.luke")
