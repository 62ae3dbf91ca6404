"""Technical words are explained where they stand first."""

import html
import re

import pytest

from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.microdata.render import render_microdata
from bayes_sdc.report.words import WORDS, words_in, words_of_page

pytestmark = pytest.mark.usefixtures("sketches")

CALL = {"command": "", "created": "2026-11-29", "seed": 5, "arguments": {}, "versions": {}}
EXPLAINED = {  # in the sections; page one and the contents quote the list of words
    "bit": "doubles",
    "prior": "expect",
    "R_all": "share of (?:all )?small",
    "R_unq": "riskiest kind",
    "importance weights": "spare a new fit",
    "k-hat": "outweigh",
    "chains": "started apart|repeated runs",
    "R-hat": "compares the chains",
    "ESS, effective size": "independent draws",
    "latent classes": "key values are plausible",
    "F": "F is the number of people",
    "tau1": "sample uniques that are population uniques",
    "tau2": "(?:right|correct) matches (?:among|of) sample uniques",
    "kappa": "how scatter goes with size",
    "log likelihood": "how probable the file is",
    "sampling fraction": "share of the population",
    "known, uncertain, gamma, extended": "rates share a distribution|model assumes",
    "dispersion": "counts scatter",
    "entropy": "spread over its partners",
    "gravity model": "regression of the flows",
}


def parts(text: str) -> list[str]:
    """Page one, the contents and the sections, in the order in which they are read."""
    body = text[text.index("<body>") :]
    body = re.sub("<svg.*?</svg>", "", body, flags=re.DOTALL)
    cut = re.split(r"(?=<section)|(?=<nav)|(?=<main)", body)
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", part)).split()) for part in cut]


def unexplained(text: str, explained: dict[str, str]) -> list[str]:
    """Words whose first part says nothing about them."""
    missing = []
    for word in WORDS:
        first = next((part for part in parts(text) if re.search(word.pattern, part)), None)
        if first is None or f"{word.name} : {word.meaning}" in first:
            continue
        if not re.search(explained.get(word.name, "(?!)"), first):
            missing.append(word.name)
    return missing


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.name)
def test_a_meaning_needs_no_word_that_stands_later(word):
    """A reader who looks a word up must not meet another that nobody explains."""
    for other in WORDS:
        if other is not word and re.search(other.pattern, word.meaning):
            assert WORDS.index(other) < WORDS.index(word), (word.name, other.name)


def test_words_are_found_in_sentences_and_not_in_others():
    assert [word.name for word in words_in(["+0.1 bits; an effective size of 5"])] == [
        "bit",
        "ESS, effective size",
    ]
    assert words_in(["A bit of noise: the population is known, the estimate uncertain."]) == []
    assert [word.name for word in words_in(["not trusted for this file: gamma, extended"])] == [
        "known, uncertain, gamma, extended"
    ]


def test_many_words_of_page_one_are_folded():
    """Three lines of meanings push the contents off the first page; they open with one click."""
    for texts, folded in ((["R-hat is 1.02"], False), ([word.name for word in WORDS], True)):
        found = words_of_page({"page_one": [texts], "contents": []})
        assert found["words_folded"] is folded


def test_the_contents_explain_what_page_one_did_not():
    class Entry:
        title, reason = "Convergence", "R-hat is 1.02, ESS 300"

    found = words_of_page({"page_one": [("What", "R-hat is 1.02")], "contents": [Entry]})
    assert [word.name for word in found["words_of_page_one"]] == ["chains", "R-hat"]
    assert [word.name for word in found["words_of_contents"]] == ["ESS, effective size"]


@pytest.mark.parametrize("audience", ["internal", "external"])
@pytest.mark.parametrize("name", ["chosen", "large", "nasty"])
def test_no_word_of_a_flow_report_waits_for_the_glossary(
    name: str, audience: str, request: pytest.FixtureRequest
) -> None:
    """A board reads from the top, and stops where it understands nothing."""
    result = request.getfixturevalue(name)
    assert unexplained(render_flows(result, audience=audience, call=CALL), EXPLAINED) == []


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_no_word_of_a_report_on_records_waits_for_the_glossary(measured, audience) -> None:
    assert unexplained(render_microdata(measured, audience=audience, call=CALL), EXPLAINED) == []
