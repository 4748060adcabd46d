"""PubTator's lines become documents with ids on mentions, and relations between mentions."""

import pytest

from spacy_luke.corpora.pubtator import read_abstracts, read_pubtator, split_ids
from spacy_luke.errors import CorpusError

FORMAT = "pubtator"
TITLE = "Selmine lowers fever."
ABSTRACT = "Selmine (SLM) eases brain or lung fever in rats."
TEXT = f"{TITLE} {ABSTRACT}"


def mention(text, label, *cells, nth=0, name="7"):
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(text, start + 1)
    return "\t".join([name, str(start), str(start + len(text)), text, label, *cells])


def document(*lines, name="7", title=TITLE, abstract=ABSTRACT):
    return "\n".join([f"{name}|t|{title}", f"{name}|a|{abstract}", *lines, "", ""])


DRUG = mention("Selmine", "Chemical", "D1")
DRUG_AGAIN = mention("Selmine", "Chemical", "D1", nth=1)
FEVER = mention("fever", "Disease", "D5")
BOTH = mention("brain or lung fever", "Disease", "D8|D9", "brain fever|lung fever")


def test_offsets_count_from_the_title_on_and_ids_become_links(convert, spans):
    (doc,), report = convert(FORMAT, document(DRUG, FEVER, DRUG_AGAIN))
    assert doc.text == TEXT
    assert spans(doc.ents) == [
        ("Selmine", "Chemical", "D1"),
        ("fever", "Disease", "D5"),
        ("Selmine", "Chemical", "D1"),
    ]
    assert [ent.start_char for ent in doc.ents] == [0, 15, len(TITLE) + 1]
    assert doc.user_data["id"] == "7"
    assert (report.documents, report.links, report.nil) == (1, 3, 0)
    assert not report.events


def test_no_entity_and_no_id_are_different(convert):
    lines = [
        mention("Selmine", "Chemical", "-1"),
        mention("fever", "Disease", "-"),
        mention("SLM", "Chemical", ""),
        mention("rats", "Species"),
        mention("lung", "Organ", " D4 "),
    ]
    result = convert(FORMAT, document(*lines))
    assert [ent.kb_id_ for ent in result.docs[0].ents] == ["NIL", "NIL", "", "D4", ""]
    assert (result.report.links, result.report.nil) == (1, 2)
    assert result.events == {"mentions without an id": (2, "line 5")}


def test_a_mention_of_several_entities_has_no_id(convert, spans):
    result = convert(FORMAT, document(BOTH, mention("rats", "Species", "9606+10090")))
    assert spans(result.docs[0].ents) == [("brain or lung fever", "Disease"), ("rats", "Species")]
    what = "mentions of several entities, left without an id (composite mentions)"
    assert result.events == {what: (2, "line 3")}


@pytest.mark.parametrize(
    "cell, ids",
    [
        ("D1", ("D1",)),
        ("D1|D2|D1", ("D1", "D2")),
        ("D1+D2", ("D1", "D2")),
        ("D1,D2", ("D1", "D2")),
        ("D1;D2", ("D1", "D2")),
        ("OMIM:312080", ("OMIM:312080",)),
        ("c|SUB|G|2554+1|T", ("c|SUB|G|2554+1|T",)),
        ("|DEL|46|S", ("|DEL|46|S",)),
        ("tmVar:p|SUB|V|600|E;RS#:1134", ("tmVar:p|SUB|V|600|E;RS#:1134",)),
        ("HGVS:p.V600E;CorrespondingGene:673", ("HGVS:p.V600E;CorrespondingGene:673",)),
        (" ", ()),
    ],
)
def test_ids_of_a_cell(cell, ids):
    assert split_ids(cell) == ids


def test_a_relation_of_ids_is_stored_between_first_mentions(convert, relations):
    lines = [DRUG, FEVER, DRUG_AGAIN, "7\tCID\tD1\tD5", "7\tTreats\tD5\tD1\tNovel"]
    (doc,), report = convert(FORMAT, document(*lines))
    assert relations(doc) == [("Selmine", "fever", "CID"), ("fever", "Selmine", "Treats")]
    assert [r.head.start_char for r in doc._.relations] == [0, 15]
    assert report.relations == {"CID": 1, "Treats": 1}
    assert not report.events


def test_relations_of_composite_mentions(convert, relations):
    late = mention("fever", "Disease", "D9", nth=1)  # within the composite mention
    related = ["7\tCID\tD1\tD8", "7\tCID\tD1\tD9", "7\tBlocks\tD1\tD8|D9"]
    (doc,), report = convert(FORMAT, document(DRUG, BOTH, late, *related))
    assert relations(doc) == [
        ("Selmine", "brain or lung fever", "Blocks"),
        ("Selmine", "brain or lung fever", "CID"),
        ("Selmine", "fever", "CID"),
    ]
    assert sum(report.relations.values()) == 3


def test_relations_that_cannot_be_stored_are_counted(convert):
    related = ["7\tCID\tD8\tD9", "7\tCID\tD1\tD7"]
    result = convert(FORMAT, document(DRUG, BOTH, *related))
    assert not result.report.relations
    assert result.events.keys() >= {
        "relations left out: both sides are the same span",
        "relations left out: an id of theirs has no mention",
    }
    assert result.events["relations left out: an id of theirs has no mention"] == (1, "line 6")


def test_overlapping_mentions_are_kept_in_the_group(convert, spans):
    inner = mention("lung", "Organ", "D4")
    (doc,), _ = convert(FORMAT, document(BOTH, inner, FEVER), spans_key="all")
    assert spans(doc.ents) == [("fever", "Disease", "D5")]
    assert ("lung", "Organ", "D4") in spans(doc.spans["all"])


def test_a_mention_that_cuts_a_token_splits_it(convert, spans):
    cut = mention("rat", "Species", "10116")
    (doc,), report = convert(FORMAT, document(cut))
    assert spans(doc.ents) == [("rat", "Species", "10116")]
    assert "tokens split where a span begins or ends inside" in report.events
    (doc,), report = convert(FORMAT, document(cut), alignment="strict")
    assert not doc.ents


def test_a_mention_that_is_elsewhere_is_left_out_and_the_tokens_there_are_unknown(convert, spans):
    shifted = "7\t1\t8\tSelmine\tChemical\tD1"
    result = convert(FORMAT, document(shifted, mention("fever", "Disease", "D5")))
    (doc,) = result.docs
    assert spans(doc.ents) == [("fever", "Disease", "D5")]
    assert [token.ent_iob_ for token in doc[:4]] == ["", "O", "B", "O"]
    what = "mentions whose text and the text at their offsets differ in {}"
    assert result.events == {what.format("letters, left out"): (1, "line 3")}
    start = TEXT.index("SLM")
    quoted = f"7\t{start}\t{start + 3}\t'SLM'\tChemical\tD1"
    result = convert(FORMAT, document(quoted))
    assert spans(result.docs[0].ents) == [("SLM", "Chemical", "D1")]
    assert list(result.events) == [what.format("white space or punctuation, taken by offsets")]


def test_a_title_alone_and_a_repeated_document(convert):
    alone = f"8|t|{TITLE}\n" + DRUG.replace("7\t", "8\t", 1) + "\n"
    empty = "9|t|\n9|a|\n\n"
    result = convert(FORMAT, document(DRUG) + document(DRUG) + alone + empty)
    assert [(doc.text, len(doc.ents)) for doc in result.docs] == [(TEXT, 1), (TITLE, 1)]
    assert result.events == {
        "documents skipped: an earlier one has the same id and text": (1, "line 5"),
        "documents skipped: empty text": (1, "line 11"),
    }


@pytest.mark.parametrize(
    "lines, message",
    [
        ([mention("fever", "Disease", "D5", name="8")], "line 3: .* belongs to '8', but follows"),
        (["Selmine"], "belongs to 'Selmine', but follows document '7'"),
        (["7\tSelmine"], "has 2 cells separated by tabs, and is neither a mention"),
        (["7\tCID\t\tD5"], "is neither a mention"),
        (["7\t0\t7\tSelmine\t\tD1"], "the mention 'Selmine' has an empty type"),
        (["7\t0\t700\tSelmine\tChemical\tD1"], "'Selmine' in line 3 goes from 0 to 700, in a text"),
        (["7\t7\t7\tSelmine\tChemical\tD1"], "goes from 7 to 7"),
        ([f"7\t0\t{'7' * 5000}\tSelmine\tChemical"], "line 3: .*'Selmine' have too many digits"),
        (["7|a|Again."], "line 3: a second abstract of the document '7'"),
    ],
)
def test_an_invalid_line_is_an_error_with_its_number(convert, lines, message):
    with pytest.raises(CorpusError, match=message):
        convert(FORMAT, document(*lines))


def test_annotation_without_a_document_is_an_error(convert):
    with pytest.raises(CorpusError, match="line 1: .* belongs to '7', but follows no document"):
        convert(FORMAT, DRUG)
    with pytest.raises(CorpusError, match="line 3: the abstract follows annotation"):
        convert(FORMAT, f"7|t|{TITLE}\n{DRUG}\n7|a|{ABSTRACT}\n")


# file: documents, mentions, ids, NIL, relations
REAL = {
    "bc5cdr/CDR_TrainingSet.PubTator.txt": (500, 9385, 9212, 76, 1038),
    "bc5cdr/CDR_DevelopmentSet.PubTator.txt": (500, 9591, 9432, 59, 1012),
    "biored/Train.PubTator": (400, 13351, 12950, 31, 4178),
    "biored/Dev.PubTator": (100, 3533, 3436, 20, 1162),
    "disease-linking/NCBItrainset_corpus.txt": (592, 5134, 5019, 0, 0),
    "disease-linking/NCBIdevelopset_corpus.txt": (100, 787, 757, 0, 0),
}


@pytest.mark.parametrize("name", REAL)
def test_published_corpora_are_read_whole(convert_real, data_dir, name):
    docs, report = convert_real(name, read_pubtator)
    n_docs, n_mentions, links, nil, n_relations = REAL[name]
    assert (len(docs), sum(report.labels.values())) == (n_docs, n_mentions)
    assert (report.links, report.nil) == (links, nil)
    left_out = sum(e.count for what, e in report.events.items() if "relations" in what)
    assert sum(report.relations.values()) + left_out == n_relations
    assert "relations left out: an id of theirs has no mention" not in report.events
    given = {item.name: item for item in read_abstracts(data_dir / name)}
    for doc in docs:
        item = given[doc.user_data["id"]]
        assert doc.text == item.text
        found = sorted((s.start_char, s.end_char, s.label_) for s in doc.spans["luke_ner"])
        assert found == sorted((m.start, m.end, m.label) for m in item.mentions)
        single = {(m.start, m.end): m.ids[0] for m in item.mentions if len(m.ids) == 1}
        for span in doc.spans["luke_ner"]:
            wanted = single.get((span.start_char, span.end_char), "")
            assert span.kb_id_ == ("NIL" if wanted in ("-1", "-") else wanted)
