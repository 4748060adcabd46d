"""Where counted losses are told: a child of spaCy's logger, so ``spacy train`` shows warnings, and
everything with ``--verbose``."""

import logging

LOGGER = logging.getLogger("spacy.luke")


def tell(lost: int, message: str, *args: object) -> None:
    """Warn of what is lost; where nothing is, say so to those who ask."""
    LOGGER.log(logging.WARNING if lost else logging.INFO, message, *args)
