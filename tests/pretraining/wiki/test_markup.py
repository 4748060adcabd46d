"""Wikitext to text and links: what a reader sees, at the offsets where it is seen."""

import pytest

from spacy_luke.pretraining.wiki.markup import MarkupSettings, parse
from spacy_luke.pretraining.wiki.sites import Site

BASE = "https://de.wikipedia.org/wiki/A"
GERMAN = Site(
    base=BASE, language="de", namespaces={0: "", 6: "Datei", 14: "Kategorie", 100: "Portal"}
)


def seen(markup: str, site: Site = GERMAN) -> str:
    return parse(markup, site).text


def links(markup: str, site: Site = GERMAN) -> list[tuple[str, str]]:
    parsed = parse(markup, site)
    return [(parsed.text[start:end], target) for start, end, target in parsed.links]


@pytest.mark.parametrize(
    "markup,anchor,target",
    [
        ("[[dog]]", "dog", "Dog"),
        ("[[dog]]s bark", "dogs", "Dog"),
        ("[[Hund]]e bellen", "Hunde", "Hund"),
        ("[[Straße]]nähe", "Straßenähe", "Straße"),
        ("[[dog|Dogs]]", "Dogs", "Dog"),
        ("[[dog|Dog]]s", "Dogs", "Dog"),
        ("[[dog]]'s", "dog", "Dog"),
        ("[[dog]]<nowiki/>s", "dog", "Dog"),
        ("[[dog]]9", "dog", "Dog"),
        ("[[собака]]ми", "собаками", "Собака"),
        ("[[犬]]が", "犬", "犬"),
        ("[[Boston (band)|]]", "Boston", "Boston (band)"),
        ("[[Dog#Breeds|breeds]]", "breeds", "Dog"),
        ("[[:Dog]]", "Dog", "Dog"),
        ("''[[Le Monde]]''", "Le Monde", "Le Monde"),
        ("[[Le Monde|''Le'' '''Monde''']]", "Le Monde", "Le Monde"),
        ("[[ dog | the dog ]]", "the dog", "Dog"),
        ("[[dog|a\ndog]]", "a dog", "Dog"),
        ("[[dog_house]]", "dog house", "Dog house"),
        ("[[AT&amp;T]]", "AT&T", "AT&T"),
        ("[[Caf%C3%A9|coffee]]", "coffee", "Café"),
        ("[[Caf%C3%A9]]s", "Cafés", "Café"),
        ("[[dog|a <span style='x'>big</span> dog]]", "a big dog", "Dog"),
        ("[[dog|dog<ref>Yes.</ref>]]", "dog", "Dog"),
        ("[[dog|{{nowrap|big dog}}]]", "big dog", "Dog"),
        ("{{lang|en|[[dog]]s}}", "dogs", "Dog"),
        ("{{nowrap|[[dog| a dog]]}} barks", "a dog", "Dog"),
        ("{{nowrap| [[dog|a dog ]] }} barks", "a dog", "Dog"),
        ("{{q|[[dog| a dog]]}}", "a dog", "Dog"),
        ("[[[dog]]]", "dog", "Dog"),
        ("[[[[dog]]]]", "dog", "Dog"),
        ("[[dog|[1]]] barks", "[1]", "Dog"),
        ("[[dog|a [big]]]", "a [big]", "Dog"),
        ("[[dog|[1] [2]]]", "[1] [2]", "Dog"),
        ("[[dog|[mailto:a@b.example c]]]", "c", "Dog"),
        ("[[dog|[http://x.example c]]]", "c", "Dog"),
        ("[http://x.example about [[dog]]s]", "dogs", "Dog"),
    ],
)
def test_the_anchor_of_a_link(markup: str, anchor: str, target: str) -> None:
    assert links(markup) == [(anchor, target)]


@pytest.mark.parametrize(
    "markup,text,reason",
    [
        ("A [[Datei:X.jpg|mini|the [[dog]] [[File:y.png|20px]]]] B", "A B", "link to file"),
        ("A [[Kategorie:Dogs]]", "A", "link to category"),
        ("A [[Kategorie%3ADogs]]", "A", "link to category"),
        ("A [[Datei%3AX.jpg|mini|the [[dog]]]] B", "A B", "link to file"),
        ("A [[:Kategorie:Dogs|dogs]]", "A dogs", "link to namespace"),
        ("A [[Portal:Dogs]]", "A Portal:Dogs", "link to namespace"),
        ("A [[fr:Chien]]", "A", "link to language"),
        ("A [[:fr:Chien|chien]]", "A chien", "link to interwiki"),
        ("A [[wikt:dog|dog]]s", "A dogs", "link to interwiki"),
        ("A [[#History]]", "A History", "link to section"),
        ("A [[#History|below]]", "A below", "link to section"),
        ("A [[http://x.example text]]", "A text", "link to url"),
        ("A <ref>[[dog]]</ref>", "A", "link in reference"),
        ("A {{Infobox|x=[[dog]]}}", "A", "link in template"),
        ("A <!-- [[dog]] -->", "A", "link in comment"),
        ("== The [[dog]] ==\nA", "A", "link in heading"),
        ("A\n{|\n| [[dog]]\n|}", "A", "link in table"),
        ("A <gallery>\nX.jpg|[[dog]]\n</gallery>", "A", "link in gallery"),
        ("A [[dog|<ref>x</ref>]]", "A dog", None),
    ],
)
def test_links_that_are_no_entities_are_counted(markup: str, text: str, reason: str | None) -> None:
    parsed = parse(markup, GERMAN)
    assert parsed.text == text
    if reason is not None:
        assert parsed.links == []
        assert parsed.dropped[reason] >= 1


@pytest.mark.parametrize(
    "item,text",
    [
        ("* #1 [[Billboard Hot 100]] in 1990", "#1 Billboard Hot 100 in 1990"),
        ("* : [[x]] foo", ": x foo"),
        ("* ; term [[x]] : foo", "; term x : foo"),
        ("* ---- [[x]] foo", "---- x foo"),
        ("* == x == [[y]]", "== x == y"),
        ("* a <section begin=x/>b [[c]]", "a b c"),
    ],
)
def test_what_is_left_of_an_item_is_text(item: str, text: str) -> None:
    assert seen(item) == text


def test_a_number_that_is_no_character_is_text() -> None:
    long = f"&#{'1' * 5000};"
    assert seen(f"x {long} [[a]]") == f"x {long} a"
    assert parse(f"[[b{long}|c]] d").text.endswith("d")


@pytest.mark.parametrize("name", ["Billede", "Imaxe", "Картинка"])
def test_files_have_names_that_an_export_does_not_say(name: str) -> None:
    parsed = parse(f"[[{name}:Foo.jpg|thumb|En tekst om [[Odense]]]] Hej [[By]].")
    assert parsed.text == "Hej By."


def test_of_links_in_links_the_inner_one_counts() -> None:
    assert links("[[animal|an [[dog]] here]]") == [("dog", "Dog")]
    assert seen("[[animal|an [[dog]] here]]") == "an dog here"


@pytest.mark.parametrize(
    "markup,text",
    [
        ("{{lang|fr|Le Monde}} x", "Le Monde x"),
        ("{{lang-fr|Le Monde}} x", "Le Monde x"),
        ("{{transl|ar|ALA|Allāh}} x", "Allāh x"),
        ("{{nowrap|a b}}", "a b"),
        ("{{Nowrap|1=a b}}", "a b"),
        ("about {{convert|5|km}}", "about 5 km"),
        ("about {{convert|5|to|7|sqmi|km2|abbr=on}}", "about 5 to 7 square miles"),
        ("{{formatnum:1234}} people", "1234 people"),
        ("1939{{ndash}}1945", "1939–1945"),
        ("{{quote|text=It is so.|sign=[[Ada]]}}", "It is so."),
        ("{{plainlist|\n* [[a]]\n* b\n}}", "a\nb"),
        ("{{template:lang|fr|{{nowrap|a {{lang|de|b}}}}}}", "a b"),
        ("{{lang|fr}} x", "x"),
        ("{{unknown|text}} x", "x"),
    ],
)
def test_templates_that_carry_text(markup: str, text: str) -> None:
    assert seen(markup) == text


@pytest.mark.parametrize(
    "markup,text",
    [
        ("Ada ({{IPA|x}}) was", "Ada was"),
        ("Ada ({{IPA|x}}; born 1815) was", "Ada (born 1815) was"),
        ("Ada (born 1815, {{age|x}}) was", "Ada (born 1815) was"),
        ("Ada (born {{age|x}}, 1815) was", "Ada (born, 1815) was"),
        ("Ada <ref>x</ref>, who", "Ada, who"),
        ("Ada{{efn|x}} <ref name=y/> was.<ref>z</ref>", "Ada was."),
        ("Ada, {{x}}, was", "Ada, was"),
        ("Ada {{x}} was", "Ada was"),
        ("Ada （{{x}}）は", "Adaは"),
        ("f() and ( x ) stay", "f() and ( x ) stay"),
        ("in 1815  in", "in 1815 in"),
        ("Town, 2014, {{ISBN|1}}.", "Town, 2014."),
        ("* Town, 2014, {{ISBN|1}}", "Town, 2014"),
        ("* {{flag|}}: [[Rome]]", "Rome"),
        ("{{cite}}, Rome, 1999", "Rome, 1999"),
        ("mot<ref>x</ref> : suite", "mot : suite"),
    ],
)
def test_what_a_hole_leaves_behind_is_mended(markup: str, text: str) -> None:
    assert seen(markup) == text


@pytest.mark.parametrize(
    "markup,text",
    [
        ("''a'' '''b''' '''''c'''''", "a b c"),
        ("l'''Iliade''", "l'Iliade"),
        ("dell'''Odissea'' '''x'''", "dell'''Odissea'' '''x'''".replace("''", "")),
        ("rock 'n' roll", "rock 'n' roll"),
        ("the dogs' ''x''", "the dogs' x"),
        ("''unclosed", "unclosed"),
        ("''''a''''", "'a'"),
    ],
)
def test_apostrophes(markup: str, text: str) -> None:
    assert "''" not in seen(markup)
    assert seen(markup).replace("'", "") == text.replace("'", "")


def test_an_apostrophe_before_italics_stays() -> None:
    assert seen("nell'''Iliade'' si") == "nell'Iliade si"
    assert seen("l'''Iliade'' et l'''Odyssée''") == "lIliade et lOdyssée"  # both pair as bold


@pytest.mark.parametrize(
    "markup,text",
    [
        ("a &amp; b &lt;c&gt; &#39;d&#x27; e&nbsp;f &mdash;g", "a & b <c> 'd' e f —g"),
        ("&amp;lt;", "&lt;"),
        ("&unknown; &", "&unknown; &"),
        ("<nowiki>[[a]] ''b'' {{c}}</nowiki>", "[[a]] ''b'' {{c}}"),
        ("H<sub>2</sub>O is <b>wet</b>", "H2O is wet"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a < b and <unknown> c", "a < b and <unknown> c"),
        ("E <math>mc^2</math> x", "E x"),
        ("a <ref name=x /> b </ref> c", "a b c"),
        ("a <ref>x b\n\nc", "a x b\n\nc"),
        ("a <ref name=x>b <ref>c</ref> d", "a b d"),
        ("a <ref name='x' b", "a"),
        ("a <!-- b", "a b"),
        ("a\n<!-- b -->\nc", "a c"),
        ("a <REF>x</Ref> b", "a b"),
        ("__TOC__\na __KEIN_INHALTSVERZEICHNIS__ __init__", "a __init__"),
        ("<poem>\na\nb\n</poem>", "a\nb"),
        ("a http://x.example/y b", "a b"),
        ("a [http://x.example] b [http://x.example c d]", "a b c d"),
        ("a <includeonly>b</includeonly><noinclude>c</noinclude>", "a c"),
        ("<blockquote>a</blockquote>b", "a b"),
        ("a {{{1|b}}} c", "a c"),
        ("-{zh-hans:计算机; zh-hant:電腦}-和-{A|zh-cn:软件; zh-tw:軟體}-", "计算机和软件"),
        ("-{狗}-是", "狗是"),
        ("-{zh-hans:AT&amp;T公司;zh-hant:乙}-是", "AT&T公司是"),
        ("-{zh-hans:{{lang|en|x}}甲;zh-hant:乙}-是", "x甲是"),
        ("-{zh-hans:查理·布朗&middot;A;zh-hant:乙;}-", "查理·布朗·A"),
        ("-{甲=>zh-hans:乙}-", "乙"),
        ("-{zh-Hans:计算机; zh-Hant:電腦}-和-{zh-cn:软件; zh-TW:軟體}-", "计算机和软件"),
        ("-{zh-hans:A => B;zh-hant:C}-", "A => B"),
        ("<ruby>東<rt><span>とう</span></rt><rb>京<rt>きょう</ruby>都", "東京都"),
        ("-{sr-ec:рачунар; sr-el:računar}- је", "рачунар је"),
        ("-{kk-cyrl:ә; kk-latn:ä}-", "ә"),
        ("<ruby>東京<rp>（</rp><rt>とうきょう</rt><rp>）</rp></ruby>都", "東京都"),
        ("a\u200e\u00adb\ufeff", "ab"),
    ],
)
def test_tags_entities_and_switches(markup: str, text: str) -> None:
    assert seen(markup) == text


def test_paragraphs_lists_and_headings() -> None:
    markup = """{{Infobox
| a = b
}}
First line
goes on.

== Heading ==
Second.
* [[one]]
** two
# {{x}}
: three
----
; Term : meaning
<references />
"""
    assert seen(markup) == "First line goes on.\n\nSecond.\n\none\ntwo\nthree\n\nTerm : meaning"


def test_the_rest_of_a_page_survives_what_is_never_closed() -> None:
    for opening in (
        "{{Infobox\n| a = [[b]]",
        "{|\n| a\n! b",
        "[[File:a.jpg|thumb|b",
        "<ref>b",
        "{{",
    ):
        markup = f"First [[one]].\n{opening}\n\nSecond [[two]].\n\n== Heading ==\nThird [[three]]."
        text = seen(markup)
        assert text.startswith("First one.") and text.endswith("Second two.\n\nThird three.")
        assert [target for _, target in links(markup)] == ["One", "Two", "Three"]


def test_a_heading_ends_what_is_open() -> None:
    markup = "{{a|\nlost\n== Heading ==\nfound {{b}} [[dog]] }} there"
    assert seen(markup) == "lost\n\nfound dog there"


@pytest.mark.parametrize(
    "piece",
    [
        "{{a ", "{{a|b=", "{{lang|fr|", "{|\n| a\n", "[[a ", "[[a|", "[[File:a|b ", "<ref>a ",
        "<b>a ", "<!-- a ", "''a ", "'''''a\n", "[http://x a ", "http://x ", "{{{a|", "[[a]] ",
        "{{x}} , ", "(", "}}", "]]", "|}\n", "== a\n", "* a\n", "&", "<", "[[[", "-{a",
        "{{lang|fr|[[a|b]]}} ", "{{quote|\na}}\n",
    ],
)  # fmt: skip
def test_time_grows_with_the_length_only(piece: str) -> None:
    """Of many of these, 30,000 characters take a parser that tries again minutes."""
    parse(piece * (30_000 // len(piece)))


def test_deep_nesting_needs_no_stack() -> None:
    n = 10_000
    assert seen("{{a|" * n + "x" + "}}" * n + "y") == "y"
    assert seen("[[a|" * n + "x" + "]]" * n) == "x"
    parsed = parse("y {{nowrap|" + "{{nowrap|" * n + "x" + "}}" * n + "}} z")
    assert (parsed.text, parsed.dropped) == ("y z", {"deep template": 1})
    assert seen("{{nowrap|" * 18 + "x" + "}}" * 18) == "x"


@pytest.mark.slow
def test_a_page_of_ten_megabytes() -> None:
    markup = (
        "A ''page'' with a [[link|of links]], {{lang|fr|mots}} and <ref>notes</ref>.\n\n" * 125_000
    )
    parsed = parse(markup)
    assert len(parsed.links) == 125_000
    assert parsed.text.startswith("A page with a of links, mots and.\n\n")


def test_spaces_before_brackets_that_become_empty_go_with_them() -> None:
    parsed = parse("b  ({{x}}) [[a|c]] d {{x}} ({{x}}) [[e]]")
    assert parsed.text == "b c d e"
    assert [parsed.text[start:end] for start, end, _ in parsed.links] == ["c", "e"]


@pytest.mark.parametrize(
    "markup,text",
    [
        ("<translate>\n<!--T:1-->\nA [[dog]].</translate>\n<languages/>", "A dog."),
        ("A <tvar|name>[[dog]]</>.", "A dog."),
        ('A <tvar name="x">[[dog]]</tvar>.', "A dog."),
        ("<tabber>\nOne=\nA [[dog]].\n|-|\nTwo=A cat = x.\n</tabber>", "A dog.\n\nA cat = x."),
        ("<tabber>One=a<ref>x</ref>|-|b</tabber>", "a\n\nb"),
        ('<tabs><tab name="One">a</tab><tab name="Two">b</tab></tabs>', "a\n\nb"),
        ("use <command name> here", "use <command name> here"),
    ],
)
def test_tags_of_other_wikis(markup: str, text: str) -> None:
    assert seen(markup, Site(language="en")) == text


@pytest.mark.parametrize(
    "markup,text",
    [
        ("{|\n! a !! b\n|-\n| 1 || [[dog|Dog]]\n|}", "a | b\n1 | Dog"),
        ('{| class="x"\n|+ style=x | Dogs\n|-\n| style="a" | 1\n| 2\n|}', "Dogs\n1 | 2"),
        ("{|\n|\n* a\n* b\n| c\n|}", "a b | c"),
        ("{|\n| a\n{|\n| b\n|}\n| c\n|}", "a\n\nb\n\nc"),
        ("x\n{|\n| a\n|} y", "x\n\na\n\ny"),
        ("{|\n| a {{lang|fr|b|c}} || {{yes}}\n| colspan=2 {{yes}}\n|}", "a b"),
        ("{|\n|-\n|}\nx", "x"),
        ("{|\n| [[dog|a]] | [[cat]]\n|-\n! [[b]] | x !! y\n|}", "a | cat\nb | x | y"),
        ("{|\n| a\n== b ==\nc", "c"),
        ("<table><tr><td>a</td><td>[[dog]]</td></tr></table>", "a\n\ndog"),
    ],
)
def test_tables_are_kept_as_lines_if_wanted(markup: str, text: str) -> None:
    kept = MarkupSettings(tables=True)
    assert parse(markup, Site(language="en"), settings=kept).text == text
    assert "a" not in parse(markup, Site(language="en")).text
