"""The four commands of pretraining, one after the other, on the project's encyclopedia."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import DocBin, Span
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.kb.linked_mentions import LinkedMentions
from spacy_luke.layers.encoder import module_of
from spacy_luke.pipeline.entity_store import find_encoder
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.pretrain import read_log
from spacy_luke.pretraining.shards import vocabulary
from tests.workers import quick_workers  # noqa: F401  (a fixture)

CORPUS = Path(__file__).parents[2] / "project" / "corpus"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(x) for x in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(x) for x in arguments])
    assert result.exit_code == 1
    return " ".join(result.output.split())


def prepare(folder: Path, source: Path, encoder: Path, *more: str) -> list[object]:
    run("articles", source, "-o", folder / "articles", "--workers", 1, "--no-progress", *more)
    run("entities", folder / "articles", "-o", folder / "entities", "--no-progress")
    shards = ["--entities", folder / "entities", "--encoder", encoder, "-o", folder / "shards"]
    shards += ["--max-pieces", 64, "--held-out", 0.2, "--workers", 1, "--no-progress"]
    run("shards", folder / "articles", *shards)
    model = ["--entities", folder / "entities", "--encoder", encoder, "-o", folder / "model"]
    model += ["--entity-steps", 1, "--steps", 2, "--batch-size", 4, "--warmup", 0.1]
    return ["pretrain", folder / "shards", *model]


def test_a_dump_becomes_an_encoder_that_knows_its_entities(bert_dir, tmp_path):
    command = prepare(tmp_path, CORPUS / "encyclopedia.xml", bert_dir)
    assert "the model is in" in run(*command)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(tmp_path / "model" / "model")}})
    nlp.initialize()
    vectors = []
    for title in ("Carrowick", "Hallin", "Atlantis"):
        doc = nlp("They sailed to Carrowick.")
        doc.ents = [Span(doc, 3, 4, "PLACE", kb_id=title)]
        vectors.append(doc.ents[0]._.luke_vector)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3  # each has a row of its own
    assert "the model is in" in run(*command)  # started again there is nothing to do


def test_a_dump_becomes_a_table_of_link_probabilities(tmp_path):
    run("articles", CORPUS / "encyclopedia.xml", "-o", tmp_path / "articles", "--no-progress")
    run("entities", tmp_path / "articles", "-o", tmp_path / "entities", "--no-progress")
    count = ["occurrences", tmp_path / "articles", "--entities", tmp_path / "entities"]
    assert "occurrences" in run(*count, "-o", tmp_path / "occurrences", "--no-progress")
    table = ["link-table", tmp_path / "occurrences", tmp_path / "links"]
    assert "left out: linked to several titles" in run(*table)
    doc = spacy.blank("en")("They sailed to Carrowick and HALLIN.")
    ((first, second),) = LinkedMentions(tmp_path / "links").find([doc])
    assert (first.text, first.kb_id_) == ("Carrowick", "Carrowick")
    assert (second.text, second.kb_id_) == ("HALLIN", "Hallin")
    assert "exists; use --force" in fail(*table)
    assert "No text was kept" in run(*table, "--force", "--min-count", 1_000)
    assert "--min-share is 0.2" in fail(*table, "--force", "--min-share", 0.2)
    (tmp_path / "links" / "links.json").unlink()
    assert "is not a link table: it contains probabilities.npy" in fail(*table, "--force")


def test_the_encoder_becomes_a_pipeline_that_is_asked_and_a_config_trains(bert_dir, tmp_path):
    run(*prepare(tmp_path, CORPUS / "encyclopedia.xml", bert_dir))
    model = tmp_path / "model" / "model"
    run("import", model, tmp_path / "pipeline", "--lang", "en")
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp("They sailed to Carrowick.")
    (found,) = nlp.get_pipe("luke").masked_entities([doc[3:4]], n=3)
    known = vocabulary(read_manifest(tmp_path / "entities", "entities"))
    assert len(found) == 3 and all(title in known for title, _ in found)
    doc.ents = [Span(doc, 3, 4, "PLACE")]
    DocBin(docs=[doc]).to_disk(tmp_path / "docs.spacy")
    paths = {"train": "docs.spacy", "dev": "docs.spacy"}
    overrides = {f"paths.{name}": str(tmp_path / path) for name, path in paths.items()}
    overrides |= {"paths.encoder": str(model), "training.max_steps": 2}
    overrides |= {"training.optimizer.learn_rate.total_steps": 2}
    overrides |= {"training.optimizer.learn_rate.warmup_steps": 1}
    train(CORPUS.parents[1] / "configs" / "ner.cfg", tmp_path / "trained", overrides=overrides)
    trained = spacy.load(tmp_path / "trained" / "model-last")
    assert trained.pipe_names[-1] == "luke_ner"
    encoder = module_of(find_encoder(trained))
    assert {"Carrowick", "Hallin"} < set(encoder.entities.names)


def test_annotated_documents_are_pretraining_data(bert_dir, tmp_path):
    nlp = spacy.blank("en")
    docs = []
    for i in range(20):
        doc = nlp(f"Ada met Charles in London, {i} times.")
        doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q7259"), Span(doc, 4, 5, "LOC", kb_id="Q84")]
        docs.append(doc)
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    run(*prepare(tmp_path, tmp_path / "docs.spacy", bert_dir, "--lang", "en"))
    counts = read_manifest(tmp_path / "shards", "shards").counts
    assert counts["entities, train"] + counts["entities, held out"] == 40


def test_ids_that_no_vocabulary_can_hold_are_dropped_and_counted(bert_dir, tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("Ada met Charles in London and Paris, or Rome")
    ids = {0: "A\ntwo", 2: "NIL", 4: "A_one", 6: "[UNK]", 9: "B\tC"}
    doc.ents = [Span(doc, i, i + 1, "X", kb_id=x) for i, x in ids.items()]
    DocBin(docs=[doc]).to_disk(tmp_path / "docs.spacy")
    options = ["--workers", 1, "--no-progress"]  # no tokenizer of the language is needed
    run("articles", tmp_path / "docs.spacy", "-l", "ja", "-o", tmp_path / "articles", *options)
    run("entities", tmp_path / "articles", "-o", tmp_path / "entities", "--no-progress")
    counts = read_manifest(tmp_path / "articles", "articles").counts
    assert counts["links"] == counts["dropped: entity without kb_id"] == 1
    assert counts["dropped: kb_id with a tab, a line break or NUL"] == 2
    assert counts["dropped: kb_id of a special entity"] == 1
    (path,) = read_manifest(tmp_path / "entities", "entities").paths("entity_vocab.tsv")
    assert path.read_text("utf8").split("\n")[4:] == ["A_one\t1", ""]


def test_a_folder_of_exports_is_read_as_several(tmp_path):
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    unread = "README.txt", "._pages1.xml", "langlinks.sql.gz", "x-index.txt.bz2", "a.xml.bz2.md5"
    for name in (*unread, "x-multistream-index1.txt-p1p41.bz2", "x-all-titles-in-ns0.gz"):
        (dumps / name).write_text("not read", encoding="utf8")
    (dumps / "sub.xml").mkdir()
    assert "contains no export" in fail("articles", dumps, "-o", tmp_path / "articles")
    corpus = (CORPUS / "encyclopedia.xml").read_bytes()
    for name, end in (("pages1.xml", b""), ("pages2.XML", b"\n")):
        (dumps / name).write_bytes(corpus + end)
    for name in ("pages3.xml-p1p2.7z", "pages4.bz2", "pages5.xml.bz2.001"):
        (dumps / name).write_text("not read", encoding="utf8")
    told = run("articles", dumps, "-o", tmp_path / "articles", "--workers", 1, "--no-progress")
    names = "pages3.xml-p1p2.7z, pages4.bz2, pages5.xml.bz2.001"
    assert f"3 exports in {dumps} cannot be read: {names}." in " ".join(told.split())
    manifest = read_manifest(tmp_path / "articles", "articles")
    assert list(manifest.inputs) == ["0 pages1.xml", "1 pages2.XML"] and len(manifest.parts) == 2


def test_a_folder_of_something_else_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf8")
    message = fail("articles", CORPUS / "encyclopedia.xml", "-o", tmp_path)
    assert "is not empty and was not made by" in message
    assert not (tmp_path / ".templates").exists()


def test_what_cannot_work_is_said(bert_dir, tmp_path):
    assert "no such file" in fail("articles", tmp_path / "dump.xml", "-o", tmp_path / "a")
    dump = CORPUS / "encyclopedia.xml"
    assert "use a code such as en" in fail("articles", dump, "-o", tmp_path / "a", "-l", "a: b")
    assert "--engine is 'spark'" in fail("articles", dump, "-o", tmp_path, "--engine", "spark")
    assert "no finished stage" in fail("entities", tmp_path / "none", "-o", tmp_path / "e")
    size = ("--partition-size", "0")
    assert "--partition-size is 0" in fail("articles", dump, "-o", tmp_path / "a", *size)
    command = prepare(tmp_path, dump, bert_dir)
    assert "precision is 'fp8'" in fail(*command, "--precision", "fp8")
    assert "--hook nothing:here" in fail(*command, "--hook", "nothing:here")
    assert "--hook nothing: use MODULE:FUNCTION" in fail(*command, "--hook", "nothing")
    assert "evaluate_sequences is -1" in fail(*command, "--evaluate-sequences", -1)
    assert "--hook sys:path: it is a list" in fail(*command, "--hook", "sys:path")
    message = fail("articles", dump, "-o", tmp_path / "entities")
    assert "was started with stage = 'entities'" in message
    other = fail("pretrain", tmp_path / "articles", *command[2:])
    assert "contains the stage 'articles', not 'shards'" in other


def test_what_nothing_can_be_learned_from_is_told(bert_dir, tmp_path):
    docs = [spacy.blank("en")(f"Ada met Charles, {i} times.") for i in range(3)]
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    out = tmp_path / "articles"
    options = ["--workers", 1, "--no-progress"]
    told = " ".join(
        run("articles", tmp_path / "docs.spacy", "-l", "en", "-o", out, *options).split()
    )
    assert "No link was found" in told and "1 part(s), in en" in told
    message = fail("entities", out, "-o", tmp_path / "entities", "--no-progress")
    assert "The vocabulary would be empty: no link leads to an article" in message
    dump = CORPUS / "encyclopedia.xml"
    both = fail("articles", dump, tmp_path / "docs.spacy", "-l", "en", "-o", tmp_path / "both")
    assert "are of different kinds: read them into folders of their own" in both
    twice = fail("articles", dump, dump, "-o", tmp_path / "twice")
    assert "encyclopedia.xml is a copy of" in twice


def test_a_phase_of_no_steps_is_left_out(bert_dir, tmp_path):
    command = prepare(tmp_path, CORPUS / "encyclopedia.xml", bert_dir)
    for options, phases in (
        (("--entity-steps", 0), [(2, False)]),
        (("--steps", 0), [(1, True)]),
    ):
        run(*command, *options, "-o", tmp_path / options[0])
        found = read_manifest(tmp_path / options[0], "pretrain").settings["phases"]
        assert [(x["steps"], x["entities_only"]) for x in found] == phases
    assert "both have no steps" in fail(*command, "--steps", 0, "--entity-steps", 0)


def test_evaluation_can_be_left_out_and_ctrl_c_says_how_to_go_on(bert_dir, tmp_path, monkeypatch):
    command = prepare(tmp_path, CORPUS / "encyclopedia.xml", bert_dir)
    run(*command, "--evaluate-sequences", 0)
    kinds = {x["kind"] for x in read_log(tmp_path / "model" / "log.jsonl")}
    assert kinds == {"start", "step"}
    (tmp_path / "a_hook.py").write_text("def stop(x):\n    raise KeyboardInterrupt", "utf8")
    monkeypatch.syspath_prepend(tmp_path)
    command[command.index("-o") + 1] = tmp_path / "stopped"
    result = CliRunner().invoke(app, [str(x) for x in [*command, "--hook", "a_hook:stop"]])
    assert result.exit_code == 130 and "resumes from the last checkpoint" in result.output


def test_other_processes_than_the_first_do_not_start_loggers(bert_dir, tmp_path, monkeypatch):
    command = prepare(tmp_path, CORPUS / "encyclopedia.xml", bert_dir)
    (tmp_path / "a_logger.py").write_text("raise RuntimeError('started')", encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    command += ["--hook", "a_logger:log"]
    with pytest.raises(RuntimeError, match="started"):
        CliRunner().invoke(app, [str(x) for x in command], catch_exceptions=False)
    monkeypatch.setenv("RANK", "1")
    run(*command)


@pytest.mark.parametrize("name", ["articles", "entities", "shards", "pretrain"])
def test_every_command_has_help(name):
    assert "pretraining" in run(name, "--help")


WITHOUT = """
import sys
for library in ("mwparserfromhell", "duckdb", "pyarrow", "accelerate", "matplotlib"):
    sys.modules[library] = None
from typer.testing import CliRunner
from spacy_luke.cli import app
from spacy_luke.kb.linked_mentions import LinkedMentions
for arguments in (
    ["articles", "dump.xml", "-o", "out"],
    ["entities", "articles", "-o", "out"],
    ["shards", "articles", "--entities", "entities", "--encoder", "encoder", "-o", "out"],
    ["pretrain", "shards", "--entities", "entities", "--encoder", "encoder", "-o", "out"],
):
    result = CliRunner().invoke(app, arguments)
    print(arguments[0], result.exit_code, *result.output.split())
"""


def test_what_is_not_installed_is_one_clear_error():
    done = subprocess.run([sys.executable, "-c", WITHOUT], check=True, capture_output=True)
    lines = done.stdout.decode("utf8").strip().split("\n")
    assert len(lines) == 4
    for line, command in zip(lines, ("articles", "entities", "shards", "pretrain"), strict=True):
        assert line.startswith(f"{command} 1 ") and "Traceback" not in line
        assert "is not installed: pip install 'spacy-luke[pretraining]'." in line
