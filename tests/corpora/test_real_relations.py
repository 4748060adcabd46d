"""Published relation corpora are read whole."""

import json
import re
from collections import Counter

import pytest

from spacy_luke.annotations.relations import get_relations
from spacy_luke.corpora.conversion_report import Report
from spacy_luke.corpora.docred import read_docred
from spacy_luke.corpora.options import ConvertOptions
from spacy_luke.corpora.semeval import read_semeval
from tests.conftest import blank, require_data

# file: sentences, and those of each relation; the two files together are the counts of the
# task's paper (Hendrickx et al. 2010, table 1)
SEMEVAL = {
    "TRAIN_FILE.TXT": (
        8000,
        {
            "Cause-Effect": 1003,
            "Instrument-Agency": 504,
            "Product-Producer": 717,
            "Content-Container": 540,
            "Entity-Origin": 716,
            "Entity-Destination": 845,
            "Component-Whole": 941,
            "Member-Collection": 690,
            "Message-Topic": 634,
        },
    ),
    "TEST_FILE_FULL.TXT": (
        2717,
        {
            "Cause-Effect": 328,
            "Instrument-Agency": 156,
            "Product-Producer": 231,
            "Content-Container": 192,
            "Entity-Origin": 258,
            "Entity-Destination": 292,
            "Component-Whole": 312,
            "Member-Collection": 233,
            "Message-Topic": 261,
        },
    ),
}


@pytest.fixture
def find(data_dir):
    def path(name):
        require_data(data_dir / name)
        return data_dir / name

    return path


@pytest.mark.parametrize("name", SEMEVAL)
def test_semeval_keeps_every_sentence_nominal_and_relation(find, name):
    path = find(f"semeval2010-task8/{name}")
    report = Report()
    docs = list(read_semeval(path, blank("en"), ConvertOptions(), report))
    sentences, labels = SEMEVAL[name]
    assert len(docs) == sentences
    assert report.relations == labels
    others = sentences - sum(labels.values())
    assert f"{others} pairs are labelled 'Other': they get no relation" in report.notes
    assert set(report.events) == {"tokens split where a span begins or ends inside"}

    lines = path.read_text(encoding="utf-8").split("\n")
    tagged = [line for line in lines if re.match(r"\d+\t", line)]
    given = [line.strip() for line in lines if re.fullmatch(r"(Other|\S+\(e\d,e\d\))\s*", line)]
    for doc, line, relation in zip(docs, tagged, given, strict=True):
        number, _, sentence = line.strip().partition("\t")
        assert doc.user_data["id"] == number
        assert doc.text == re.sub(r"</?e\d>", "", sentence[1:-1])
        texts = dict(re.findall(r"<(e\d)>(.*?)</e\d>", sentence))
        assert {ent.ent_id_: ent.text for ent in doc.ents} == texts
        found = [f"{r.label}({r.head.ent_id_},{r.tail.ent_id_})" for r in get_relations(doc)]
        assert found == ([] if relation == "Other" else [relation])


def test_redocred_keeps_every_mention_and_every_relation_but_the_counted(find):
    path = find("redocred/dev_revised.json")
    records = json.loads(path.read_text(encoding="utf-8"))
    report = Report()
    docs = list(read_docred(path, blank("en"), ConvertOptions(), report))
    assert len(docs) == len(records) == 500
    skipped = sum(e.count for what, e in report.events.items() if "relations" in what)
    assert sum(report.relations.values()) == sum(len(r["labels"]) for r in records) - skipped
    assert skipped == 8  # one document has two entities of the same only mention
    for doc, record in zip(docs, records, strict=True):
        words = [word for sentence in record["sents"] for word in sentence]
        assert [token.text for token in doc] == words
        assert [len(sent) for sent in doc.sents] == [len(s) for s in record["sents"]]
        offsets = [sent.start for sent in doc.sents]
        wanted = Counter()
        for number, mentions in enumerate(record["vertexSet"]):
            for start, end in {
                (offsets[m["sent_id"]] + m["pos"][0], offsets[m["sent_id"]] + m["pos"][1])
                for m in mentions
            }:
                wanted[" ".join(words[start:end]), str(number), start] += 1
        found = Counter((s.text, s.kb_id_, s.start) for s in doc.spans["luke_ner"])
        assert found == wanted
        kept = {(r.head.kb_id_, r.tail.kb_id_, r.label) for r in get_relations(doc)}
        assert kept <= {(str(r["h"]), str(r["t"]), r["r"]) for r in record["labels"]}
