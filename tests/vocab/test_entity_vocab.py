"""The entity vocabulary: three published formats, and look-ups by name."""

import json
import pickle

import pytest

from spacy_luke.errors import VocabError
from spacy_luke.vocab.entity_vocab import EntityVocab

SPECIALS = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2}
TSV = "[PAD]\t0\n[UNK]\t0\n[MASK]\t0\nTokyo\t9\nNew York City\t7\n"
LINES = [
    {"id": 0, "entities": [["[PAD]", "en"], ["[PAD]", "ja"]], "count": 0},
    {"id": 1, "entities": [["[UNK]", "ja"], ["[UNK]", "en"]], "count": 0},
    {"id": 2, "entities": [["[MASK]", "ja"], ["[MASK]", "en"]], "count": 0},
    {"id": 3, "entities": [["東京", "ja"], ["Tokyo", "en"]], "count": 9},
    {"id": 4, "entities": [["New York City", "en"]], "count": 7},
]


def jsonl(lines):
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"


@pytest.fixture
def read(tmp_path):
    """Reads a vocabulary of this content."""

    def read(content, name="entity_vocab.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return EntityVocab.from_file(path)

    return read


@pytest.mark.parametrize("name", ["entity_vocab.json", "entity_vocab.tsv", "anything"])
def test_the_format_is_told_from_the_content(read, name):
    as_json = json.dumps({**SPECIALS, "Tokyo": 3, "New York City": 4})
    for content in (as_json, json.dumps(json.loads(as_json), indent=2), TSV):
        vocab = read(content, name)
        assert (vocab.find("Tokyo"), vocab.find("New York City"), len(vocab)) == (3, 4, 5)
        assert (vocab.pad_id, vocab.unk_id, vocab.mask_id, vocab.mask2_id) == (0, 1, 2, None)
    vocab = read(jsonl(LINES), name)
    assert (vocab.find("en:Tokyo"), len(vocab)) == (3, 5)


def test_several_names_may_share_an_entity(read):
    vocab = read(jsonl(LINES))
    assert vocab.find("ja:東京") == vocab.find("en:Tokyo") == 3
    assert vocab.find("東京", "ja") == vocab.find("Tokyo", "en") == 3
    assert vocab.find("東京", "en") is None
    assert vocab.find("東京") is None
    assert vocab.mask_id == 2
    assert read(json.dumps({**SPECIALS, "en:Tokyo": 3, "ja:東京": 3})).find("東京", "ja") == 3


def test_an_entity_is_called_by_its_name_in_a_language():
    names = {"[MASK]": 0, "ja:東京": 1, "de:Tokio": 1, "en:Tokyo": 1}
    for vocab in (EntityVocab(names), EntityVocab(names).indexed()):
        called = [vocab.name_of(1, x) for x in ("de", "en", "ja")]
        assert called == ["de:Tokio", "en:Tokyo", "ja:東京"]
        assert vocab.name_of(1, "fr") == vocab.name_of(1) == vocab.name_of(1, "e")
        assert vocab.name_of(9, "de") is None


def test_names_are_found_as_links_write_them(read):
    vocab = read(TSV)
    assert vocab.find("New_York_City") == vocab.find("New York City") == 4
    assert vocab.find("new york city") is None
    assert vocab.find("") is None
    assert "Tokyo" in vocab
    assert "Kyoto" not in vocab


@pytest.mark.parametrize("name", ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"])
def test_special_entities_are_not_found_by_name(read, name):
    assert read(TSV).find(name) is None
    assert read(jsonl(LINES)).find(name, "en") is None
    assert EntityVocab.specials_only().find(name) is None


def test_ids_of_special_entities_are_read_not_assumed(read, lite_dir, luke_dir):
    lite = EntityVocab.from_file(lite_dir / "entity_vocab.json")
    assert (lite.mask_id, lite.unk_id, lite.pad_id, lite.mask2_id) == (0, 1, 2, 3)
    luke = EntityVocab.from_file(luke_dir / "entity_vocab.json")
    assert (luke.pad_id, luke.unk_id, luke.mask_id) == (0, 1, 2)
    assert luke.mask2_id == len(luke) - 1


def test_only_mask_is_needed(read):
    vocab = read('{"[MASK]": 0}')
    assert (vocab.mask_id, vocab.pad_id, vocab.mask2_id) == (0, None, None)
    with pytest.raises(VocabError, match=r"\[UNK\]"):
        _ = vocab.unk_id
    for content in ('{"[PAD]": 0}', "[PAD]\t0\n", jsonl(LINES[:2])):
        with pytest.raises(VocabError, match=r"entity_vocab\.json has no \[MASK\]"):
            read(content)


def test_a_title_may_be_any_string(read):
    assert read(json.dumps({"[MASK]": 0, "entities": 1})).find("entities") == 1
    title = "a\u2028b\x85c"
    entry = {"id": 3, "entities": [[title, "en"]], "count": 1}
    assert read(jsonl([*LINES[:3], entry])).find(title, "en") == 3
    assert read(f"[MASK]\t0\n{title}\t2\n").find(title) == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (TSV + "Tokyo\tmany\n", 6),
        ("[MASK]\t0\n\nTokyo\t1\n", 2),
        (TSV + "Tokyo\t3\n", 6),
        (jsonl(LINES) + "{broken\n", 6),
        (jsonl(LINES) + '{"id": 9}\n', 6),
        (jsonl(LINES) + '{"id": 9, "entities": [["only a title"]]}\n', 6),
        (jsonl(LINES) + '{"id": 9, "entities": [["Tokyo", "en"]]}\n', 6),
        (jsonl(LINES) + "[1, 2]\n", 6),
        (jsonl(LINES) + '{"id": ' + "9" * 5_000 + ', "entities": []}\n', 6),
        (jsonl(LINES) + '{"id": ' + "[" * 100_000 + "\n", 6),
        ('{"[MASK]": 0,\n "Tok', 1),
    ],
)
def test_a_bad_line_is_named(read, content, line):
    with pytest.raises(VocabError, match=rf"entity_vocab\.json, line {line}:"):
        read(content)


@pytest.mark.parametrize("index", [-1, 1.5, "3", None, True, [1]])
def test_a_bad_id_is_named(read, index):
    with pytest.raises(VocabError, match=r"entity_vocab\.json.*'Tokyo'"):
        read(json.dumps({**SPECIALS, "Tokyo": index}))
    entry = {"id": index, "entities": [["Tokyo", "en"]], "count": 1}
    with pytest.raises(VocabError, match=r"entity_vocab\.json.*'en:Tokyo'"):
        read(jsonl([*LINES[:3], entry]))


@pytest.mark.parametrize(
    "content", ["", " \n\n", b"\xff\xfe\x00", "[1, 2]", '{"[MASK]": ' + "9" * 5_000 + "}"]
)
def test_what_is_no_vocabulary_is_named(read, content):
    with pytest.raises(VocabError, match=r"entity_vocab\.json"):
        read(content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(VocabError, match="nowhere"):
        EntityVocab.from_file(tmp_path / "nowhere")


def test_it_survives_saving(read):
    vocab = read(jsonl(LINES))
    for copy in (vocab.indexed(), pickle.loads(pickle.dumps(vocab))):
        assert dict(copy.names.items()) == vocab.names
        assert (len(copy), copy.mask_id) == (len(vocab), vocab.mask_id)


@pytest.mark.parametrize(
    ("name", "title", "index"),
    [
        ("dummy_entity_vocab.tsv", "Japan", 3),
        ("enwiki_20181220_entvocab_100.tsv", "United States", 4),
        ("en_ja_multilingual_vocab_test.jsonl", "ja:フジテレビジョン", 3),
    ],
)
def test_published_files_are_read(data_dir, name, title, index):
    vocab = EntityVocab.from_file(data_dir / "luke-vocab" / name)
    assert (vocab.pad_id, vocab.unk_id, vocab.mask_id) == (0, 1, 2)
    assert vocab.find(title) == index


def test_titles_of_json_lines_without_language_have_no_prefix(read):
    vocab = read(jsonl([*LINES[:3], {"id": 3, "entities": [["Tokyo", None]], "count": 1}]))
    assert vocab.find("Tokyo", "en") == 3 and vocab.name_of(3) == "Tokyo"
