"""The package's logger. It is a child of spaCy's, so ``spacy train`` shows its warnings, and all of
its messages with ``--verbose``."""

import logging

LOGGER = logging.getLogger("spacy.luke")


def log_lost(n_lost: int, message: str, *args: object) -> None:
    """Log at WARNING if anything was lost, else at INFO."""
    LOGGER.log(logging.WARNING if n_lost else logging.INFO, message, *args)
