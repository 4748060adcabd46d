"""Reading made-up files of the formats, and what their reports count."""

import json
from typing import Any, NamedTuple

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.formats import get_format
from spacy_luke.corpora.options import ConvertOptions
from tests.conftest import blank, require_data


class Result(NamedTuple):
    """The documents of a file after a round trip through a ``DocBin``, and the report."""

    docs: list[Doc]
    report: Report

    @property
    def events(self) -> dict[str, tuple[int, str]]:
        return {what: (event.count, event.first) for what, event in self.report.events.items()}


@pytest.fixture
def convert(tmp_path):
    """Reads a file of a format: a text as it is, a list as JSON, for some formats one a line."""

    def run(format_name: str, content: str | list[Any], lang: str = "en", **options: Any) -> Result:
        item = get_format(format_name)
        settings = ConvertOptions(**options)
        item.check(settings)
        if not isinstance(content, str):
            lines = format_name in ("jsonl", "ufet", "figer")
            texts = [json.dumps(part) for part in content]
            content = "\n".join(texts) if lines else f"[{', '.join(texts)}]"
        path = tmp_path / "corpus.in"
        path.write_bytes(content.encode("utf-8"))
        report = Report()
        docs = list(item.reader(path, blank(lang), settings, report, lambda n_bytes: None))
        packed = DocBin(docs=docs, store_user_data=True).to_bytes()
        return Result(list(DocBin().from_bytes(packed).get_docs(Vocab())), report)

    return run


@pytest.fixture
def convert_real(data_dir):
    """Reads a file of the real data with a reader; skips the test if the file is absent."""

    def run(name: str, reader: Any, lang: str = "en", **options: Any) -> Result:
        path = data_dir / name
        require_data(path)
        report = Report()
        return Result(list(reader(path, blank(lang), ConvertOptions(**options), report)), report)

    return run


@pytest.fixture
def spans():
    """Describes spans by text and label, and those of their ids that are set."""

    def describe(found: Any) -> list[tuple[str, ...]]:
        return [
            tuple(part for part in (s.text, s.label_, s.kb_id_, s.id_ or s.ent_id_) if part)
            for s in found
        ]

    return describe


@pytest.fixture
def relations():
    """Describes a document's relations by the texts of head and tail, and the label."""

    def describe(doc: Doc) -> list[tuple[str, str, str]]:
        return [(r.head.text, r.tail.text, r.label) for r in doc._.relations]

    return describe
