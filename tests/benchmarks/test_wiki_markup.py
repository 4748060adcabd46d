"""The benchmark over dumps counts what it says it counts."""

from pathlib import Path

from benchmarks.wiki_markup import dump_tables, measure

EXPORT = Path(__file__).parents[2] / "project" / "corpus" / "encyclopedia.xml"


def test_the_projects_own_export() -> None:
    found = measure(EXPORT)
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
    assert [counts[kind] for kind in kinds] == [131, 21, 4, 103, 1254, 0, 0]
    assert not +found.residue
    assert "| encyclopedia.xml | 131 | 21 | 4 | 103 |" in dump_tables([found])
