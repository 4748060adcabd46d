"""``spacy luke kb`` and ``spacy luke kb-edit``."""

import numpy as np
import pytest
import spacy
from spacy.kb import InMemoryLookupKB
from spacy.tokens import DocBin, Span
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.pipeline.entity_vectors import make_vectors
from tests.conftest import blank
from tests.kb.conftest import ENTITIES, found, write_jsonl
from tests.pretraining.articles import article, make_articles


def run(*args, status=0) -> str:
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def opened(path) -> MappedKB:
    return MappedKB.open(path, Vocab())


@pytest.fixture
def things(tmp_path):
    """The file of entities, and the knowledge base that the command made of it."""
    path = write_jsonl(tmp_path / "things.jsonl", ENTITIES)
    run("kb", path, tmp_path / "kb", "--lang", "en")
    return tmp_path / "kb"


def test_a_file_becomes_a_knowledge_base(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [*ENTITIES, ENTITIES[0], {"id": "x", "name": ""}])
    output = run("kb", path, tmp_path / "new" / "kb", "--lang", "en", "--max-meanings", 1)
    assert "entities: 6" in output and "their name is empty: 1 (first:" in output
    assert "earlier one has their id: 1 (first: Q1)" in output
    assert "more than 1 entities: 2" in output
    assert found(opened(tmp_path / "new" / "kb"), "parkinson diseases")[0] == ("8", "normalised")


def test_mistakes_are_one_message(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": "a", "label": "b"}])
    output = run("kb", path, tmp_path / "kb", status=1)
    assert "line 1: name missing" in output and "'label'" in output
    assert not (tmp_path / "kb").exists()
    for lang in ("DE", "de-AT", "German"):
        assert repr(lang) in run("kb", path, tmp_path / "kb", "--lang", lang, status=1)
    run("kb", tmp_path / "none.csv", tmp_path / "kb", status=1)
    run("kb", tmp_path, tmp_path / "kb", status=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    assert "exists" in run("kb", path, tmp_path / "full", status=1)


def test_the_current_directory_is_not_replaced(things, tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    for force in ([], ["--force"]):
        assert "is the current directory" in run("kb", things, ".", *force, status=1)


def test_a_knowledge_base_is_not_built_of_another(things, tmp_path):
    assert "'spacy luke kb-edit'" in run("kb", things, tmp_path / "other", status=1)
    assert not (tmp_path / "other").exists()


def test_a_lookup_kb_of_spacy_keeps_priors_and_vectors(tmp_path):
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=2)
    kb.set_entities(["Q2", "Q1", "Q3"], [20, 5, 1], [[1, 2], [3, 4], [5, 6]])
    kb.add_alias("Ada", ["Q1", "Q2"], [0.6, 0.1])
    kb.add_alias("Ada L.", ["Q1"], [0.9])
    kb.to_disk(tmp_path / "lookup")
    run("kb", tmp_path / "lookup", tmp_path / "kb")
    run("kb", tmp_path / "lookup" / "contents", tmp_path / "same")
    for path in (tmp_path / "kb", tmp_path / "same"):
        mapped = opened(path)
        one, two = mapped.candidates(["Ada"])[0]
        assert (one.id, two.id) == ("Q1", "Q2")
        assert (one.prior_prob, two.prior_prob) == (pytest.approx(0.6), pytest.approx(0.1))
        assert mapped.get_vector("Q1").tolist() == [3, 4] and mapped.vectors_hash == ""
        assert (mapped.entity("Q1").name, mapped.entity("Q3").name) == ("Ada L.", "Q3")
        assert found(mapped, "Q3") == [] and mapped.entity("Q2").count == 20
    write_jsonl(tmp_path / "add.jsonl", [{"id": "Q4", "name": "Ada"}])
    run("kb-edit", tmp_path / "kb", "--add", tmp_path / "add.jsonl")
    priors = {x.id: round(x.prior, 4) for x in opened(tmp_path / "kb").candidates(["Ada"])[0]}
    assert priors == {"Q1": 0.6, "Q4": 0.3, "Q2": 0.1}
    assert opened(tmp_path / "kb").without_vector().tolist() == [3]


def test_folders_of_articles(tmp_path):
    atlas = [
        article(1, "Japan", "Japan is a country. Tokyo and Edo, Mercury.",
                [("Tokyo", "Tokyo"), ("Edo", "Edo"), ("Mercury", "Mercury")]),
        article(2, "Tokyo", "In Japan, near Yokohama (port).",
                [("Japan", "Japan"), ("Yokohama", "Yokohama (port)")]),
        article(3, "NIL", "Nothing.", []),
    ]  # fmt: skip
    others = [("Edo", "redirect", "Tokyo"), ("Mercury", "disambiguation", None)]
    make_articles(tmp_path / "articles", (atlas, others))
    output = run("kb", tmp_path / "articles", tmp_path / "kb")
    assert "title is NIL: 1" in output and "links to a disambiguation: 1" in output
    kb = opened(tmp_path / "kb")
    assert kb.tables.lang == "en" and len(kb) == 3
    tokyo = kb.entity("Tokyo")
    assert (tokyo.count, dict(tokyo.aliases)) == (2, {"Edo": 1, "Tokyo": 1})
    assert kb.entity("Japan").description == "Japan is a country."
    assert kb.entity("Yokohama (port)").description == ""
    assert found(kb, "Yokohama") == found(kb, "Yokohama (port)") == [("Yokohama (port)", "exact")]
    assert found(kb, "Mercury") == []


def test_an_alias_may_be_that_of_several_articles_and_the_title_of_another(tmp_path):
    rows = [article(i, x, "", []) for i, x in enumerate(("Anna Moss", "Bo Moss", "Tarn"))]
    others = [("Moss", "redirect", "Anna Moss"), ("Moss", "redirect", "Bo Moss")]
    others += [("Tarn", "redirect", "Bo Moss"), ("The Moss", "redirect", "Moss")]
    others += [("Lost", "redirect", "Nowhere"), ("Here", "redirect", "Here")]
    make_articles(tmp_path / "articles", (rows, others))
    run("kb", tmp_path / "articles", tmp_path / "kb")
    kb = opened(tmp_path / "kb")
    assert len(kb) == 3
    assert sorted(found(kb, "Moss")) == [("Anna Moss", "exact"), ("Bo Moss", "exact")]
    assert sorted(found(kb, "Tarn")) == [("Bo Moss", "exact"), ("Tarn", "exact")]
    assert found(kb, "The Moss")[0] == ("Anna Moss", "exact")
    assert found(kb, "Lost") == [] == found(kb, "Here")


@pytest.mark.parametrize(
    "language, text, description",
    [
        ("th", "ประเทศไทย มีชื่อทางการว่า ราชอาณาจักรไทย เป็นรัฐ", None),
        ("th", "ประเทศไทย " + "มี" * 100 + " เป็นรัฐ", "ประเทศไทย"),
        ("lo", "ລາວ" * 100 + " ລາວ", "ລາວ" * 100),
        ("en", "It is. Or not.", "It is."),
    ],
)
def test_the_description_is_a_sentence_or_as_many_phrases(tmp_path, language, text, description):
    rows = [article(1, "A", text, [])]
    make_articles(tmp_path / "articles", (rows, []), language=language)
    run("kb", tmp_path / "articles", tmp_path / "kb")
    assert opened(tmp_path / "kb").entity("A").description == (description or text)


@pytest.mark.parametrize(
    "title, alias",
    [("水星（行星）", "水星"), ("水星(项目)", "水星"), ("かな (曲)", "かな"), ("f(x)", None)],
)
def test_a_part_in_parentheses_may_have_no_space_before_it(tmp_path, title, alias):
    make_articles(tmp_path / "articles", ([article(1, title, "", [])], []), language="zh")
    run("kb", tmp_path / "articles", tmp_path / "kb")
    aliases = set(opened(tmp_path / "kb").entity(title).aliases)
    assert aliases == {title, alias} - {None}


def test_annotated_documents_have_the_entities_that_they_link_to(tmp_path):
    doc = blank("en")("Ada met Bo and Ada.")
    doc.ents = [Span(doc, i, i + 1, "P", kb_id=x) for i, x in ((0, "Q1"), (2, "NIL"), (4, "Q1"))]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    run("articles", tmp_path / "a.spacy", "--output", tmp_path / "articles", "--lang", "en")
    run("kb", tmp_path / "articles", tmp_path / "kb")
    kb = opened(tmp_path / "kb")
    assert len(kb) == 1 and kb.entity("Q1").aliases == {"Ada": 1, "Q1": 0}


def test_an_article_that_repeats_a_link_counts_once(tmp_path):
    """Also if it links by a redirect."""
    tokyo = ("Tokyo", "Tokyo")
    rows = [
        article(
            1, "Japan", "Tokyo, Tokyo, Tokyo, Edo, Edo.", [*[tokyo] * 3, *[("Edo", "Edo")] * 2]
        ),
        article(1, "Asia", "Tokyo.", [tokyo]),
        article(2, "Tokyo", "Tokyo.", [("Tokyo", "Tokyo (band)")]),
    ]
    make_articles(tmp_path / "articles", (rows, [("Edo", "redirect", "Tokyo")]))
    run("kb", tmp_path / "articles", tmp_path / "kb")
    city = opened(tmp_path / "kb").entity("Tokyo")
    assert (city.count, dict(city.aliases)) == (3, {"Tokyo": 2, "Edo": 1})


def test_an_article_that_links_by_one_text_in_several_ways_counts_once(tmp_path):
    """Directly and by two redirects; and for another article that the text means, too."""
    others = [("Edo", "redirect", "Tokyo"), ("Edo town", "redirect", "Edo")]
    others.append(("Here", "redirect", "Here"))
    ways = [("city", x) for x in ("Tokyo", "Edo", "Edo town", "Edo", "Kyoto", "Here")]
    rows = [article(i, f"A{i}", " ".join(["city"] * 6), ways) for i in (1, 2)]
    rows.append(article(3, "A3", "city", [("city", "Edo")]))
    rows.append(article(4, "A4", "city city", [("city", "Kyoto"), ("city", "Edo")]))
    make_articles(tmp_path / "articles", (rows[:1], others), (rows[1:], []))
    run("kb", tmp_path / "articles", tmp_path / "kb")
    kb = opened(tmp_path / "kb")
    assert kb.entity("Tokyo").aliases["city"] == 4 and kb.entity("Kyoto").aliases["city"] == 3
    assert kb.entity("Tokyo").count == 4


def test_entities_are_added_changed_and_removed(things, tmp_path):
    changes = write_jsonl(
        tmp_path / "add.jsonl", [{"id": "new", "name": "It"}, {"id": 7, "name": "M"}]
    )
    (tmp_path / "ids.txt").write_text("Q3\nQ99\n")
    output = run(
        "kb-edit",
        things,
        "--add",
        changes,
        "--remove",
        tmp_path / "ids.txt",
        "--output",
        tmp_path / "b",
    )
    assert "entities added: 1" in output and "were not removed: 1 (first: Q99)" in output
    assert "Q3" in opened(things) and "new" not in opened(things)
    run("kb-edit", things, "--add", changes, "--remove", tmp_path / "ids.txt")
    for kb in (opened(things), opened(tmp_path / "b")):
        assert len(kb) == 6 and "Q3" not in kb and found(kb, "It") == [("new", "exact")]
        assert list(kb.entity("7").aliases) == ["M"]


def test_the_knowledge_base_of_a_pipeline_is_changed_in_place(things, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_linker", config={"generate_empty_kb": {"@misc": "spacy-luke.EmptyKB.v1"}})
    nlp.get_pipe("entity_linker").set_kb(lambda vocab: MappedKB.open(things, vocab))
    nlp.initialize(lambda: [spacy.training.Example.from_dict(nlp.make_doc("a"), {})])
    nlp.meta["performance"] = {"nel_micro_f": 0.5}
    nlp.to_disk(tmp_path / "pipeline")
    changes = tmp_path / "add.csv"
    changes.write_text("id,name,aliases,count\nnew,It,That|This,3\n")
    run("kb-edit", tmp_path / "pipeline", "--add", changes)
    edited = spacy.load(tmp_path / "pipeline")
    kb = edited.get_pipe("entity_linker").kb
    assert found(kb, "That") == found(kb, "It") == [("new", "exact")]
    assert edited.meta["performance"] == {}  # those of another knowledge base
    assert "new" not in opened(things)
    spacy.blank("en").to_disk(tmp_path / "other")
    assert "it has none" in run("kb-edit", tmp_path / "other", "--add", changes, status=1)


def test_edits_that_cannot_be_made(things, tmp_path):
    assert "Nothing to change" in run("kb-edit", things, status=1)
    ids = tmp_path / "ids.txt"
    ids.write_text("Q3\n")
    assert "kb.json is missing" in run("kb-edit", tmp_path, "--remove", ids, status=1)
    path = things / "names.text.npy"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1] + b"?")
    assert "SHA-256" in run("kb-edit", things, "--remove", ids, status=1)


def test_vectors_are_made_by_a_pipeline_s_encoder(bert_dir, things, tmp_path):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    nlp.to_disk(tmp_path / "model")
    model = ["--pipeline", tmp_path / "model"]
    output = run("kb-edit", things, *model, "--text", "name", "--half")
    kb = opened(things)
    assert f"vectors made: {len(kb)} of {len(kb)}" in output
    assert kb.has_vectors and kb.vectors_hash.endswith(" name")
    for half in (["--half"], []):  # it stays as it is
        assert "vectors made: 0 of" in run("kb-edit", things, *model, "--text", "name", *half)
        assert opened(things).tables.vectors.dtype == np.float16
    assert "--text is 'title'" in run("kb-edit", things, *model, "--text", "title", status=1)


def test_what_was_changed_while_vectors_were_made_is_not_lost(
    bert_dir, things, tmp_path, monkeypatch
):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    nlp.to_disk(tmp_path / "model")

    def make_slowly(nlp, kb, text, half):
        opened(things).edited(remove=["Q1"], folder=things)  # by another process
        return make_vectors(nlp, kb, text, half)

    monkeypatch.setattr("spacy_luke.pipeline.entity_vectors.make_vectors", make_slowly)
    output = run("kb-edit", things, "--pipeline", tmp_path / "model", status=1)
    assert "was changed after it was opened" in output
    assert "Q1" not in opened(things) and not opened(things).has_vectors


def test_vectors_of_names_and_replacing_a_knowledge_base(bert_dir, things, tmp_path):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    nlp.to_disk(tmp_path / "model")
    output = run("kb-edit", things, "--pipeline", tmp_path / "model", "--names")
    kb = opened(things)
    n = len(kb.tables.keys)
    assert f"vectors of names made: {n} of {n}" in output and kb.has_name_vectors
    source = tmp_path / "one.jsonl"
    assert "need --pipeline" in run("kb", source, tmp_path / "new", "--names", status=1)
    source.write_text('{"id": "a", "name": "Ada"}\n', encoding="utf8")
    assert "exists" in run("kb", source, things, status=1)
    run("kb", source, things, "--force")
    assert len(opened(things)) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "not a knowledge base" in run("kb", source, tmp_path / "mine", "--force", status=1)
