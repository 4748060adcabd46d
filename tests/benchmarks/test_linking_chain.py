from benchmarks import linking_chain, linking_training, runtime
from benchmarks.linking_chain import table, write_articles
from benchmarks.linking_data import LinkedDoc, LinkedSet
from spacy_luke.kb.entity import Entity
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.linked_text import read_linked_text


def record(row, seed, right, prior=(1, 0, 0, 0)):
    settings = {"fold": 0, "steps": 5}
    found = {"right": list(right), "prior": list(prior), "docs": [0, 0, 1, 1]}
    return {"row": row, "seed": seed, "settings": settings, **found}


def test_rows_are_compared_with_prior_and_titles():
    records = [
        record("titles, before", 0, [1, 0, 0, 0]),
        record("titles", 0, [1, 1, 0, 0]),
        record("titles", 1, [1, 1, 0, 0]),
        record("rows", 0, [1, 1, 1, 1]),
        record("rows", 1, [1, 1, 1, 0]),
    ]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    rows = {line[1]: line for line in lines[2:]}
    assert rows["prior"][2:5] == ["4", "2", "25.0 ± 0.0"]
    assert rows["titles, before"][3:] == ["1", "25.0", "-", "-25.0 [-50.0, +0.0]"]
    assert rows["titles"][4:] == ["50.0 ± 0.0", "+25.0 [+0.0, +50.0]", "-"]
    assert rows["rows"][4] == "87.5 ± 17.7"
    assert rows["rows"][5].startswith("+62.5 [") and rows["rows"][6].startswith("+37.5 [")


def test_the_training_articles_are_linked_text(tmp_path):
    docs = [LinkedDoc("Ada è nata a Londra.", [(13, 19, "Londra")]), LinkedDoc("Niente.", [])]
    write_articles(docs, tmp_path / "texts.jsonl")
    engine, articles = Engine(workers=1), tmp_path / "articles"
    manifest = read_linked_text([tmp_path / "texts.jsonl"], articles, engine, "it", False)
    assert manifest.counts["links"] == 1 and manifest.counts["article"] == 2


def test_rows_before_and_after_pretraining_have_vectors_of_their_encoder(
    bert_dir, tmp_path, monkeypatch
):
    paris = [Entity("Q1", "Paris", {"Paris": 3.0}), Entity("Q2", "Paris, Texas", {"Paris": 1.0})]
    docs = [LinkedDoc("Paris è grande.", [(0, 5, "Q1")]), LinkedDoc("Paris no.", [(0, 5, "Q2")])]
    read = []

    def places(*args):
        read.append(args)
        return LinkedSet("it", paris, docs, docs)

    monkeypatch.setitem(linking_training.LINKED_SETS, "italian", places)
    monkeypatch.setattr(linking_chain, "pretrained", lambda *args: bert_dir)
    args = linking_chain.parse(["--encoder", str(bert_dir), "--work", str(tmp_path)])
    runtime.start(args.gpu_id, args.threads)
    for row in ("titles, before", "titles"):
        named = {"row": row, "seed": 0, "settings": {"fold": 0}}
        found = linking_chain.run(args, named)
        assert (found["prior"], found["docs"]) == ([True, False], [0, 1])
    assert len(read) == 2  # once for a row
    folders = {path.parent.relative_to(tmp_path) for path in tmp_path.rglob("train.spacy")}
    assert sorted(map(str, folders)) == ["italian-0", "vectors-700-0/italian-0"]
