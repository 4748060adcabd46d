"""Redirects and lists of meanings are told from articles."""

import pytest

from spacy_luke.pretraining.wiki.export import Page
from spacy_luke.pretraining.wiki.languages import DISAMBIGUATION_TEMPLATES
from spacy_luke.pretraining.wiki.pages import (
    disambiguation_templates,
    is_disambiguation,
    redirect_target,
)
from spacy_luke.pretraining.wiki.sites import Site


@pytest.mark.parametrize(
    "text,target",
    [
        ("#REDIRECT [[Dog]]", "Dog"),
        ("#redirect[[dog_house#Roof|x]]\n{{R from move}}", "Dog house"),
        ("\n # Redirect : [[Dog]]", "Dog"),
        ("#WEITERLEITUNG [[Hund]]", "Hund"),
        ("#RINVIA [[Cane]]", "Cane"),
        ("#REDIRECTION [[Chien]]", "Chien"),
        ("#REDIRECCIÓN [[Perro]]", "Perro"),
        ("#DOORVERWIJZING [[Hond]]", "Hond"),
        ("#перенаправление [[собака]]", "Собака"),
        ("#تحويل [[كلب]]", "كلب"),
        ("#転送 [[犬]]", "犬"),
        ("#重定向 [[狗]]", "狗"),
        ("#REDIRECT [[:Category:Dogs]]", "Category:Dogs"),
        ("#REDIRECT [[fr:Chien]]", None),
        ("#REDIRECT Dog", None),
        ("# [[Dog]] is the first of a list", None),
        ("Text #REDIRECT [[Dog]]", None),
    ],
)
def test_redirects_of_many_languages(text: str, target: str | None) -> None:
    assert redirect_target(text, Site()) == target


def article(title: str, text: str, namespace: int = 0) -> Page:
    return Page(1, title, namespace, None, text)


@pytest.mark.parametrize(
    "title,text",
    [
        ("Mercury", "* [[A]]\n{{disambiguation}}"),
        ("Mercury", "* [[A]]\n{{Disambig|geo}}"),
        ("Mercurio", "{{Disambigua}}"),
        ("Merkur", "x\n{{Begriffsklärung}}"),
        ("Mercury", "{{ human_name disambiguation <!-- x -->}}"),
        ("Mercury", "x __DISAMBIG__"),
        ("Mercury (disambiguation)", "x"),
        ("Merkur (Begriffsklärung)", "x"),
        ("マーキュリー (曖昧さ回避)", "x"),
    ],
)
def test_lists_of_meanings(title: str, text: str) -> None:
    assert is_disambiguation(article(title, text))


def test_an_article_is_none() -> None:
    assert not is_disambiguation(article("Mercury (planet)", "{{About|x|y|Z (disambiguation)}} x"))


def test_a_dump_tells_its_own_templates() -> None:
    pages = [
        article("Vorlage:Viele Wörter", "__DISAMBIG__ x", namespace=10),
        article("Vorlage:Info", "x", namespace=10),
    ]
    names = disambiguation_templates(pages)
    assert names == {"viele wörter"}
    page = article("A", "{{viele_Wörter}}")
    assert not is_disambiguation(page)
    assert is_disambiguation(page, DISAMBIGUATION_TEMPLATES | names)
