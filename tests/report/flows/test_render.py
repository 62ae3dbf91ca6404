"""The report equals the result, needs no other file, and its external form tells no true count."""

import dataclasses
import datetime
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from bayes_sdc import FlowLimits, InputError, Policy, Protection, protect_flows, read_flows
from bayes_sdc.checks import Check
from bayes_sdc.flows.diagnostics import Dispersion
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.limits import check_limits
from bayes_sdc.report import plots
from bayes_sdc.report.flows.public_reasons import OF_TRUE_COUNTS
from bayes_sdc.report.flows.public_shares import PublicShares
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.flows.tables import rounded

NASTY = ['<script>alert("x")</script>', "Größe", "=1+1", "a;b", "Unit #7", "{{ 7 * 7 }}", "a & b"]
SEED = 987654321
CALL = {
    "command": "bayes-sdc flows /secret/place/moves.csv --seed 987654321 --out run",
    "created": "2026-11-27",
    "seed": SEED,
    "arguments": {"sampler": "gibbs", "draws": 31, "seed": SEED, "prior": "/secret/place/own.py"},
    "versions": {"bayes-sdc": "0.1.0"},
}


def changed(result: Protection, **measured: object) -> Protection:
    """The same result with other measurements."""
    return dataclasses.replace(result, measured=dataclasses.replace(result.measured, **measured))


@pytest.fixture(scope="module")
def result(nasty: Protection) -> Protection:
    return nasty


@pytest.fixture(scope="module")
def internal(result: Protection) -> str:
    return render_flows(result, audience="internal", call=CALL)


@pytest.fixture(scope="module")
def external(result: Protection) -> str:
    return render_flows(result, audience="external", call=CALL)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures out where a test is about words; drawing takes most of the time."""
    monkeypatch.setattr(plots, "draw_svg", lambda *_: Markup('<svg class="plot"></svg>'))


class Page(HTMLParser):
    """Rows of the tables by caption, ids, addresses and tags of a document."""

    VOID = ("meta", "br", "wbr", "link", "img", "path", "use", "rect", "image")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                self.targets.append(value or "")
            self.targets += re.findall(r"url\(([^)]*)\)", value or "")
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows, self.caption = [], ""
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        assert self.open.pop() == tag, f"</{tag}> closes another element"
        if tag == "table":
            self.tables[self.caption] = self.rows

    def handle_data(self, data: str) -> None:
        if not {"style", "script", "defs"} & set(self.open):
            self.text += data
        if "caption" in self.open:
            self.caption += data
        elif self.rows and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data


def row(page: Page, caption: str, first: str) -> list[str]:
    return next(cells for cells in page.tables[caption] if cells[0].strip() == first)


def test_numbers_equal_the_result(result: Protection, internal: str) -> None:
    page = Page(internal)
    risk, table = result.measured.risk, result.table
    assert risk is not None
    assert risk.r_all.value is not None
    assert risk.r_all.interval is not None
    rows = page.tables["Rows of the table by class"]
    assert [cells[1] for cells in rows[1:]] == [
        str(n) for n in (table.n_read, table.n_small, table.n_safe, table.n_set_aside, 0, 2)
    ], "row classes differ from the table"
    low, high = risk.r_all.interval
    assert row(page, "Share of cells found", "R_all")[1:4] == [
        str(table.n_small),
        f"{risk.r_all.value:.1%}",
        f"{low:.1%} to {high:.1%}",
    ], "R_all differs from the result"
    assert [cells[0] for cells in page.tables["Convergence by group, worst first"][1:]] == list(
        result.measured.groups.index
    ), "groups are missing or in another order"
    observed = [cells[1] for cells in page.tables["Small cells by count, observed and expected"]]
    assert observed[1:] == [str(n) for n in result.measured.predictive["observed"]]
    spread = row(page, "Spread over independent releases", "R_all")
    assert spread[1:4] == [
        f"{result.measured.repeats['r_all'].agg(f):.1%}" for f in ("mean", "min", "max")
    ]
    assert f"{risk.believes_release:.1%}" in page.text
    assert f"{result.measured.dispersion.value:.2f}" in page.text
    for part in (table.sha256, str(SEED), CALL["command"], "00017"):
        assert part in page.text, f"{part} is not in the internal report"


def test_risk_by_count_adds_up_to_r_all(result: Protection, internal: str) -> None:
    assert result.measured.risk.r_all.value is not None
    rows = Page(internal).tables["Risk by true count"][1:]
    cells = np.array([int(r[1]) for r in rows])
    found = np.array([float(r[2].rstrip("%")) for r in rows]) / 100
    assert cells.sum() == result.table.n_small
    assert (cells * found).sum() / cells.sum() == pytest.approx(
        result.measured.risk.r_all.value, abs=5e-4
    )


def test_every_check_has_its_verdict_and_reason(result: Protection, internal: str) -> None:
    page = Page(internal)
    sections = Page(
        internal[internal.index("<main") : internal.index("</main>")]
    ).text  # the contents name it in short
    for check in result.checks:
        if check.key == "divergences":  # a Gibbs sampler has none to count
            continue
        assert check.reason in sections, f"the reason of {check.name} is missing"
    contents = next(rows for name, rows in page.tables.items() if name.startswith("Contents"))
    verdicts = {cells[0].partition(". ")[2]: cells[1].split()[-1] for cells in contents[1:]}
    by_name = {check.name: check.verdict for check in result.checks}
    assert verdicts["Fit to the counts"] == by_name["fit to the counts"]
    weights = by_name["importance weights"]
    assert verdicts["Intruder risk"] == ("judged" if weights == "pass" else weights), "no policy"
    assert verdicts["Input and rules"] == "pass"
    assert verdicts["Totals by area"] == "facts"


def test_of_few_cells_the_public_does_not_read_whether_the_release_differs(external: str) -> None:
    """In a table of one cell "it differs" tells which value the true count does not have."""
    text = Page(external).text
    assert "release differs: Not shown, because a verdict on few cells could reveal" in text
    assert "equal the true ones" not in text


def test_of_few_cells_no_verdict_rests_on_true_counts(result: Protection, external: str) -> None:
    """Whatever the checks of so small a table find, the public page stays the same."""
    other = [
        dataclasses.replace(check, verdict="look")
        if check.key in OF_TRUE_COUNTS and check.key != "importance_weights"
        else check
        for check in result.checks
    ]
    page = render_flows(dataclasses.replace(result, checks=other), audience="external", call=CALL)
    assert page == external


def test_a_sampler_without_divergent_steps_does_not_pass_for_them(external: str) -> None:
    """Nor is the public told of a question that has no meaning here."""
    assert "diverge" not in Page(external).text


@pytest.mark.usefixtures("no_pictures")
def test_the_public_reads_which_share_is_equal_by_chance(large: Protection) -> None:
    """Never that all counts are others, or that none is."""
    risk = large.measured.risk
    for equal, told in ((0.2412, None), (0.0, "under 1%"), (0.999, "over 99%")):
        page = Page(
            render_flows(
                changed(large, risk=dataclasses.replace(risk, believes_release=equal)),
                audience="external",
                call=CALL,
            )
        )
        name = "R_all of an intruder who believes the first released count"
        share = PublicShares(SEED).percent(equal, 2731, name)
        assert told in (None, share)
        assert f"{share} of the released small counts equal the true ones: by chance" in page.text
        assert "The others differ" in page.text
        assert row(page, "Risk, rounded", name)[1] == share, "two noises could be averaged"


@pytest.mark.usefixtures("no_pictures")
def test_a_new_check_is_not_lost(result: Protection) -> None:
    exact = "exactly 17 of 23 cells"
    more = dataclasses.replace(
        result, checks=[*result.checks, Check("new", "fail", exact, key="new")]
    )
    assert exact in Page(render_flows(more, audience="internal", call=CALL)).text
    text = Page(render_flows(more, audience="external", call=CALL)).text
    assert "Other checks" in text
    assert exact not in text, "a reason with exact numbers reached the public"


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_one_offline_file(audience: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(audience)
    page = Page(text)
    assert not page.open, f"elements are left open: {page.open}"
    assert len(page.ids) == len(set(page.ids)), "an id occurs twice"
    for target in page.targets:
        assert target.startswith(("#", "data:image/png;base64,")), f"{target} is outside the file"
        if target.startswith("#"):
            assert target[1:] in page.ids, f"{target} leads nowhere"
    assert "://" not in text, "there is an address in the file"
    assert not {"link", "iframe", "i", "b"} & set(page.tags), "data became markup"
    assert page.tags.count("script") == 1, "there is a script beside that of the page"
    assert page.tags.count("h1") == 1
    assert page.tags.count("caption") == page.tags.count("table"), "a table has no caption"
    # a figure holds one picture, or two side by side
    assert page.tags.count("figcaption") == page.tags.count("figure") <= page.tags.count("svg")
    assert plots.INK not in text, "a stand-in colour was not replaced: illegible in the dark"
    assert len(text) < 1_000_000


def test_nasty_names_are_shown_as_text(internal: str) -> None:
    page = Page(internal)
    areas = {cells[0] for cells in page.tables[TOTALS]}
    assert set(NASTY) <= areas, "an area is missing, or its name was changed"
    assert "from <b>" in page.text


TOTALS = "Totals of the small cells, largest relative error first"


def test_same_result_same_bytes(result: Protection, internal: str) -> None:
    assert render_flows(result, audience="internal", call=CALL) == internal


def test_external_tells_no_true_count(result: Protection, external: str, internal: str) -> None:
    page = Page(external)
    table, risk = result.table, result.measured.risk
    assert risk is not None
    assert risk.r_all.value is not None
    for secret in (*NASTY, "<i>east</i>", "west's", str(SEED), table.sha256, "/secret", "00017"):
        assert secret not in page.text, f"{secret} is in the external report"
    assert "svg" not in page.tags, "a picture of confidential numbers is in the external report"
    for caption in (TOTALS, "Risk by true count", "Small cells by count, observed and expected"):
        assert caption in Page(internal).tables
        assert caption not in page.tables
    exact: list[Any] = [table.n_read, table.n_small, f"{risk.believes_release:.1%}"]
    exact += [
        f"{risk.r_all.value:.1%}",
        f"{risk.r_all.value:.0%}",
        f"{result.measured.dispersion.value:.2f}",
    ]
    exact += [f"{float(risk.true_count_probability.mean()):.1%}"]
    for number in exact:
        assert not re.search(rf"(?<![\d.]){re.escape(str(number))}(?!\d)", page.text), (
            f"the exact number {number} is in the external report"
        )
    for check in result.checks:
        assert check.reason not in page.text
        # the sampler of this table has no steps that can diverge
        assert (check.name in page.text) is (check.key != "divergences")


def test_external_does_not_depend_on_the_true_counts(result: Protection, external: str) -> None:
    # what is confidential may be anything: the page of so small a table stays the same
    none = Share("cells", 0, None, None, None, None, trusted=result.measured.risk.r_unq.trusted)
    unique = dataclasses.replace(none, definition=result.measured.risk.r_unq.definition)
    other = changed(
        result,
        risk=dataclasses.replace(result.measured.risk, r_unq=unique, believes_release=0.123),
        margins=result.measured.margins.assign(true=1),
        predictive=result.measured.predictive.assign(observed=1),
        repeats=None,
        dispersion=Dispersion(77.0, 0.9, 1.1),
    )
    other = dataclasses.replace(other, seconds={"fit": 1234.5})
    assert render_flows(other, audience="external", call={**CALL, "seed": 1}) == external


def test_external_shares_of_a_large_table_are_rounded(result: Protection) -> None:
    share = Share("cells found", 2731, 0.25123, (0.23, 0.27), 0.001, 1 / 9, trusted=True)
    few = dataclasses.replace(share, definition="few cells found", cells=499)
    gains = {
        name: dataclasses.replace(gain, unreliable=0)
        for name, gain in result.measured.risk.gains.items()
    }
    risk = dataclasses.replace(result.measured.risk, r_all=share, r_unq=few, gains=gains)
    large = changed(result, risk=risk)
    page = Page(render_flows(large, audience="external", call=CALL))
    told = PublicShares(SEED).percent(0.25123, 2731, "R_all, all-others")
    assert row(page, "Risk, rounded", "R_all: cells found")[1] == told
    assert row(page, "Risk, rounded", "R_unq: few cells found")[1] == "not shown"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "none"),
        (9, "fewer than 10"),
        (16, "about 20"),
        (137, "about 140"),
        (2731, "about 2,700"),
        (73535, "about 74,000"),
        (99950, "about 100,000"),
    ],
)
def test_public_numbers_keep_two_figures_at_most(number: int, words: str) -> None:
    assert rounded(number) == words


@pytest.mark.usefixtures("no_pictures")
def test_undefined_risk_is_said_in_words(result: Protection) -> None:
    nobody = Share("nobody", 0, None, None, None, None, trusted=True)
    none = changed(
        result,
        risk=dataclasses.replace(result.measured.risk, r_unq=nobody),
        repeats=result.measured.repeats.assign(r_unq=np.nan),
    )
    page = Page(render_flows(none, audience="internal", call=CALL))
    assert row(page, "Share of cells found", "R_unq")[2].startswith("undefined")
    assert row(page, "Spread over independent releases", "R_unq")[1].startswith("undefined")
    assert "nan" not in page.text.lower().split()


@pytest.mark.usefixtures("no_pictures")
def test_mistrust_names_the_share_that_it_is_about(result: Protection) -> None:
    """Weights of a few cells can spoil R_unq and leave R_all as good as it was."""
    shares = {
        name: dataclasses.replace(getattr(result.measured.risk, name), trusted=name == "r_all")
        for name in ("r_all", "r_unq")
    }
    one = changed(result, risk=dataclasses.replace(result.measured.risk, **shares))
    text = render_flows(one, audience="internal", call=CALL)
    assert "R_unq: not to be trusted" in text
    first = Page(text).text.partition("Contents and verdicts")[0]
    assert "Do not rely on R_unq of" in first
    assert "R_all and R_unq" not in first


@pytest.mark.parametrize("audience", ["internal", "external"])
@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.usefixtures("no_pictures")
def test_mistrust_is_visible(result: Protection, audience: Any, trusted: bool) -> None:
    share = dataclasses.replace(result.measured.risk.r_all, trusted=trusted)
    unique = dataclasses.replace(result.measured.risk.r_unq, trusted=trusted)
    risk = dataclasses.replace(result.measured.risk, r_all=share, r_unq=unique)
    few = changed(result, risk=risk)
    many = dataclasses.replace(few, table=dataclasses.replace(few.table, n_small=2731))
    text = render_flows(many, audience=audience, call=CALL)
    assert ("R_all and R_unq: not to be trusted" in text) is not trusted
    of_few = render_flows(few, audience=audience, call=CALL)
    assert ("not to be trusted" in of_few) is (not trusted and audience == "internal")


@pytest.mark.parametrize("of", ["shares", "gain"])
@pytest.mark.usefixtures("no_pictures")
def test_what_rests_on_weights_is_withheld_everywhere_or_nowhere(
    large: Protection, of: str
) -> None:
    """Page one withheld what the section on the intruder printed."""
    text = Page(render_flows(large, audience="external", call=CALL)).text
    assert "rests on unreliable weights" not in text
    assert "Risk by number of data sets, rounded" in text
    risk = large.measured.risk
    if of == "shares":
        risk = dataclasses.replace(risk, r_all=dataclasses.replace(risk.r_all, trusted=False))
    else:
        risk = dataclasses.replace(
            risk, gains={k: dataclasses.replace(g, unreliable=9999) for k, g in risk.gains.items()}
        )
    page = Page(render_flows(changed(large, risk=risk), audience="external", call=CALL))
    assert "Not shown: it rests on unreliable weights" in page.text
    assert "What rests on the importance weights is not shown" in page.text
    (caption,) = [name for name in page.tables if name == "Risk, rounded"]
    shares = {cells[0].partition(":")[0]: cells[1:] for cells in page.tables[caption]}
    for name in ("R_all", "R_unq", "share of correct guesses that the intruder expects"):
        assert set(shares[name]) == {"not shown"}
    if of == "shares":  # the warning above says more than one cell in a hundred
        assert "fewer than 1 in 100" not in shares["cells that cannot be relied on"]
    assert "Risk by number of data sets, rounded" not in page.tables
    assert "Over repetitions of drawing" not in page.text
    # the prior of the model is its prediction from the other cells, by the same weights
    for prior, withheld in (("shape", "model-based synthesis"), ("model", "")):
        compared = large.measured.tradeoff.assign(prior=prior)
        of_prior = changed(large, risk=risk, tradeoff=compared)
        page = Page(render_flows(of_prior, audience="external", call=CALL))
        (caption,) = [name for name in page.tables if name.startswith("Risk and utility by meth")]
        for cells in page.tables[caption][1:]:
            hidden = {cells[place] for place in (3, 4, 5, 6)} == {"not shown"}
            assert hidden is cells[0].startswith(withheld)


@pytest.mark.parametrize("areas", [400, 20])
@pytest.mark.usefixtures("no_pictures")
def test_a_limit_on_totals_leaves_no_section_that_calls_them_facts(
    large: Protection, areas: int
) -> None:
    """What was judged, and what is withheld, is neither; and why it is withheld is said rightly."""
    found = large.measured.utility
    totals = found.totals.assign(areas=areas)
    limit = Policy("B", datetime.date(2026, 1, 15), FlowLimits(totals_error=0.9)).judge(
        "totals_error", 0.9, 0.1, units=2731, definition="error"
    )
    result = dataclasses.replace(
        changed(large, utility=dataclasses.replace(found, totals=totals)),
        checks=[*large.checks, limit],
    )
    page = Page(render_flows(result, audience="external", call=CALL))
    said = verdict_of(page, "Utility and other protections").split()
    assert said[-1] == ("pass" if areas == 400 else "shown")
    assert ("fewer than 100 totals by area" in page.text) is (areas == 20)
    assert "with few small counts what it is good for" not in page.text


@pytest.mark.usefixtures("no_pictures")
def test_the_public_reads_how_it_was_made_in_words(result: Protection) -> None:
    call = CALL | {
        "created": "2026-11-27T08:58:41+00:00",
        "arguments": {
            "covariates": ["log_safe_outflow_origin", "log_odds_safe_group", "mine"],
            "draws": 31, "chains": 2,
        },
    }  # fmt: skip
    text = Page(render_flows(result, audience="external", call=call)).text
    assert "Made on 2026-11-27 08:58:41 UTC." in text
    assert "log_safe" not in text.replace(" ", "")
    assert "sum of the safe counts from the origin, share of safe counts of the group, mine" in text
    for word in ("draws: ", "tune: ", "chains: "):
        assert word in text


@pytest.mark.usefixtures("no_pictures")
def test_zeros_are_said_to_be_protected_only_from_zero(result: Protection) -> None:
    zero = dataclasses.replace(
        result,
        table=dataclasses.replace(result.table, low=0, high=8),
        release=result.release.assign(n=result.release["n"] - 1),
    )
    for audience in ("internal", "external"):
        said = "Zeros are not protected"
        assert said in render_flows(result, audience=audience, call=CALL)  # type: ignore[arg-type]
        assert said not in render_flows(zero, audience=audience, call=CALL)  # type: ignore[arg-type]


POLICY = Policy(
    "Table release <b>",
    datetime.date(2026, 1, 15),
    flows=FlowLimits(r_all=0.3, r_unq=0.6, true_count_probability=0.5),
)
LIMITS = "Limits of the policy"


def judged(result: Protection, risk: IntruderRisk) -> Protection:
    """The result with another risk and the verdicts on it."""
    checks = [*result.checks, *check_limits(POLICY, risk, unique="single-mover")]
    return dataclasses.replace(changed(result, risk=risk), checks=checks)


def verdict_of(page: Page, section: str) -> str:
    contents = next(rows for name, rows in page.tables.items() if name.startswith("Contents"))
    (found,) = [cells[1].strip() for cells in contents if cells[0].endswith(section)]
    return found


@pytest.mark.usefixtures("no_pictures")
def test_policy_is_shown_with_name_date_limits_and_verdicts(result: Protection) -> None:
    found = Share("cells found", 2731, 0.25, (0.23, 0.27), 0.001, 1 / 9, trusted=True)
    unique = dataclasses.replace(found, cells=700, value=0.75)
    risk = dataclasses.replace(result.measured.risk, r_all=found, r_unq=unique)
    page = Page(render_flows(judged(result, risk), audience="internal", call=CALL))
    assert "Table release <b>, 2026-01-15" in page.text
    assert verdict_of(page, LIMITS) == "✗ fail"
    stripped = [[cell.strip() for cell in cells] for cells in page.tables[LIMITS]]
    assert stripped[0] == ["limit", "of what", "verdict", "exceeded when", "value"]
    assert stripped[1][2:] == ["✓ pass", "> 0.3", "0.25"]
    assert stripped[2][2:] == ["✗ fail", "> 0.6", "0.75"]
    assert stripped[3][:1] + stripped[3][3:4] == ["true_count_probability", "> 0.5"]
    page = Page(render_flows(judged(result, risk), audience="external", call=CALL))
    assert "Table release <b>, 2026-01-15" in page.text
    assert verdict_of(page, LIMITS) == "✗ fail"
    assert [[cell.strip() for cell in cells][2:] for cells in page.tables[LIMITS]] == [
        ["verdict", "exceeded when"],
        ["✓ pass", "> 0.3"],
        ["✗ fail", "> 0.6"],
        ["not shown", "> 0.5"],  # of the 41 cells of this table
    ]


@pytest.mark.usefixtures("no_pictures")
def test_verdicts_on_few_cells_are_withheld_from_the_public(result: Protection) -> None:
    """That R_unq of one cell is 0 or 1, or undefined, would tell of this cell."""
    risk = result.measured.risk
    pages = []
    for value, cells in [(None, 0), (0.0, 1), (1.0, 1)]:
        interval = None if value is None else (0.0, 1.0)
        unique = Share("cells", cells, value, interval, None, 0.1, trusted=risk.r_unq.trusted)
        unique = dataclasses.replace(unique, definition=risk.r_unq.definition)
        other = judged(result, dataclasses.replace(risk, r_unq=unique))
        pages.append(render_flows(other, audience="external", call=CALL))
        for check in other.checks:
            assert check.reason not in pages[-1]
    assert len(set(pages)) == 1
    page = Page(pages[0])
    assert verdict_of(page, LIMITS) == "not shown"
    assert [cells[2].strip() for cells in page.tables[LIMITS][1:]] == ["not shown"] * 3


@pytest.mark.usefixtures("no_pictures")
def test_a_pass_does_not_stand_for_what_is_withheld(result: Protection) -> None:
    found = Share("cells found", 2731, 0.25, (0.23, 0.27), 0.001, 1 / 9, trusted=True)
    risk = dataclasses.replace(result.measured.risk, r_all=found)
    page = Page(render_flows(judged(result, risk), audience="external", call=CALL))
    assert row(page, LIMITS, "r_all")[2].strip() == "✓ pass"
    assert verdict_of(page, LIMITS) == "not shown"


@pytest.mark.usefixtures("no_pictures")
def test_undefined_limit_is_said_in_words(result: Protection) -> None:
    nobody = Share("nobody", 0, None, None, None, None, trusted=True)
    none = judged(result, dataclasses.replace(result.measured.risk, r_unq=nobody))
    page = Page(render_flows(none, audience="internal", call=CALL))
    cells = [cell.strip() for cell in row(page, LIMITS, "r_unq")]
    assert cells[2:] == ["! look", "> 0.6", "undefined"]


def test_without_a_policy_there_is_no_section_on_it(internal: str, external: str) -> None:
    assert LIMITS not in internal
    assert LIMITS not in external


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_table_without_small_cells(audience: Any) -> None:
    frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [12, 40]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    page = Page(render_flows(protect_flows(table, seed=1), audience=audience, call=CALL))
    assert "Nothing needed protection" in page.text
    assert "Intruder risk" not in page.text
    # nor is anything said that is true of other tables only
    for words in ("replaced by", "draws from", "synthetic", "R-hat", "could be undone", "None"):
        assert words not in page.text


@pytest.mark.parametrize("audience", ["internal", "external"])
@pytest.mark.parametrize("own_area", ["protect", "withhold", "publish"])
def test_a_table_of_people_who_stayed_is_not_called_unchanged(audience: Any, own_area: Any) -> None:
    frame = pd.DataFrame({"o": list("abcdef"), "d": list("abcdef"), "n": [3, 4, 20, 5, 9, 1]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    done = protect_flows(table, own_area=own_area, seed=1)
    text = Page(render_flows(done, audience=audience, call=CALL)).text
    unchanged = own_area == "publish"
    assert "No small cells" in text
    assert ("released as they are, by choice of the agency" in text) == unchanged
    assert ("every count is released as it is" in done.summary()) == unchanged
    assert ("5 others, of people who stayed or too few" in done.summary()) != unchanged


def test_a_page_does_not_tell_that_the_count_drawn_for_an_own_area_is_the_true_one() -> None:
    """It would, if it called a table unchanged because its draws happen to be the true counts."""
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["a", "x"], "n": [3, 40]})
    table = read_flows(frame, origin="o", destination="d", count="n", high=4)
    pages: dict[bool, set[str]] = {True: set(), False: set()}
    for seed in range(20):
        done = protect_flows(table, seed=seed)
        page = render_flows(done, audience="external", call=CALL)
        pages[int(done.release["n"].iloc[0]) == 3].add(page)
    assert pages[True] == pages[False], "one page for equal and for other draws"
    assert len(pages[True]) == 1


def test_the_public_does_not_read_that_all_counts_of_a_group_are_at_one_bound(
    large: Protection,
) -> None:
    """A group of many cells that is called small has nothing but ones, or nothing but nines."""
    groups = large.measured.groups.assign(cells=500, origins=20, destinations=20)
    pages = set()
    for verdict in ("pass", "look"):
        checks = [
            dataclasses.replace(check, verdict=verdict) if check.key == "small_groups" else check
            for check in large.checks
        ]
        measured = dataclasses.replace(large.measured, groups=groups)
        result = dataclasses.replace(large, measured=measured, checks=checks)
        pages.add(render_flows(result, audience="external", call=CALL))
    assert len(pages) == 1
    assert "No group has fewer than ten small cells" in pages.pop()


@pytest.mark.parametrize("audience", ["internal", "external"])
@pytest.mark.parametrize("own_area", ["protect", "withhold", "publish"])
def test_what_is_said_of_people_who_stayed_and_of_too_few_holds(
    audience: Any, own_area: Any
) -> None:
    frame = pd.DataFrame(
        {"o": list("abb"), "d": list("axy"), "n": [3, 40, 50], "persons": [30, 2, 90]}
    )
    table = read_flows(frame, origin="o", destination="d", count="n", threshold_column="persons")
    done = protect_flows(table, own_area=own_area, seed=1)
    text = Page(render_flows(done, audience=audience, call=CALL)).text
    assert "too few people is left blank" in text
    assert ("draws from a model of their own" in text) == (own_area == "protect")
    assert ("who stayed in their area are left blank" in text) == (own_area == "withhold")
    assert ("by choice of the agency" in text) == (own_area == "publish")


def test_long_tables_are_cut_and_say_so(
    result: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Markup('<svg class="plot"></svg>')
    for picture in ("chains", "effects", "flows"):  # not of these tables
        monkeypatch.setattr(plots, picture, lambda *_: drawn)
    monkeypatch.setattr(plots, "prior_posterior", lambda *_: [drawn])
    many = pd.concat([result.measured.margins] * 30, ignore_index=True)
    groups = pd.concat([result.measured.groups] * 1100)
    long = changed(result, margins=many, groups=groups)
    text = render_flows(long, audience="internal", call=CALL)
    page = Page(text)
    (caption,) = [name for name in page.tables if name.startswith(TOTALS)]
    assert caption.endswith(f"20 of {len(many)} totals shown, the worst.")
    assert len(page.tables[caption]) == 21
    assert len(text) < 1_000_000, "more than 2,000 marks should be drawn as pixels"


@pytest.mark.usefixtures("sketched")
def test_values_that_do_not_exist(result: Protection) -> None:
    # a parameter that never moved, a count never observed, an area whose true total is 0
    odd = changed(
        result,
        groups=result.measured.groups.assign(rhat=np.inf, ess=0.0, verdict="fail"),
        margins=result.measured.margins.assign(true=0),
        predictive=result.measured.predictive.assign(relative_error=np.nan, observed=0),
    )
    page = Page(render_flows(odd, audience="internal", call=CALL))
    assert "none (never moved)" in page.text
    assert "none observed" in page.text
    assert not {"nan", "inf", "+nan%", "nan%"} & set(page.text.lower().split())
    text = Page(render_flows(odd, audience="external", call=CALL)).text
    assert "could not be computed" in text


@pytest.mark.usefixtures("no_pictures")
def test_a_failed_picture_fails_the_report(
    result: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no picture")

    monkeypatch.setattr(plots, "margins", broken)
    with pytest.raises(RuntimeError, match="no picture"):
        render_flows(result, audience="internal", call=CALL)


def test_unknown_audience(result: Protection) -> None:
    with pytest.raises(InputError, match="internal or external"):
        render_flows(result, audience="public", call=CALL)  # type: ignore[arg-type]
