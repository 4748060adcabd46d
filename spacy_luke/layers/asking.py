"""Entity states of given spans, by the two ways to ask.

``probe``: all spans of a window are [MASK] entities of one sequence that do not see each other.
``markers``: a sequence for every question, its spans between marker pieces and seeing each other,
as published for relations and entity types.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from spacy.tokens import Doc
from torch.utils.checkpoint import checkpoint

from ..errors import ConfigError
from ..inputs.alignment import Pieces
from ..inputs.batch import pack, piece_rows, span_pieces
from ..inputs.marked import Marked, Markers, View, marker_ids, pack_marked, views
from ..inputs.windows import Windows
from ..model.packing import Array, Entities, LukeInputs
from ..report import LOGGER
from .session import Session, bounded

Way = Literal["probe", "markers"]


@dataclass
class AskSettings:
    """How a scorer asks; its architecture says what each setting means."""

    mode: Way = "probe"
    view: View = "document"
    typed_markers: bool = False
    max_mention_pieces: int | None = None

    scorer: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, known in (("mode", get_args(Way)), ("view", get_args(View))):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"{self.scorer}.{name} is {value!r}; use one of {known}.")
        if self.max_mention_pieces is not None and self.max_mention_pieces < 1:
            raise ConfigError(
                f"{self.scorer}.max_mention_pieces is {self.max_mention_pieces}; at least 1, or "
                "null."
            )
        unused = (self.view != "document", self.typed_markers, self.max_mention_pieces is not None)
        if self.mode == "probe" and any(unused):
            LOGGER.warning(
                "%s: view, typed_markers and max_mention_pieces say how markers ask; "
                "mode is 'probe', and they change nothing.",
                self.scorer,
            )


@dataclass
class GivenSpans:
    """Spans of a batch of documents. table: (n, 2) token ranges; of_doc: (n,); labels: n."""

    table: Array
    of_doc: Array
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.table)


class ProbeStates(NamedTuple):
    """entities: (n_spans, H), zeros for a span that could not be asked about; fits: (n_spans,)
    whether it could; words: (n_pieces, H)."""

    entities: torch.Tensor
    fits: Array
    words: torch.Tensor


class Asking:
    """Spans laid out on the pieces of a batch."""

    def __init__(self, session: Session, docs: Sequence[Doc], spans: GivenSpans):
        self.session, self.docs, self.spans = session, docs, spans
        cuts = None
        if session.settings.tokenization == "mentions":
            cuts = [spans.table[spans.of_doc == i] for i in range(len(docs))]
        self.pieces: Pieces = session.align(docs, cuts)
        self.starts, self.ends = span_pieces(self.pieces, spans.table, spans.of_doc)
        table = session.module.network.config.entity_labels
        classes = {label: i + 1 for i, label in enumerate(table)}
        self.classes = np.asarray([classes.get(label, 0) for label in spans.labels], dtype=np.int64)

    def shown(self) -> Array:
        """(n_spans,) which spans a window shows, so that :meth:`probe` can ask about them."""
        return self._windows()[1] >= 0

    def _windows(self) -> tuple[Windows, Array]:
        """The windows of the documents, and (n_spans,) the window of each span or -1."""
        windows = self.session.cut(self.docs, self.pieces, "document", self.starts, self.ends)
        fits = self.ends > self.starts
        return windows, np.where(fits, windows.of_spans(self.starts, self.ends), -1)

    def probe(self) -> ProbeStates:
        """All spans at once, each from the window that answers for it."""
        session, pieces = self.session, self.pieces
        windows, owner = self._windows()
        states = torch.zeros(len(self.spans), session.hidden_size, device=session.device)
        rows, parts, words = [], [], [states[:0]]
        for low, high in session.groups(windows, owner):
            if low == high:
                continue
            batch = pack(
                pieces,
                windows,
                owner,
                self.starts,
                self.ends,
                session.module.pieces,
                all_windows=True,
                within=(low, high),
            )
            asked = batch.questions.rows
            ids = np.full(len(asked), session.module.entities.mask_id, dtype=np.int64)
            given = batch.questions.entities(ids, self.classes[asked])
            encoded = session.encode(LukeInputs(batch.words, given), "probe")
            rows.append(asked)
            parts.append(encoded.entities)
            own = piece_rows(batch, windows, int(windows.own_ends[high - 1]))
            own = own[int(windows.own_starts[low]) :]
            words.append(encoded.words.index_select(0, session.index(own)))
        if parts:
            states = states.index_copy(0, session.index(np.concatenate(rows)), torch.cat(parts))
        return ProbeStates(states, owner >= 0, torch.cat(words))

    def fitting(self, questions: Array, typed: bool) -> Array:
        """(n,) which questions, (n, m) span indices, a marked sequence can hold."""
        starts, ends = self.starts[questions], self.ends[questions]
        room = self._room(questions, self._markers(typed))
        return (ends > starts).all(1) & (ends.max(1) - starts.min(1) <= room)

    def marked(
        self,
        questions: Array,
        view: View,
        typed: bool,
        classify: Callable[[torch.Tensor], torch.Tensor],
        max_mention_pieces: int | None = None,
    ) -> torch.Tensor:
        """Classify questions, each the m spans of a row that :meth:`fitting` allows.

        questions: (n, m). typed: markers also name the spans' labels. classify: (k, m, H) entity
        states -> (k, C). max_mention_pieces: positions of a span stop after so many pieces, its
        markers counted. Returns (n, C). A few sequences are in memory at a time: while training,
        those of earlier groups are computed again for the gradient.
        """
        markers = self._markers(typed)
        starts, ends = self.starts[questions], self.ends[questions]
        of_doc = self.spans.of_doc[questions[:, 0]]
        view_starts, view_ends = views(
            self.docs,
            self.pieces,
            of_doc,
            starts.min(1),
            ends.max(1),
            self._room(questions, markers),
            view,
        )
        kinds = self._kinds(typed)[questions]
        costs = view_ends - view_starts + 2 + markers.opening_lengths(kinds).sum(1)
        costs += 2 * questions.shape[1]
        groups = list(bounded(costs))
        # Of no use to the network: it tells the checkpoint whose random state dropout draws from.
        device = torch.zeros(0, device=self.session.device)
        parts = []
        for low, high in groups:
            marked = pack_marked(
                self.pieces,
                self.session.module.pieces,
                starts[low:high],
                ends[low:high],
                view_starts[low:high],
                view_ends[low:high],
                markers,
                kinds[low:high],
            )
            if max_mention_pieces is not None:
                marked.ends = np.minimum(marked.ends, marked.starts + max_mention_pieces)
            run = self._runner(marked, self.classes[questions[low:high]], classify)
            again = self.session.is_train and len(groups) > 1
            parts.append(checkpoint(run, device, use_reentrant=False) if again else run(device))
        return torch.cat(parts)

    def _runner(
        self, marked: Marked, classes: Array, classify: Callable[[torch.Tensor], torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        session = self.session
        n, m = marked.starts.shape
        vocab = session.module.entities
        second = vocab.mask_id if vocab.mask2_id is None else vocab.mask2_id
        ids = np.tile(np.asarray([vocab.mask_id, second])[:m], n)
        entities = Entities(
            ids,
            marked.starts.ravel(),
            marked.ends.ravel(),
            np.arange(n + 1, dtype=np.int64) * m,
            classes.ravel(),
        )
        inputs = LukeInputs(marked.words, entities)

        def run(_: torch.Tensor) -> torch.Tensor:
            return classify(session.encode(inputs, "full").entities.reshape(n, m, -1))

        return run

    def _room(self, questions: Array, markers: Markers) -> Array:
        """(n,) pieces of text that the sequence of each question holds beside its markers."""
        size, _ = self.session.settings.window_of(self.session.module.network)
        kinds = self._kinds(len(markers.openings) > 1)[questions]
        return size - markers.opening_lengths(kinds).sum(1) - questions.shape[1]

    def _kinds(self, typed: bool) -> Array:
        """(n_spans,) which opening a span gets: 0 is that without a label."""
        if not typed:
            return np.zeros(len(self.spans), dtype=np.int64)
        names = {label: i + 1 for i, label in enumerate(sorted(set(self.spans.labels)))}
        return np.asarray([names[label] for label in self.spans.labels], dtype=np.int64)

    def _markers(self, typed: bool) -> Markers:
        tokenizer = self.session.module.pieces
        openings = [np.zeros(0, dtype=np.int64)]
        for label in sorted(set(self.spans.labels)) if typed else ():
            words = label.replace("_", " ").replace("-", " ").lower().split()
            parts = tokenizer.encode_words([f" {word}" for word in ("*", *words, "*")])
            openings.append(np.concatenate(parts))
        return Markers(marker_ids(tokenizer), openings)
