"""``spacy luke convert`` writes ``.spacy`` files and says all that it did."""

import json

import pytest
from spacy.cli import app
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.annotations.relations import get_relations
from spacy_luke.annotations.types import get_types
from spacy_luke.cli.convert import FORMATS
from spacy_luke.corpora.formats import looks_like
from tests.pretraining.articles import article, make_articles

COLUMNS = "Ada B-PER\nLovelace I-PER\n\nin O\nLondon I-LOC\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a fresh directory; hand back its exit code and its words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*args):
        result = CliRunner().invoke(app, ["luke", "convert", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def load(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def ents(docs):
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


def test_columns_are_written_and_reported(run, tmp_path):
    (tmp_path / "in.conll").write_text(COLUMNS)
    code, output = run("conll", "in.conll", "deep/out.spacy", "--n-sents", "2")
    assert code == 0
    docs = load(tmp_path / "deep" / "out.spacy")
    assert ents(docs) == [[("Ada Lovelace", "PER"), ("London", "LOC")]]
    assert "Documents 1 Sentences 2 Tokens 4 Scheme IOB2 (detected) Entities 2" in output
    assert "PER 1 LOC 1" in output
    assert "begun at their first tag: 1 (first: line 5)" in output
    assert "neither clean IOB2" in output


def test_labels_that_a_terminal_cannot_show_are_no_error(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.conll").write_text(COLUMNS.replace("LOC", "場所"), encoding="utf8")
        ascii_only = CliRunner(charset="ascii")
        args = ["conll", f"{name}.conll", f"{name}.spacy"]
        result = ascii_only.invoke(app, ["luke", "convert", *args], color=False)
        assert result.exit_code == 0, result.exception
        assert (
            r"\u5834\u6240" in result.output
            and ents(load(tmp_path / f"{name}.spacy"))[1][0][1] == "場所"
        )


def test_jsonl_is_written_with_its_user_data_and_reported(run, tmp_path):
    records = [
        {"text": "Ada ran", "spans": [{"start": 0, "end": 3, "label": "PER"}], "meta": {"id": 9}},
        {"text": "Bob ran", "spans": [], "answer": "reject"},
        {"text": "Eve ran", "spans": [{"start": 0, "end": 2, "label": "PER"}]},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps(r) for r in records))
    code, output = run("jsonl", "in.jsonl", "out.spacy", "--spans-key", "all")
    assert code == 0
    docs = load(tmp_path / "out.spacy")
    assert ents(docs) == [[("Ada", "PER")], []]
    assert docs[0].user_data["meta"] == {"id": 9}
    assert "Documents 2 Tokens 4 Entities 1" in output
    assert "answer 'reject': 1 (first: line 2)" in output
    assert "they cut a token (alignment strict): 1 (first: line 3)" in output
    assert "--alignment expand moves them to token boundaries" in output
    assert "doc.spans['all'] contains 1 spans, doc.ents 1 of them" in output


def test_relations_and_types_are_written_and_reported(run, tmp_path):
    relation = {"head_start": 0, "head_end": 3, "tail_start": 8, "tail_end": 11, "label": "saw"}
    spans = [
        {"start": 0, "end": 3, "label": "PER", "types": ["/person", "/person/poet"]},
        {"start": 8, "end": 11, "label": "PER", "types": []},
    ]
    record = {"text": "Ada saw Bob", "spans": spans, "relations": [relation]}
    (tmp_path / "in.jsonl").write_text(json.dumps(record))
    code, output = run("jsonl", "in.jsonl", "out.spacy")
    assert code == 0
    (doc,) = load(tmp_path / "out.spacy")
    assert [(r.head.text, r.tail.text, r.label) for r in get_relations(doc)] == [
        ("Ada", "Bob", "saw")
    ]
    assert [get_types(ent) for ent in doc.ents] == [{"/person": 1.0, "/person/poet": 1.0}, {}]
    assert "Relations 1 saw 1 Spans with types 2 Different types 2" in output


def test_a_relation_corpus_is_written_and_reported(run, tmp_path):
    text = '1\t"A <e1>gust</e1> shut the <e2>door</e2>."\nBreaks(e1,e2)\nComment:\n'
    (tmp_path / "in.txt").write_text(text + "\n" + text.replace("Breaks(e1,e2)", "Other"))
    code, output = run("semeval", "in.txt", "out.spacy")
    assert code == 0
    assert [len(get_relations(doc)) for doc in load(tmp_path / "out.spacy")] == [1, 0]
    assert "Entities 4 NOMINAL 4 Relations 1 Breaks 1" in output
    assert "1 pairs are labelled 'Other'" in output


def test_links_are_written_and_reported(run, tmp_path):
    (tmp_path / "in.txt").write_text(
        "7|t|Selmine lowers fever.\n7\t0\t7\tSelmine\tDrug\tD1\n7\t15\t20\tfever\tIll\t-1\n"
    )
    code, output = run("pubtator", "in.txt", "out.spacy")
    assert code == 0
    (doc,) = load(tmp_path / "out.spacy")
    assert [ent.kb_id_ for ent in doc.ents] == ["D1", "NIL"]
    assert "Spans with a kb_id 1 Spans with NIL 1" in output


def test_what_exists_is_replaced_only_by_force(run, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.iob").write_text("Ada B-PER\n")
    assert run("columns", "in", "out")[0] == 0
    (tmp_path / "out" / "a.spacy").unlink()
    (tmp_path / "out" / "b.spacy").write_bytes(b"mine")
    code, output = run("columns", "in", "out")
    assert code == 1 and "out/b.spacy exists; use --force to replace it" in output
    assert [x.name for x in (tmp_path / "out").iterdir()] == ["b.spacy"]
    assert run("columns", "in", "out", "--force")[0] == 0
    assert ents(load(tmp_path / "out" / "b.spacy")) == [[("Ada", "PER")]]


def test_what_exists_stays_if_its_replacement_cannot_be_written(run, tmp_path, monkeypatch):
    (tmp_path / "in.conll").write_text(COLUMNS)
    assert run("columns", "in.conll", "out.spacy")[0] == 0
    before = (tmp_path / "out.spacy").read_bytes()

    def full_disk(doc_bin, path):
        path.write_bytes(doc_bin.to_bytes()[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DocBin, "to_disk", full_disk)
    code, _ = run("columns", "in.conll", "out.spacy", "--force")
    assert code == 1 and (tmp_path / "out.spacy").read_bytes() == before
    run("columns", "in.conll", "new.spacy")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in.conll", "out.spacy"]


def test_columns_of_hipe_may_be_chosen(run, tmp_path):
    names = "TOKEN NE-COARSE-LIT NE-NESTED NEL-LIT MISC".replace(" ", "\t")
    rows = "Ulm\tB-pers\tO\tQ1\tNoSpaceAfter\nBonn\tI-pers\tB-loc\tQ1\t_\n"
    (tmp_path / "in.tsv").write_text(f"{names}\n{rows}")
    args = ["--ne-columns", "ne-nested", "--ignore-spacing"]
    assert run("hipe", "in.tsv", "out.spacy", *args)[0] == 0
    assert ents(load(tmp_path / "out.spacy")) == [[("Bonn", "loc")]]
    code, output = run("hipe", "in.tsv", "out.spacy", "--ne-columns", "NE-FINE", "--force")
    assert code == 1
    assert "ne_columns has 'NE-FINE', but the columns of in.tsv are TOKEN, NE-COARSE-LIT" in output


SPAN = {"start": 0, "end": 3, "label": "PER"}
REGION = {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"]}}
FILES = {
    "jsonl": {"text": "Ada", "spans": [SPAN], "answer": "accept"},
    "prodigy-links": {"text": "Ada", "spans": [SPAN], "options": [{"id": "Q"}], "accept": ["Q"]},
    "elevant": {"text": "Ada", "labels": [{"span": [0, 3], "entity_id": "Q1"}]},
    "doccano": {"id": 1, "text": "Ada", "label": [[0, 3, "PER"]]},
    "label-studio": {"id": 1, "data": {"text": "Ada"}, "annotations": [{"result": [REGION]}]},
    "spacy-tuples": ["Ada", {"entities": [[0, 3, "PER"]]}],
    "tacred": {"token": ["Ada"], "subj_start": 0, "obj_start": 0},
    "docred": {"sents": [["Ada"]], "vertexSet": []},
    "conll04": {"tokens": ["Ada"], "entities": [], "relations": []},
    "ufet": {"left_context_token": [], "mention_span": "Ada", "right_context_token": []},
    "openentity": {"sent": "Ada", "start": 0, "end": 3, "labels": []},
    "figer": {"tokens": ["Ada"], "mentions": []},
    "squad": {"data": [{"paragraphs": []}]},
    "record": {"passage": {"text": "Ada"}, "qas": []},
}
"""The beginning of a file of each JSON format."""


@pytest.mark.parametrize("own", FILES)
@pytest.mark.parametrize("indent", [None, 1])
def test_the_format_of_a_file_is_known_by_its_keys(tmp_path, own, indent):
    path = tmp_path / "in.json"
    path.write_text(json.dumps(FILES[own], indent=indent))
    if not (own == "spacy-tuples" and indent):  # a pair has one line
        assert looks_like(path) == own
    path.write_text(json.dumps([FILES[own]], indent=indent))
    assert looks_like(path) == own


@pytest.mark.parametrize(
    "name, own",
    [
        ("jsonl", "doccano"),
        ("jsonl", "label-studio"),
        ("prodigy-links", "jsonl"),
        ("elevant", "doccano"),
        ("doccano", "jsonl"),
        ("label-studio", "jsonl"),
        ("spacy-tuples", "doccano"),
        ("tacred", "conll04"),
        ("docred", "tacred"),
        ("conll04", "docred"),
        ("ufet", "figer"),
        ("openentity", "ufet"),
        ("figer", "conll04"),
        ("squad", "record"),
        ("record", "squad"),
    ],
)
def test_a_file_of_another_format_is_an_error_that_names_it(run, tmp_path, name, own):
    is_list = name in ("tacred", "docred", "conll04", "openentity")
    (tmp_path / "in.json").write_text(json.dumps([FILES[own]] if is_list else FILES[own]))
    code, output = run(name, "in.json", "out.spacy")
    assert code == 1
    assert f"looks like the format {own}: spacy luke convert {own} in.json OUT" in output
    assert "its keys are" in output or "has no key" in output or "none of the keys" in output
    assert not (tmp_path / "out.spacy").exists()


def test_a_label_studio_file_is_not_taken_for_one_of_doccano(run, tmp_path):
    region = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    task = {"text": "Ada lived.", "id": 9, "label": [region], "annotator": 1, "annotation_id": 3}
    (tmp_path / "in.json").write_text(json.dumps([task]))
    code, output = run("jsonl", "in.json", "out.spacy")
    assert code == 1
    assert "looks like the format label-studio: spacy luke convert label-studio" in output


def test_columns_and_tables_name_the_format_of_json(run, tmp_path):
    (tmp_path / "in.json").write_text(json.dumps(FILES["doccano"]))
    for name in ("columns", "csv"):
        code, output = run(name, "in.json", "out.spacy")
        assert code == 1
        assert "The file looks like the format doccano" in output


def test_a_table_is_converted_with_the_names_of_its_columns(run, tmp_path):
    (tmp_path / "in.csv").write_bytes("Satz;von;bis;Art\nÄda;0;3;PER\n".encode("latin-1"))
    fields = "text=Satz, start=von,end=bis,label=Art"
    code, output = run("csv", "in.csv", "out.spacy", "--fields", fields, "--encoding", "latin-1")
    assert code == 0
    assert ents(load(tmp_path / "out.spacy")) == [[("Äda", "PER")]]
    assert "columns: text 'Satz', start 'von', end 'bis', label 'Art'" in output
    code, output = run("csv", "in.csv", "out.spacy", "--fields", "text")
    assert code == 1
    assert "fields is 'text'; write it as in text=Sentence,label=Class" in output


def test_a_folder_of_brat_becomes_one_file(run, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "1.txt").write_text("Ada ran.")
    (tmp_path / "letters" / "1.ann").write_text("T1\tPER 0 3\tAda\n")
    code, output = run("brat", "letters", "out.spacy")
    assert code == 0
    assert ents(load(tmp_path / "out.spacy")) == [[("Ada", "PER")]]
    code, output = run("brat", "letters/1.ann", "out.spacy")
    assert code == 1
    assert "letters/1.ann is not a folder; brat needs one" in output


def test_what_is_read_of_tools_is_reported(run, tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "🚀 Ada ran", "label": [[3, 6, "PER"]]}))
    code, output = run("doccano", "in.jsonl", "out.spacy", "--lang", "de")
    assert code == 0
    assert "offsets count utf16: of 1 spans" in output
    code, output = run("doccano", "in.jsonl", "out.spacy", "--offsets", "bytes")
    assert code == 1
    assert "offsets is 'bytes'; choose one of auto, characters, utf16" in output


@pytest.fixture
def article_folder(tmp_path):
    rows = [article(1, "Fähre", "Von Selm nach Brae.", [("Selm", "Selm"), ("Brae", "Brae")])]
    make_articles(tmp_path / "wiki", (rows, []), language="de")
    return "wiki"


def test_a_folder_of_articles_is_written_and_reported(run, tmp_path, article_folder):
    code, output = run("articles", article_folder, "out.spacy")
    assert code == 0
    (doc,) = load(tmp_path / "out.spacy")
    assert [ent.kb_id_ for ent in doc.ents] == ["Selm", "Brae"]
    assert "Documents 1 Tokens 5 Entities 2 MENTION 2 Spans with a kb_id 2" in output
    (tmp_path / "out").mkdir()
    assert run("articles", article_folder, "out", "--lang", "en")[0] == 0
    assert (tmp_path / "out" / "wiki.spacy").exists()


@pytest.mark.parametrize(
    "args, message",
    [
        (["articles", "in.conll", "out.spacy"], "in.conll is not a folder; articles needs one"),
        (["articles", "wiki", "out.json"], "out.json must end in .spacy"),
        (["articles", ".", "out.spacy"], "contains no finished stage 'articles'"),
        (["articles", "wiki", "out.spacy", "--types", "x"], "does not take the setting types"),
    ],
)
def test_articles_that_cannot_be_read_give_one_message(
    run, tmp_path, article_folder, args, message
):
    (tmp_path / "in.conll").write_text(COLUMNS)
    code, output = run(*args)
    assert code == 1
    assert message in output
    assert not list(tmp_path.rglob("*.spacy"))


def test_brackets_and_types_may_be_chosen(run, tmp_path):
    record = {"sent": "-LRB- Ada -RRB- ran", "start": 6, "end": 9, "labels": ["person", "poet"]}
    (tmp_path / "in.json").write_text(json.dumps([record]))
    code, _ = run("openentity", "in.json", "out.spacy", "--brackets", "round", "--types", "poet, x")
    assert code == 0
    (doc,) = load(tmp_path / "out.spacy")
    assert (doc.text, doc.ents[0].text) == ("( Ada ) ran", "Ada")
    assert get_types(doc.ents[0]) == {"poet": 1.0}


def test_a_json_list_cut_off_writes_nothing(run, tmp_path):
    record = {"sent": "Ada ran", "start": 0, "end": 3, "labels": ["person"]}
    (tmp_path / "in.json").write_text(f"[{json.dumps(record)}, {json.dumps(record)[:20]}")
    code, output = run("openentity", "in.json", "out.spacy")
    assert code == 1
    assert "in.json, record 2, line 1: not JSON" in output
    assert not (tmp_path / "out.spacy").exists()


def test_an_id_that_cannot_be_stored_names_its_document(run, tmp_path):
    record = {"token": ["Ada", "met", "Bob"], "subj_start": 0, "subj_end": 0, "obj_start": 2}
    record |= {"obj_end": 2, "subj_type": "P", "obj_type": "P", "relation": "met"}
    records = [{**record, "id": "a"}, {**record, "id": "\ud800"}]
    (tmp_path / "a.json").write_text(json.dumps(records))
    status, output = run("tacred", "a.json", "a.spacy")
    assert status == 1
    assert "a.json, document 2 cannot be stored as .spacy data: 'utf-8' codec" in output
    assert not (tmp_path / "a.spacy").exists()


def test_a_directory_becomes_a_directory_and_unread_files_are_named(run, tmp_path):
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.conll").write_text("a B-X\n")
    (tmp_path / "data" / "sub" / "b.TXT").write_text("b B-Y\n")
    (tmp_path / "data" / "README.md").write_text("read me")
    (tmp_path / "data" / ".copies").mkdir()
    (tmp_path / "data" / ".copies" / "a.conll").write_text("a B-X\n")
    code, output = run("columns", "data", "out")
    assert code == 0
    assert ents(load(tmp_path / "out" / "a.spacy")) == [[("a", "X")]]
    assert ents(load(tmp_path / "out" / "sub" / "b.spacy")) == [[("b", "Y")]]
    assert "Not read: data/README.md" in output
    assert "Not read: data/.copies/a.conll (hidden)" in output
    assert not (tmp_path / "out" / ".copies").exists()


def test_a_file_goes_into_a_directory_that_exists(run, tmp_path):
    (tmp_path / "in.conll").write_text(COLUMNS)
    (tmp_path / "out").mkdir()
    assert run("columns", "in.conll", "out")[0] == 0
    assert len(load(tmp_path / "out" / "in.spacy")) == 2


@pytest.mark.parametrize(
    "args, message",
    [
        (["xml", "in.conll", "out.spacy"], "format 'xml' is unknown"),
        (["columns", "gone.conll", "out.spacy"], "gone.conll does not exist"),
        (["columns", "in.conll", "out.json"], "out.json must end in .spacy"),
        (["columns", "data", "out.spacy"], "out.spacy must be a directory"),
        (["columns", "data", "out"], "would both be written to out/a.spacy"),
        (["jsonl", "data", "out"], "no file that ends in .json, .jsonl, .ndjson"),
        (["columns", "in.conll", "out.spacy", "--scheme", "x"], "scheme is 'x'"),
        (["columns", "in.conll", "out.spacy", "--n-sents", "0"], "n_sents is 0"),
        (["columns", "in.conll", "out.spacy", "--alignment", "expand"], "does not take"),
        (["jsonl", "in.conll", "out.spacy", "--alignment", "near"], "alignment is 'near'"),
        (["docred", "in.conll", "out.spacy", "--alignment", "split"], "does not take"),
        (["docred", "in.conll", "out.spacy", "--brackets", "keep"], "does not take"),
        (["tacred", "in.conll", "out.spacy", "--brackets", "square"], "brackets is 'square'"),
        (["tacred", "in.conll", "out.spacy", "--types", "person"], "does not take"),
        (["docred", "in.conll", "out.spacy"], "a JSON list of objects is needed"),
        (["semeval", "in.conll", "out.spacy"], "in.conll, line 1: a number and a sentence"),
        (["jsonl", "in.conll", "out.spacy", "--spans-key", ""], "spans_key is empty"),
        (["columns", "in.conll", "out.spacy", "--lang", "q9"], "lang 'q9' cannot be used"),
        (["jsonl", "in.conll", "out.spacy"], "in.conll, line 1: not JSON"),
        (["columns", "in.conll", "out.spacy", "--tag-column", "7"], "tag_column is 7"),
    ],
)
def test_mistakes_give_one_message_and_exit_code_1_and_no_file(run, tmp_path, args, message):
    (tmp_path / "in.conll").write_text(COLUMNS)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.conll").write_text("a O\n")
    (tmp_path / "data" / "a.iob").write_text("a O\n")
    code, output = run(*args)
    assert code == 1
    assert message in output
    assert "Traceback" not in output
    assert not list(tmp_path.rglob("*.spacy"))


def test_an_input_without_any_document_is_an_error_that_says_why(run, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "Ada", "answer": "reject"}\n')
    code, output = run("jsonl", "in.jsonl", "out.spacy")
    assert code == 1
    assert "in.jsonl has no documents (records skipped: answer 'reject': 1)" in output
    assert not (tmp_path / "out.spacy").exists()


def test_an_output_that_cannot_be_written_is_a_message(run, tmp_path):
    (tmp_path / "in.conll").write_text(COLUMNS)
    (tmp_path / "blocked").write_text("a file, not a directory")
    code, output = run("columns", "in.conll", "blocked/out.spacy")
    assert code == 1
    assert "blocked" in output


def test_help_tells_the_formats_and_every_option(run):
    code, output = run("--help")
    assert code == 0
    for name in [item.name for item in FORMATS]:
        assert name in output
    for word in ["columns (conll, iob), jsonl", "--n-sents", "--documents", "--scheme", "--lang"]:
        assert word in output
    for word in ["--separator", "--word-column", "--tag-column", "--alignment", "--spans-key"]:
        assert word in output
