"""Templates whose output is part of a sentence. All others are left out.

Tables by language: casefolded name of a template, with spaces -> rule for its arguments. Most wikis
share the names of one table; other names mean different things in different languages.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from .languages import words

# A rule maps the name and the arguments of a template (positional ones by number, from 1) to its
# output: a list of literal strings, and of names of arguments with the prefix ARGUMENT.
Shown = list[str]
Rule = Callable[[str, Mapping[str, str]], Shown]
ARGUMENT = "\x03"
_NUMBER = re.compile("[1-9][0-9]{0,5}")


def positional(given: Collection[str]) -> list[str]:
    """The names of positional arguments, in their order; ``02`` and other digits are names."""
    return sorted((key for key in given if _NUMBER.fullmatch(key)), key=int)


def argument(*names: int | str) -> Rule:
    """The first argument of these that is not empty."""

    def rule(name: str, given: Mapping[str, str]) -> Shown:
        for key in map(str, names):
            if given.get(key, "").strip():
                return [ARGUMENT + key]
        return []

    return rule


def last(name: str, given: Mapping[str, str]) -> Shown:
    """The last positional argument, as in ``{{transl|ar|ALA|Allāh}}``."""
    numbers = [key for key in positional(given) if given[key].strip()]
    return [ARGUMENT + numbers[-1]] if numbers else []


def literal(text: str) -> Rule:
    return lambda name, given: [text]


def around(before: str, key: int | str, after: str = "") -> Rule:
    """An argument between literals; nothing if the argument is empty."""

    def rule(name: str, given: Mapping[str, str]) -> Shown:
        return [before, ARGUMENT + str(key), after] if given.get(str(key), "").strip() else []

    return rule


def joined(separator: str, *keys: int | str) -> Rule:
    """The non-empty ones of these arguments, or of all positional ones, with a separator."""

    def rule(name: str, given: Mapping[str, str]) -> Shown:
        chosen = [str(key) for key in keys] or positional(given)
        shown: Shown = []
        for key in chosen:
            if given.get(key, "").strip():
                shown += [separator] if shown else []
                shown.append(ARGUMENT + key)
        return shown

    return rule


_RANGE_WORDS = {
    "to": " to ", "-": "–", "–": "–", "and": " and ", "or": " or ", "x": " × ", "by": " by ",
    "to about": " to about ", "+/-": " ± ", "±": " ± ", "/": "/",
}  # fmt: skip
_UNITS = {
    "sqmi": "square miles", "mi2": "square miles", "ft2": "square feet", "sqft": "square feet",
    "sqkm": "km2", "C": "°C", "F": "°F",
}  # fmt: skip


_SMALLER_UNITS = frozenset(("in", "ft", "yd", "oz", "lb"))
_AMOUNT = re.compile(r"[0-9][0-9./+⁄]*")


def convert(name: str, given: Mapping[str, str]) -> Shown:
    """``{{convert|5|to|7|mi|km}}`` becomes "5 to 7 mi", the original quantity, and
    ``{{convert|6|ft|2|in|cm}}`` "6 ft 2 in"."""
    if not given.get("1", "").strip():
        return []
    shown: Shown = [ARGUMENT + "1"]
    number = 2
    while given.get(str(number), "").strip() in _RANGE_WORDS and str(number + 1) in given:
        shown += [_RANGE_WORDS[given[str(number)].strip()], ARGUMENT + str(number + 1)]
        number += 2
    unit = given.get(str(number), "").strip()
    if unit:
        shown.append(" " + _UNITS.get(unit, unit))
    part, of_part = (given.get(str(number + i), "").strip() for i in (1, 2))
    if _AMOUNT.fullmatch(part) and of_part in _SMALLER_UNITS:
        shown += [" ", ARGUMENT + str(number + 1), " " + of_part]
    return shown


def _french_century(name: str, given: Mapping[str, str]) -> Shown:
    """``{{s|XX}}`` becomes "XXe siècle", ``{{s-|XX}}`` "XXe"."""
    if not given.get("1", "").strip():
        return []
    suffix = "er" if given["1"].strip() == "I" else "e"
    return [ARGUMENT + "1", suffix, "" if name.endswith("-") else " siècle"]


def _french_quantity(name: str, given: Mapping[str, str]) -> Shown:
    """``{{unité|643801|km|2}}`` becomes "643801 km2", as its superscript reads."""
    shown = joined(" ", 1, 2)(name, given)
    for unit, power in ((2, 3), (4, 5), (6, 7)):
        if unit > 2 and given.get(str(unit), "").strip():
            shown += [" ", ARGUMENT + str(unit)]
        if given.get(str(unit), "").strip() and given.get(str(power), "").strip():
            shown.append(ARGUMENT + str(power))
    return shown


def _circa(name: str, given: Mapping[str, str]) -> Shown:
    """``{{circa|1500|1510}}`` becomes "c. 1500 – c. 1510"."""
    years = [ARGUMENT + key for key in ("1", "2") if given.get(key, "").strip()]
    if not years:
        return []
    first, *second = years
    return ["c. ", first, *(x for year in second for x in (" – c. ", year))]


def _as_of(name: str, given: Mapping[str, str]) -> Shown:
    if "alt" in given:
        return [ARGUMENT + "alt"]
    word = "since" if given.get("since", "").strip() else "as of"
    lower = given.get("lc", "").strip() in ("y", "yes", "on", "1")
    date = joined(" ", 3, 2, 1)(name, given)
    return [word if lower else word.capitalize(), " ", *date] if date else []


def _value(name: str, given: Mapping[str, str]) -> Shown:
    """``{{val|1.5|0.2|e=5|u=m}}`` becomes "1.5±0.2×105 m", as its superscript reads."""
    shown = joined("±", 1, 2)(name, given)
    if shown and given.get("e", "").strip():
        shown += ["×10", ARGUMENT + "e"]
    for key in ("u", "ul", "up", "upl"):
        if shown and given.get(key, "").strip():
            return [*shown, "/" if key.startswith("up") else " ", ARGUMENT + key]
    return shown


def _fraction(name: str, given: Mapping[str, str]) -> Shown:
    """``{{frac|2}}``, ``{{frac|1|2}}`` and ``{{frac|3|1|2}}`` become "1/2", "1/2" and "3 1/2"."""
    numbers = joined("/", 1, 2, 3)(name, given)
    if len(numbers) == 1:
        return ["1/", *numbers]
    return [numbers[0], " ", *numbers[2:]] if len(numbers) == 5 else numbers


def _hour(name: str, given: Mapping[str, str]) -> Shown:
    """``{{heure|17|30}}`` becomes "17 h 30", ``{{heure|17}}`` "17 h"."""
    shown = joined(" h ", 1, 2)(name, given)
    return [*shown, " h"] if len(shown) == 1 else shown


def _ship(name: str, given: Mapping[str, str]) -> Shown:
    """``{{ship|HMS|Hood|51}}`` becomes "HMS Hood (51)"."""
    shown = joined(" ", 1, 2)(name, given)
    return [*shown, " (", ARGUMENT + "3", ")"] if given.get("3", "").strip() else shown


def _class(name: str, given: Mapping[str, str]) -> Shown:
    """``{{sclass|Ohio|submarine}}`` becomes "Ohio-class submarine"."""
    return [ARGUMENT + "1", "-class ", ARGUMENT + "2"] if "1" in given and "2" in given else []


def _verse(name: str, given: Mapping[str, str]) -> Shown:
    """``{{bibleverse|1|John|3:16|KJV}}`` becomes "1 John 3:16"."""
    number = given.get("1", "").strip()
    keys = (1, 2, 3) if not number or number.isdigit() else (1, 2)
    return joined(" ", *keys)(name, given)


COMMON = ""
TEMPLATES: dict[str, dict[str, Rule]] = {COMMON: {}}
"""Language -> name -> rule. The names of COMMON are valid in all languages."""


def _add(rule: Rule, names: str, languages: str = COMMON) -> None:
    """names: separated by white space; an underscore means a space."""
    for language in languages.split() or [COMMON]:
        TEMPLATES.setdefault(language, {}).update(dict.fromkeys(words(names), rule))


# A word in another language or script, after its code.
_add(argument(2, "text"), "lang lang-2 langx")
_add(argument(2), "langue en_langue", "fr")
_add(argument("3", "2"), "wikt-lang")
_add(argument("3", "2"), "m mention l", "en")
_add(
    argument(1),
    "latin grec grc_langue japonais arabe hébreu hebreu chinois russe",
    "fr",
)
_add(argument(1), "ألمانية إنجليزية فرنسية لاتينية إيطالية إسبانية روسية", "ar")
_add(argument(1), "politonico linglese lingfr", "it")
_add(argument(1), "polytonic grek hebrew aut")
_add(last, "transl transliteration translit xlit rtl-lang")
_add(argument(1, 2), "nihongo nihongo2 nihongo3 zh_name")
_add(argument("1", "hangul"), "korean")
_add(argument("c", "t", "s", "p", 1), "zh lang-zh")
# Typography.
_add(
    argument(1, "text"),
    "nowrap nobr nbr small smaller big larger sc smallcaps abbr tooltip vanchor visible_anchor "
    "anchor_text nobold noitalic em strong dfn angbr angle_bracket keypress key_press kbd code "
    "mono tt sub sup su u underline strikethrough allcaps nocaps capitalize lc uc ucfirst lcfirst "
    "formatnum num citation_needed_span cns fact_span nobreak mvar var math_inline bigmath "
    "script/hebrew script/arabic vr clarify_span sic_span unicode typeset hlist_item unstrip "
    "sortname_text color_text transclude in_title_case",
)
_add(argument(2, 1), "resize font script")
_add(argument(1, "text"), "abrév typo auteur petit pc texte tex_inline exp", "fr")
_add(argument(1, "text"), "maiuscoletto", "it")
_add(argument(1, "text"), "versal sperrschrift kursiv fett normalfont", "de")
_add(argument(1), "要出典範囲 by vari 読み仮名 読み仮名_ruby不使用 ruby ルビ", "ja")
_add(argument(1), "by vari")
_add(joined(" "), "gaps")
_add(argument(2), "color colour hover_title background_color")
_add(argument(3, 2), "font_color fontcolor")
_add(argument(2), "couleur", "fr")
_add(argument(2), "farbe", "de")
_add(argument(1), "chiarire citazione_necessaria cn_testo senza_fonte_testo", "it")
_add(argument(1), "cn")
_add(
    argument(1),
    "refnec référence_nécessaire référence_souhaitée passage_non_neutre demande_de_source page_h' "
    "incise tiret",
    "fr",
)
_add(argument(1), "cita_requerida añadir_referencias", "es")
_add(argument("texte", "fr", 1), "lien", "fr")
_add(argument("lt", "label", 1), "ill interlanguage_link illm ill2 red_link link-interwiki")
_add(argument("label", 1), "仮リンク", "ja")
_add(argument(3, 1), "le internal_link_helper/en internal_link_helper/de", "zh")
_add(argument(1), "link-en link-de link-fr link-ja", "zh")
_add(argument("4", "3", "2", "1"), "tsl", "zh")
_add(argument("label", 2, 1), "section_link_text jargon_term gli glossary_link gl")
# Quotations and lists.
_quotation = argument(
    1, "text", "quote", "texte", "testo", "texto", "content", "zitat", "cita", "citaat"
)
_add(
    _quotation,
    "quote quotation blockquote cquote bquote quote_box quote_frame quote_text "
    'centered_pull_quote quotebox poemquote verse_quote poem_quote " block_quote',
)
_add(argument("2", "text"), "rquote")
_add(
    _quotation,
    "citation_bloc début_citation début_de_citation citation_étrangère",
    "fr",
)
_add(_quotation, "citazione citazione_bloc", "it")
_add(_quotation, "cita citation", "es ca")
_add(_quotation, "citaat", "nl")
_add(_quotation, "zitat zitat-en zitat-la", "de")
_add(_quotation, "citat", "sv da")
_add(_quotation, "цитата", "ru uk bg")
_add(around("« ", 1, " »"), "citation «", "fr")
_add(around('"', 1, '"'), "q quotation_marks")
_add(argument(1, "content"), "plainlist flatlist div_col_content multicol")
_add(argument(2, 1, "content"), "columns-list column-list")
_add(joined("\x0b"), "unbulleted_list ubl ubli bulleted_list")
_add(joined(", "), "hlist enum")
# Numbers and dates.
_add(convert, "convert cvt conversion")
_add(_value, "val")
_quantity = joined(" ", 1, 2)
_add(_french_quantity, "unité nombre", "fr")
_add(_quantity, "unidad", "es")
_add(_quantity, "unidade", "pt")
_add(_quantity, "m unità", "it")
_add(_quantity, "eenheid", "nl")
_add(_quantity, "unit")
_add(around("", 1, " °C"), "tmp", "fr")
_add(around("", 1, " €"), "euro", "fr es it")
_add(around("€", 1), "euro", "en nl")
_add(_as_of, "as_of asof", "en")
_add(joined("–", 1, 2), "dash_year", "en")
_add(
    joined(" ", 1, 2, 3),
    "date date- date_de_naissance date_de_décès date_rép date_de_naissance-",
    "fr",
)
_add(argument(1), "date", "en")
_add(joined(" ", 1, 2, 3), "fecha", "es")
_add(joined(" ", 1, 2, 3), "data", "it")
_add(_hour, "heure", "fr")
_add(around("", 1, "e siècle"), "siècle", "fr")
_add(_french_century, "s s- -s sav", "fr")
_add(around("siglo ", 1), "siglo", "es")
_add(_fraction, "frac fraction sfrac")
_add(_circa, "circa")
_add(around("c. ", 1), "c. c", "en")
_add(around("fl. ", 1), "floruit fl.", "en")
_add(around("né ", 1), "né", "fr")
_add(around("née ", 1), "née nee")
_add(around("$", 1), "us$ usd")
_add(around("p. ", 1), "p. pp.", "fr")
_add(_ship, "ship")
_add(around("USS ", 1), "uss")
_add(around("HMS ", 1), "hms")
_add(_class, "sclass sclass2")
_add(_verse, "bibleverse bibleref")
_add(argument(1), "flag flagu flagcountry flag_country")
_add(around("×10", 1), "e", "en it es de")
_add(literal("Ier"), "ier", "fr")
_add(literal("Ire"), "ire", "fr")
_add(literal("e"), "e ème", "fr")
_add(literal("e"), "e", "nl")
_add(literal("m s.l.m."), "m_s.l.m.", "it")
_add(literal("TeX"), "tex")
_add(literal("LaTeX"), "latex")
_add(literal("AD"), "ad_text", "en")
# Single characters that have a special meaning in wikitext, or are hard to type.
_add(literal("–"), "ndash en_dash –")
_add(literal(" – "), "snd spnd spaced_ndash spaced_en_dash")
_add(literal("—"), "mdash em_dash —")
_add(literal(" — "), "spaced_mdash spaced_em_dash")
_add(literal(" "), "nbsp spaces space sp thinsp thin_space hair_space")
_add(literal("|"), "!")
_add(literal("="), "=")
_add(literal("'"), "' apostrophe")
_add(literal("'s"), "'s")
_add(literal(" · "), "· dot middot")
_add(literal(" • "), "bull bullet •")
_add(literal("×"), "times")
_add(literal("−"), "minus")
_add(literal("♯"), "music_sharp sharp")
_add(literal("♭"), "flat")
_add(literal("°"), "deg")

_FAMILIES = re.compile(r"lang-[a-z]|lang_[a-z]|لغة-|lang1")
_ORDINAL_CENTURY = re.compile(r"([ivxlc]+)(er|e) siècle( av. j.-c.)?")
_SEPARATOR = re.compile(r"[_\s]+")


class Rules:
    """The rules of a wiki.

    language: of the wiki; defaults to English. own: casefolded name of a template -> its argument
    that is text. prefixes: casefolded names of the namespace of templates.
    """

    def __init__(
        self,
        language: str = "",
        own: Mapping[str, str] | None = None,
        prefixes: Collection[str] = ("template",),
    ) -> None:
        self._own = own or {}
        self._prefixes = prefixes
        self._table = _table(language or "en")
        self._is_french = language.startswith("fr")

    def own_key(self, name: str) -> str | None:
        """The key of a template that the user has named."""
        key = template_key(name, self._prefixes)
        return key if key in self._own else None

    def rule_of(self, name: str) -> Rule | None:
        """The rule of a template; None for templates that are left out.

        name: the text between ``{{`` and the first ``|``, or its part before the colon of a parser
            function (``formatnum``).
        """
        key = template_key(name, self._prefixes)
        if key in self._own:
            return argument(self._own[key])
        rule = self._table.get(key)
        if rule is not None:
            return rule
        if _FAMILIES.match(key) is not None:
            return argument(1)
        century = _ORDINAL_CENTURY.fullmatch(key) if self._is_french else None
        if century is not None:
            return literal(f"{century[1].upper()}{century[2]} siècle{century[3] or ''}")
        return None


def template_key(name: str, prefixes: Collection[str] = ("template",)) -> str:
    """The casefolded name of a template, with spaces and without its namespace, of which these are
    the names."""
    key = _SEPARATOR.sub(" ", name).strip().casefold()
    prefix, colon, rest = key.partition(":")
    return rest.strip() if colon and prefix.strip() in prefixes else key


@lru_cache(maxsize=64)
def _table(language: str) -> dict[str, Rule]:
    base = language.partition("-")[0].replace("simple", "en")
    return {**TEMPLATES[COMMON], **TEMPLATES.get(base, {})}
