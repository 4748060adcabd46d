"""``spacy luke page``: one HTML file with predicted and annotated entities side by side."""

import re
from html.parser import HTMLParser

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (adds `luke` to spaCy's commands)
from spacy_luke.annotations.relations import install_relations
from spacy_luke.annotations.types import install_types
from spacy_luke.cli.page import Counts, Entity, count, cut, histogram, make_page, render
from spacy_luke.cli.page_arcs import Arc, Word, draw
from spacy_luke.cli.page_relations import CONTEXT, MAX_WORDS, draw_relations, links
from spacy_luke.cli.page_text import type_chips
from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import fit, make_examples, make_ner

VOID = {"meta", "line", "rect"}

install_relations()
install_types()


class Reader(HTMLParser):
    """Checks that tags are balanced; collects text and the addresses that a page names."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses = [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert not reader.open and not reader.addresses
    assert "<script" not in html and "http" not in html and "url(" not in html
    return re.sub(r"\s+", " ", "".join(reader.text))


def marked(pieces):
    return [(piece.kind, piece.text) for piece in pieces]


def test_agreement_missed_and_spurious_are_told_apart():
    predicted = [Entity(0, 3, "PER", 0.9), Entity(8, 12, "ORG", 0.6)]
    gold = [Entity(0, 3, "PER"), Entity(4, 7, "LOC")]
    pieces = cut("Ada saw Acme", predicted, gold)
    assert marked(pieces) == [
        ("agreed", "Ada"),
        ("", " "),
        ("missed", "saw"),
        ("", " "),
        ("spurious", "Acme"),
    ]
    assert [tag for piece in pieces for tag in piece.tags] == [
        ("agreed", "PER", 0.9),
        ("missed", "LOC", None),
        ("spurious", "ORG", 0.6),
    ]


def test_entities_that_cross_keep_the_text_whole():
    pieces = cut("the Port of Ada", [Entity(0, 8, "PLACE")], [Entity(4, 15, "PLACE")])
    assert marked(pieces) == [("spurious", "the "), ("both", "Port"), ("missed", " of Ada")]


def test_a_wrong_label_is_spurious_and_missed():
    (piece,) = cut("Ada", [Entity(0, 3, "PER")], [Entity(0, 3, "LOC")])
    assert (piece.kind, piece.label, piece.gold_label) == ("both", "PER", "LOC")
    assert count([Entity(0, 3, "PER")], [Entity(0, 3, "LOC")]) == Counts(0, 1, 1)


def test_without_annotation_nothing_is_right_or_wrong():
    (piece,) = cut("Ada", [Entity(0, 3, "PER", 0.5)], None)
    assert piece.kind == "agreed"


def test_scores_of_nothing_are_no_numbers():
    counts = Counts()
    assert (counts.p, counts.r, counts.f) == (None, None, None)
    counts.add(Counts(agreed=1, spurious=1, missed=3))
    assert (counts.p, counts.r, counts.f) == (1 / 2, 1 / 4, 1 / 3)


def test_the_histogram_counts_every_score():
    bars = histogram([(0.0, True), (0.049, False), (1.0, True), (0.97, True)])
    assert bars[0][1:] == (1, 1) and bars[-1][1:] == (2, 0)
    assert histogram([]) == []


@pytest.fixture(scope="module")
def nlp(bert_dir):
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    return nlp


def test_totals_are_those_of_the_scorer_and_all_documents_count(nlp):
    examples = make_examples(nlp)
    examples[1].reference.set_ents([], default="outside")
    page = make_page(nlp, examples, limit=2, title="Test")
    expected = nlp.evaluate(examples)
    assert page.total.p == expected["ents_p"] < 1.0
    assert (page.total.r, page.total.f) == (expected["ents_r"], expected["ents_f"])
    assert {label: part.f for label, part in page.labels.items()} == {
        label: part["f"] for label, part in expected["ents_per_type"].items()
    }
    assert (len(page.documents), page.n_docs) == (2, 5)
    assert sum(bar.agreed + bar.spurious for bar in page.bars) == page.total.predicted
    assert "5 documents; the first 2 are shown" in read(render(page))


def test_a_document_without_annotation_is_shown_and_not_counted(nlp):
    (example, *_) = make_examples(nlp)
    bare = spacy.training.Example(example.predicted, Doc(nlp.vocab, words=["Ada"]))
    page = make_page(nlp, [bare], limit=0, title="Test")
    assert page.documents[0].counts is None and page.total == Counts()
    assert "not annotated" in read(render(page))


def test_all_text_is_escaped(nlp):
    words = ["<b>Ada</b>", "&amp;", "<script>alert(1)</script>"]
    reference = Doc(nlp.vocab, words=words)
    reference.user_data["title"] = "<i>title</i>"
    reference.set_ents([Span(reference, 0, 1, label="<u>")], default="outside")
    example = spacy.training.Example(Doc(nlp.vocab, words=words), reference)
    html = render(make_page(nlp, [example], limit=0, title='"<title>'))
    text = read(html)
    assert all(part in text for part in (*words, "<i>title</i>", "<u>", '"<title>'))


def test_other_components_without_scores_are_shown():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
    reference = nlp("Ada left.")
    example = spacy.training.Example(nlp.make_doc(reference.text), reference)
    page = make_page(nlp, [example], limit=0, title="Test")
    assert page.total == Counts(agreed=1) and page.bars == []
    assert "Ada" in read(render(page)) and "Histogram" not in render(page)


# Relations and types

EN = spacy.blank("en")
FAMILY = "Ada is the daughter of Byron . Byron wrote . Ada met Babbage in London ."
PLACES = {"Ada": (0, 1, "PER"), "Byron": (5, 6, "PER"), "Babbage": (12, 13, "PER")}
PLACES |= {"daughter of Byron": (3, 6, ""), "London": (14, 15, "LOC")}


def related(relations, text=FAMILY, starts=(0, 7, 10), types=None):
    """A document with PLACES; starts: tokens that begin a sentence, none for no sentences."""
    words = text.split(" ")
    doc = Doc(EN.vocab, words=words)
    for i, token in enumerate(doc):
        if starts:
            token.is_sent_start = i in starts
    spans = {name: Span(doc, a, b, label=label) for name, (a, b, label) in PLACES.items()}
    doc.ents = [span for span in spans.values() if span.label_]
    doc._.relations = [(spans[head], spans[tail], *rest) for head, tail, *rest in relations]
    for name, scores in (types or {}).items():
        spans[name]._.types = scores
    return doc


def texts(picture):
    """Words and tags of a picture, and the labels of its arcs with their kinds."""
    words = re.findall(r"<tspan[^>]*>(.*?)</tspan>", picture)
    arcs = re.findall(
        r'displacy-arrow (\w+)".*?<textPath[^>]*>(.*?)</textPath>', picture, re.DOTALL
    )
    return [word for word in words if word], sorted(arcs)


def test_relations_that_agree_are_missed_or_spurious_are_told_apart():
    predicted = related([("Ada", "Byron", "child", 0.75), ("Ada", "Byron", "friend", 0.5)])
    gold = related([("Ada", "Byron", "child"), ("Byron", "Ada", "parent")])
    assert [(x.kind, x.text) for x in links(predicted, gold, compare=True)] == [
        ("agreed", "child 0.75"),
        ("spurious", "\N{BALLOT X} friend 0.50"),
        ("missed", "missed parent"),
    ]
    assert [x.kind for x in links(predicted, gold, compare=False)] == ["plain", "plain"]


def test_a_sentence_with_relations_is_one_picture_and_others_are_none():
    relations = [("Ada", "Byron", "child"), ("Babbage", "London", "in")]
    first, second = draw_relations(related(relations), related([]), True, "x").pictures
    words, arcs = texts(first)
    assert words == ["Ada", "PER", "is", "the", "daughter", "of", "Byron", "PER", "."]
    assert arcs == [("spurious", "\N{BALLOT X} child 1.00")]
    words, _ = texts(second)
    assert words == ["Ada", "met", "Babbage", "PER", "in", "London", "LOC", "."]
    assert 'id="x-0"' in first and 'id="x-1"' in second


def test_sentences_that_a_relation_joins_are_one_picture():
    relations = [("Ada", "Babbage", "knows"), ("Babbage", "London", "in")]
    (picture,) = draw_relations(related(relations), related(relations), True, "x").pictures
    words, arcs = texts(picture)
    assert words.count(".") == 3
    assert [kind for kind, _ in arcs] == ["agreed", "agreed"]


def test_without_sentences_the_words_around_a_relation_are_shown():
    (picture,) = draw_relations(
        related([("Babbage", "London", "in")], starts=()), related([]), True, "x"
    ).pictures
    words, _ = texts(picture)
    assert words == [".", "Ada", "met", "Babbage", "PER", "in", "London", "LOC", "."]


def test_words_far_from_relations_are_left_out_of_a_long_stretch():
    text = FAMILY.replace("Byron wrote", "Byron" + " wrote" * 500)
    doc = related([], text=text, starts=())
    doc._.relations = [(doc[0:1], doc[-4:-3], "knows")]
    (picture,) = draw_relations(doc, doc.copy(), True, "x").pictures
    words, _ = texts(picture)
    assert "\N{HORIZONTAL ELLIPSIS}" in words and len(words) <= 4 * CONTEXT + 6 < MAX_WORDS


def test_a_mention_within_another_has_no_arc_but_a_line():
    relations = [("daughter of Byron", "Byron", "of"), ("Ada", "daughter of Byron", "is")]
    drawn = draw_relations(related(relations), related([]), False, "x")
    (line,) = drawn.lines
    assert line == ("plain", "daughter of Byron", "of 1.00", "Byron")
    words, arcs = texts(drawn.pictures[0])
    assert "daughter of Byron" in words and arcs == [("plain", "is 1.00")]


def test_mentions_of_one_relation_that_another_mention_covers_have_no_arc():
    doc = related([])
    doc._.relations = [
        (doc[0:1], doc[2:3], "a"),
        (doc[0:4], doc[5:6], "b"),
    ]
    drawn = draw_relations(doc, related([]), True, "x")
    assert [line.label for line in drawn.lines] == ["\N{BALLOT X} a 1.00"]
    assert [label for _, label in texts(drawn.pictures[0])[1]] == ["\N{BALLOT X} b 1.00"]


def test_an_arc_points_to_the_tail():
    words = [Word("Ada", 0, 1), Word("Byron", 1, 2)]
    left, right = (
        draw(words, [Arc(*words, "child", "plain", forward)], "x") for forward in (False, True)
    )

    def tip(svg):
        return int(re.search(r'displacy-arrowhead" d="M(\d+)', svg)[1])

    def middle(svg, word):
        return int(re.search(rf'x="(\d+)">{word}<', svg)[1])

    assert tip(left) == middle(left, "Ada") and tip(right) == middle(right, "Byron")


def test_text_from_right_to_left_is_drawn_so():
    words = [Word("Ada", 0, 1), Word("Byron", 1, 2)]
    svg = draw(words, [Arc(*words, "child", "plain", True)], "x", "rtl")
    byron, ada = (int(x) for x in re.findall(r'displacy-word"[^>]* x="(\d+)"', svg))
    assert byron < ada
    assert int(re.search(r'displacy-arrowhead" d="M(\d+)', svg)[1]) == byron
    assert 'side="left"' in svg


def test_words_and_ends_of_arcs_do_not_collide():
    words = [Word(text, i, i + 1) for i, text in enumerate(("Ada", "of", "Byron" * 6))]
    arcs = [Arc(words[0], words[2], f"label {i}" * 4, "plain", True) for i in range(3)]
    svg = draw(words, arcs, "x")
    ada, of, byron = (int(x) for x in re.findall(r'displacy-word"[^>]* x="(\d+)"', svg))
    assert of - ada > 14 * 3 * 0.5 and byron - of > 14 * 30 * 0.25
    curves = re.findall(r'd="M([\d.]+),\S+ C\S+ \S+ ([\d.]+),', svg)
    starts, ends = zip(*((float(a), float(b)) for a, b in curves))
    assert len({*starts, *ends}) == 6 and max(starts) < min(ends)
    # nested, not crossed
    assert sorted(starts) == [a for a, _ in sorted(zip(starts, ends), key=lambda x: -x[1])]


def test_relations_and_types_of_any_text_are_escaped():
    doc = related([("Ada", "Byron", '<em>"&')], types={"Ada": {"<u>": 1.0}})
    ents = list(doc.ents)
    ents[0].label_ = "<s>"
    doc.ents = ents
    html = render(page_of([(doc, related([]))]))
    assert not any(tag in html for tag in ("<em>", "<u>", "<s>"))
    text = read(html)
    assert '<em>"& 1.00' in text and "<u> 1.00" in text
    assert text.count("<s>") == 3  # in the table, behind the entity and below the word


def test_types_are_compared_where_they_are_annotated():
    predicted = related([], types={"Ada": {"a": 0.75, "b": 0.5}, "London": {"c": 1.0}})
    gold = related([], types={"Ada": {"a": 1.0, "d": 1.0}, "Byron": {"e": 1.0}})
    chips = type_chips(predicted, gold)
    ada, byron, london = sorted(chips)
    assert chips[ada] == [("agreed", "a", 0.75), ("spurious", "b", 0.5), ("missed", "d", None)]
    assert (chips[byron], chips[london]) == ([("missed", "e", None)], [("plain", "c", 1.0)])
    (piece,) = cut("Ada", [Entity(0, 3, "X")], [Entity(0, 3, "Y")], {(0, 3): chips[ada]})
    assert len(piece.tags) == 2 and piece.types == chips[ada]


class Annotate:
    """A component that writes what documents with the same words have."""

    def __init__(self, docs):
        self.docs = {doc.text: doc for doc in docs}

    def __call__(self, doc):
        done = self.docs[doc.text]
        doc.ents = [Span(doc, e.start, e.end, label=e.label_) for e in done.ents]
        doc.user_data.update(done.user_data)
        return doc


@spacy.Language.factory("test_entities", assigns=["doc.ents"], default_config={"docs": []})
def make_entities(nlp, name, docs):
    return Annotate([])


@spacy.Language.factory(
    "test_everything",
    assigns=["doc.ents", "doc._.relations", "span._.types"],
    default_config={"docs": []},
)
def make_everything(nlp, name, docs):
    return Annotate([])


@spacy.Language.factory("test_relations", assigns=["doc._.relations"], default_config={"docs": []})
def make_relations(nlp, name, docs):
    return lambda doc: doc


def page_of(pairs, factory="test_everything"):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory).docs.update({doc.text: doc for doc, _ in pairs})
    examples = [
        spacy.training.Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold)
        for _, gold in pairs
    ]
    return make_page(nlp, examples, limit=0, title="Test")


def test_the_page_shows_relations_and_types_below_and_behind_entities():
    relations = [("Ada", "Byron", "child", 0.75)]
    doc = related(relations, types={"Ada": {"poet": 0.5}})
    html = render(page_of([(doc, related(relations, types={"Ada": {"countess": 1.0}}))]))
    text = read(html)
    assert "child 0.75" in text and "poet 0.50" in text and "countess" in text
    assert html.count("<svg") == 1 and "Arcs point from the head" in text


def test_a_page_without_relations_or_types_does_not_speak_of_them():
    html = render(page_of([(related([]), related([]))]))
    assert "Arcs" not in html and 'class="relations"' not in html and 'class="type' not in html


def test_what_a_pipeline_does_not_write_is_not_missed():
    relations = [("Ada", "Byron", "child")]
    gold = related(relations, types={"Ada": {"countess": 1.0}})
    html = render(page_of([(related([]), gold)], "test_entities"))
    assert not any(x in html for x in ("countess", "Arcs", "<svg", 'class="type'))
    html = render(page_of([(related([]), gold)]))
    assert "countess" in html and "Arcs" in html


def test_gold_relations_anywhere_make_predictions_elsewhere_spurious():
    relations = [("Ada", "Byron", "child")]
    other = FAMILY.replace("wrote", "sang")
    page = page_of(
        [(related(relations), related([])), (related([], other), related(relations, other))]
    )
    kinds = [texts(shown.relations.pictures[0])[1][0][0] for shown in page.documents]
    assert kinds == ["spurious", "missed"]
    page = page_of([(related(relations), related([]))])
    assert texts(page.documents[0].relations.pictures[0])[1][0][0] == "plain"


def test_a_pipeline_that_takes_entities_is_given_those_of_the_annotation():
    nlp = spacy.blank("en")
    nlp.add_pipe("test_relations")
    nlp.vocab.strings.add("PER")
    nlp.vocab.strings.add("LOC")
    gold = related([("Ada", "Byron", "child")])
    example = spacy.training.Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold)
    page = make_page(nlp, [example], limit=0, title="Test")
    assert page.given and [ent.text for ent in example.predicted.ents] == [
        ent.text for ent in gold.ents
    ]
    text = read(render(page))
    assert "entities are given" in text and "spurious: only" in text and "precision" not in text
    with pytest.raises(ConfigError, match="writes Doc.ents"):
        make_page(spacy.blank("en"), [example], limit=0, title="Test")


@pytest.fixture
def run(nlp, tmp_path, monkeypatch):
    nlp.to_disk(tmp_path / "model")
    spacy.blank("en").to_disk(tmp_path / "blank")
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(tmp_path / "docs.spacy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*args):
        result = CliRunner().invoke(app, ["luke", "page", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return invoke


def test_the_page_is_written(run, tmp_path):
    code, output = run("model", "docs.spacy", "deep/out.html", "--limit", "3", "--title", "My page")
    assert code == 0 and "3 of 5 documents" in output
    text = read((tmp_path / "deep" / "out.html").read_text(encoding="utf8"))
    assert "My page" in text and "Document 3" in text and "Document 4" not in text


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["gone", "docs.spacy", "out.html"], "gone is not the directory of a trained pipeline"),
        (["model", "gone.spacy", "out.html"], "gone.spacy does not exist"),
        (["blank", "docs.spacy", "out.html"], "(empty) writes Doc.ents"),
        (["model", "docs.spacy", "out.html", "--limit", "-1"], "--limit is -1"),
    ],
)
def test_bad_input_is_one_error(run, tmp_path, args, fault):
    code, output = run(*args)
    assert code == 1 and fault in output
    assert not (tmp_path / "out.html").exists()
