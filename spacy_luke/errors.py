"""The exceptions a user can meet: one type per kind of mistake.

Each message names the setting, file or document, what was found there and what to do.
"""


class LukeError(ValueError):
    """Base of every error raised by spacy-luke."""


class ConfigError(LukeError):
    """A setting has a value that cannot work."""


class CheckpointError(LukeError):
    """A checkpoint directory or a serialised model cannot be read."""


class VocabError(LukeError):
    """A piece or entity vocabulary lacks something the model needs."""


class CorpusError(LukeError):
    """A corpus file cannot be read; the message names the file and the line."""


class InputError(LukeError):
    """A document or span cannot be given to the model."""


class StageError(LukeError):
    """The files of a stage of pretraining are missing, unfinished, damaged, or of another run."""


class TrainingError(LukeError):
    """A pretraining cannot go on: its loss or its weights are no numbers any more."""


class WorkerError(LukeError):
    """Workers died on the same partition again and again."""
