"""Pictures of the flow report and the tables beside them: from the result alone, or not at all."""

import re
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from bayes_sdc import InputError, Protection, Shapes, protect_flows, read_flows
from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.parameters import effects, extreme
from bayes_sdc.report import plots
from bayes_sdc.report.flows.posterior import signed
from bayes_sdc.report.flows.render import render_flows

AREAS = ["<script>x", "$a_1$", 'id="b" url(#c)', "東京", "d" * 60, "#010203"]
CALL: dict[str, Any] = {
    "command": "",
    "created": "2026-11-27",
    "seed": 1,
    "arguments": {},
    "versions": {},
}


@pytest.fixture(scope="module")
def result() -> Protection:
    """Areas with names that a picture could take for markup, mathematics or its own colours."""
    rng = np.random.default_rng(5)
    pairs = [(o, d) for o in AREAS for d in AREAS if o != d]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = 1 + rng.binomial(8, 0.3, len(pairs))
    frame["from"] = np.where(frame["o"] < "b", "<i>", "w")
    frame["to"] = np.where(frame["d"] < "b", "<i>", "w")
    table = read_flows(frame, origin="o", destination="d", count="n", groups=["from", "to"])
    return protect_flows(table, draws=30, tune=30, chains=2, releases=2, seed=1)


@pytest.fixture(scope="module")
def shapes() -> Shapes:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    outlines = {area: [[square + np.array([i, 0.0])]] for i, area in enumerate(AREAS[:-1])}
    return Shapes(outlines, missing=(AREAS[-1],), geographic=False)


@pytest.fixture(scope="module")
def internal(result: Protection, shapes: Shapes) -> str:
    return render_flows(result, audience="internal", call=CALL, shapes=shapes)


def rows(page: str, caption: str) -> list[list[str]]:
    """Texts of the body of a table."""
    table = re.search(rf"<caption>{re.escape(caption)}.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert table is not None, f"there is no table {caption!r}"
    return [
        [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", table[1], re.DOTALL)
    ]


def pictures(page: str) -> list[str]:
    return re.findall(r"<svg .*?</svg>", page, re.DOTALL)


def test_numbers_beside_the_pictures_are_those_of_the_result(
    result: Protection, internal: str
) -> None:
    learned = rows(internal, "Posterior of the hyperparameters")
    assert [cells[:2] for cells in learned] == [
        [one.name, f"{one.quantiles()[0]:.2f}"]
        for one in hyperparameters(result.measured.posterior)
    ]
    farthest = extreme(effects(result.measured.posterior), number=10)
    shown = rows(internal, "Most extreme effects")
    assert [cells[:4] for cells in shown] == [
        [row["side"], row["group"], row["area"], f"{row['median']:+.2f}"]
        for _, row in farthest.iterrows()
    ]
    assert "89 % interval (eti)" in internal, "the kind of interval is not said"


def test_nothing_of_it_is_in_the_external_report(result: Protection, shapes: Shapes) -> None:
    external = render_flows(result, audience="external", call=CALL, shapes=shapes)
    assert "<svg" not in external
    assert external == render_flows(result, audience="external", call=CALL)
    for words in ("What the model learned", "Most extreme effects", "size of their group", "Map"):
        assert words not in external


def test_names_in_pictures_are_text_as_they_are(internal: str) -> None:
    text = "".join(unescape(t) for svg in pictures(internal) for t in re.findall(r">([^<]*)<", svg))
    for name in (*AREAS[:4], AREAS[5]):
        assert name in text, f"{name} was changed, or is missing"
    assert "d" * 60 not in text, "a long name leaves no room for the picture"
    for svg in pictures(internal):
        assert not re.search(r"<(script|i|foreignObject|a)[ >]", svg), "a name became markup"
        assert not re.search(r"=\"[^\"]*#010203", svg), "a stand-in colour is left"


def test_every_caption_begins_with_a_question(internal: str) -> None:
    """A picture that answers no question is one that nobody misses."""
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", internal, re.DOTALL)
    for caption in captions:
        first = re.split(r"(?<=[.?!]) ", caption.strip())[0]
        assert first.endswith("?"), first


def test_no_empty_braces_and_no_signs_of_code(internal: str) -> None:
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", internal, re.DOTALL)
    assert not {"{}", "[]", "()", "None", "False"} & {cell.strip() for cell in cells}
    words = re.sub(r"<(style|script|svg)\b.*?</\1>", "", internal, flags=re.DOTALL)
    assert "&lt;=" not in words
    assert "ivergen" not in words, "the sampler has no steps that can diverge"


def test_every_picture_has_words_and_ids_of_its_own(internal: str) -> None:
    found = pictures(internal)
    labels = [re.search(r'aria-label="([^"]+)"', svg) for svg in found]
    assert all(label is not None for label in labels)
    # hyperparameters stand in two pictures with one caption
    assert len(found) - 1 == internal.count("<figcaption>") == 16
    tags = "".join(tag for svg in found for tag in re.findall(r"<[^>]*>", svg))
    ids = re.findall(r' id="([^"]+)"', tags)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', tags))
    assert used <= set(ids)


def test_maps_say_what_they_lack(
    result: Protection, internal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1 areas of the table have no outline in the file: #010203." in internal
    monkeypatch.setattr(plots, "draw_svg", lambda *_: NO_PICTURE)
    without = render_flows(result, audience="internal", call=CALL)
    assert "no outline" not in without
    assert len(pictures(without)) == 15


NO_PICTURE = Markup("<svg ></svg>")  # quick to draw


def test_maps_show_the_errors_and_risks_of_the_result(
    result: Protection, shapes: Shapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}

    def keep(name: str, values: pd.Series, *_: object) -> str:
        shown[name] = values
        return NO_PICTURE

    monkeypatch.setattr(plots, "area_map", keep)
    monkeypatch.setattr(plots, "draw_svg", lambda *_: NO_PICTURE)
    page = render_flows(result, audience="internal", call=CALL, shapes=shapes)
    before, after = (
        pd.concat([f.groupby("o")["n"].sum(), f.groupby("d")["n"].sum()]).groupby(level=0).sum()
        for f in (result.table.frame, result.release)
    )
    expected = (after - before) / before
    pd.testing.assert_series_equal(shown["map-errors"], expected, check_names=False)
    assert shown["map-risk"].to_dict() == result.measured.classes["area"]["r_all"].to_dict()
    beside = {area: cells for area, *cells in rows(page, "Areas of the maps")}
    risk = result.measured.classes["area"]
    assert beside == {
        area: [
            str(risk["cells"][area]), f"{before[area]:,.0f}", f"{after[area]:,.0f}",
            f"{error:+.1%}", f"{risk['r_all'][area]:.1%}",
        ]
        for area, error in expected.items()
    }  # fmt: skip
    sizes = [abs(expected[area]) for area in beside]
    assert sizes == sorted(sizes, reverse=True)


def test_large_tables_say_what_the_heat_map_leaves_out(
    result: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "draw_svg", lambda *_: NO_PICTURE)
    monkeypatch.setattr("bayes_sdc.report.flows.release.MATRIX_SHOWN", 1)
    page = render_flows(result, audience="internal", call=CALL)
    assert "Shown: 1 of 2 origins and 1 of 2 destinations, the largest." in page


PICTURES = (
    "convergence", "chains", "prior_posterior", "effects", "predictive", "predictive_by_size",
    "margins", "flows", "area_map", "intruder_risk", "weights", "by_count", "risk_by_datasets",
    "ru_map",
)  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_fails_fails_the_report(
    result: Protection, shapes: Shapes, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"no picture {name}")

    monkeypatch.setattr(plots, "draw_svg", lambda *_: NO_PICTURE)
    monkeypatch.setattr(plots, name, broken)
    with pytest.raises(RuntimeError, match=f"no picture {name}$"):
        render_flows(result, audience="internal", call=CALL, shapes=shapes)


def test_a_plot_that_fails_while_it_is_drawn_fails_the_picture(result: Protection) -> None:
    with pytest.raises(InputError, match="group_diagnostics"):
        plots.convergence(result.measured.groups.drop(columns="rhat"))


def test_pictures_do_not_stay_in_memory(result: Protection) -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plots.margins(result.measured.margins)
    assert plt.get_fignums() == before


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("prior", ["weak", "paper"])
def test_priors_without_a_nation_have_a_report_too(result: Protection, prior: str) -> None:
    frame = result.table.frame
    table = read_flows(frame, origin="o", destination="d", count="n")
    alone = protect_flows(table, prior=prior, draws=20, tune=20, chains=1, releases=2, seed=1)
    page = render_flows(alone, audience="internal", call=CALL)
    assert "Every group stands alone" in page
    names = [cells[0] for cells in rows(page, "Posterior of the hyperparameters")]
    assert names[:3] == ["level", "log sd of origins", "log sd of destinations"]
    assert ("log cv of cells" in names) is (prior == "weak")


def test_enormous_effects_are_not_written_out() -> None:
    """The paper's prior gives deviations of a hundred digits in groups with one area on a side."""
    assert [signed(v) for v in (-0.124, 999.0, -2.5e103)] == ["-0.12", "+999.00", "-2.5e+103"]
