"""Every rule for a template has an example, as articles of its language use it."""

import pytest

from spacy_luke.pretraining.dump_settings import markup_settings
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.markup import parse
from spacy_luke.pretraining.wiki.sites import Site
from spacy_luke.pretraining.wiki.templates import COMMON, TEMPLATES, Rules, template_key

# Language, markup, text. "en" for the names that all languages share.
EXAMPLES = [
    ("en", "the {{lang|fr|Tour Eiffel}} in", "the Tour Eiffel in"),
    ("en", "{{langx|de|Straße}} means street", "Straße means street"),
    ("en", "{{lang-es|perro}} means dog", "perro means dog"),
    ("fr", "le {{langue|en|software}} libre", "le software libre"),
    ("en", "the word {{wikt-lang|la|canis}} is", "the word canis is"),
    ("en", "the word {{wikt-lang|la|canis|canem}} is", "the word canem is"),
    ("en", "from {{m|en|dog}} or {{m|en|dog|dogs}}", "from dog or dogs"),
    ("fr", "du {{latin|canis}} et", "du canis et"),
    ("ar", "{{إنجليزية|London}} مدينة", "London مدينة"),
    ("it", "{{linglese|London}} è", "London è"),
    ("en", "{{polytonic|λόγος}} is", "λόγος is"),
    ("en", "{{transl|ar|ALA|Allāh}} is", "Allāh is"),
    ("en", "{{nihongo|Tokyo Tower|東京タワー|Tōkyō tawā}} is", "Tokyo Tower is"),
    ("en", "{{korean|hangul=서울|rr=Seoul}} is", "서울 is"),
    ("en", "{{zh|t=臺北|s=台北}} is", "臺北 is"),
    ("en", "some {{nowrap|5 Mbit/s}} fast", "some 5 Mbit/s fast"),
    ("en", "{{resize|90%|fine print}} here", "fine print here"),
    ("en", "{{resize|fine print}} here", "fine print here"),
    ("en", "{{font|size=90%|text}} here", "text here"),
    ("en", "{{Script|Copt|Ⲁ ⲁ}} is", "Ⲁ ⲁ is"),
    ("fr", "au {{abrév|St|saint}} Jean", "au St Jean"),
    ("it", "{{maiuscoletto|Anno}} domini", "Anno domini"),
    ("de", "ein {{versal|Wort}} hier", "ein Wort hier"),
    ("ja", "{{要出典範囲|東京は首都|date=2020年}}である", "東京は首都である"),
    ("en", "{{by|1905}} the", "1905 the"),
    ("en", "about {{gaps|299|792|458}} metres", "about 299 792 458 metres"),
    ("en", "a {{color|red|danger}} sign", "a danger sign"),
    ("en", "a {{font color|white|red|danger}} sign", "a danger sign"),
    ("en", "a {{font color|red|danger}} sign", "a danger sign"),
    ("fr", "un {{couleur|red|danger}} là", "un danger là"),
    ("de", "ein {{Farbe|red|Signal}} da", "ein Signal da"),
    ("it", "è {{citazione necessaria|il primo}} qui", "è il primo qui"),
    ("en", "{{cn|It rains}} here", "It rains here"),
    ("fr", "il est {{référence nécessaire|le premier}} là", "il est le premier là"),
    ("es", "es {{cita requerida|el primero}} aquí", "es el primero aquí"),
    (
        "fr",
        "de {{lien|langue=en|trad=Dog show|fr=Exposition canine|texte=l'expo}} là",
        "de l'expo là",
    ),
    ("en", "by {{ill|Max Muster|de|Max Muster (Maler)|lt=Muster}} in", "by Muster in"),
    ("ja", "{{仮リンク|犬の展示|en|Dog show|label=展示}}は", "展示は"),
    ("zh", "在{{le|狗展|Dog show}}中", "在狗展中"),
    ("zh", "在{{le|狗展|Dog show|展覽}}中", "在展覽中"),
    ("zh", "在{{link-en|狗展|Dog show}}中", "在狗展中"),
    ("zh", "在{{tsl|en|Dog show|狗展}}中", "在狗展中"),
    ("en", "a {{gli|bitmap|bit map}} is", "a bit map is"),
    ("en", "{{quote|To be or not to be.|Hamlet}}", "To be or not to be."),
    ("en", "{{rquote|right|To be or not to be.|Hamlet}}", "To be or not to be."),
    ("fr", "{{citation bloc|Je pense.|Descartes}}", "Je pense."),
    ("it", "{{citazione|Nel mezzo del cammin|Dante}}", "Nel mezzo del cammin"),
    ("es", "{{cita|En un lugar de la Mancha|Cervantes}}", "En un lugar de la Mancha"),
    ("ca", "{{cita|A la riba del mar|Anònim}}", "A la riba del mar"),
    ("nl", "{{citaat|Ik denk|Descartes}}", "Ik denk"),
    ("de", "{{Zitat|Ich denke.|Descartes}}", "Ich denke."),
    ("sv", "{{citat|Jag tänker.|Descartes}}", "Jag tänker."),
    ("ru", "{{цитата|Я мыслю.|Декарт}}", "Я мыслю."),
    ("fr", "dit {{citation|oui}} alors", "dit « oui » alors"),
    ("en", "said {{q|yes}} then", 'said "yes" then'),
    ("en", "{{plainlist|\n* [[a]]\n* b\n}}", "a\nb"),
    ("en", "{{columns-list|colwidth=20em|\n* [[a]]\n* b\n}}", "a\nb"),
    ("ja", "{{columns-list|2|\n* [[a]]\n* b\n}}", "a\nb"),
    ("en", "{{ubl|a|b|c}}", "a\nb\nc"),
    ("en", "by {{hlist|Ada|Bob}}", "by Ada, Bob"),
    ("en", "about {{convert|5|to|7|mi|km}} on", "about 5 to 7 mi on"),
    ("en", "of {{val|1.5|0.2|e=5|u=m}} on", "of 1.5±0.2×105 m on"),
    ("en", "of {{val|80|up=km}} on", "of 80/km on"),
    ("fr", "de {{unité|5|km}} et {{nombre|200000|logements}} là", "de 5 km et 200000 logements là"),
    ("es", "de {{unidad|5|km}} de", "de 5 km de"),
    ("pt", "de {{unidade|5|km}} de", "de 5 km de"),
    ("it", "di {{M|5|km}} di", "di 5 km di"),
    ("nl", "van {{eenheid|5|km}} lang", "van 5 km lang"),
    ("en", "of {{unit|5|km}} on", "of 5 km on"),
    ("fr", "de {{tmp|20}} là", "de 20 °C là"),
    ("fr", "de {{euro|77.80}} là", "de 77.80 € là"),
    ("nl", "van {{euro|5}} per", "van €5 per"),
    ("en", "{{As of|2008|5}}, it", "As of 5 2008, it"),
    ("en", "in {{dash year|1914|1918}} it", "in 1914–1918 it"),
    ("fr", "le {{date|4|juillet|1776}} là", "le 4 juillet 1776 là"),
    ("en", "on {{date|2008-01-03}} it", "on 2008-01-03 it"),
    ("es", "el {{fecha|3|enero|2008}} fue", "el 3 enero 2008 fue"),
    ("it", "il {{data|3|gennaio|2008}} fu", "il 3 gennaio 2008 fu"),
    ("fr", "à {{heure|17|30}} et {{heure|8}} là", "à 17 h 30 et 8 h là"),
    ("fr", "au {{siècle|XX}} là", "au XXe siècle là"),
    ("fr", "au {{s|XX}}, du {{s-|I}} au", "au XXe siècle, du Ier au"),
    ("fr", "le {{XIXe siècle}} et", "le XIXe siècle et"),
    ("es", "el {{siglo|XX}} fue", "el siglo XX fue"),
    ("en", "{{frac|2}}, {{frac|1|3}} and {{frac|3|1|2}} miles", "1/2, 1/3 and 3 1/2 miles"),
    ("en", "built {{circa|1800}} by", "built c. 1800 by"),
    ("en", "built {{circa|1800|1810}} by", "built c. 1800 – c. 1810 by"),
    ("en", "height {{convert|6|ft|2|in|cm}} tall", "height 6 ft 2 in tall"),
    ("fr", "de {{unité|643801|km|2}} et {{unité|10|m||s|-1}} là", "de 643801 km2 et 10 m s-1 là"),
    ("en", "built {{c.|1800}} by", "built c. 1800 by"),
    ("en", "({{fl.|1800}})", "(fl. 1800)"),
    ("fr", "{{né|en 1800}} là", "né en 1800 là"),
    ("en", "Ada ({{née|Byron}}) was", "Ada (née Byron) was"),
    ("en", "for {{US$|5}} each", "for $5 each"),
    ("fr", "voir {{p.|12}} là", "voir p. 12 là"),
    ("en", "the {{ship|HMS|Hood|51}} sank", "the HMS Hood (51) sank"),
    ("en", "the {{USS|Enterprise|CVN-65}} is", "the USS Enterprise is"),
    ("en", "the {{HMS|Hood|51}} is", "the HMS Hood is"),
    ("en", "an {{sclass|Ohio|submarine}} is", "an Ohio-class submarine is"),
    ("en", "in {{bibleverse|1|John|3:16|KJV}} and", "in 1 John 3:16 and"),
    ("en", "in {{bibleverse||Mark|3:25|KJV}} and", "in Mark 3:25 and"),
    ("en", "in {{flag|France}} and", "in France and"),
    ("en", "some 5{{e|6}} years", "some 5×106 years"),
    ("fr", "Napoléon {{Ier}} fut", "Napoléon Ier fut"),
    ("fr", "Élisabeth {{Ire}} fut", "Élisabeth Ire fut"),
    ("fr", "le 20{{e}} étage", "le 20e étage"),
    ("nl", "de 20{{e}} eeuw", "de 20e eeuw"),
    ("it", "a 300 {{m s.l.m.}} di", "a 300 m s.l.m. di"),
    ("en", "{{TeX}} and {{LaTeX}} are", "TeX and LaTeX are"),
    ("en", "in {{AD text}} 5", "in AD 5"),
    ("en", "1914{{ndash}}1918 and{{snd}}a", "1914–1918 and – a"),
    ("en", "a{{mdash}}b{{spaced mdash}}c", "a—b — c"),
    ("en", "5{{nbsp}}km", "5 km"),
    ("en", "a{{!}}b{{=}}c", "a|b=c"),
    ("en", "Use {{nowrap|a {{!}} b}} now", "Use a | b now"),
    ("en", "a [[Foo{{!}}b]] {{nowrap|[[Foo{{!}}c]] d}} e", "a b c d e"),
    ("en", "''Ada''{{'}} and ''Bob''{{'s}} cat", "Ada' and Bob's cat"),
    ("en", "a{{·}}b{{•}}c", "a · b • c"),
    ("en", "2{{times}}3, {{minus}}5", "2×3, −5"),
    ("en", "F{{sharp}}, B{{music flat}}, B{{flat}}, 5{{deg}}", "F♯, B, B♭, 5°"),
]


@pytest.mark.parametrize("language,markup,text", EXAMPLES)
def test_the_text_of_a_template(language: str, markup: str, text: str) -> None:
    assert parse(markup, Site(language=language)).text == text


def test_every_rule_has_an_example() -> None:
    used: set[int] = set()
    for language, markup, _ in EXAMPLES:
        rules = Rules(language)
        for call in markup.split("{{")[1:]:
            used.add(id(rules.rule_of(call.partition("}}")[0].partition("|")[0])))
    without = [
        (language, name)
        for language, table in TEMPLATES.items()
        for name, rule in table.items()
        if id(rule) not in used
    ]
    assert without == []


@pytest.mark.parametrize(
    "language,markup",
    [
        ("it", "{{s|politica}} x"),  # a stub in Italian, a century in French
        ("it", "{{Cita|Rossi2005|p. 5}} x"),  # a citation in Italian, a quotation in Spanish
        ("de", "{{date|2008-01-03}} x"),
        ("en", "{{unité|5|km}} x"),
    ],
)
def test_names_of_another_language_are_left_out(language: str, markup: str) -> None:
    assert parse(markup, Site(language=language)).text == "x"


@pytest.mark.parametrize("name", ["٣", "02", "²", "1000000"])
def test_arguments_named_by_other_digits_are_not_positional(name: str) -> None:
    for template in ("transl|ar", "hlist|ar", "gaps|ar"):
        assert parse(f"{{{{{template}|{name}=x}}}} y", Site(language="en")).text == "ar y"


def test_a_dialect_has_the_rules_of_its_language_and_simple_english_those_of_english() -> None:
    assert parse("{{As of|2008}} x", Site(language="simple")).text == "As of 2008 x"
    assert parse("在{{tsl|en|Dog|狗}}中", Site(language="zh-yue")).text == "在狗中"


def test_own_templates_come_first() -> None:
    rules = Rules("en", {"note": "1", "lang": "text"})
    rule = rules.rule_of("Template:Lang")
    assert rule is not None and rule("lang", {"1": "a", "text": "b"}) == ["\x03text"]
    site = Site(namespaces={10: "Vorlage"})
    for name in ("Vorlage:Note", "template:note", "Note"):
        given = DumpSettings(templates=(f"{name}=2",))
        assert markup_settings(given, [Site(), site]).templates == {"note": "2"}
    local = Rules("de", {"note": "1"}, prefixes=site.template_prefixes)
    for name in ("Vorlage:Note", "template: note", "Note"):
        assert local.rule_of(name) is not None
    assert local.rule_of("Benutzer:Note") is None
    assert rules.rule_of("note") is not None and rules.rule_of("other") is None
    assert template_key(" template:My_Note ") == "my note" and COMMON in TEMPLATES
