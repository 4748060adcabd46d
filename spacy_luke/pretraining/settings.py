"""Settings of the stages of pretraining. The options of the commands take their defaults from here.

This module imports neither torch nor DuckDB, because ``spacy luke`` imports it at start.
"""

import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .wiki.export import PARTITION_SIZE

if TYPE_CHECKING:
    from ..model.network import AttentionPattern

RULES, SENTENCIZER = "rules", "sentencizer"
"""Ways to find sentences without a pipeline: rules on text, and spaCy's rules on tokens."""
EVALUATE_SEQUENCES = 2000
"""Maximum held-out sequences per evaluation."""
_CHANGEABLE = {
    "micro_batch",
    "sharded",
    "deterministic",
    "log_every",
    "evaluate_every",
    "save_every",
    "keep",
    "peak",
}
"""Training settings that may change when a training is resumed."""


def language_code(language: str) -> str:
    """A code as wikis have them, such as zh-yue, also from ``zh_yue`` or ``EN``."""
    if not re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", language, re.IGNORECASE):
        raise ConfigError(f"The language is {language!r}; use a code such as en or zh-yue.")
    return language.lower().replace("_", "-")


@dataclass(frozen=True)
class DumpSettings:
    """How a dump is read.

    language: defaults to that of the export.
    partition_size: minimum compressed bytes per part of a multistream dump.
    namespaces: names or numbers of further namespaces whose pages are articles.
    interwikis: prefixes of other wikis, for example ``jira``. An export does not contain them.
    templates: names of templates whose text is kept, or ``NAME=ARGUMENT``; the argument defaults to
        the first one.
    tables: whether the text of tables is kept.
    not_disambiguations: names of templates that mark no disambiguation pages, whatever they say.
    incomplete: whether the complete pages of a file are used that ends too early.
    """

    language: str = ""
    partition_size: int = PARTITION_SIZE
    namespaces: tuple[str, ...] = ()
    interwikis: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    tables: bool = False
    incomplete: bool = False
    not_disambiguations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.partition_size < 1:
            raise ConfigError(f"--partition-size is {self.partition_size}; use 1 byte or more.")


@dataclass(frozen=True)
class VocabSettings:
    """Which entities form the vocabulary.

    size: maximum number of entities without the special ones; the most linked are chosen.
    min_count: minimum links per entity.
    white_list: a file of titles or redirects (or ``lang:title``), one per line. These entities are
        included with any number of links.
    sitelinks: a table (Parquet, CSV or JSON lines) of item, language and title, required for
        several languages. Titles of one item are one entity.
    memory: DuckDB's memory limit.
    """

    size: int = 500_000
    min_count: int = 1
    white_list: Path | None = None
    sitelinks: Path | None = None
    memory: str = "4GB"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"--size is {self.size}; a vocabulary needs at least one entity.")
        if self.min_count < 0:
            raise ConfigError(f"--min-count is {self.min_count}; use 0 or more.")


@dataclass(frozen=True)
class LinkTableSettings:
    """Which linked texts are mentions.

    min_probability: minimum link probability, which is links / occurrences.
    min_count: minimum links of a text to a title. Titles linked less often are ignored.
    min_share: minimum share of the text's most frequent title in its links. 1: texts that link to
        several titles are dropped, as published.
    """

    min_probability: float = 0.01
    min_count: int = 1
    min_share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_probability <= 1.0:
            raise ConfigError(f"--min-probability is {self.min_probability}; use 0 to 1.")
        if self.min_count < 1:
            raise ConfigError(f"--min-count is {self.min_count}; use 1 or more.")
        if not 0.5 < self.min_share <= 1.0:
            raise ConfigError(f"--min-share is {self.min_share}; use more than 0.5, at most 1.")


@dataclass(frozen=True)
class ClozeSettings:
    """Which queries of cloze sets are made from articles.

    limit: maximum queries, of all parts; they are drawn by seed. 0: all.
    max_words: maximum words of a passage. Punctuation and white space count.
    dev, test: shares of the articles, drawn by seed and title, whose queries are in these parts.
    """

    limit: int = 0
    max_words: int = 300
    dev: float = 0.0
    test: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ConfigError(f"--limit is {self.limit}; use 0 (all) or more.")
        if self.max_words < 1:
            raise ConfigError(f"--max-words is {self.max_words}; use 1 or more.")
        if min(self.dev, self.test) < 0 or self.dev + self.test >= 1:
            raise ConfigError(
                f"--dev is {self.dev:g} and --test {self.test:g}; use shares from 0 with a sum "
                "below 1."
            )


@dataclass(frozen=True)
class ShardSettings:
    """How articles are cut into sequences.

    max_pieces: maximum pieces per sequence, special pieces included.
    max_entities: maximum entities per sequence.
    max_mention: maximum pieces per mention.
    sentences: ``rules``, ``sentencizer``, or name or path of a spaCy pipeline that sets sentence
        starts.
    held_out: share of the articles that is held out, drawn by seed and title.
    """

    max_pieces: int = 512
    max_entities: int = 128
    max_mention: int = 30
    sentences: str = RULES
    held_out: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not 8 <= self.max_pieces <= 65_535:
            raise ConfigError(f"--max-pieces is {self.max_pieces}; use 8 to 65535.")
        if self.max_entities < 1 or self.max_mention < 1:
            raise ConfigError("--max-entities and --max-mention must be at least 1.")
        if self.max_mention > self.max_pieces - 2:
            raise ConfigError(
                f"--max-mention is {self.max_mention}, but a sequence of --max-pieces "
                f"{self.max_pieces} contains at most {self.max_pieces - 2} pieces of text."
            )
        if not 0.0 <= self.held_out < 1.0:
            raise ConfigError(f"--held-out is {self.held_out}; use 0 to less than 1.")


@dataclass(frozen=True)
class Masking:
    """Which words and entities are masked.

    words: share of masked pieces. Of these, 80 % become [MASK], 10 % a random piece, and 10 % stay.
    entities: share of masked entities of the vocabulary, but at least one. All become [MASK].
    whole_words: mask all pieces of a word (as LUKE) instead of single pieces (as mLUKE).
    unknown: links outside the vocabulary are inputs as [UNK] (as LUKE) instead of being left out
        (as mLUKE). They are never predicted.
    """

    words: float = 0.15
    entities: float = 0.15
    whole_words: bool = True
    unknown: bool = True

    def __post_init__(self) -> None:
        for name in ("words", "entities"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(
                    f"The share of masked {name} is {getattr(self, name)}, not 0 to 1."
                )
        if not self.words and not self.entities:
            raise ConfigError("Neither words nor entities are masked: there is nothing to predict.")


@dataclass(frozen=True)
class ModelSettings:
    """The model that is trained.

    attention: ``full`` (as published) or ``probe``.
    entity_size: width of the entity table; 0: as in the checkpoint.
    keep_entities: entities of the checkpoint keep their rows.
    """

    attention: "AttentionPattern" = "full"
    entity_size: int = 0
    keep_entities: bool = True

    def __post_init__(self) -> None:
        if self.attention not in ("full", "probe"):
            raise ConfigError(f"--attention is {self.attention!r}; use full or probe.")
        if self.entity_size < 0:
            raise ConfigError(f"entity_size is {self.entity_size}; use 0 (the encoder's) or more.")


@dataclass(frozen=True)
class Phase:
    """A phase of training; the paper calls it a stage.

    steps: updates. rate: peak learning rate. entities_only: train only entity parameters, and heads
    that were initialised at random.
    """

    steps: int
    rate: float
    entities_only: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"A phase has {self.steps} steps; use 1 or more, or leave it out.")
        if not 0.0 <= self.rate < math.inf:
            raise ConfigError(f"The peak rate of a phase is {self.rate}; use 0 or more.")


ENTITY_PHASE = Phase(98_168, 5e-4, entities_only=True)
FULL_PHASE = Phase(98_168, 1e-5)
"""The phases of the paper."""


@dataclass(frozen=True)
class TrainingSettings:
    """How the model is trained.

    phases: run in sequence, each with its own warm-up, schedule and optimizer.
    batch_size: sequences per step over all processes.
    micro_batch: sequences per forward pass and process.
    warmup: steps per phase or, if below 1, a share of them.
    decay, betas, eps, clip: of AdamW. clip is the maximum norm of gradients; 0: no limit.
    dropout: of embeddings and layers.
    attention_dropout: of attention weights.
    precision: ``no`` or ``bf16`` (on a device that only emulates it float32, and a warning).
    sharded: distribute weights, gradients and optimizer over the processes (FSDP2) instead of
        copying them to each (DDP).
    deterministic: choose operations that give the same bits every time on a GPU.
    seed: of order, masks and dropout.
    log_every, evaluate_every, save_every: in steps.
    keep: number of checkpoints to keep.
    peak: 1e12 operations per second of a device at this precision, by its maker; 0: unknown.
    """

    phases: tuple[Phase, ...]
    batch_size: int = 2048
    micro_batch: int = 32
    warmup: float = 2500
    decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    clip: float = 0.0
    dropout: float = 0.1
    attention_dropout: float = 0.0
    gradient_checkpointing: bool = False
    precision: str = "no"
    sharded: bool = False
    deterministic: bool = False
    masking: Masking = field(default_factory=Masking)
    seed: int = 0
    log_every: int = 10
    evaluate_every: int = 1000
    save_every: int = 1000
    keep: int = 2
    peak: float = 0.0

    def __post_init__(self) -> None:
        if not self.phases:
            raise ConfigError("Pretraining needs at least one phase: both have no steps.")
        every = ("log_every", "evaluate_every", "save_every")
        for name in ("batch_size", "micro_batch", *every, "keep"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if self.precision not in ("no", "bf16"):
            raise ConfigError(f"precision is {self.precision!r}; use 'no' or 'bf16'.")
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}; use 0 to less than 1.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; use 0 or more.")
        if not 0.0 <= self.warmup < math.inf:
            raise ConfigError(f"warmup is {self.warmup}; use steps, or a share below 1.")
        for name in ("clip", "decay", "peak"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; use 0 or more.")

    @property
    def n_steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that must not change when a training is resumed."""
        return {name: value for name, value in asdict(self).items() if name not in _CHANGEABLE}

    def n_warmup(self, phase: Phase) -> int:
        return round(self.warmup * phase.steps) if self.warmup < 1 else round(self.warmup)
