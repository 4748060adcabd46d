"""Under its preset a published checkpoint gets the very inputs that the official code makes.

``tests/golden`` holds what that code made of invented texts. Ours is a whole pipeline: a tiny
checkpoint with RoBERTa's vocabulary is imported with a preset, and what reaches its network is
compared: piece ids, candidates, chunks and positions.
"""

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus

from spacy_luke.checkpoint.read_tokenizer import read_tokenizer
from spacy_luke.cli.evaluate import evaluate
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.formats import get_format
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.preset import PresetCounts, preset_entities
from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.placed_spans import span_pieces
from spacy_luke.model.network import LukeModel
from spacy_luke.pipeline.confidence import Confidence
from spacy_luke.pipeline.decoding import decode
from spacy_luke.pipeline.published import import_checkpoint
from tests.conftest import require_data, write_json

transformers = pytest.importorskip("transformers")

GOLDEN = Path(__file__).parents[1] / "golden"
ENTITIES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
HEADS = {
    "conll-2003": ("LukeForEntitySpanClassification", ["NIL", "MISC", "PER", "ORG", "LOC"]),
    "tacred": ("LukeForEntityPairClassification", ["no_relation", "per:employee_of"]),
    "open-entity": ("LukeForEntityClassification", ["entity", "person", "time"]),
}


def golden(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def vocabulary(data_dir):
    path = data_dir / "roberta-vocab"
    require_data(path)
    return path


@pytest.fixture(scope="module")
def published(vocabulary, tmp_path_factory):
    """A tiny fine-tuned checkpoint of each kind, whose tokenizer_config.json is as published."""
    import torch

    def make(task: str) -> Path:
        architecture, labels = HEADS[task]
        path = tmp_path_factory.mktemp(task)
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(vocabulary / name, path)
        write_json(path / "added_tokens.json", {"<ent>": 50265, "<ent2>": 50266})
        write_json(path / "tokenizer_config.json", {"add_prefix_space": True})
        write_json(path / "entity_vocab.json", ENTITIES)
        config = transformers.LukeConfig(
            vocab_size=50267,
            entity_vocab_size=4,
            hidden_size=8,
            entity_emb_size=4,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=514,
            type_vocab_size=1,
            id2label=dict(enumerate(labels)),
        )
        torch.manual_seed(0)
        getattr(transformers, architecture)(config).save_pretrained(path)
        return path

    return {task: make(task) for task in HEADS}


@pytest.fixture
def sequences(monkeypatch):
    """Collects what reaches the network: (piece ids, [[start, end], ...] of entities) of each
    sequence."""
    found: list[tuple[list[int], list[list[int]]]] = []
    original = LukeModel.forward

    def forward(self, inputs, attention="full"):
        words, entities = inputs.words, inputs.entities
        places = np.stack([entities.starts, entities.ends], axis=1).tolist()
        for i in range(words.n_sequences):
            a, b = words.offsets[i : i + 2]
            c, d = entities.offsets[i : i + 2]
            found.append((words.piece_ids[a:b].tolist(), places[c:d]))
        return original(self, inputs, attention)

    monkeypatch.setattr(LukeModel, "forward", forward)
    return found


def pipeline(published, preset: str) -> Language:
    return import_checkpoint(str(published[preset.partition(".")[0]]), "en", preset=preset)


def read(tmp_path: Path, nlp: Language, name: str, content: str, **options) -> list:
    """Examples of a file in a format, as training and evaluation read them."""
    path = tmp_path / "corpus.in"
    path.write_text(content, encoding="utf8")
    settings = ConvertOptions(**options)
    get_format(name).check(settings)
    reader = get_format(name).reader
    docs = list(reader(path, nlp, settings, Report(), lambda n_bytes: None))
    examples = [Corpus("")._make_example(nlp, doc, False) for doc in docs]
    tally = PresetCounts()
    for example in examples:
        preset_entities(example, tally)
    assert not tally.misaligned
    return examples


# CoNLL-2003


@pytest.mark.parametrize(
    "preset,name",
    [("conll-2003", "conll-2003.legacy"), ("conll-2003.examples", "conll-2003.examples")],
)
def test_conll_2003(published, sequences, preset, name):
    nlp = pipeline(published, preset)
    component = nlp.get_pipe("luke_ner")
    n_windows = 0
    for item in golden(name)["documents"]:
        starts = item["sentence_starts"]
        flags = np.isin(np.arange(len(item["words"])), starts).tolist()
        doc = Doc(nlp.vocab, words=item["words"], sent_starts=flags)
        sequences.clear()
        query, scores = component.predict([doc])
        asked = query.spans.dataXd[scores.rows].tolist()
        ours = by_sentence(sequences, asked, starts)
        for window in item["windows"]:
            n_windows += 1
            chunks = ours[window["sentence"]]
            assert {tuple(ids) for ids, _ in chunks} == {tuple(window["word_ids"])}
            assert [len(chunk) for _, chunk in chunks] == window["n_candidates"]
            assert crc([x for _, chunk in chunks for x in chunk]) == window["checksum"]
            if "chunks" in window:
                flat = [[[*words, *pieces] for words, pieces in chunk] for _, chunk in chunks]
                assert flat == window["chunks"]
    assert n_windows == 33


def by_sentence(sequences, asked, starts) -> dict[int, list]:
    """sentence -> its sequences: piece ids, and [word range, piece range] of each candidate."""
    found: dict[int, list] = {}
    rest = iter(asked)
    for ids, places in sequences:
        chunk = [[next(rest), place] for place in places]
        sentence = int(np.searchsorted(starts, chunk[0][0][0], side="right")) - 1
        found.setdefault(sentence, []).append((ids, chunk))
    assert next(rest, None) is None
    return found


def crc(value) -> int:
    return zlib.crc32(json.dumps(value, separators=(",", ":")).encode())


def test_entities_are_chosen_as_published():
    data = golden("decoding")
    nil, *labels = data["labels"]
    for case in data["cases"]:
        logits = np.roll(np.asarray(case["logits"]), -1, axis=1)  # ours has NIL last
        starts, ends = np.asarray(case["spans"]).T
        of_doc = np.zeros(len(logits), dtype=np.int64)
        rows, classes, _ = decode(
            logits,
            starts,
            ends,
            of_doc,
            nil_bias=0.0,
            confidence=Confidence(labels, 0.0, {}, None),
            flat=True,
        )
        names = [labels[i] for i in classes]
        places = zip(starts[rows].tolist(), ends[rows].tolist())
        assert [[a, b, name] for (a, b), name in zip(places, names)] == case["entities"]


# TACRED


def relation_inputs(nlp, tmp_path, sequences, records):
    examples = read(tmp_path, nlp, "tacred", json.dumps(records), brackets="keep")
    for example, record in zip(examples, records):
        sequences.clear()
        nlp.get_pipe("luke_relation").predict([example.predicted])
        assert len(sequences) == 1, record["id"]  # subject to object, not the other way
        yield record, sequences[0]


def test_tacred(published, sequences, tmp_path):
    records = golden("tacred.legacy")["records"]
    nlp = pipeline(published, "tacred")
    for record, (ids, places) in relation_inputs(nlp, tmp_path, sequences, records):
        assert ids == record["word_ids"], record["id"]
        assert [list(range(a, b)) for a, b in places] == record["entity_positions"], record["id"]


def test_tacred_of_the_newer_scripts_where_no_entity_is_at_an_edge(published, sequences, tmp_path):
    """Their stray pieces, where entities touch or end the text, and the space before an entity that
    begins it, are not reproduced."""
    records = golden("tacred.examples")["records"]
    nlp = pipeline(published, "tacred.examples")
    same = {
        record["id"]
        for record, (ids, places) in relation_inputs(nlp, tmp_path, sequences, records)
        if ids == record["word_ids"]
        and [list(range(a, b)) for a, b in places] == record["entity_positions"]
    }
    assert same == {"object-first", "long-mention", "odd-words"}


# Open Entity


def typing_inputs(nlp, sequences, examples, records):
    for example, record in zip(examples, records):
        sequences.clear()
        nlp.get_pipe("luke_entity_typing").predict([example.predicted])
        ((ids, ((start, end),)),) = sequences
        name = record.get("id", record.get("annot_id"))
        yield (
            name,
            ids == record["word_ids"] and list(range(start, end)) == record["entity_positions"],
        )


@pytest.mark.parametrize(
    "name,brackets", [("open-entity.legacy", "round"), ("open-entity.notebook", "keep")]
)
def test_open_entity(published, sequences, tmp_path, name, brackets):
    records = golden(name)["records"]
    nlp = pipeline(published, "open-entity")
    examples = read(tmp_path, nlp, "openentity", json.dumps(records), brackets=brackets)
    found = dict(typing_inputs(nlp, sequences, examples, records))
    assert len(found) == 6 and all(found.values()), found


def test_open_entity_of_the_newer_scripts_where_the_mention_is_inside(
    published, sequences, tmp_path
):
    """The space before a mention that begins the text, and the stray piece after one that ends it,
    are not reproduced."""
    records = golden("open-entity.examples")["records"]
    nlp = pipeline(published, "open-entity.examples")
    lines = "\n".join(json.dumps(record) for record in records)
    kinds = ("entity", "event", "group", "location", "object", "organization")
    options = {"brackets": "round", "types": (*kinds, "person", "place", "time")}
    examples = read(tmp_path, nlp, "ufet", lines, **options)
    for example, record in zip(examples, records):
        assert set(example.reference.ents[0]._.types) == set(record["labels"])
    found = dict(typing_inputs(nlp, sequences, examples, records))
    assert {name for name, same in found.items() if same} == {"middle", "pronoun", "long"}


# A phrase encoder on LUKE: the rule ``mentions`` with a space before every part


def test_phrases(vocabulary):
    tokenizer, nlp = read_tokenizer(vocabulary), spacy.blank("en")
    for record in golden("uctopic")["records"]:
        doc = nlp(record["text"])
        span = doc.char_span(*record["span"])
        table = np.asarray([[span.start, span.end]])
        pieces = align([doc], tokenizer, "mentions", [table], spaces="words")
        assert [0, *pieces.ids.tolist(), 2] == record["word_ids"]
        starts, ends = span_pieces(pieces, table, np.zeros(1, dtype=np.int64))
        ends = np.minimum(ends, starts + 30)
        assert [*range(starts[0] + 1, ends[0] + 1)] == record["entity_positions"]


# From a file to a score


def test_annotated_sentences_reach_the_network(published, sequences, tmp_path):
    """Sentences without a full stop, as headlines of the corpus are."""
    nlp = pipeline(published, "conll-2003")
    lines = ["-DOCSTART- O", "", "Oslo I-LOC", "", "Bo I-PER", "left O", "", "She O", "came O", ""]
    examples = read(
        tmp_path, nlp, "columns", "\n".join(lines), documents=True, scheme="IOB1", n_sents=1
    )
    for example in examples:
        example.predicted.ents = []
    counts = {}
    for gold_sents in (False, True):
        sequences.clear()
        scores = evaluate(nlp, examples, gold_sents)
        assert scores["ents_f"] is not None
        counts[gold_sents] = [len(places) for _, places in sequences]
    assert counts == {False: [15], True: [1, 3, 3]}
