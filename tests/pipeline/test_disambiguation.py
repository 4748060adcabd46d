"""Published disambiguation models: the score by the written formula, and the way there and back."""

import json
import shutil

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span

from spacy_luke.checkpoint.classes import DISAMBIGUATION
from spacy_luke.errors import ConfigError
from spacy_luke.kb.entity import Entity
from spacy_luke.layers.candidate_scorer import row_logits
from spacy_luke.layers.task_layer import head_of
from spacy_luke.pipeline.published import export_component, import_checkpoint
from tests.conftest import SIZES, TITLES
from tests.pipeline.conftest import fit
from tests.pipeline.linker_data import make_examples
from tests.pipeline.published_data import same, tensors

transformers = pytest.importorskip("transformers")

LONG = "University of Tokyo " * 8
WORDS = f"Tokyo is the capital of Japan and {LONG}met Ada Lovelace in Paris , not London .".split()
MENTIONS = [(0, 1), (5, 6), (7, 31), (32, 34), (35, 36), (38, 39)]
CANDIDATES = [
    ["Tokyo", "Kyoto", "Paris", "Japan"],
    ["Japan", "Germany"],
    ["University of Tokyo", "Tokyo", "Meiji era"],
    ["Ada Lovelace"],
    ["Paris", "France", "London", "New York City", "Beyoncé"],
    [],
]
MOST_PIECES = 30


@pytest.fixture(scope="module", params=[True, False], ids=["aware", "plain"])
def directory(request, make_checkpoint):
    settings = {"use_entity_aware_attention": request.param}
    return make_checkpoint("bert-luke", DISAMBIGUATION.name, **settings)


@pytest.fixture(scope="module")
def aware(make_checkpoint):
    return make_checkpoint("bert-luke", DISAMBIGUATION.name)


def annotated(nlp, mentions=(0, 1, 2, 3, 4, 5)):
    doc = Doc(nlp.vocab, words=WORDS)
    spans = [Span(doc, *MENTIONS[i], "X") for i in mentions]
    doc.set_ents(spans)
    for i, span in zip(mentions, spans):
        span._.allowed_ids = CANDIDATES[i]
    return doc


# The formula (Yamada et al. 2022; BERT's inputs), with raw tensors in float64


class Formula:
    def __init__(self, directory):
        self.t = {k.removeprefix("luke."): x.double() for k, x in tensors(directory).items()}
        self.config = json.loads((directory / "config.json").read_text())
        lines = (directory / "entity_vocab.jsonl").read_text("utf8").split("\n")
        entries = [json.loads(line) for line in lines]
        self.ids = {title: x["id"] for x in entries for title, _ in x["entities"]}
        self.tokenizer = transformers.BertTokenizer(str(directory / "vocab.txt"))

    def linear(self, name, x):
        return x @ self.t[f"{name}.weight"].T + self.t[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.config["layer_norm_eps"])
        return x * self.t[f"{name}.weight"] + self.t[f"{name}.bias"]

    def words(self, pieces):
        at = "embeddings."
        x = self.t[f"{at}word_embeddings.weight"][pieces]
        x = x + self.t[f"{at}position_embeddings.weight"][: len(pieces)]
        return self.norm(f"{at}LayerNorm", x + self.t[f"{at}token_type_embeddings.weight"][0])

    def entities(self, ids, places):
        at = "entity_embeddings."
        x = self.t[f"{at}entity_embeddings.weight"][ids]
        x = torch.where(torch.tensor(ids)[:, None] == 2, self.t[f"{at}mask_embedding"], x)
        x = x @ self.t[f"{at}entity_embedding_dense.weight"].T
        positions = self.t[f"{at}position_embeddings.weight"]
        x = x + torch.stack([positions[a:b].mean(0) for a, b in places])
        return self.norm(f"{at}LayerNorm", x + self.t[f"{at}token_type_embeddings.weight"][0])

    def attend(self, at, words, entities):
        heads, n = SIZES["num_attention_heads"], len(words)
        x, at = torch.cat([words, entities]), f"{at}attention.self."

        def split(x):
            return x.reshape(len(x), heads, -1).transpose(0, 1)

        kinds = ["query"] * 4
        if self.config["use_entity_aware_attention"]:
            kinds[1:] = ["w2e_query", "e2w_query", "e2e_query"]
        ww, we, ew, ee = (self.linear(f"{at}{kind}", x) for kind in kinds)
        key = split(self.linear(f"{at}key", x))
        scores = torch.zeros(heads, len(x), len(x), dtype=torch.float64)
        for rows, columns, query in (
            (slice(n), slice(n), ww),
            (slice(n), slice(n, None), we),
            (slice(n, None), slice(n), ew),
            (slice(n, None), slice(n, None), ee),
        ):
            scores[:, rows, columns] = split(query)[:, rows] @ key[:, columns].transpose(1, 2)
        weights = (scores / key.shape[-1] ** 0.5).softmax(-1)
        context = weights @ split(self.linear(f"{at}value", x))
        return context.transpose(0, 1).reshape(len(x), -1)

    def logits(self, pieces, ids, places):
        """(n_entities, n_rows) of the masked-entity head."""
        words, entities = self.words(pieces), self.entities(ids, places)
        n = len(words)
        for i in range(SIZES["num_hidden_layers"]):
            at = f"encoder.layer.{i}."
            context = self.attend(at, words, entities)
            x = torch.cat([words, entities])
            x = self.norm(
                f"{at}attention.output.LayerNorm",
                x + self.linear(f"{at}attention.output.dense", context),
            )
            inner = torch.nn.functional.gelu(self.linear(f"{at}intermediate.dense", x))
            x = self.norm(f"{at}output.LayerNorm", x + self.linear(f"{at}output.dense", inner))
            words, entities = x[:n], x[n:]
        at = "entity_predictions."
        x = torch.nn.functional.gelu(self.linear(f"{at}transform.dense", entities))
        x = self.norm(f"{at}transform.LayerNorm", x)
        table = self.t["entity_embeddings.entity_embeddings.weight"]
        return x @ table.T + self.t[f"{at}bias"]

    def inputs(self, mentions):
        pieces, places, last = ["[CLS]"], [], 0
        for a, b in mentions:
            pieces += self.tokenizer.tokenize(" ".join(WORDS[last:a]))
            own = self.tokenizer.tokenize(" ".join(WORDS[a:b]))
            places.append((len(pieces), len(pieces) + min(len(own), MOST_PIECES)))
            pieces, last = pieces + own, b
        pieces += [*self.tokenizer.tokenize(" ".join(WORDS[last:])), "[SEP]"]
        return self.tokenizer.convert_tokens_to_ids(pieces), places

    def scores(self, mentions, is_global):
        """Of each mention: title -> probability."""
        pieces, places = self.inputs([MENTIONS[i] for i in mentions])
        ids, found = [2] * len(mentions), [{} for _ in mentions]
        for _ in range(len(mentions) if is_global else 1):
            logits = self.logits(pieces, ids, places)
            order = []
            for i, mention in enumerate(mentions):
                rows = [self.ids[x] for x in CANDIDATES[mention]]
                p = logits[i, rows].softmax(0).tolist()
                if ids[i] == 2:
                    found[i] = dict(zip(CANDIDATES[mention], p))
                    order += [(max(p, default=-1.0), -i)]
            if is_global:
                _, i = max(order)
                best = max(found[-i], key=found[-i].get, default=None)
                ids[-i] = -1 if best is None else self.ids[best]
                if best is None:
                    break
        return found


def test_the_long_mention_is_longer_than_the_limit(aware):
    pieces, places = Formula(aware).inputs(MENTIONS)
    assert places[2][1] - places[2][0] == MOST_PIECES and len(pieces) < 130
    assert len(Formula(aware).tokenizer.tokenize(LONG)) > MOST_PIECES


@pytest.mark.parametrize("inference", ["local", "global"])
def test_scores_are_those_of_the_formula(directory, inference):
    settings = {"model": {"inference": inference}}
    nlp = import_checkpoint(str(directory), "en", settings)
    doc = nlp(annotated(nlp))
    formula = Formula(directory)
    expected = formula.scores(range(len(MENTIONS)), inference == "global")
    for ent, own in zip(doc.ents, expected):
        assert dict(ent._.candidates) == pytest.approx(own, abs=1e-5)
        best = max(own, key=own.get, default="NIL")
        assert ent.kb_id_ == best
    if inference == "global":
        local = formula.scores(range(len(MENTIONS)), False)
        changes = [max(abs(a[x] - b[x]) for x in a) for a, b in zip(expected, local) if len(a) > 1]
        assert max(changes) > 1e-3  # resolved mentions change the others


@pytest.mark.parametrize("inference", ["local", "global"])
def test_a_sequence_has_a_limited_number_of_entities(aware, inference):
    settings = {"model": {"inference": inference, "max_entities": 4}}
    nlp = import_checkpoint(str(aware), "en", settings)
    doc = nlp(annotated(nlp, range(5)))
    # Words are cut at all mentions, which changes no piece of BERT's.
    formula = Formula(aware)
    expected = [
        x for own in ([0, 1, 2], [3, 4]) for x in formula.scores(own, inference == "global")
    ]
    for ent, own in zip(doc.ents, expected):
        assert dict(ent._.candidates) == pytest.approx(own, abs=1e-5)


def test_documents_of_a_batch_do_not_influence_each_other(aware, monkeypatch):
    nlp = import_checkpoint(str(aware), "en", preset="disambiguation")
    parts = [range(6), [0, 4], [], [1], [0, 1, 3, 4]]
    alone = [nlp(annotated(nlp, part)) for part in parts]
    monkeypatch.setattr("spacy_luke.layers.encoder_run.MAX_ROWS", 200)
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1]):
        docs = nlp.pipe([annotated(nlp, parts[i]) for i in order])
        for i, doc in zip(order, docs):
            for one, other in zip(alone[i].ents, doc.ents, strict=True):
                assert one.kb_id_ == other.kb_id_
                assert dict(one._.candidates) == pytest.approx(dict(other._.candidates), abs=1e-5)


def test_rounds_are_capped_and_that_is_logged(aware, caplog):
    settings = {"model": {"inference": "global", "max_rounds": 2}}
    nlp = import_checkpoint(str(aware), "en", settings)
    for _ in range(2):
        nlp(annotated(nlp))
    assert caplog.text.count("stopped after max_rounds (2), before 3 mentions") == 1


# There and back


@pytest.mark.parametrize("preset", [None, "disambiguation", "disambiguation.local"])
def test_import_save_load_and_export_are_exact(directory, tmp_path, preset):
    nlp = import_checkpoint(str(directory), "en", preset=preset)
    before = [x._.candidates for x in nlp(annotated(nlp)).ents]
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert [x._.candidates for x in loaded(annotated(loaded)).ents] == before
    copied = spacy.util.load_model_from_config(loaded.config, vocab=True)
    copied.from_bytes(loaded.to_bytes())
    assert [x._.candidates for x in copied(annotated(copied)).ents] == before
    export_component(loaded, tmp_path / "out")
    same(tensors(directory), tensors(tmp_path / "out"))
    again = import_checkpoint(str(tmp_path / "out"), "en", preset=preset)
    assert [x._.candidates for x in again(annotated(again)).ents] == before
    inference = loaded.config["components"]["luke_linker"]["model"]["inference"]
    assert inference == ("global" if preset == "disambiguation" else "local")


def test_half_precision_comes_back(aware, tmp_path):
    from safetensors.torch import save_file

    path = shutil.copytree(aware, tmp_path / "half")
    half = {k: x.half() if x.is_floating_point() else x for k, x in tensors(path).items()}
    save_file(half, path / "model.safetensors", {"format": "pt"})
    export_component(import_checkpoint(str(path), "en"), tmp_path / "out")
    same(half, tensors(tmp_path / "out"))


def test_the_knowledge_base_is_the_vocabulary(aware):
    nlp = import_checkpoint(str(aware), "en")
    kb = nlp.get_pipe("luke_linker").kb
    assert list(kb.tables.ids) == TITLES
    band = kb.entity("Band (music)")
    assert band.name == "Band (music)" and set(band.aliases) == {"Band (music)", "Band"}
    doc = nlp.make_doc("the band sang in Kyoto and Atlantis")
    doc.ents = [Span(doc, a, a + 1, "X") for a in (1, 4, 6)]
    assert [x.kb_id_ for x in nlp(doc).ents] == ["Band (music)", "Kyoto", "NIL"]


def test_the_knowledge_base_may_be_edited(aware):
    nlp = import_checkpoint(str(aware), "en")
    pipe = nlp.get_pipe("luke_linker")
    atlantis = Entity("Atlantis", "Atlantis", {"Tokyo": 1.0})
    kept = pipe.kb.edited(add=[atlantis], remove=["Paris"])
    pipe.set_kb(lambda vocab: kept)
    doc = nlp.make_doc("Tokyo")
    doc.ents = [Span(doc, 0, 1, "X")]
    scores = dict(nlp(doc).ents[0]._.candidates)
    assert scores == pytest.approx({"Tokyo": 0.5, "Atlantis": 0.5})  # no row: nothing is known
    doc.ents[0]._.allowed_ids = ["Japan", "Atlantis", "Tokyo"]
    (best, _), (second, _), (worst, _) = nlp(doc).ents[0]._.candidates
    assert {best, worst} == {"Japan", "Tokyo"} and second == "Atlantis"


def test_nil_is_impossible_if_there_are_candidates(aware):
    nlp = import_checkpoint(str(aware), "en")
    for ent in nlp(annotated(nlp)).ents:
        scores = [score for _, score in ent._.candidates]
        assert sum(scores) == pytest.approx(1.0 if scores else 0.0, abs=1e-12)


def test_a_multilingual_vocabulary_gives_ids_of_the_pipelines_language(make_checkpoint):
    directory = make_checkpoint("mluke", DISAMBIGUATION.name)
    ids = {}
    for language in ("en", "de", "xx"):
        nlp = import_checkpoint(str(directory), language)
        kb = nlp.get_pipe("luke_linker").kb
        ids[language] = list(kb.tables.ids)[:3]
        assert len(kb) == len(TITLES)
        assert {x.id for x in kb.candidates(["東京"])[0]} == {ids[language][0]}
        doc = nlp.make_doc("Tokyo")
        doc.ents = [Span(doc, 0, 1, "X")]
        doc.ents[0]._.allowed_ids = ids[language]
        scores = [score for _, score in nlp(doc).ents[0]._.candidates]
        assert len({round(x, 6) for x in scores}) == 3  # each has a row
    assert ids["en"] == ["Tokyo", "Japan", "Ada Lovelace"]
    assert ids["de"] == ["en:Tokyo", "Japan", "en:Ada Lovelace"]
    assert ids["xx"] == ["en:Tokyo", "en:Japan", "en:Ada Lovelace"]


def test_a_model_without_titles_is_refused(make_checkpoint):
    with pytest.raises(ConfigError, match="knowledge base of luke_linker is empty"):
        import_checkpoint(str(make_checkpoint("lite", DISAMBIGUATION.name)), "en")


def test_training_moves_the_transform_and_export_has_it(aware, tmp_path):
    nlp = import_checkpoint(str(aware), "en")
    pipe = nlp.get_pipe("luke_linker")
    kb = pipe.kb.edited(add=[Entity("Kyoto", "Kyoto", {"Kyoto": 1, "Tokyo": 1})])
    pipe.set_kb(lambda vocab: kb)
    texts = [("Tokyo is the capital", [(0, 1, "Kyoto")]), ("met Tokyo", [(1, 2, "NIL")])]
    examples = make_examples(nlp, texts)
    transform = row_logits(head_of(pipe.model)).transform
    before = {name: x.clone() for name, x in transform.state_dict().items()}
    fit(nlp, examples, 30, rate=1e-3)
    assert nlp(examples[0].predicted).ents[0].kb_id_ == "Kyoto"
    assert all(not torch.equal(x, before[name]) for name, x in transform.state_dict().items())
    export_component(nlp, tmp_path / "out")
    found = tensors(tmp_path / "out")
    assert torch.equal(found["entity_predictions.transform.dense.weight"], transform.dense.weight)
    again = import_checkpoint(str(tmp_path / "out"), "en").get_pipe("luke_linker")
    again.set_kb(lambda vocab: kb)
    _, scores = again.predict([examples[0].predicted])
    _, expected = pipe.predict([examples[0].predicted])
    assert np.allclose(scores.logits, expected.logits, atol=1e-6)


def test_mentions_that_are_nil_teach_nothing_where_nil_is_impossible(aware):
    nlp = import_checkpoint(str(aware), "en")
    examples = make_examples(nlp, [("Tokyo met", [(0, 1, "NIL")])])
    assert fit(nlp, examples, 1)["luke_linker"] == 0.0


def test_a_linker_with_other_terms_is_not_exported(aware, tmp_path):
    nlp = import_checkpoint(str(aware), "en", {"model": {"rows": True}})
    with pytest.raises(ConfigError, match="luke_linker has no published form"):
        export_component(nlp, tmp_path / "out", "luke_linker")
