"""Where counted losses are told: a child of spaCy's logger, so ``spacy train`` shows it."""

import logging

LOGGER = logging.getLogger("spacy.luke")
