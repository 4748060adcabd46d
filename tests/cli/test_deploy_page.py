"""docs/deploy.md: the service answers as printed."""

import re
from pathlib import Path

import pytest

from tests.pipeline.conftest import fit, make_examples, make_ner

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text("utf8")


@pytest.fixture
def service(bert_dir, tmp_path, monkeypatch):
    """The printed code with a small pipeline."""
    pytest.importorskip("fastapi", reason="fastapi is not installed, which the service needs")
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    nlp.to_disk(tmp_path)
    monkeypatch.setenv("PIPELINE", str(tmp_path))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {"__name__": "service"}
    exec(compile(code, "service.py", "exec"), names)
    return names, [eg.reference for eg in examples]


def test_it_answers_and_frees_its_memory_zones(service):
    from fastapi.testclient import TestClient

    names, docs = service
    client = TestClient(names["app"])
    n_strings = len(names["nlp"].vocab.strings)
    for _ in range(2):
        response = client.post("/entities", json={"texts": [doc.text for doc in docs]})
        assert response.status_code == 200
        for doc, found in zip(docs, response.json(), strict=True):
            expected = {(x.start_char, x.end_char, x.label_) for x in doc.ents}
            assert {(x["start"], x["end"], x["label"]) for x in found} == expected
            assert all(0 < x["score"] <= 1 for x in found)
    assert client.post("/entities", json={"texts": ["Unseenword lived."]}).status_code == 200
    assert len(names["nlp"].vocab.strings) == n_strings  # the zone is freed
    assert client.post("/entities", json={"text": "x"}).status_code == 422
    assert client.post("/entities", json={"texts": [""]}).json() == [[]]
