"""``spacy luke tune`` chooses settings of all components, and the pipeline keeps them."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import spacy
from spacy.cli import app
from spacy.cli.package import generate_readme
from spacy.tokens import DocBin
from spacy.training import Example
from typer.testing import CliRunner
from wasabi import Printer

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.cli import tune as tune_module
from spacy_luke.cli.tune import print_tuned
from spacy_luke.pipeline.saving import SavesEncoderApart
from spacy_luke.pipeline.tuning import Figures, Tuned
from tests.pipeline.conftest import fit, make_examples, make_ner


@pytest.fixture(scope="module")
def trained(bert_dir, tmp_path_factory):
    """A directory with a trained pipeline whose own bias hides every entity, and its data; and one
    with relations and types of gold entities."""
    path = tmp_path_factory.mktemp("tune")
    nlp = make_ner(bert_dir, nil_bias=-20.0)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    nlp.add_pipe("sentencizer", first=True)
    nlp.meta["performance"] = {"ents_f": 0.0}  # as after training
    nlp.to_disk(path / "model")
    docs = [eg.reference for eg in examples]
    DocBin(docs=docs).to_disk(path / "dev.spacy")
    bare = spacy.blank("en")
    DocBin(docs=[bare("Nothing here.")]).to_disk(path / "bare.spacy")
    (path / "broken.spacy").write_bytes(b"no documents")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    given = spacy.blank("en")
    for name in ("luke_relation", "luke_entity_typing"):
        given.add_pipe(name, config={"model": {"encoder": encoder}})
    for doc in docs:
        doc._.relations = [(a, b, "near") for a, b in zip(doc.ents, doc.ents[1:])]
        for ent in doc.ents:
            ent._.types = {f"/{ent.label_.lower()}": 1.0}
    DocBin(docs=docs * 20, store_user_data=True).to_disk(path / "given.spacy")
    examples = [Example(doc.copy(), doc) for doc in docs]
    given.initialize(lambda: examples)
    fit(given, examples, 80)
    given.to_disk(path / "given")
    return path


@pytest.fixture
def run(trained, monkeypatch):
    monkeypatch.chdir(trained)
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*args):
        result = CliRunner().invoke(app, ["luke", "tune", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def data(path):
    return make_examples(spacy.load(path / "model"))


def contents(folder):
    return {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


def test_what_is_chosen_is_shown_reported_and_kept(run, trained, tmp_path):
    assert spacy.load(trained / "model").evaluate(data(trained))["ents_r"] == 0.0
    report = tmp_path / "report" / "tuned.json"
    code, output = run(
        "model", "dev.spacy", "--output", str(tmp_path / "tuned"), "--report", str(report)
    )
    assert code == 0 and "F 0.00 100.00" in output
    nlp = spacy.load(tmp_path / "tuned")
    (chosen,) = json.loads(report.read_text())
    bias = nlp.get_pipe("luke_ner").nil_bias
    assert (
        chosen["settings"]["nil_bias"] == bias == nlp.config["components"]["luke_ner"]["nil_bias"]
    )
    assert f"nil_bias {bias:.4g}" in output
    assert chosen["before"]["reliability"] == []
    (*_, (low, n, score, right)) = chosen["after"]["reliability"]
    assert n > 0 and low <= score <= low + 0.1 and right == 1.0
    assert nlp.evaluate(data(trained))["ents_f"] == 1.0
    before = spacy.load(trained / "model")
    assert before.get_pipe("luke_ner").nil_bias == -20.0
    assert before.meta["performance"]["ents_f"] == 0.0
    assert nlp.meta["performance"]["ents_f"] == 1.0
    assert "| `ENTS_F` | 100.00 |" in generate_readme(nlp.meta)


def test_relations_and_types_of_given_entities_are_tuned_too(run, trained, tmp_path):
    tuned = str(tmp_path / "tuned")
    code, output = run("given", "given.spacy", "--precision", "0.8", "--output", tuned)
    assert code == 0, output
    assert "luke_relation" in output and "luke_entity_typing" in output
    nlp = spacy.load(tuned)
    for name in ("luke_relation", "luke_entity_typing"):
        cfg = nlp.get_pipe(name).cfg
        assert cfg["calibration"] is not None and cfg["threshold"] != 0.5
        assert nlp.config["components"][name]["threshold"] == pytest.approx(cfg["threshold"])
    again = ["given", "given.spacy", "--component", "luke_relation", "--output", tuned]
    before = contents(Path(tuned))
    code, output = run(*again)
    assert code == 1 and f"{tuned} exists; use --force to replace it" in output
    assert contents(Path(tuned)) == before
    code, output = run(*again, "--force")
    assert code == 0 and "luke_entity_typing" not in output


def test_a_report_may_be_in_the_folder_of_the_pipeline(run, tmp_path):
    out, report = tmp_path / "tuned", tmp_path / "tuned" / "report.json"
    args = ["given", "given.spacy", "--component", "luke_relation", "--output", str(out)]
    for force in ([], ["--force"]):
        code, output = run(*args, "--report", str(report), *force)
        assert code == 0, output
        assert json.loads(report.read_text())[0]["component"] == "luke_relation"
        assert spacy.load(out).pipe_names == ["luke_relation", "luke_entity_typing"]


def test_a_report_that_would_spoil_the_pipeline_is_refused_first(run, trained, tmp_path):
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "runs" / "tuned"
    places = [out, out / "meta.json", out / "luke_ner" / "cfg", out.parent]
    for report in (*places, tmp_path / "file" / "report.json"):
        args = ["model", "dev.spacy", "--output", str(out), "--report", str(report)]
        code, output = run(*args)
        assert code == 1 and ("would replace files" in output or "is a file" in output)
        assert not out.exists()


def test_a_pipeline_that_is_changed_meanwhile_is_not_replaced(run, trained, tmp_path, monkeypatch):
    model = tmp_path / "model"
    shutil.copytree(trained / "model", model)
    read = tune_module.load_examples

    (model / "luke_ner").rename(tmp_path / "elsewhere")
    (model / "luke_ner").symlink_to(tmp_path / "elsewhere")
    own = ["vocab/strings.json", "luke_ner/cfg", "vocab/new"]
    for edited in (*own, "__pycache__/code.pyc", "tune.log"):

        def edit_meanwhile(path, nlp, edited=model / edited):
            edited.parent.mkdir(exist_ok=True)
            edited.write_text(edited.read_text() + " " if edited.exists() else "{}")
            return read(path, nlp)

        monkeypatch.setattr(tune_module, "load_examples", edit_meanwhile)
        code, output = run(str(model), "dev.spacy")
        changed = spacy.load(model).get_pipe("luke_ner").nil_bias != -20.0
        if edited in own:
            assert code == 1 and "was changed while this ran, and was not replaced" in output
            assert (model / edited).read_text().endswith((" ", "{}")) and not changed
        else:  # it is kept
            assert code == 0 and changed and (model / edited).exists()
            shutil.rmtree(model)
            shutil.copytree(trained / "model", model)


def test_tuning_on_predictions_is_told(run, trained, tmp_path, caplog):
    run("model", "dev.spacy", "--output", str(tmp_path / "tuned"))
    assert "predictions" not in caplog.text
    nlp = spacy.load(tmp_path / "tuned")
    written = [nlp(eg.reference.text) for eg in data(trained)]
    DocBin(docs=written, store_user_data=True).to_disk(tmp_path / "predicted.spacy")
    for command in ("tune", "evaluate"):
        caplog.clear()
        args = ["luke", command, str(tmp_path / "tuned"), str(tmp_path / "predicted.spacy")]
        CliRunner().invoke(app, args)
        assert "predicted.spacy: entities have scores, so they are predictions" in caplog.text


def test_predictions_of_nested_spans_are_told_of(bert_dir, tmp_path, caplog):
    nlp = make_ner(bert_dir, nested=True, spans_key="sc", nil_bias=-20.0)
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["sc"] = list(eg.reference.ents)
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path / "nested")
    for docs, told in (([eg.reference for eg in examples], False), (None, True)):
        caplog.clear()
        written = docs or [nlp(eg.reference.text) for eg in examples]
        DocBin(docs=written, store_user_data=True).to_disk(tmp_path / "docs.spacy")
        args = ["luke", "evaluate", str(tmp_path / "nested"), str(tmp_path / "docs.spacy")]
        CliRunner().invoke(app, args)
        assert ("spans of the group 'sc' have scores" in caplog.text) == told


def test_a_report_may_be_in_the_current_directory_that_is_replaced(
    run, trained, tmp_path, monkeypatch
):
    shutil.copytree(trained / "model", tmp_path / "model")
    dev = str(trained / "dev.spacy")
    monkeypatch.chdir(tmp_path / "model")
    code, output = run(".", dev, "--report", "report.json")
    assert code == 0, output
    assert (
        json.loads((tmp_path / "model" / "report.json").read_text())[0]["component"] == "luke_ner"
    )
    assert spacy.load(tmp_path / "model").get_pipe("luke_ner").nil_bias != -20.0


def test_the_folder_of_a_link_to_nothing_is_made(run, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "new" / "tuned")
    code, output = run("model", "dev.spacy", "--output", str(tmp_path / "link"))
    assert code == 0, output
    assert (tmp_path / "link").is_symlink()
    assert spacy.load(tmp_path / "disk" / "new" / "tuned").pipe_names[-1] == "luke_ner"


def test_a_disabled_component_is_said_to_be_disabled(run, trained, tmp_path):
    nlp = spacy.load(trained / "model", disable=["luke_ner"])
    nlp.to_disk(tmp_path / "off")
    code, output = run(str(tmp_path / "off"), "dev.spacy")
    assert code == 1 and "No component can be tuned: sentencizer (disabled: luke_ner)" in output
    code, output = run(str(tmp_path / "off"), "dev.spacy", "--component", "luke_ner")
    assert code == 1 and "'luke_ner' is disabled in this pipeline" in output


def test_a_calibration_that_is_removed_is_told(run, trained, tmp_path, caplog):
    args = ["--component", "luke_relation", "--output"]
    run("given", "given.spacy", *args, str(tmp_path / "tuned"))
    docs = list(DocBin().from_disk(trained / "given.spacy").get_docs(spacy.blank("en").vocab))
    DocBin(docs=docs[:2], store_user_data=True).to_disk(tmp_path / "small.spacy")
    for model, removed in (("given", False), (str(tmp_path / "tuned"), True)):
        caplog.clear()
        code, _ = run(model, str(tmp_path / "small.spacy"), *args, str(tmp_path / "again"), "-F")
        assert code == 0 and "too few for calibration" in caplog.text
        assert ("the earlier calibration is removed" in caplog.text) == removed
        assert ("scores stay as they are" in caplog.text) != removed


def test_each_label_has_a_threshold_and_the_default_stays(run, tmp_path):
    args = ["--component", "luke_relation", "--precision", "0.5", "--each-label"]
    code, output = run("given", "given.spacy", *args, "--output", str(tmp_path / "tuned"))
    assert code == 0, output
    assert "threshold by default thresholds near 0." in output
    assert "label annotated precision recall F" in output and "near 80 " in output
    pipe = spacy.load(tmp_path / "tuned").get_pipe("luke_relation")
    assert pipe.threshold is None and set(pipe.thresholds) == {"near"}


def test_each_type_has_a_threshold_for_a_precision_or_a_recall(run, tmp_path):
    chosen = {}
    for goal in ("precision", "recall"):
        args = ["--component", "luke_entity_typing", f"--{goal}", "0.5", "--each-label"]
        code, output = run("given", "given.spacy", *args, "--output", str(tmp_path / goal))
        assert code == 0, output
        chosen[goal] = spacy.load(tmp_path / goal).get_pipe("luke_entity_typing").thresholds
        assert set(chosen[goal]) == {"/loc", "/per", "/org"}
    assert chosen["precision"] != chosen["recall"]


def test_an_error_that_cannot_be_estimated_is_said_to_be_unknown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    trial: Any = SimpleNamespace(name="x", annotated=list)
    figures = Figures(0.5, 0.5, 0.5, 0.1, [])
    for held_out, shown in ((0.02, "documents of this kind: 2.0"), (None, "documents: unknown")):
        settings = {"calibration": {"slope": 1.0}}
        print_tuned(Tuned(trial, figures, figures, settings, held_out_error=held_out), Printer())
        assert shown in capsys.readouterr().out
    print_tuned(Tuned(trial, figures, figures), Printer())
    assert "to expect" not in capsys.readouterr().out


def test_a_pipeline_is_replaced_whole_or_not_at_all(run, trained, tmp_path, monkeypatch):
    shutil.copytree(trained / "model", tmp_path / "model")
    before, write = contents(tmp_path / "model"), SavesEncoderApart.to_disk

    def fail(self, path, **kwargs):
        write(self, path, **kwargs)
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SavesEncoderApart, "to_disk", fail)
        code, output = run(str(tmp_path / "model"), "dev.spacy")
    assert code == 1 and "No space left" in output
    assert contents(tmp_path / "model") == before and len(list(tmp_path.iterdir())) == 1


def test_what_is_not_of_the_pipeline_stays_and_links_stay_links(run, trained, tmp_path):
    shutil.copytree(trained / "model", tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("mine")
    (tmp_path / "model" / "notes").mkdir()
    (tmp_path / "model" / "notes" / "one.txt").write_text("mine too")
    (tmp_path / "best").symlink_to("model")
    before = set(contents(tmp_path / "model"))
    code, _ = run(str(tmp_path / "best"), "dev.spacy")
    assert code == 0 and (tmp_path / "best").is_symlink()
    assert set(contents(tmp_path / "model")) == before
    assert (tmp_path / "model" / "notes" / "one.txt").read_text() == "mine too"
    assert spacy.load(tmp_path / "best").get_pipe("luke_ner").nil_bias != -20.0


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["nowhere", "dev.spacy"], "nowhere is not the directory of a trained pipeline"),
        (["model", "gone.spacy"], "gone.spacy does not exist"),
        (["model", "broken.spacy"], "broken.spacy cannot be read"),
        (["model", "bare.spacy"], "no annotation to tune on"),
        (
            ["model", "dev.spacy", "--component", "ner"],
            "'ner' is not a component that can be tuned",
        ),
        (["model", "dev.spacy", "--component", "sentencizer"], "these are: luke_ner"),
        (["model", "dev.spacy", "--precision", "95"], "precision is 95"),
        (["model", "dev.spacy", "--precision", "0.9", "--recall", "0.9"], "Only one of"),
        (["model", "dev.spacy", "--each-label"], "requires a wanted precision or recall"),
    ],
)
def test_bad_input_is_one_error(run, trained, args, fault):
    before = contents(trained / "model")
    code, output = run(*args)
    assert code == 1 and fault in output
    assert contents(trained / "model") == before
