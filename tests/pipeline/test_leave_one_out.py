"""Mentions that the counts of aliases contain are left out of their own priors in training."""

import logging
import random
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from spacy.util import load_config
from spacy.vocab import Vocab

from spacy_luke.errors import ConfigError
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.candidates import CandidateSettings, equal_meanings, priors_without
from spacy_luke.kb.entity import NOT_GIVEN, Entity, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.leave_one_out import leave_out
from spacy_luke.pipeline.link_candidates import LEAST_PRIOR
from tests.pipeline.linker_data import RECORDS, TEXTS, links, make_docs, make_examples, make_linker

# Three cities, two bands, one Ada, as in the texts.
COUNTED = [
    {**RECORDS[0], "aliases": {"Tokyo": 3}},
    {**RECORDS[1], "aliases": {"Tokyo": 2}},
    {**RECORDS[2], "aliases": {"Ada Lovelace": 1}, "count": 1, "description": ""},
    {"id": "grace", "name": "Grace", "aliases": {"Ada Lovelace": 1, "Grace": 4}},
]
ONE_MORE_CITY = [{**COUNTED[0], "aliases": {"Tokyo": 4}}, *COUNTED[1:]]
LINKER = "luke_linker"


def opened(entities, folder):
    build_kb(iter(entities), folder, "en", findings=Findings())
    return MappedKB.open(folder, Vocab())


def with_counts(counts):
    """Entities whose aliases have the counts that are above 0."""
    return [
        Entity(name, name, {alias: float(n) for alias, n in own.items() if n})
        for name, own in counts.items()
    ]


def left_out(counts, entities, folder):
    """For each alias and entity that was counted: both, the counts with one less, what
    ``priors_without`` finds, and the candidates of a knowledge base of these counts. entities:
    makes a list of counts."""
    kb = opened(entities(counts), folder / "kb")
    for number, (name, alias) in enumerate([(x, y) for x, own in counts.items() for y in own]):
        if not counts[name][alias]:
            continue
        fewer = {x: dict(own) for x, own in counts.items()}
        fewer[name][alias] -= 1
        other = opened(entities(fewer), folder / f"kb{number}")
        (expected,) = other.candidates([alias], CandidateSettings(fuzzy="never"))
        found = priors_without(kb.tables, alias, kb.tables.ids.find(name))
        yield name, alias, fewer, {kb.tables.ids[row]: x for row, x in found.items()}, expected


@pytest.mark.parametrize("seed", range(5))
def test_priors_are_those_of_a_knowledge_base_that_did_not_count_the_mention(seed, tmp_path):
    rng = random.Random(seed)
    spellings = ["Ada", "ADA", "ada", "Bo", "bo."]
    counts = {f"e{i}": {x: rng.choice([0, 0, 1, 2, 7]) for x in spellings} for i in range(6)}
    for name, alias, fewer, found, expected in left_out(counts, with_counts, tmp_path):
        priors = {x: prior for x, (prior, _) in found.items()}
        assert priors == pytest.approx({x.id: x.prior for x in expected})
        assert (name in found) == any(
            n for x, n in fewer[name].items() if x.lower()[:2] == alias.lower()[:2]
        )


@pytest.mark.parametrize("seed", range(8))
def test_an_entity_keeps_its_name(seed, tmp_path):
    """As in a list, or a wiki, whose titles and redirects are aliases although no link has them as
    its text. Entities that were counted and have no description are there only if they are
    linked."""
    rng = random.Random(seed)
    spellings = ["Ada", "ADA", "ada", "Bo", "bo."]
    counts = {x: {y: rng.choice([0, 0, 0, 1, 2]) for y in spellings} for x in spellings}
    described = {x: rng.choice(["", "A person."]) for x in spellings}
    redirects = {
        x: {y for y, n in own.items() if not n and rng.random() < 0.5} for x, own in counts.items()
    }

    def entities(counts):
        for name, own in counts.items():
            total = sum(own.values())
            if total or described[name]:
                kept = {x: float(n) for x, n in own.items() if n or x in {name, *redirects[name]}}
                yield Entity(name, name, kept, described[name], count=float(total))

    for _, _, _, found, expected in left_out(counts, entities, tmp_path):
        assert {x: prior for x, (prior, _) in found.items()} == pytest.approx(
            {x.id: x.prior for x in expected}
        )
        assert {x: y for x, (_, y) in found.items()} == {x.id: x.counted for x in expected}


def test_counts_and_priors_of_equal_aliases(tmp_path):
    kb = opened(with_counts({"a": {"Ada": 3}, "b": {"ADA": 1}}), tmp_path / "kb")
    found = equal_meanings(kb.tables, "Ada")
    assert found == {0: (3.0, pytest.approx(0.975)), 1: (1.0, pytest.approx(0.025))}
    assert equal_meanings(kb.tables, "Eve") == {}
    assert priors_without(kb.tables, "Eve", 0) == {}


def test_what_was_not_counted_is_not_left_out(tmp_path):
    kb = opened(
        [Entity("a", "Ada", {"Ada": NOT_GIVEN}, count=1), *with_counts({"b": {"Ada": 2}})], tmp_path
    )
    assert equal_meanings(kb.tables, "Ada") == {
        0: (0.0, pytest.approx(1 / 3)),
        1: (2.0, pytest.approx(2 / 3)),
    }
    found = priors_without(kb.tables, "Ada", 0)
    assert {x: prior for x, (prior, _) in found.items()} == pytest.approx({0: 1 / 3, 1: 2 / 3})


def made(bert_dir, folder, records=COUNTED, **config):
    return make_linker(bert_dir, folder, records, **config)


def query_of(nlp, texts=TEXTS):
    pipe, examples = nlp.get_pipe(LINKER), make_examples(nlp, texts)
    query = pipe._query_to_learn([eg.predicted for eg in examples])
    return query, pipe._targets(examples, query)


def test_features_are_those_without_the_mention_and_single_ones_teach_nothing(bert_dir, tmp_path):
    query, targets = query_of(made(bert_dir, tmp_path / "kb"))
    before = query.features.copy()
    changed, (classes, known) = leave_out(query, targets)
    assert (query.features == before).all()
    ids = [[query.kb.tables.ids[x] for x in rows if x >= 0] for rows in query.rows.tolist()]
    prior = np.exp(changed.features[..., 0])
    assert ids[0] == ["city", "band"]  # Tokyo, the city: 3 and 2 become 2 and 2
    assert prior[0, :2] == pytest.approx([0.5, 0.5])
    assert ids[2] == ["city", "band"]  # Tokyo, the band: 3 and 1
    assert prior[2, :2] == pytest.approx([0.75, 0.25])
    ada = ids.index(["ada", "grace"])
    assert targets[0][ada].any() and not classes[ada].any() and not known[ada]
    others = np.arange(len(classes)) != ada
    assert (classes[others] == targets[0][others]).all() and (known == targets[1])[others].all()
    assert (changed.features[..., 1:] == query.features[..., 1:]).all()


def test_without_priors_nothing_is_left_out(bert_dir, tmp_path):
    query, targets = query_of(made(bert_dir, tmp_path / "kb", incl_prior=False))
    changed, (classes, known) = leave_out(query, targets)
    assert (changed.features == query.features).all()
    assert (classes == targets[0]).all() and (known == targets[1]).all()


def test_initialize_sees_whether_the_data_was_counted(bert_dir, tmp_path, caplog):
    spacy.util.logger.propagate = True
    caplog.set_level(logging.INFO, spacy.util.logger.name)
    nlp = made(bert_dir, tmp_path / "kb")
    assert nlp.get_pipe(LINKER).leave_one_out is True
    assert "1 of 6 have a name and entity that were counted once" in caplog.text
    nlp.to_disk(tmp_path / "nlp")
    assert spacy.load(tmp_path / "nlp").get_pipe(LINKER).leave_one_out is True
    # Who trains with its config, on other data, did not say so.
    block = load_config(tmp_path / "nlp" / "config.cfg")["components"][LINKER]
    assert block["leave_one_out"] is None
    given = {"components": {LINKER: {"leave_one_out": False}}}
    assert spacy.load(tmp_path / "nlp", config=given).get_pipe(LINKER).leave_one_out is False
    caplog.clear()
    nlp.from_disk(tmp_path / "nlp")  # back to what was saved
    assert nlp.get_pipe(LINKER).leave_one_out is True and "says" not in caplog.text
    # Fewer than in the texts; counted elsewhere.
    fewer = [{**COUNTED[0], "aliases": {"Tokyo": 2}}, *COUNTED[1:]]
    assert made(bert_dir, tmp_path / "kb2", fewer).get_pipe(LINKER).leave_one_out is False
    assert made(bert_dir, tmp_path / "kb3", texts=()).get_pipe(LINKER).leave_one_out is False


def test_a_document_may_count_once(bert_dir, tmp_path, caplog):
    """A link that it repeats is in the counts of its document, and leaves them with it."""
    spacy.util.logger.propagate = True
    caplog.set_level(logging.INFO, spacy.util.logger.name)
    repeated = [("Tokyo grew . Tokyo is old . Tokyo", [(0, 1, "city"), (3, 4, "city")])]
    nlp = made(bert_dir, tmp_path / "kb", texts=[*TEXTS, *repeated], records=ONE_MORE_CITY)
    pipe = nlp.get_pipe(LINKER)
    assert pipe.leave_one_out is True
    query, targets = query_of(nlp, repeated)
    changed, (classes, _) = leave_out(query, targets)
    prior = np.exp(changed.features[..., 0])
    assert classes.any(-1).all() and prior[:, 0] == pytest.approx([3 / 5] * 2)
    # In a text that is counted nowhere else, neither of them teaches anything.
    alone = [("Grace grew . Grace is old .", [(0, 1, "grace"), (3, 4, "grace")])]
    grace = {**COUNTED[3], "name": "Grace Hopper"}
    records = [*COUNTED[:3], {**grace, "aliases": {"Ada Lovelace": 1, "Grace": 1}}]
    nlp = made(bert_dir, tmp_path / "kb2", texts=[*TEXTS, *alone], records=records)
    assert nlp.get_pipe(LINKER).leave_one_out is True
    assert nlp.get_pipe(LINKER).limits["counted only there"] == 3  # with Ada
    assert not leave_out(*query_of(nlp, alone))[1][0].any()


def test_what_a_name_means_by_itself_is_learned_without_a_count(bert_dir, tmp_path):
    """Tokyo was counted once as the city, whose name it is: without that, it is a candidate with
    the least prior. As the band it would be none."""
    records = [{**COUNTED[0], "aliases": {"Tokyo": 1}}, {**COUNTED[1], "aliases": {"Tokyo": 1}}]
    nlp = made(bert_dir, tmp_path / "kb", records, texts=TEXTS[:2], leave_one_out=True)
    assert nlp.get_pipe(LINKER).limits["counted only there"] == 1
    changed, (classes, known) = leave_out(*query_of(nlp, TEXTS[:2]))
    assert known.tolist() == [True, False, False]  # the city, no link, the band
    assert classes[0].tolist() == [0, 1, 0]
    assert np.exp(changed.features[0, :2, 0]) == pytest.approx([LEAST_PRIOR, 1])


def test_whether_a_prior_is_known_depends_on_what_is_left(bert_dir, tmp_path):
    """Without its only count, the spelling has none, as in a knowledge base without the mention."""
    records = [
        {"id": "city", "name": "Tokyo", "aliases": {"Tokyo": 1}, "count": 5},
        {"id": "band", "name": "Tokyo (band)", "aliases": {"TOKYO": 50}},
    ]
    texts = [("Tokyo is the capital of Japan .", [(0, 1, "city")])]
    query, targets = query_of(made(bert_dir, tmp_path / "kb", records, texts=texts), texts)
    changed, (classes, _) = leave_out(query, targets)
    assert query.prior_known[0].tolist() == [True, True] and classes.any()
    assert changed.prior_known[0].tolist() == [False, False]


def test_nothing_is_left_out_if_too_little_would_be_left(bert_dir, tmp_path, caplog):
    spacy.util.logger.propagate = True
    caplog.set_level(logging.INFO, spacy.util.logger.name)
    texts = [TEXTS[1], TEXTS[2], TEXTS[3]]
    # Only what was counted is in the list.
    of_list = {"count": 1, "description": ""}
    records = [{**x, "aliases": dict.fromkeys(x["aliases"], 1), **of_list} for x in COUNTED]
    nlp = made(bert_dir, tmp_path / "kb", records, texts=texts)
    assert nlp.get_pipe(LINKER).leave_one_out is False
    assert "3 of 3 would teach nothing" in caplog.text
    # One that teaches something is enough, as in a wiki, where most things are linked once.
    records[0] = {**records[0], "aliases": {"Tokyo": 2}, "count": 2}
    nlp = made(bert_dir, tmp_path / "kb2", records, texts=texts)
    assert nlp.get_pipe(LINKER).leave_one_out is True
    assert nlp.get_pipe(LINKER).limits["counted only there"] == 2


def test_names_that_nobody_counted_are_not_left_out(bert_dir, tmp_path):
    uncounted = [{**x, "aliases": list(x.get("aliases", ()))} for x in RECORDS]
    assert made(bert_dir, tmp_path / "kb", uncounted).get_pipe(LINKER).leave_one_out is False


@pytest.mark.parametrize("given", [True, False])
def test_what_the_user_gives_is_kept(given, bert_dir, tmp_path):
    records = RECORDS if given else COUNTED
    nlp = made(bert_dir, tmp_path / "kb", records, leave_one_out=given)
    assert nlp.get_pipe(LINKER).leave_one_out is given


def test_what_was_found_is_decided_again_with_other_data(bert_dir, tmp_path):
    nlp = made(bert_dir, tmp_path / "kb")
    pipe = nlp.get_pipe(LINKER)
    nlp.initialize(lambda: make_examples(nlp, TEXTS * 2))  # twice as many links as counts
    assert pipe.leave_one_out is False
    pipe.leave_one_out = True
    nlp.initialize(lambda: make_examples(nlp, TEXTS * 2))
    assert pipe.leave_one_out is True
    nlp.initialize(lambda: make_examples(nlp))
    assert pipe.leave_one_out is True
    # That of a saved pipeline is kept, until it is null.
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    loaded.initialize(lambda: make_examples(loaded, TEXTS * 2))
    assert loaded.get_pipe(LINKER).leave_one_out is True
    loaded.get_pipe(LINKER).leave_one_out = None
    loaded.initialize(lambda: make_examples(loaded, TEXTS * 2))
    assert loaded.get_pipe(LINKER).leave_one_out is False


def test_links_without_the_right_candidate_are_of_other_texts(bert_dir, tmp_path):
    texts = [*TEXTS, *((f"Zzq{i} sang .", [(0, 1, "band")]) for i in range(3))]
    nlp = made(bert_dir, tmp_path / "kb", texts=texts)
    assert nlp.get_pipe(LINKER).leave_one_out is False


def test_counts_of_entities_are_not_counts_of_links(bert_dir, tmp_path):
    records = [{**x, "aliases": list(x.get("aliases", ())), "count": 9} for x in COUNTED]
    assert made(bert_dir, tmp_path / "kb", records).get_pipe(LINKER).leave_one_out is False


class Halves:
    """Candidates of which each has half of the prior, but those of one text."""

    def __init__(self, but):
        self.but = but

    def __call__(self, kb, mentions):
        for span in mentions:
            found = kb.candidates([span.text])[0]
            other = span.doc.text != self.but
            yield [SimpleNamespace(entity_=x.id, prior_prob=0.5) for x in found] if other else found


@pytest.mark.parametrize("number", [0, 3])
def test_candidates_with_other_priors_are_left_alone(number, bert_dir, tmp_path):
    nlp = made(bert_dir, tmp_path / "kb", leave_one_out=False)
    pipe = nlp.get_pipe(LINKER)
    pipe.get_candidates_batch = Halves(make_docs(nlp)[number].text)
    pipe.leave_one_out = None
    nlp.initialize(lambda: make_examples(nlp))
    assert pipe.leave_one_out is False
    pipe.get_candidates_batch = Halves("")
    query, targets = query_of(nlp)
    assert (leave_out(query, targets)[0].features == query.features).all()


def test_probabilities_are_not_left_out_of(bert_dir, tmp_path):
    def with_priors(vocab):
        entities = [Entity("city", "Tokyo", {"Tokyo": 0.6}), Entity("band", "b", {"Tokyo": 0.4})]
        build_kb(iter(entities), tmp_path / "priors", "en", findings=Findings(), priors=True)
        return MappedKB.open(tmp_path / "priors", vocab)

    nlp = made(bert_dir, tmp_path / "kb", leave_one_out=True)
    pipe = nlp.get_pipe(LINKER)
    pipe.set_kb(with_priors)
    query, targets = query_of(nlp)
    assert leave_out(query, targets) == (query, targets)
    with pytest.raises(ConfigError, match="probabilities, not counts"):
        pipe.initialize(lambda: make_examples(nlp), nlp=nlp)
    pipe.leave_one_out = None
    pipe.initialize(lambda: make_examples(nlp), nlp=nlp)
    assert pipe.leave_one_out is False


def test_nothing_to_learn_is_an_error(bert_dir, tmp_path):
    records = [{**x, "aliases": dict.fromkeys(x["aliases"], 1)} for x in COUNTED]
    with pytest.raises(ConfigError, match="1 counted only there"):
        made(bert_dir, tmp_path / "kb", records, texts=[TEXTS[1]], leave_one_out=True)


def test_type_biases_are_learned_from_what_is_left(bert_dir, tmp_path):
    biases = []
    for leaves in (True, False):
        config = {"leave_one_out": leaves, "type_bias": None}
        nlp = made(bert_dir, tmp_path / f"kb{leaves}", **config)
        biases.append(nlp.get_pipe(LINKER).type_bias)
    assert biases[0] != biases[1]


def test_several_right_candidates_stay_as_they_are(bert_dir, tmp_path):
    query, (classes, known) = query_of(made(bert_dir, tmp_path / "kb"))
    classes = classes.copy()
    classes[0, 1:3] = 1.0
    changed, (after, _) = leave_out(query, (classes, known))
    assert (changed.features[0] == query.features[0]).all() and (after[0] == classes[0]).all()


def test_predictions_have_all_counts(bert_dir, tmp_path):
    found = []
    for leaves in (True, False):
        nlp = made(bert_dir, tmp_path / f"kb{leaves}", leave_one_out=leaves)
        docs = list(nlp.pipe(make_docs(nlp)))
        found.append([(links(doc), [x._.candidates for x in doc.ents]) for doc in docs])
    assert found[0] == found[1]


def n_learned(nlp, monkeypatch):
    """The number of mentions that an update learns from."""
    pipe, learned = nlp.get_pipe(LINKER), []
    loss = pipe._loss
    monkeypatch.setattr(pipe, "_loss", lambda *x: learned.append(x[2][0].any(-1).sum()) or loss(*x))
    nlp.update(make_examples(nlp))
    monkeypatch.setattr(pipe, "_loss", loss)
    return learned[0]


def test_an_update_learns_from_what_is_left(bert_dir, tmp_path, monkeypatch):
    nlp = made(bert_dir, tmp_path / "kb")
    assert n_learned(nlp, monkeypatch) == 7  # six links and two "NIL"; without Ada
    nlp.get_pipe(LINKER).leave_one_out = False
    assert n_learned(nlp, monkeypatch) == 8


def test_scores_by_rows_alone_have_no_prior_to_leave_out_of(make_checkpoint, tmp_path, monkeypatch):
    masked_dir, n = make_checkpoint("luke", "LukeForMaskedLM"), []
    for leaves in (True, False):
        model = {"rows": "only", "attention": "full"}
        nlp = made(masked_dir, tmp_path / f"kb{leaves}", model=model, leave_one_out=leaves)
        n.append(n_learned(nlp, monkeypatch))
    assert n[0] == n[1] > 0


def test_an_earlier_config_that_says_what_was_learned_says_null_after_another_training(
    bert_dir, tmp_path
):
    nlp = made(bert_dir, tmp_path / "kb", leave_one_out=True)
    nlp.get_pipe(LINKER).leave_one_out = None  # as a file of an earlier version, trained again
    nlp.initialize(lambda: make_examples(nlp, TEXTS * 2))
    nlp.to_disk(tmp_path / "nlp")
    block = load_config(tmp_path / "nlp" / "config.cfg")["components"][LINKER]
    assert block["leave_one_out"] is None
    assert spacy.load(tmp_path / "nlp").get_pipe(LINKER).leave_one_out is False
