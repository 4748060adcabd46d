"""The package's exceptions: one type per kind of mistake.

Each message names the setting, file or document, its value, and what to do.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class LukeError(ValueError):
    """Base of every error raised by spacy-luke."""


class ConfigError(LukeError):
    """A setting is invalid."""


class CheckpointError(LukeError):
    """A checkpoint directory or a serialised model cannot be read."""


class VocabError(LukeError):
    """A piece or entity vocabulary lacks an entry that the model requires."""


class ModelError(LukeError):
    """Weights give results that are not numbers."""


class KnowledgeBaseError(LukeError):
    """Files of a knowledge base or list of names are missing, damaged or not of one, or vectors do
    not fit."""


class CorpusError(LukeError):
    """A corpus file cannot be read; the message names the file and the line."""


class InputError(LukeError):
    """A document or span is not a valid input."""


class StageError(LukeError):
    """Files of a pretraining stage are missing, incomplete, damaged, or of another run."""


class TrainingError(LukeError):
    """Training was stopped: a loss, gradient or weight is NaN or infinite."""


class WorkerError(LukeError):
    """Workers repeatedly died on the same partition."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise whatever fails in this context as a CheckpointError that begins with ``what``.

    Our own errors pass unchanged. A panic of a Rust library is no ``Exception``, so that
    ``except Exception`` would let it through.
    """
    try:
        yield
    except LukeError:
        raise
    except RecursionError as err:
        raise CheckpointError(f"{what} cannot be read: it is nested too deeply.") from err
    except BaseException as err:
        if not isinstance(err, Exception) and type(err).__name__ != "PanicException":
            raise  # KeyboardInterrupt, SystemExit
        is_plain = type(err) in (Exception, ValueError) or isinstance(err, OSError)
        reason = str(err) if is_plain else repr(err)  # of an OSError it would not name the file
        raise CheckpointError(f"{what} cannot be read: {reason}.") from err
