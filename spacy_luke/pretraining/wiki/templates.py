"""Templates whose output is part of a sentence. All others are left out.

One table for all languages: casefolded name of a template, with spaces -> rule for its arguments.
Most wikis share the names of these templates.
"""

import re
from collections.abc import Callable, Mapping

from .languages import words

# A rule maps the name and the arguments of a template (positional ones by number, from 1) to its
# output: a list of literal strings, and of names of arguments with the prefix ARGUMENT.
Shown = list[str]
Rule = Callable[[str, Mapping[str, str]], Shown]
ARGUMENT = "\x03"


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
    numbers = [int(key) for key in given if key.isdigit() and given[key].strip()]
    return [ARGUMENT + str(max(numbers))] if numbers else []


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
        chosen = [str(key) for key in keys] or sorted(filter(str.isdigit, given), key=int)
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


def convert(name: str, given: Mapping[str, str]) -> Shown:
    """``{{convert|5|to|7|mi|km}}`` becomes "5 to 7 mi", the original quantity."""
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
    return shown


def _french_century(name: str, given: Mapping[str, str]) -> Shown:
    """``{{s|XX}}`` becomes "XXe siècle", ``{{s-|XX}}`` "XXe"."""
    if not given.get("1", "").strip():
        return []
    suffix = "er" if given["1"].strip() == "I" else "e"
    return [ARGUMENT + "1", suffix, "" if name.endswith("-") else " siècle"]


def _as_of(name: str, given: Mapping[str, str]) -> Shown:
    if "alt" in given:
        return [ARGUMENT + "alt"]
    word = "since" if given.get("since", "").strip() else "as of"
    lower = given.get("lc", "").strip() in ("y", "yes", "on", "1")
    date = joined(" ", 3, 2, 1)(name, given)
    return [word if lower else word.capitalize(), " ", *date] if date else []


def _quantity(name: str, given: Mapping[str, str]) -> Shown:
    """``{{unité|5|km}}`` becomes "5 km"."""
    return joined(" ", 1, 2)(name, given)


TEMPLATES: dict[str, Rule] = {}


def _add(rule: Rule, names: str) -> None:
    """names: separated by white space; an underscore means a space."""
    TEMPLATES.update(dict.fromkeys(words(names), rule))


# A word in another language or script, after its code.
_add(argument(2, "text"), "lang langue lang-2 en_langue langx tls")
_add(
    argument(1),
    "latin grec grc_langue ألمانية إنجليزية فرنسية لاتينية إيطالية إسبانية روسية polytonic grek "
    "ens japonais arabe hébreu hebreu chinois russe politonico linglese lingfr",
)
_add(last, "transl transliteration translit xlit rtl-lang")
_add(argument(1, 2), "nihongo nihongo2 nihongo3 zh_name")
_add(argument("1"), "korean")
_add(argument("c", "t", "s", "p", 1), "zh lang-zh")
# Typography.
_add(
    argument(1, "text"),
    "nowrap nobr nbr small smaller big larger sc smallcaps maiuscoletto abbr abrév tooltip "
    "vanchor visible_anchor anchor_text nobold noitalic em strong dfn angbr angle_bracket "
    "vr keypress key_press kbd code mono tt typo sub sup su u underline strikethrough allcaps "
    "nocaps capitalize lc uc ucfirst lcfirst formatnum num nombre val gaps citation_needed_span "
    "cns fact_span nobreak mvar var math_inline bigmath script script/hebrew script/arabic "
    "hebrew aut auteur petit pc clarify_span texte tex_inline sic_span "
    "unicode versal sperrschrift kursiv fett normalfont 要出典範囲 by vari typeset hlist_item "
    "unstrip sortname_text color_text resize font transclude bibleverse bibleref in_title_case",
)
_add(argument(2), "color colour font_color fontcolor couleur farbe hover_title background_color")
_add(
    argument(1),
    "chiarire citazione_necessaria cn_testo senza_fonte_testo cn refnec référence_nécessaire "
    "référence_souhaitée passage_non_neutre cita_requerida añadir_referencias demande_de_source "
    "page_h' incise tiret",
)
_add(argument("texte", "fr", 1), "lien")
_add(
    argument("lt", "label", 1), "ill interlanguage_link illm ill2 red_link 仮リンク link-interwiki"
)
_add(
    argument(1),
    "le link-en link-de link-fr link-ja internal_link_helper/en internal_link_helper/de",
)
_add(argument("3", "2", "1"), "tsl")
_add(argument("label", 2, 1), "section_link_text jargon_term gli glossary_link gl")
# Quotations and lists.
_add(
    argument(1, "text", "quote", "texte", "testo", "texto", "content", "zitat", "cita", "citaat"),
    "quote quotation blockquote cquote bquote rquote quote_box citation_bloc début_citation "
    "citazione cita citazione_bloc citaat quote_frame quote_text centered_pull_quote quotebox "
    'poemquote verse_quote poem_quote zitat zitat-en zitat-la " zitation citat цитата '
    "block_quote début_de_citation citation_étrangère",
)
_add(around("« ", 1, " »"), "citation «")
_add(around('"', 1, '"'), "q quotation_marks")
_add(argument(1, "content"), "plainlist flatlist columns-list column-list div_col_content multicol")
_add(joined("\x0b"), "unbulleted_list ubl ubli bulleted_list")
_add(joined(", "), "hlist enum")
# Numbers and dates.
_add(convert, "convert cvt conversion")
_add(_quantity, "unité unidad unidade m unità unit tmp eenheid euro exp")
_add(_as_of, "as_of asof")
_add(joined("–", 1, 2), "dash_year")
_add(joined(" ", 1, 2, 3), "date date- date_de_naissance date_de_décès date_rép date_de_naissance-")
_add(joined(" ", 1, 2, 3), "fecha data")
_add(joined(" h ", 1, 2), "heure")
_add(around("", 1, "e siècle"), "siècle")
_add(_french_century, "s s- -s sav")
_add(around("siglo ", 1), "siglo")
_add(joined("/", 1, 2, 3), "frac fraction sfrac")
_add(around("c. ", 1), "circa c. c")
_add(around("fl. ", 1), "floruit fl.")
_add(around("né ", 1), "né")
_add(around("née ", 1), "née nee")
_add(around("$", 1), "us$ usd")
_add(around("p. ", 1), "p. pp.")
_add(around("USS ", 1), "uss")
_add(around("HMS ", 1), "hms")
_add(argument(1), "flag flagu flagcountry flag_country ship sclass")
_add(literal("Ier"), "ier")
_add(literal("Ire"), "ire")
_add(literal("e"), "e ème")
_add(literal("m s.l.m."), "m_s.l.m.")
_add(literal("TeX"), "tex")
_add(literal("LaTeX"), "latex")
_add(literal("AD"), "ad_text")
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

_FAMILIES = re.compile(r"lang-[a-z]|lang_[a-z]|لغة-|lang1|wikt-lang")
_ORDINAL_CENTURY = re.compile(r"([ivxlc]+)(er|e) siècle( av. j.-c.)?")
_SEPARATOR = re.compile(r"[_\s]+")


def rule_of(name: str) -> Rule | None:
    """The rule of a template; None for templates that are left out.

    name: the text between ``{{`` and the first ``|``, or its part before the colon of a parser
        function (``formatnum``).
    """
    key = _SEPARATOR.sub(" ", name).strip().casefold().removeprefix("template:")
    rule = TEMPLATES.get(key)
    if rule is not None:
        return rule
    if _FAMILIES.match(key) is not None:
        return argument(1)
    century = _ORDINAL_CENTURY.fullmatch(key)
    if century is not None:
        return literal(f"{century[1].upper()}{century[2]} siècle{century[3] or ''}")
    return None
