"""``spacy luke convert``: annotated files to spaCy's ``.spacy`` files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from tqdm import tqdm
from wasabi import Printer

from ..corpora.conversion_report import Report
from ..corpora.formats import CHARACTERS, CorpusFormat, format_names, get_format, looks_like
from ..corpora.formats import FORMATS as CORPUS_FORMATS
from ..corpora.lines import Advance
from ..corpora.options import (
    ALIGNMENTS,
    BRACKETS,
    OFFSETS,
    SCHEMES,
    SEPARATORS,
    ConvertOptions,
)
from ..errors import ConfigError, CorpusError
from ..files import is_hidden, whole_file
from . import app, exit_on_error
from .options import ForceOption, lang_option
from .saving import check_file
from .stages import pretraining_extra

SUFFIX = ".spacy"


def _read_articles(
    path: Path, nlp: Language, options: ConvertOptions, report: Report, advance: Advance
) -> Iterator[Doc]:
    with pretraining_extra():
        from ..pretraining.article_docs import read_article_docs
    return read_article_docs(path, nlp, options, report, advance)


ARTICLES = CorpusFormat("articles", _read_articles, CHARACTERS, frozenset(), folder=True)
FORMATS = (*CORPUS_FORMATS, ARTICLES)
_DEFAULTS = ConvertOptions()
_FORMAT_HELP = f"The format of the input: {', '.join(format_names(FORMATS))}."


@app.command("convert")
def convert_cli(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=_FORMAT_HELP)],
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, or a directory of files.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="A .spacy file, or a directory if IN is one (of brat and articles a file).",
        ),
    ],
    lang: Annotated[str, lang_option("en, or that of the articles")] = "",
    n_sents: Annotated[
        int, typer.Option(help="columns, csv: sentences per document.")
    ] = _DEFAULTS.n_sents,
    documents: Annotated[
        bool, typer.Option("--documents", help="columns: keep -DOCSTART- documents whole.")
    ] = _DEFAULTS.documents,
    scheme: Annotated[
        str, typer.Option(help=f"columns, csv: auto to detect it, or {', '.join(SCHEMES)}.")
    ] = _DEFAULTS.scheme,
    separator: Annotated[
        str, typer.Option(help=f"columns: {', '.join(SEPARATORS)}; auto uses the first line.")
    ] = _DEFAULTS.separator,
    word_column: Annotated[
        int, typer.Option(help="columns: the word's column, from 0; -1 is the last.")
    ] = _DEFAULTS.word_column,
    tag_column: Annotated[
        int, typer.Option(help="columns: the tag's column, from 0; -1 is the last.")
    ] = _DEFAULTS.tag_column,
    alignment: Annotated[
        str,
        typer.Option(
            help=f"Formats with character offsets: {', '.join(ALIGNMENTS)}. A span that cuts a "
            "token is left out, shrunk or extended, or the token is split. auto is strict for "
            "annotation tools and csv, else split."
        ),
    ] = _DEFAULTS.alignment,
    spans_key: Annotated[
        str,
        typer.Option(
            help="all except columns, squad and tags of csv: the key of doc.spans for all spans."
        ),
    ] = _DEFAULTS.spans_key,
    brackets: Annotated[
        str,
        typer.Option(
            help=f"tacred, openentity, ufet: {', '.join(BRACKETS)}. -LRB-, -LSB- etc. become the "
            "original brackets or round ones, or are kept. auto is plain for tacred, else keep."
        ),
    ] = _DEFAULTS.brackets,
    types: Annotated[
        str,
        typer.Option(help="ufet, openentity, figer: types to keep, comma-separated. Default: all."),
    ] = ",".join(_DEFAULTS.types),
    ne_columns: Annotated[
        str, typer.Option(help="hipe: columns whose entities are read, comma-separated.")
    ] = ",".join(_DEFAULTS.ne_columns),
    offsets: Annotated[
        str,
        typer.Option(
            help=f"doccano, label-studio, csv, spacy-tuples, record: {', '.join(OFFSETS)}. What "
            "offsets count; utf16 are the units of JavaScript, two for most emoji."
        ),
    ] = _DEFAULTS.offsets,
    fields: Annotated[
        str,
        typer.Option(
            help="csv, label-studio: names of columns or keys, as text=Sentence,label=Class."
        ),
    ] = "",
    encoding: Annotated[
        str, typer.Option(help="csv: the file's encoding, as latin-1 or cp1252.")
    ] = _DEFAULTS.encoding,
    ignore_spacing: Annotated[
        bool, typer.Option("--ignore-spacing", help="hipe: join all words by spaces.")
    ] = _DEFAULTS.ignore_spacing,
    force: ForceOption = False,
) -> None:
    """Convert annotated files to .spacy files for training.

    columns: one word and its tag per line (IOB1, IOB2, BILOU or IOBES, detected), blank lines
    between sentences.

    Annotation tools: jsonl (Prodigy: "text" and "spans", optional "relations", "tokens", "answer"),
    doccano, label-studio (JSON and JSON_MIN), brat (a folder of .txt and .ann), spacy-tuples
    (training data of older tutorials, as JSON).

    csv: a table with a header, also TSV, with one span (text, start, end, label) or one word and
    its tag per row.

    Relations: semeval (SemEval-2010 Task 8), tacred (also Re-TACRED), docred (also Re-DocRED),
    conll04 (the JSON of SpERT).

    Links to a knowledge base: jsonl ("kb_id" of spans), prodigy-links (one mention per line, with
    "options" and "accept"), elevant (benchmarks with "labels"), pubtator (abstracts, mentions with
    ids, relations between ids), hipe (the columns of the HIPE shared tasks), articles (a folder of
    'spacy luke articles').

    Types of mentions: ufet (Ultra-Fine Entity Typing), openentity (a JSON list of sentences with
    "start", "end" and "labels"), figer (a JSON object per line with "tokens" and "mentions").

    Questions with answers: squad (SQuAD 1.1 and 2.0, and files of the same shape).

    Cloze: record (ReCoRD, as published or in SuperGLUE's JSON lines).

    Everything skipped or repaired is counted, and shown with the line of the first case.

    \b
    Examples:
    python -m spacy luke convert jsonl annotations.jsonl train.spacy --lang en
    python -m spacy luke convert columns conll2003/train.txt train.spacy
    """
    msg = Printer()
    with exit_on_error(msg):
        options = ConvertOptions(
            n_sents=n_sents,
            documents=documents,
            scheme=scheme,
            separator=separator,
            word_column=word_column,
            tag_column=tag_column,
            alignment=alignment,
            spans_key=spans_key,
            brackets=brackets,
            types=_names(types),
            ne_columns=_names(ne_columns.upper()),
            offsets=offsets,
            fields=_fields(fields),
            encoding=encoding,
            ignore_spacing=ignore_spacing,
        )
        convert(format_name, source, target, lang, options, msg, force)


def convert(
    format_name: str,
    source: Path,
    target: Path,
    lang: str,
    options: ConvertOptions,
    msg: Printer,
    force: bool = False,
) -> list[Report]:
    """Convert a file, or all files of the format in a directory, and print the reports.

    lang: if empty, "en", or the language of a folder of articles. force: replace existing files.

    Returns one report per file. Raises ConfigError, CorpusError or StageError; a file with an error
    is not written.
    """
    file_format = get_format(format_name, FORMATS)
    file_format.check(options)
    nlp = _blank(lang or _language_of(file_format, source))
    reports = []
    pairs = list(plan(file_format, source, target, msg))
    for _, out_path in pairs:
        check_file(out_path, force)
    for path, out_path in pairs:
        report = convert_file(file_format, path, out_path, nlp, options)
        print_report(path, out_path, report, msg)
        reports.append(report)
    return reports


def plan(
    file_format: CorpusFormat, source: Path, target: Path, msg: Printer
) -> Iterator[tuple[Path, Path]]:
    """Pairs of an input and an output file. Raises ConfigError if that is not possible."""
    if not source.exists():
        raise ConfigError(f"IN: {source} does not exist.")
    if file_format.folder:
        if not source.is_dir():
            raise ConfigError(f"IN: {source} is not a folder; {file_format.name} needs one.")
        return iter([(source, _out_path(source.resolve().name, target))])
    if not source.is_dir():
        if not source.is_file():
            raise ConfigError(
                f"IN: {source} is not a regular file. A file is read more than once: write what "
                "comes from a pipe to one."
            )
        return iter([(source, _out_path(source.stem, target))])
    if target.suffix == SUFFIX or target.is_file():
        raise ConfigError(f"OUT: {target} must be a directory, because IN is one.")
    return iter(_pair_directory(file_format, source, target, msg))


def _out_path(name: str, target: Path) -> Path:
    """The file to write; a directory gets ``<name>.spacy``. Raises ConfigError."""
    path = target / f"{name}{SUFFIX}" if target.is_dir() else target
    if path.suffix != SUFFIX:
        raise ConfigError(f"OUT: {target} must end in {SUFFIX} or be a directory.")
    return path


def _pair_directory(
    file_format: CorpusFormat, source: Path, target: Path, msg: Printer
) -> list[tuple[Path, Path]]:
    pairs: dict[Path, Path] = {}
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        if is_hidden(path, source):
            msg.warn(f"Not read: {path} (hidden)")
            continue
        if path.suffix.lower() not in file_format.suffixes:
            msg.warn(f"Not read: {path} (not a suffix of the format {file_format.name})")
            continue
        out_path = target / path.relative_to(source).with_suffix(SUFFIX)
        if out_path in pairs:
            raise ConfigError(f"{pairs[out_path]} and {path} would both be written to {out_path}.")
        pairs[out_path] = path
    if not pairs:
        suffixes = ", ".join(sorted(file_format.suffixes))
        raise ConfigError(f"IN: {source} has no file that ends in {suffixes}.")
    return [(path, out_path) for out_path, path in pairs.items()]


def convert_file(
    file_format: CorpusFormat, path: Path, out_path: Path, nlp: Language, options: ConvertOptions
) -> Report:
    """Write one ``.spacy`` file. It appears when it is complete.

    Raises CorpusError, before anything is written, if the input is invalid or has no documents.
    """
    report = Report()
    doc_bin = DocBin(store_user_data=True)
    # Shown after a second, so small files have no bar.
    with tqdm(
        total=_size(path), unit="B", unit_scale=True, delay=1, leave=False, disable=None
    ) as bar:
        try:
            docs = file_format.reader(path, nlp, options, report, bar.update)
            for number, doc in enumerate(docs, start=1):
                try:
                    doc_bin.add(doc)
                except (ValueError, OverflowError) as err:  # an id with an unpaired surrogate
                    where = f"{path}, document {number}"
                    raise CorpusError(f"{where} cannot be stored as .spacy data: {err}.") from err
        except CorpusError as err:
            raise CorpusError(f"{err}{_hint(file_format, path)}") from err
    if not len(doc_bin):
        skipped = "; ".join(f"{what}: {event.count}" for what, event in report.events.items())
        raise CorpusError(f"{path} has no documents{f' ({skipped})' if skipped else ''}.")
    out_path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out_path) as temporary:
        doc_bin.to_disk(temporary)
    return report


def _hint(file_format: CorpusFormat, path: Path) -> str:
    """A sentence about the format that a file has, if it is another one."""
    name = looks_like(path, FORMATS) if path.is_file() else ""
    if name in ("", file_format.name):
        return ""
    return f" The file looks like the format {name}: spacy luke convert {name} {path} OUT"


def print_report(path: Path, out_path: Path, report: Report, msg: Printer) -> None:
    """Print counts, labels, the scheme, and what was skipped or repaired."""
    msg.good(f"{path} -> {out_path}")
    rows = [("Documents", f"{report.documents:,}")]
    if report.sentences:
        rows.append(("Sentences", f"{report.sentences:,}"))
    rows.append(("Tokens", f"{report.tokens:,}"))
    if report.scheme:
        rows.append(("Scheme", report.scheme))
    for name, counter in (("Entities", report.labels), ("Relations", report.relations)):
        if counter or (name == "Entities" and not report.questions):
            rows.append((name, f"{sum(counter.values()):,}"))
        rows.extend((f"  {label}", f"{n:,}") for label, n in counter.most_common())
    if report.links or report.nil:
        rows.append(("Spans with a kb_id", f"{report.links:,}"))
        rows.append(("Spans with NIL", f"{report.nil:,}"))
    if report.typed_spans:
        rows.append(("Spans with types", f"{report.typed_spans:,}"))
        rows.append(("Different types", f"{len(report.types):,}"))
    if report.questions:
        rows.append(("Questions", f"{report.questions:,}"))
        rows.append(("  without an answer", f"{report.unanswerable:,}"))
        rows.append(("Different answers", f"{report.answers:,}"))
    msg.table(rows)
    for note in report.notes:
        msg.info(note)
    for what, event in report.events.items():
        msg.warn(f"{what}: {event.count:,} (first: {event.first})")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _fields(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of the format's name and the file's."""
    pairs = [item.partition("=") for item in text.split(",") if item.strip()]
    for name, equals, own in pairs:
        if not (name.strip() and equals and own.strip()):
            raise ConfigError(f"fields is {text!r}; write it as in text=Sentence,label=Class.")
    return tuple((name.strip(), own.strip()) for name, _, own in pairs)


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _language_of(file_format: CorpusFormat, source: Path) -> str:
    if file_format is not ARTICLES or not source.is_dir():
        return "en"
    with pretraining_extra():
        from ..pretraining.linked_entities import language_of
    return language_of(source)


def _blank(lang: str) -> Language:
    try:
        return spacy.blank(lang)
    except ImportError as err:
        raise ConfigError(f"lang {lang!r} cannot be used: {err}") from err
