"""The page of a report: what holds without a browser, and what happens where it cannot be made."""

import base64
import hashlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from bayes_sdc import Protection
from bayes_sdc.checks import Check
from bayes_sdc.jobs.flows_folder import write_flows
from bayes_sdc.jobs.microdata_folder import write_microdata
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report import plots
from bayes_sdc.report.contents import contents_of
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.microdata.render import render_microdata
from bayes_sdc.report.policy_limits import WITHHELD, Told
from bayes_sdc.runs import open_run

pytestmark = pytest.mark.usefixtures("sketches")

REPORTS = ("flows-internal", "flows-external", "microdata-internal", "microdata-external")
CALL: dict[str, Any] = {
    "command": "bayes-sdc",
    "created": "2026-11-27T08:58:41+00:00",
    "seed": 987654321,
    "arguments": {"draws": 30},
    "versions": {"bayes-sdc": "0.1.0"},
}


@pytest.fixture(scope="module")
def texts(large: Protection, measured: Measurement) -> dict[str, str]:
    rendered = [
        render_flows(large, audience="internal", call=CALL),
        render_flows(large, audience="external", call=CALL),
        render_microdata(measured, audience="internal", call=CALL),
        render_microdata(measured, audience="external", call=CALL),
    ]
    return dict(zip(REPORTS, rendered, strict=True))


@pytest.mark.parametrize("name", REPORTS)
def test_browser_is_told_to_run_the_one_script_and_to_load_nothing(
    texts: dict[str, str], name: str
) -> None:
    """A wrong digest would switch off sorting; a missing policy would let data run as a script."""
    page = html.fromstring(texts[name])
    (script,) = page.iter("script")
    (policy,) = page.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("script-src") == f"'sha256-{digest}'"
    assert rules.pop("style-src") == "'unsafe-inline'"
    assert rules.pop("img-src") == "data:"
    assert set(rules.values()) == {"'none'"}
    assert "default-src" in rules
    assert not page.xpath("//@*[starts-with(name(), 'on')]"), "an element has a script of its own"


@pytest.mark.parametrize("name", REPORTS)
def test_page_can_be_read_by_its_structure(texts: dict[str, str], name: str) -> None:
    page = html.fromstring(texts[name])
    assert page.get("lang") == "en"
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.findall(f".//{landmark}")) == 1
    assert page.find("body")[0].get("href") == "#main", "no skip link at the start"
    levels = [int(heading.tag[1]) for heading in page.iter("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels)), "a level is left out"
    for table in page.iter("table"):
        caption = table.find("caption").text_content()
        assert all(th.get("scope") == "col" for th in table.iterfind("thead/tr/th")), caption
        for row in table.iterfind("tbody/tr"):
            assert row[0].tag == "th", caption
            assert row[0].get("scope") == "row", caption
    for figure in page.iter("figure"):
        assert figure.find("figcaption").text_content().strip()
        for picture in figure.iter("svg"):
            assert picture.get("role") == "img"
            assert picture.get("aria-label")


@pytest.mark.parametrize("name", REPORTS)
def test_failed_sections_stand_at_the_head_of_the_page(texts: dict[str, str], name: str) -> None:
    page = html.fromstring(texts[name])
    rows = [[cell.text_content() for cell in row] for row in page.find(".//nav").iter("tr")]
    failed = [title.partition(". ")[2] for title, verdict, _ in rows[1:] if "fail" in verdict]
    said = [p.text_content() for p in page.find(".//header").iter("p")]
    assert [text.startswith(f"Failed: {'; '.join(failed)}.") for text in said].count(True) == int(
        bool(failed)
    )


def test_external_pages_hold_no_seed_or_digest_of_a_file(texts: dict[str, str]) -> None:
    for name in REPORTS[1::2]:
        assert str(CALL["seed"]) not in texts[name]
        assert not re.search(r"\b[0-9a-f]{64}\b", texts[name])
        assert "SHA-256" not in texts[name]


def test_table_of_contents_has_the_worst_verdict_and_its_reasons() -> None:
    sections = {
        "model": ("The model", ["a", "b", "c"]),
        "policy": ("Limits", ["limit"]),
        "other": ("Other checks", []),
        "run": ("How it was made", []),
    }
    checks: list[Check | Told] = [
        Check("a", "pass", "fine", key="a"),
        Check("b", "look", "odd.", key="b"),
        Check("c", "look", "wide", key="c"),
        Check("new", "fail", "broken", key="new"),
    ]
    found = contents_of(sections, checks)
    assert [entry.id for entry in found] == ["model", "other", "run"]
    assert found[0][2:] == ("look", "b: odd; c: wide")
    assert found[1][2:] == ("fail", "new: broken"), "a check that no section claims is lost"
    assert found[2][2:] == ("", "")
    passed = contents_of(sections, [Check("a", "pass", "fine", key="a"), checks[-1]])
    assert passed[0][2:] == ("pass", "a"), "why a check passed stands in its section"
    limit = Check("limit k", "fail", "many words", key="limit_k")
    judged = contents_of({"policy": ("Limits", ["limit_k"])}, [limit])
    assert judged[0].reason == "limit k"
    long = contents_of(sections, [Check("b", "fail", "word " * 90, key="b")])
    assert long[0].reason.endswith("word …")
    assert len(long[0].reason) <= 150
    # a pass or a look must not stand for what is withheld
    hidden = contents_of(sections, [*checks, Told("a", WITHHELD, "few cells", "a")])
    assert hidden[0].verdict == WITHHELD
    assert [e.id for e in contents_of(sections, checks, without=["model"])] == ["other", "run"]


def broken(*_: object) -> None:
    raise RuntimeError("no picture")


def test_a_broken_picture_leaves_no_new_file_and_keeps_the_old(
    chosen: Protection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report without a picture, or a release without a report, would look whole."""
    run = open_run(tmp_path)
    (run.release / "report.html").write_text("of an earlier run")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(plots, "margins", broken)
    with pytest.raises(RuntimeError, match="no picture") as raised:
        write_flows(run, chosen, CALL)
    assert "nothing was written" in raised.value.__notes__[0]
    assert sorted(tmp_path.rglob("*")) == before
    assert (run.release / "report.html").read_text() == "of an earlier run"


def test_a_broken_picture_of_a_file_leaves_no_new_file(
    measured: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(plots, "record_risk", broken)
    with pytest.raises(RuntimeError, match="no picture") as raised:
        write_microdata(run, measured, CALL)
    assert "nothing was written" in raised.value.__notes__[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_figure_fails_the_report(
    chosen: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "margins", lambda *_: "")
    with pytest.raises(RuntimeError, match="holds no picture"):
        render_flows(chosen, audience="internal", call=CALL)
