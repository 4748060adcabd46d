"""``known_names``: finds the names of a list in texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config

from ..annotations.annotated import is_annotated
from ..errors import reading
from ..files import remove_folder
from ..forked_locks import ForkedLock
from ..json_file import read_object
from ..kb.entity import Findings
from ..names.build import EMPTY, NUL
from ..names.find import FoundName, Match, find_names
from ..names.layout import FOLDER, META
from ..names.listed_name import ListedName
from ..names.name_list import NameList
from ..names.read import SKIPPED, names_of_record, read_names
from ..report import LOGGER, log_lost
from ..validation import Count, HasSettings, Name, setting
from .ents import entity_tokens, set_doc_ents
from .saving import overridden_settings, save_settings, saved_settings

MATCH = "match"
"""The attribute of the spans group that tells how each of its spans matched."""

_EDIT = ForkedLock()
"""Held while a list is changed: of two threads that read it at once, one would lose its change."""

Names = str | Path | Iterable[ListedName | Mapping[str, object]]
"""A file or folder of names, or names."""

DEFAULT_CONFIG = Config().from_str(
    """
[known_names]
spans_key = null
match = "normalised"
k = 30
annotate_ents = false
overwrite = false
"""
)


@Language.factory(
    "known_names", assigns=["doc.spans"], default_config=DEFAULT_CONFIG["known_names"]
)
def make_known_names(
    nlp: Language,
    name: str,
    spans_key: str | None,
    match: Match,
    k: int,
    annotate_ents: bool,
    overwrite: bool,
) -> "KnownNames":
    """Construct a component that finds the names of a list.

    spans_key: the spans group that is written; by default it has the component's name.
    match: ``exact`` finds names as they are written; ``normalised`` also those whose normalised
        form is equal, as the candidates of the linker.
    k: maximum number of labels and ids per span; the first ones in the list are kept.
    annotate_ents: also write names to ``Doc.ents``: of those that overlap the longest one.
    overwrite: replace existing entities; if false, they are kept, and names are added where they do
        not overlap.
    """
    return KnownNames(
        nlp.vocab,
        name,
        spans_key=spans_key,
        match=match,
        k=k,
        annotate_ents=annotate_ents,
        overwrite=overwrite,
    )


class KnownNames(HasSettings, Pipe):
    """Find the names of a list. Nothing is trained.

    names: the list; it is saved with the component.
    """

    spans_key: Name | None = setting()
    match: Match = setting()
    k: Count = setting()
    annotate_ents: bool = setting()
    overwrite: bool = setting()

    vocab: Vocab
    names: NameList

    def __init__(self, vocab: Vocab, name: str = "known_names", **cfg: object) -> None:
        self.vocab, self.name = vocab, name
        self.cfg = {**DEFAULT_CONFIG["known_names"], **cfg}
        self.names = self._first = NameList.build((), vocab.lang)
        self._others: tuple[NameList, dict[str, NameList]] = self.names, {}
        self._warned = False

    # The list

    def set_names(self, names: Names, label: str = "") -> Findings:
        """Use another list. The next document is processed with it.

        names: a file or folder (see :func:`~spacy_luke.names.read.read_names`), or
            :class:`ListedName` objects or dictionaries as in a file. label: of names without one.

        Returns what was read and left out. Raises CorpusError for invalid names; the present list
        is then kept.
        """
        findings = Findings()
        made = _saved_list(names)
        if made is None:
            read = _read(names, findings, label)
            made = NameList.build(read, self.vocab.lang, findings)
        else:
            findings.counts["names"] = len(made.forms)
        self._set(made)
        return findings

    def add(self, names: Names, label: str = "") -> Findings:
        """Add names at the end of the list; see :meth:`set_names`."""
        findings = Findings()
        added = list(_read(names, findings, label))
        with _EDIT:
            self.names = self.names.edited(added, findings=findings)
        return findings

    def remove(
        self,
        names: Iterable[str] = (),
        *,
        ids: Iterable[str | int] = (),
        labels: Iterable[str] = (),
    ) -> Findings:
        """Remove all that have one of these names, as they are written in the list, ids or labels.
        Unknown ones are counted."""
        findings = Findings()
        with _EDIT:
            self.names = self.names.edited((), names, ids, labels, findings)
        return findings

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names.labels

    @property
    def key(self) -> str:
        """The name of its spans group, as of ``span_ruler``."""
        return self.spans_key or self.name

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        names_path: Path | None = None,
        label: str = "",
    ) -> None:
        """Read the list. By default the present one is kept.

        names_path, label: as of :meth:`set_names`.
        """
        if names_path is not None:
            findings = self.set_names(names_path, label)
            n_lost = sum(findings.counts[x] for x in (EMPTY, NUL, SKIPPED))
            log_lost(n_lost, "%s: %s.", self.name, "; ".join(findings.lines()))

    # Prediction

    def __call__(self, doc: Doc) -> Doc:
        names = self._names_in(doc.vocab.lang)
        if not len(names) and not self._warned:
            self._warned = True
            LOGGER.warning("%s has no names: it finds nothing. See set_names.", self.name)
        found = find_names(names, doc, self.match, self.k)
        spans = [Span(doc, x.start, x.end, label=x.label, kb_id=x.id, span_id=x.id) for x in found]
        attrs = {MATCH: [x.match for x in found]}
        doc.spans[self.key] = SpanGroup(doc, name=self.key, spans=spans, attrs=attrs)
        if self.annotate_ents:
            self._annotate(doc, found, spans)
        return doc

    def _annotate(self, doc: Doc, found: list[FoundName], spans: list[Span]) -> None:
        """Write names to ``Doc.ents``: the longest first, then the leftmost. Of one place it is the
        first: an exact one, and of those the first in the list."""
        kept = [] if self.overwrite else list(doc.ents)
        taken, blocked = entity_tokens(doc)
        if self.overwrite:
            taken = blocked
        for i in sorted(range(len(found)), key=lambda i: (found[i].start - found[i].end, i)):
            place = slice(found[i].start, found[i].end)
            if not taken[place].any():
                taken[place] = True
                kept.append(spans[i])
        set_doc_ents(doc, kept)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Scores of ``Doc.ents`` as of ``entity_ruler``, if that is written. Documents without
        annotated entities are left out, as by ``luke_ner``."""
        if not self.annotate_ents:
            return {}
        return get_ner_prf([eg for eg in examples if is_annotated(eg.reference, "ents")])

    # Files

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the settings (see :func:`.save_settings`), and the list to the folder ``names``. If
        that is excluded, there is none afterwards."""
        path, exclude = Path(path), tuple(exclude)
        path.mkdir(parents=True, exist_ok=True)
        if FOLDER not in exclude:
            self.names.to_disk(path / FOLDER)
        elif (path / FOLDER).exists():
            remove_folder(path / FOLDER)
        if "cfg" not in exclude:
            save_settings(path, self.cfg)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "KnownNames":
        """Read the component from a folder. Of a new one, settings that were overridden at loading
        count more than the saved ones; one that has had a list goes back to what was saved. If it
        was saved without its list, the list is empty, with a warning."""
        path, exclude = Path(path), tuple(exclude)
        if "cfg" not in exclude:
            self._read_settings(path)
        if FOLDER in exclude:
            return self
        if (path / FOLDER).exists():
            self._set(NameList.open(path / FOLDER))
        else:
            self._set(NameList.build((), self.vocab.lang))
            LOGGER.warning("%s was saved without its list: it has no names.", self.name)
        return self

    def _read_settings(self, path: Path) -> None:
        overridden: dict[str, Any] = {}
        with reading(f"The component in {path}"):
            if self.names is not self._first:
                self.cfg.update(saved_settings(path, self.cfg))
            else:
                overridden = overridden_settings(path, self.cfg)
            self.cfg.update(read_object(path / "cfg"))
        self.cfg.update(overridden)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        exclude, parts = tuple(exclude), dict[str, object]()
        if "cfg" not in exclude:
            parts["cfg"] = dict(self.cfg)
        if FOLDER not in exclude:
            parts[FOLDER] = self.names.to_bytes()
        return srsly.msgpack_dumps(parts)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "KnownNames":
        exclude, parts = tuple(exclude), srsly.msgpack_loads(data)
        if "cfg" not in exclude:
            self.cfg.update(parts.get("cfg", {}))
        if FOLDER in parts and FOLDER not in exclude:
            self._set(NameList.from_bytes(parts[FOLDER]))
        return self

    def _set(self, names: NameList) -> None:
        """Use a list, normalised by the rules of the pipeline's language."""
        with _EDIT:  # an edit that is going on ends first
            self.names = _in_language(names, self.vocab.lang)

    def _names_in(self, lang: str) -> NameList:
        """The list for documents of a language. It is another one than the list's own if the
        component was sourced from a pipeline of another language."""
        names, others = self.names, self._others
        if names.lang == lang:
            return names
        if others[0] is not names:
            self._others = others = names, {}
        if lang not in others[1]:
            with _EDIT:
                others[1].setdefault(lang, _in_language(names, lang))
        return others[1][lang]


def _in_language(names: NameList, lang: str) -> NameList:
    return names if names.lang == lang else NameList.build(names, lang)


def _saved_list(names: Names) -> NameList | None:
    """The list in a folder of names that was saved; None for all other sources."""
    is_saved = isinstance(names, str | Path) and (Path(names) / META).is_file()
    return NameList.open(Path(names)) if is_saved else None  # type: ignore[arg-type]


def _read(names: Names, findings: Findings, label: str) -> Iterator[ListedName]:
    if isinstance(names, str | Path):
        yield from read_names(Path(names), findings, label)
        return
    for name in names:
        if isinstance(name, ListedName):
            yield name
        else:
            yield from names_of_record(name, findings, label)
