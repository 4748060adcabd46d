"""The benchmark over dumps counts what it says it counts."""

from pathlib import Path

from benchmarks.wiki_markup import dump_tables, measure
from spacy_luke.pretraining.settings import DumpSettings

EXPORT = Path(__file__).parents[2] / "project" / "corpus" / "encyclopedia.xml"


def test_the_projects_own_export() -> None:
    found = measure(str(EXPORT), DumpSettings())
    counts = found.counts
    kinds = (
        "pages",
        "redirects",
        "disambiguations",
        "articles",
        "links",
        "unaccounted",
        "other anchors",
    )
    assert [counts[kind] for kind in kinds] == [181, 28, 23, 127, 1664, 0, 0]
    assert not +found.residue
    assert "| encyclopedia.xml | 181 | 28 | 23 | 127 |" in dump_tables([found])
