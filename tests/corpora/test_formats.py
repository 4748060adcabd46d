"""Formats are found by name, and refuse settings that they would leave unread."""

import subprocess
import sys

import pytest

from spacy_luke.corpora.formats import FORMATS, get_format
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.errors import ConfigError


@pytest.mark.parametrize(
    "name, format_name",
    [
        ("columns", "columns"),
        ("conll", "columns"),
        ("IOB", "columns"),
        ("jsonl", "jsonl"),
        ("SpERT", "conll04"),
    ],
)
def test_names_and_aliases_lead_to_a_format(name, format_name):
    assert get_format(name).name == format_name


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"'xml' is unknown.*columns \(conll, iob\), jsonl"):
        get_format("xml")


def test_no_two_formats_share_a_name():
    names = [name for item in FORMATS for name in (item.name, *item.aliases)]
    assert len(names) == len(set(names))


def test_every_setting_belongs_to_a_format():
    settings = set(ConvertOptions.__dataclass_fields__)
    assert set().union(*(item.options for item in FORMATS)) == settings


def test_a_setting_of_another_format_is_refused():
    with pytest.raises(ConfigError, match="'jsonl' does not take the setting n_sents"):
        get_format("jsonl").check(ConvertOptions(n_sents=3))
    with pytest.raises(ConfigError, match="'tacred' does not take the setting alignment"):
        get_format("tacred").check(ConvertOptions(alignment="split"))
    get_format("columns").check(ConvertOptions(n_sents=3))


def test_reading_corpora_works_with_torch_uninstalled():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import spacy_luke.corpora.formats, spacy_luke.corpora.preset
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
