"""``spacy luke tune-nil`` finds the bias, and the pipeline keeps it."""

import shutil

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.cli.tune_nil import Score, bias_values, choose, score_biases
from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.saving import SavesEncoderApart
from tests.pipeline.conftest import fit, make_examples, make_ner


@pytest.fixture(scope="module")
def trained(bert_dir, tmp_path_factory):
    """A directory with a trained pipeline whose own bias hides every entity, and its data."""
    path = tmp_path_factory.mktemp("tune")
    nlp = make_ner(bert_dir, nil_bias=-50.0)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(path / "model")
    DocBin(docs=[eg.reference for eg in examples]).to_disk(path / "dev.spacy")
    bare = spacy.blank("en")
    DocBin(docs=[bare("Nothing here.")]).to_disk(path / "bare.spacy")
    (path / "broken.spacy").write_bytes(b"no documents")
    return path


@pytest.fixture
def run(trained, monkeypatch):
    monkeypatch.chdir(trained)
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*args):
        result = CliRunner().invoke(app, ["luke", "tune-nil", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def test_the_chosen_bias_is_shown_and_kept_by_component_and_config(run, trained, tmp_path):
    assert spacy.load(trained / "model").evaluate(data(trained))["ents_r"] == 0.0
    code, output = run("model", "dev.spacy", "--out", str(tmp_path / "tuned"))
    assert code == 0
    bias, *scores = output.split(" <- chosen")[0].split()[-4:]
    assert scores == ["100.00"] * 3
    nlp = spacy.load(tmp_path / "tuned")
    assert nlp.get_pipe("luke_ner").cfg["nil_bias"] == float(bias)
    assert nlp.config["components"]["luke_ner"]["nil_bias"] == float(bias)
    assert nlp.evaluate(data(trained))["ents_f"] == 1.0
    before = spacy.load(trained / "model")
    assert before.get_pipe("luke_ner").cfg["nil_bias"] == -50.0


def contents(folder):
    return {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


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
    assert spacy.load(tmp_path / "best").get_pipe("luke_ner").cfg["nil_bias"] != -50.0


def data(path):
    return make_examples(spacy.load(path / "model"))


def test_scores_are_those_of_the_whole_pipeline_under_each_bias(trained):
    nlp = spacy.load(trained / "model")
    values = [-50.0, -4.0, 0.0, 4.0, 50.0]
    pipe = nlp.get_pipe("luke_ner")
    for score in score_biases(nlp, "luke_ner", data(trained), values):
        pipe.cfg["nil_bias"] = score.bias
        expected = nlp.evaluate(data(trained))
        assert (score.p, score.r, score.f) == tuple(
            expected[f"ents_{part}"] or 0.0 for part in "prf"
        )


def test_the_component_is_left_as_it_was_by_scoring(trained):
    nlp = spacy.load(trained / "model")
    score_biases(nlp, "luke_ner", data(trained), [1.0])
    assert nlp.get_pipe("luke_ner").cfg["nil_bias"] == -50.0


def test_existing_entities_stay_where_they_are_not_to_be_overwritten(trained):
    nlp = spacy.load(trained / "model")
    nlp.get_pipe("luke_ner").cfg["overwrite"] = False
    both = score_biases(nlp, "luke_ner", data(trained), [50.0, 0.0])
    alone = score_biases(nlp, "luke_ner", data(trained), [0.0])
    assert both[1] == alone[0]


def test_nested_mode_is_tuned_on_its_spans(bert_dir):
    nlp = make_ner(bert_dir, nested=True)
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["luke_ner"] = list(eg.reference.ents)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    (score,) = score_biases(nlp, "luke_ner", examples, [0.0])
    assert score.f == 1.0


@pytest.mark.parametrize(
    ("f_by_bias", "best"),
    [
        ({-1: 0.5, 0: 0.6, 1: 0.7}, 1),
        ({-1: 0.7, 0: 0.7, 1: 0.7, 2: 0.1}, 0),
        ({0: 0.1, 1: 0.7, 2: 0.7, 3: 0.7, 4: 0.7}, 2),  # of two middles that nearer to 0
        ({-4: 0.7, -3: 0.7, -2: 0.7, -1: 0.7, 0: 0.1}, -2),
        ({-2: 0.7, -1: 0.1, 1: 0.7}, 1),  # of two peaks that nearer to 0
        ({-1: 0.7, 0: 0.1, 1: 0.7, 2: 0.7, 3: 0.7}, 2),  # the wider one
        ({-1: 0.0, 0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, 0),  # nothing to choose by
    ],
)
def test_the_middle_of_the_widest_best_stretch_is_chosen(f_by_bias, best):
    scores = [Score(bias, 0.0, 0.0, f) for bias, f in f_by_bias.items()]
    assert choose(scores).bias == best


def test_values_reach_both_ends_without_rounding_noise():
    assert bias_values(-0.3, 0.3, 0.1) == [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    assert bias_values(1, 1, 5) == [1]
    assert bias_values(0, 1, 0.4) == [0, 0.4, 0.8]


@pytest.mark.parametrize("values", [(0, 1, 0), (0, 1, -1), (1, 0, 1), (0, 1, 1e-9)])
def test_values_that_cannot_be_walked_are_refused(values):
    with pytest.raises(ConfigError, match="step|low|high"):
        bias_values(*values)


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["nowhere", "dev.spacy"], "nowhere is not the directory of a trained pipeline"),
        (["model", "gone.spacy"], "gone.spacy does not exist"),
        (["model", "broken.spacy"], "broken.spacy cannot be read"),
        (["model", "bare.spacy"], "no annotated entity"),
        (["model", "dev.spacy", "--component", "ner"], "the pipeline has sentencizer, luke_ner"),
        (["model", "dev.spacy", "--component", "sentencizer"], "it is not a luke_ner"),
        (["model", "dev.spacy", "--step", "0"], "step is 0"),
    ],
)
def test_bad_input_is_one_error(run, args, fault):
    code, output = run(*args)
    assert code == 1 and fault in output
