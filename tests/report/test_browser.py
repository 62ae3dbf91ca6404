"""The reports in a real browser: offline, sorted, filtered, legible, and no wider than the screen.

The system's Chromium is driven by Playwright; the browser that Playwright would download is never
used. Without one on the machine these tests are skipped.
"""

import dataclasses
import datetime
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from bayes_sdc import FlowLimits, MicrodataLimits, Policy, Protection
from bayes_sdc.checks import Check
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.flows.render import SECTIONS as FLOWS
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.microdata.render import SECTIONS as MICRODATA
from bayes_sdc.report.microdata.render import render_microdata

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REPORTS = ("flows-internal", "flows-external", "microdata-internal", "microdata-external")
WIDTHS = (360, 768, 1280)
FAILED = ("convergence", "fit", "models", "input")
LONG = "x" * 90  # a name without a place to break
TOTALS = "Totals of the small cells, largest relative error first"
CALL: dict[str, Any] = {
    "command": f"bayes-sdc flows {LONG}.csv --out {LONG}",
    "created": "2026-11-27T08:58:41+00:00",
    "seed": 2**127,
    "arguments": {f"argument{i}": LONG for i in range(12)},
    "versions": {"bayes-sdc": "0.1.0"},
}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(BROWSERS)} is installed")
    # the sandbox of Chromium does not work for root, as which CI runs
    root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=root)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def totals() -> pd.DataFrame:
    """Totals of 14 areas with thousands, signs, a long name and errors that do not exist."""
    rng = np.random.default_rng(3)
    true = np.array([0, 7, 950, 1_000, 12_345, 0, 99, 100_000, 1_001, 88, 640, 641, 5, 9_999])
    return pd.DataFrame(
        {
            "area": [f"area {i}" for i in range(13)] + [LONG],
            "side": ["origin", "destination"] * 7,
            "cells": rng.integers(1, 2_000, 14),
            "true": true,
            "synthetic": true + rng.integers(-5, 2_000, 14),
        }
    )


@pytest.fixture(scope="session")
def files(
    nasty: Protection,
    large: Protection,
    measured: Measurement,
    totals: pd.DataFrame,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    table = dataclasses.replace(nasty.table, source=f"{LONG}.csv")
    found = dataclasses.replace(nasty.measured, margins=totals)
    flows = dataclasses.replace(nasty, measured=found, table=table)
    texts = (
        render_flows(flows, audience="internal", call=CALL),
        render_flows(large, audience="external", call=CALL),
        render_microdata(measured, audience="internal", call=CALL),
        render_microdata(measured, audience="external", call=CALL),
    )
    paths = {}
    for name, text in zip(REPORTS, texts, strict=True):
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(text, encoding="utf-8")
    return paths


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1280, **options: Any) -> Iterator[Page]:
    """Open a page without a network; on leaving, it must have asked for nothing, without error."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
    page.goto(path.as_uri())
    yield page
    context.close()
    assert asked == [path.as_uri()], "the page asked for another file"
    assert said == [], "the console holds a message"


def table(page: Page, caption: str) -> Locator:
    return page.get_by_role("table", name=caption)


def column(rows: Locator, number: int) -> list[str]:
    return [row[number] for row in cells(rows)]


def cells(rows: Locator) -> list[list[str]]:
    """What the visible rows say, by row."""
    read: list[list[str]] = rows.locator("tbody tr:visible").evaluate_all(
        "rows => rows.map(row => Array.from(row.cells, cell => cell.textContent.trim()))"
    )
    return read


@pytest.mark.parametrize("name", REPORTS)
def test_contents_lead_to_their_sections(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name]) as page:
        links = page.get_by_role("navigation", name="Contents").get_by_role("link").all()
        assert len(links) >= 7
        for link in links:
            link.click()
            title = page.get_by_role("heading", level=2, name=link.inner_text())
            assert title.evaluate("h => h.getBoundingClientRect().bottom <= innerHeight")
            assert title.evaluate("h => h.getBoundingClientRect().top >= 0")
            page.get_by_role("link", name="Contents", exact=True).click()
            contents = page.get_by_role("navigation", name="Contents")
            top = contents.evaluate("n => n.getBoundingClientRect().top")
            assert 0 <= top < 800, "no way back to the contents"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_only_tables_scroll_sideways(
    browser: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    """A page wider than the screen makes a reader lose every line."""
    with opened(browser, files[name], width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.locator(".scroll").evaluate_all(
            "boxes => boxes.map(box => [box.getBoundingClientRect().right, "
            "box.scrollWidth > box.clientWidth, box.tabIndex, box.role ?? ''])"
        )
        assert all(right <= width for right, *_ in boxes)
        letters = page.locator("svg text").evaluate_all(
            "texts => texts.map(text => [parseFloat(getComputedStyle(text).fontSize), "
            "text.getScreenCTM()]).map(([size, {a, b}]) => size * Math.hypot(a, b))"
        )
        assert min(letters, default=10.0) >= 9.5, "letters too small to read"
        # what scrolls is reached by the keyboard, and what does not is no stop on the way
        assert {(scrolls, index, role) for _, scrolls, index, role in boxes} <= {
            (True, 0, "group"),
            (False, -1, ""),
        }
        if width == 360 and name == "flows-internal":
            assert any(scrolls for _, scrolls, *_ in boxes), "the test has no wide table"


# tables that are cut: their width, and that of the page
CUT = """() => Array.from(document.querySelectorAll("main .scroll"), box =>
  [box.ariaLabel, box.scrollWidth, box.clientWidth, box.closest("main").clientWidth])
  .filter(([, whole, seen, page]) => whole > seen && whole <= page)"""


@pytest.mark.parametrize("name", REPORTS)
def test_columns_cut_no_table_and_part_no_term_from_its_meaning(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name], 1400) as page:
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.wait_for_timeout(50)  # what does not fit its column is moved when it is laid out
        assert page.evaluate(CUT) == []
        assert page.locator(".pair > .filter").count() == 0, "it takes the place of a table"
        shifts = page.locator("dd").evaluate_all(
            "all => all.map(dd => dd.getBoundingClientRect().left "
            "- dd.previousElementSibling.getBoundingClientRect().left)"
        )
        assert len(set(shifts)) == 1, "a term and its definition stand in two columns"


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("job", ["flows", "microdata"])
def test_page_one_and_the_contents_are_read_at_a_glance(
    browser: Browser, chosen: Protection, measured: Measurement, tmp_path: Path, job: str
) -> None:
    """Two screens, also where every check has something to say and every limit is exceeded."""
    text = (
        render_flows(full(chosen, FLOWS, FlowLimits), audience="internal", call=CALL)
        if job == "flows"
        else render_microdata(
            full(measured, MICRODATA, MicrodataLimits), audience="internal", call=CALL
        )
    )
    path = tmp_path / "full.html"
    path.write_text(text, encoding="utf-8")
    with opened(browser, path, 1400) as page:
        assert page.locator(".tiles p").count() >= 4
        bottom = "document.querySelector('#contents').getBoundingClientRect().bottom + scrollY"
        assert page.evaluate(bottom) <= 1800


def full(result: Any, sections: dict[str, tuple[str, tuple[str, ...]]], limits: type) -> Any:
    """The same with a doubt of every check, some of which failed, and every limit exceeded."""
    names = [field.name for field in dataclasses.fields(limits)]
    policy = Policy("Board of the agency", datetime.date(2026, 1, 15), FlowLimits(r_all=0.1))
    limited = [
        policy.judge(name, 3 if name == "k" else 0.1, 0.5, units=900, definition="what is measured")
        for name in names
    ]
    doubts = [
        Check(
            key.replace("_", " "), "fail" if id_ in FAILED else "look",
            f"so much is odd about the {key}; " + "and more of it, " * 20, key=key,
        )
        for id_, (_, keys) in sections.items()
        for key in keys
        if id_ != "guarantee" and not key.startswith(("limit_", "use_", "gain_"))
    ]  # fmt: skip
    return dataclasses.replace(result, checks=[*limited, *doubts])


@pytest.mark.parametrize("press", ["click", "Enter", "Space"])
def test_columns_sort_by_value(
    browser: Browser, files: dict[str, Path], totals: pd.DataFrame, press: str
) -> None:
    """Thousands, signs and per cents are numbers, and what has no value comes last both ways."""
    relative = (totals["synthetic"] - totals["true"]) / totals["true"].where(totals["true"] > 0)
    values = totals.assign(relative=relative).set_index("area")
    with opened(browser, files["flows-internal"]) as page:
        shown = table(page, TOTALS)
        given = column(shown, 0)
        for head, key in (
            ("true", "true"),
            ("small cells", "cells"),
            ("relative error", "relative"),
        ):
            button = shown.get_by_role("button", name=head, exact=True)
            header = shown.get_by_role("columnheader", name=head, exact=True)
            for direction in ("ascending", "descending", None):
                if press == "click":
                    button.click()
                else:
                    button.press(press)
                assert header.get_attribute("aria-sort") == direction
                order = values.loc[column(shown, 0), key]
                missing = order.isna().to_numpy()
                if direction is None:
                    assert column(shown, 0) == given, "the given order is lost"
                    continue
                assert missing[: len(order) - missing.sum()].sum() == 0, "missing before a number"
                present = order.dropna()
                assert len(order) == len(values)
                assert present.is_monotonic_increasing or direction == "descending", head
                assert present.is_monotonic_decreasing or direction == "ascending", head


def test_one_column_at_a_time_is_marked_as_sorted(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files["flows-internal"]) as page:
        shown = table(page, TOTALS)
        shown.get_by_role("button", name="true", exact=True).click()
        shown.get_by_role("button", name="area", exact=True).click()
        assert shown.locator("th[aria-sort]").all_text_contents() == ["area"]
        # numbers inside words count as numbers: area 2 comes before area 10
        assert column(shown, 0) == [f"area {i}" for i in range(13)] + [LONG]


def test_worst_verdicts_sort_first(browser: Browser, files: dict[str, Path]) -> None:
    """By the letter, look would come before pass and fail, whatever mark stands before it."""
    with opened(browser, files["flows-internal"]) as page:
        shown = table(page, "Convergence by group, worst first")
        shown.get_by_role("button", name="verdict").click()
        ranks = {"✗ fail": 0, "! look": 1, "✓ pass": 2}
        order = [ranks[mark] for mark in column(shown, 1)]
        assert order == sorted(order)


# presses every button of a table twice; what the table says each time, rows in one order
PRESSED = """box => {
  const rows = () => Array.from(box.querySelectorAll("tbody tr"), row => row.innerText).sort();
  return [rows(), ...Array.from(box.querySelectorAll("th button"), button => {
    button.click();
    const once = rows();
    button.click();
    return [once, rows()];
  }).flat()];
}"""


@pytest.mark.parametrize("name", REPORTS)
def test_sorting_loses_no_row(browser: Browser, files: dict[str, Path], name: str) -> None:
    with opened(browser, files[name]) as page:
        for box in page.locator(".scroll.sort").all():
            given, *pressed = box.evaluate(PRESSED)
            assert len(pressed) == (2 * box.locator("thead th").count() if len(given) > 2 else 0)
            assert all(rows == given for rows in pressed)


def test_long_tables_filter(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files["flows-internal"]) as page:
        shown = table(page, TOTALS)
        box = page.get_by_role("searchbox", name=f"Filter: {TOTALS}")
        status = page.locator(".filter", has=box).get_by_role("status")
        box.fill(" ORIGIN area")  # words in any case, each anywhere in the row
        origins = sorted(f"area {i}" for i in range(0, 13, 2))
        assert sorted(column(shown, 0)) == origins
        assert status.inner_text() == "7 of 14 rows"
        shown.get_by_role("button", name="true", exact=True).click()
        assert sorted(column(shown, 0)) == origins, "sorting undid the filter"
        box.fill("nowhere")
        assert column(shown, 0) == []
        assert status.inner_text() == "0 of 14 rows"
        box.fill("")
        assert len(column(shown, 0)) == 14
        assert status.inner_text() == ""


@pytest.mark.parametrize("name", REPORTS)
def test_tables_with_more_than_ten_rows_have_a_filter(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name]) as page:
        for box in page.locator(".scroll").all():
            filters = page.get_by_role(
                "searchbox",
                name=f"Filter: {box.get_attribute('aria-label')}",
                exact=True,
                include_hidden=True,  # in what is folded
            )
            assert filters.count() == int(box.locator("tbody tr").count() > 10)


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_lost_without_script(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with (
        opened(browser, files[name], java_script_enabled=False) as plain,
        opened(browser, files[name]) as full,
    ):
        assert plain.get_by_role("button").count() == 0, "a button that does nothing"
        assert plain.get_by_role("searchbox").count() == 0, "a filter that does nothing"
        rows = "tbody tr:visible"
        assert plain.locator(rows).count() == full.locator(rows).count() > 0


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_page_is_accessible(
    browser: Browser, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    """Rules of axe: contrast, names, landmarks, order of headings, heads of tables, targets."""
    with opened(browser, files[name], width, color_scheme=scheme) as page:
        found = Axe().run(page)
        assert len(found.response["passes"]) > 20, "the rules were not tried"
        assert found.violations_count == 0, found.generate_report()


# of the text of pictures, which axe does not read, against the figure behind it
CONTRAST = """() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Array.from(document.querySelectorAll("svg text"), text => {
    const behind = light(getComputedStyle(text.closest("figure")).backgroundColor);
    const ink = light(getComputedStyle(text).fill);
    return (Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", REPORTS[:3])  # the last has no picture
def test_words_in_pictures_are_legible(
    browser: Browser, files: dict[str, Path], name: str, scheme: str
) -> None:
    with opened(browser, files[name], color_scheme=scheme) as page:
        ratios = page.evaluate(CONTRAST)
        assert len(ratios) > 10
        assert min(ratios) >= 4.5
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 27)"}[scheme]


@pytest.mark.parametrize("name", REPORTS)
def test_prints_dark_on_white_and_whole(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    width = 680  # of an A4 page between its margins, in CSS pixels
    with opened(browser, files[name], width, color_scheme="dark") as page:
        page.emulate_media(media="print")
        style = "(({backgroundColor, color}) => [backgroundColor, color])"
        colours = page.evaluate(f"{style}(getComputedStyle(document.body))")
        assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
        for unused in (".skip", ".up", ".filter label"):
            assert page.locator(f"{unused}:visible").count() == 0
        # Chromium makes a page smaller until it fits, but not by more than a half
        assert page.evaluate("document.documentElement.scrollWidth") <= 1.5 * width
        assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("name", REPORTS)
def test_keyboard_skips_the_contents_and_shows_where_it_is(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name]) as page:
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.inner_text() == "Skip the contents"
        assert skip.evaluate("link => link.getBoundingClientRect().left >= 0"), "it is not seen"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        inside = page.locator(":focus")
        assert inside.evaluate("it => document.querySelector('main').contains(it)")
        assert inside.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
