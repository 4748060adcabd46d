"""Vectors of a knowledge base's entities, made by the encoder of a pipeline."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from tqdm import tqdm

from ..errors import ConfigError, KnowledgeBaseError
from ..kb.candidates import FoundEntity
from ..kb.knowledge_base import MappedKB
from ..kb.nearest import NearestSettings, nearest_candidates
from ..kb.tables import Tables
from ..layers.encoder import ENCODER, module_of
from ..layers.encoder_run import learns
from ..layers.listener import encoder_node, is_listener
from ..layers.text_vectors import encoder_hash, text_vectors
from ..layers.word_passes import weights_state
from ..mapped_array import map_array
from ..model.packing import Array
from ..report import LOGGER
from .tokenizer import Tokenizer

Text = Literal["name", "description"]
"""What stands for an entity: its name, or its name and description."""

_BLOCK = 1024
_MAX_CHARACTERS = 2000
"""Of a text; the rest of longer descriptions is not encoded."""
_MANY_WORDS = 10_000
"""Of the texts that one update encodes; batches of usual configs have 300 to 2,000."""
_LEAST_COSINE = 0.9
"""Of vectors before and after a few updates. At a temperature of 0.03 it is worth 3 logits."""
_MOST_CACHED = 50_000
"""Vectors; each has 1.5 KiB at 384 dimensions."""


def find_encoder(nlp: Language, component: str | None = None) -> Model:
    """The encoder, or listener, of a component; by default of the first ``luke_linker``, which will
    use the vectors, else of the first that has one; of disabled components only if no other has
    one. Raises ConfigError if there is none."""
    others = {x for x in nlp.component_names if nlp.get_pipe_meta(x).factory != "luke_linker"}
    order = sorted(nlp.components, key=lambda x: (x[0] in nlp.disabled, x[0] in others))
    for name, pipe in order:
        model = getattr(pipe, "model", None)
        if isinstance(model, Model) and component in (None, name):
            for node in model.walk():
                if node.name == ENCODER or is_listener(node):
                    return node
    what = "No component has an encoder"
    if component is not None:
        what = f"component is {component!r}, which has no encoder"
    raise ConfigError(f"{what}; the pipeline has {', '.join(nlp.component_names) or 'none'}.")


def vectors_hash(encoder: Model, tokenizer: Tokenizer, text: Text) -> str:
    """What identifies the vectors of entities by this encoder, tokenizer and kind of text."""
    return f"{_made_by(encoder, tokenizer)} {text}"


def _made_by(encoder: Model, tokenizer: Tokenizer) -> str:
    to_bytes = getattr(tokenizer, "to_bytes", None)  # spaCy requires none
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
    settings = to_bytes(exclude=["vocab"]) if to_bytes else name.encode()
    return f"{encoder_hash(encoder)} {hashlib.sha256(settings).hexdigest()}"


def make_vectors(
    nlp: Language,
    kb: MappedKB,
    text: Text = "description",
    half: bool = False,
    component: str | None = None,
) -> int:
    """Set the vectors of all entities, each of length 1. If the present ones are those of this
    encoder and kind of text, only missing ones (of entities that were added or changed) are made.

    text: see :data:`Text`. half: float16, which takes half of the memory and disk.
    component: whose encoder is used.

    Returns the number of vectors that were made. They are written to a temporary file, and
    mapped, so that millions of them need little memory.
    """
    return _make(find_encoder(nlp, component), nlp.tokenizer, kb, text, half)


def make_name_vectors(
    nlp: Language, kb: MappedKB, half: bool = False, component: str | None = None
) -> int:
    """Set the vectors of all names of the knowledge base, with which ``luke_linker`` finds entities
    by names that are not written alike. As :func:`make_vectors`."""
    return _make_names(find_encoder(nlp, component), nlp.tokenizer, kb, half)


def _make(encoder: Model, tokenizer: Tokenizer, kb: MappedKB, text: Text, half: bool) -> int:
    identity = vectors_hash(encoder, tokenizer, text)
    old = kb.tables.vectors if kb.vectors_hash == identity else None

    def encode(rows: Array) -> Array:
        return encode_entities(encoder, tokenizer, kb.tables, rows, text)

    empty = kb.without_vector()
    return _make_table(len(kb), encode, encoder, old, empty, half, identity, kb.set_vectors)


def _make_names(encoder: Model, tokenizer: Tokenizer, kb: MappedKB, half: bool) -> int:
    identity, tables = vectors_hash(encoder, tokenizer, "name"), kb.tables
    old = kb.tables.name_vectors if kb.name_vectors_hash == identity else None

    def encode(rows: Array) -> Array:
        # As it is written: a normalised name may lack endings.
        names = [tables.forms[int(first_form[row])] for row in rows.tolist()]
        return text_vectors(encoder, [tokenizer(name) for name in names])

    first_form, empty = tables.store.arrays["key_forms"], kb.without_name_vector()
    return _make_table(
        len(tables.keys), encode, encoder, old, empty, half, identity, kb.set_name_vectors
    )


def _make_table(
    n: int,
    encode: Callable[[Array], Array],
    encoder: Model,
    old: Array | None,
    empty: Array,
    half: bool,
    identity: str,
    set_table: Callable[[Array, str], None],
) -> int:
    """Encode the rows of a table of ``n`` vectors, or only its empty ones if the old table is made
    by the same encoder in the same precision. Returns how many were encoded."""
    dtype = np.dtype(np.float16 if half else np.float32)
    if old is not None and old.dtype != dtype:
        old = None
    rows = np.arange(n) if old is None else empty
    if not len(rows):
        if old is None:
            set_table(np.zeros((0, _width(encoder)), dtype=dtype), identity)
        return 0
    with tempfile.TemporaryDirectory(prefix="spacy-luke-vectors-") as folder:
        file = Path(folder) / "vectors.npy"
        vectors = np.lib.format.open_memmap(file, "w+", dtype, (n, _width(encoder)))
        if old is not None:
            for start in range(0, n, _BLOCK):
                vectors[start : start + _BLOCK] = old[start : start + _BLOCK]
        for part in tqdm(list(_blocks(rows)), "entity vectors", leave=False, disable=None):
            vectors[part] = encode(part)
        vectors.flush()
        # The file is removed and exists as long as it is mapped.
        set_table(map_array(file, KnowledgeBaseError, scattered=False), identity)
    return len(rows)


def encode_entities(
    encoder: Model, tokenizer: Tokenizer, tables: Tables, rows: Array, text: Text
) -> Array:
    """(n, width) float32 vectors of the entities in some rows."""
    return text_vectors(encoder, _texts(tokenizer, tables, rows.tolist(), text))


def _width(encoder: Model) -> int:
    return module_of(encoder_node(encoder)).hidden_size


def _blocks(rows: Array) -> Iterator[Array]:
    return (rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))


def _texts(tokenizer: Tokenizer, tables: Tables, rows: Sequence[int], text: Text) -> list[Doc]:
    return [tokenizer(_text(tables, row, text)) for row in rows]


def _text(tables: Tables, row: int, text: Text) -> str:
    name = tables.names[row]
    if text == "name" or not tables.descriptions[row]:
        return name
    return f"{name}: {tables.descriptions[row]}"[:_MAX_CHARACTERS]


@dataclass
class _Cache:
    """tables, text, weights: what the vectors were made for. current: whether those of the
    knowledge base count. vectors: others, by row. n_used: updates in which they were used."""

    tables: Tables | None
    text: Text
    weights: tuple
    current: bool
    vectors: dict[int, Array]
    n_used: int = 0


class VectorSettings(Protocol):
    """entity_text: see :data:`Text`. max_vector_age: if the encoder is trained, its weights change
    with every step. With 0, each update makes the vectors that it needs, and learns them; else they
    are used for this number of updates, or until the component predicts."""

    entity_text: Text
    max_vector_age: int


class EntityVectors:
    """Vectors of entities by a component's encoder.

    Those in the knowledge base are used if they were made by the present weights. Otherwise
    vectors are computed when they are needed first, and cached until the weights change.

    settings: the component.
    """

    def __init__(self, tokenizer: Tokenizer, settings: VectorSettings) -> None:
        self.tokenizer, self.settings = tokenizer, settings
        self._names_state: tuple[Tables | None, tuple] = (None, ())
        # Replaced as a whole: other threads may use it.
        self._cache = self._no_cache()

    def _no_cache(self) -> _Cache:
        return _Cache(None, self.text, (), False, {})

    def __getstate__(self) -> dict[str, Any]:
        """Without what was made for the knowledge base's tables: a copy has others."""
        return {**vars(self), "_names_state": (None, ()), "_cache": self._no_cache()}

    @property
    def text(self) -> Text:
        return self.settings.entity_text

    def are_learned(self, encoder: Model) -> bool:
        """Whether the update that begins now makes the vectors itself, and learns them, too."""
        return not self.settings.max_vector_age and learns(encoder)

    def texts(self, kb: MappedKB, encoder: Model, rows: Sequence[int]) -> list[Doc]:
        """What stands for the entities in some rows, for an update that learns their vectors."""
        texts = _texts(self.tokenizer, kb.tables, rows, self.text)
        n_words = sum(map(len, texts))
        module = module_of(encoder_node(encoder))
        if n_words > _MANY_WORDS and module.reports_first("words of entities"):
            LOGGER.warning(
                "An update learns the vectors of %d candidates, whose texts have %d words: it "
                "takes as long as one with a batch of so many. Give mentions fewer candidates (k, "
                "nearest), make vectors of names alone (entity_text), freeze the encoder "
                "(learn_rate_factor = 0), or set max_vector_age. This warning is logged once per "
                "encoder.",
                len(texts),
                n_words,
            )
        return texts

    def of(self, kb: MappedKB, encoder: Model, rows: Sequence[int], learning: bool) -> Array:
        """(n, width) float32 vectors of the entities in some rows.

        learning: whether this is an update.
        """
        weights = weights_state(module_of(encoder_node(encoder)).network)
        cache = self._cache
        is_same = cache.tables is kb.tables and cache.text == self.text
        may_be_old = learning and cache.n_used < self.settings.max_vector_age
        old: dict[int, Array] = {}
        if not is_same or (cache.weights != weights and not may_be_old):
            current = self._are_current(kb, encoder)
            old = cache.vectors if is_same and learning and self.settings.max_vector_age else {}
            cache = self._cache = _Cache(kb.tables, self.text, weights, current, {})
        cache.n_used += learning
        stored, made = kb.tables.vectors if cache.current else None, cache.vectors
        missing = [
            row
            for row in dict.fromkeys(rows)
            if row not in made and (stored is None or not np.any(stored[row]))
        ]
        if len(made) + len(missing) > _MOST_CACHED:
            made = cache.vectors = {row: made[row] for row in rows if row in made}
        for part in _blocks(np.asarray(missing, dtype=np.int64)):
            vectors = encode_entities(encoder, self.tokenizer, kb.tables, part, self.text)
            made.update(zip(part.tolist(), self._as_saved(kb, vectors)))
        if old:
            self._check_change(encoder, old, made)
        result = np.zeros((len(rows), _width(encoder)), dtype=np.float32)
        for i, row in enumerate(rows):
            result[i] = made[row] if row in made or stored is None else stored[row]
        if stored is not None:
            kb.tables.looked_up(len(rows))
        return result

    @staticmethod
    def _as_saved(kb: MappedKB, vectors: Array) -> Array:
        """Vectors as they are after saving, which rounds them if those of the knowledge base have
        half precision."""
        stored = kb.tables.vectors
        return vectors if stored is None else vectors.astype(stored.dtype).astype(np.float32)

    def _check_change(self, encoder: Model, old: dict[int, Array], new: dict[int, Array]) -> None:
        """Warn if vectors of entities that training used until now differ much from the present
        ones: it learns what does not fit these, with which the component predicts."""
        both = sorted(old.keys() & new.keys())
        cosine = float(np.mean([old[row] @ new[row] for row in both])) if both else 1.0
        module = module_of(encoder_node(encoder))
        if cosine < _LEAST_COSINE and module.reports_first("change of entity vectors"):
            LOGGER.warning(
                "The encoder is trained so fast that vectors of entities have changed (mean cosine "
                "%.2f) since they were made, at most max_vector_age (%d) updates before. What is "
                "learned from old vectors does not fit the new ones, with which entities are "
                "linked. Learn them, too (max_vector_age = 0), freeze the encoder "
                "(learn_rate_factor = 0), or lower its learning rate. This warning is logged once "
                "per encoder.",
                cosine,
                self.settings.max_vector_age,
            )

    def _are_current(self, kb: MappedKB, encoder: Model) -> bool:
        if not kb.has_vectors:
            return False
        # A hash reads all weights: once.
        made_by, _, made_of = (kb.vectors_hash or "").rpartition(" ")
        same_weights = made_by == _made_by(encoder, self.tokenizer)
        if same_weights and made_of == self.text:
            return True
        reports_first = module_of(encoder_node(encoder)).reports_first
        if same_weights and reports_first("text of entity vectors"):
            LOGGER.warning(
                "The vectors of the knowledge base were made of another text (%s) than the "
                "component's entity_text (%s), and are not used: set it, or make them with "
                "'spacy luke kb --text'. Those that are needed are made again; all of them, if the "
                "pipeline is saved. This warning is logged once per encoder.",
                made_of,
                self.text,
            )
        elif not same_weights and reports_first("entity vectors"):
            LOGGER.info(
                "The vectors of the knowledge base were made by other weights or another "
                "tokenizer. Those that are needed are made again; all of them, if the pipeline is "
                "saved. This is logged once per encoder."
            )
        return False

    def renew(self, kb: MappedKB, encoder: Model) -> None:
        """If the knowledge base has vectors of other weights, make all of them again."""
        stored = kb.tables.vectors
        if stored is not None:
            _make(encoder, self.tokenizer, kb, self.text, stored.dtype == np.float16)
        self.renew_names(kb, encoder)

    def renew_names(self, kb: MappedKB, encoder: Model) -> None:
        """The same of the vectors of names."""
        stored = kb.tables.name_vectors
        if stored is not None and _make_names(
            encoder, self.tokenizer, kb, stored.dtype == np.float16
        ):
            LOGGER.info("The vectors of %d names were made again.", len(stored))

    def nearest(
        self, kb: MappedKB, encoder: Model, texts: Sequence[str], k: int, learning: bool
    ) -> list[list[FoundEntity]]:
        """For each text at most ``k`` entities by the nearest vectors of their names; none if the
        knowledge base has no such vectors. learning: whether this is an update, in which vectors of
        earlier weights may be used."""
        if not kb.has_name_vectors or not texts:
            return [[] for _ in texts]
        module = module_of(encoder_node(encoder))
        weights = weights_state(module.network)
        tables, made_for = self._names_state
        may_be_old = learning and learns(encoder)
        if tables is not kb.tables or (made_for != weights and not may_be_old):
            self.renew_names(kb, encoder)
            self._names_state = (kb.tables, weights)
        elif made_for != weights and module.reports_first("vectors of names"):
            LOGGER.warning(
                "The encoder is trained, and updates choose candidates by vectors of names that "
                "its earlier weights made; they are made again for every evaluation. To choose "
                "them by the present weights, freeze the encoder (learn_rate_factor = 0). This "
                "warning is logged once per encoder."
            )
        unique = list(dict.fromkeys(texts))
        vectors = text_vectors(encoder, [self.tokenizer(text) for text in unique])
        found = nearest_candidates(kb.tables, vectors, NearestSettings(k))
        of_text = dict(zip(unique, found))
        return [of_text[text] for text in texts]
