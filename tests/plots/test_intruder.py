"""Plots of risk show the numbers of the result, and refuse anything else."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bayes_sdc import (
    InputError,
    compare_risks,
    fit_flows,
    intruder_risk,
    plot_intruder_risk,
    plot_record_risk,
    plot_risk_by_count,
    plot_risk_by_datasets,
    plot_risk_comparison,
    plot_ru_map,
    read_flows,
    read_microdata,
    record_risk,
    risk_by,
    synthesize,
)
from bayes_sdc.microdata.comparison.result import MATCHES, UNIQUES


@pytest.fixture(scope="module")
def measured():
    rng = np.random.default_rng(2)
    pairs = [(o, d) for o in "abcd" for d in "wxyz"]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=1 + rng.binomial(8, 0.3, 16))
    table = read_flows(frame, origin="o", destination="d", count="n")
    posterior = fit_flows(table, draws=40, tune=40, chains=2, seed=1)
    return table, intruder_risk(table, posterior, synthesize(table, posterior, seed=2))


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    return read_microdata(frame.assign(w=10.0), keys=list("abcd"), weight="w")


def test_intruder_risk_shows_distances_and_probabilities(measured):
    _, risk = measured
    left, right = plot_intruder_risk(risk, figure=Figure())
    heights = [bar.get_height() for bar in left.patches]
    np.testing.assert_allclose(heights, risk.distance_distribution())
    assert left.get_title() == f"R_all {float(risk.r_all):.1%}, without release 11.1%"
    assert sum(bar.get_height() for bar in right.patches) == 16, "a cell is missing"
    (mean,) = right.lines
    assert mean.get_xdata()[0] == pytest.approx(float(risk.true_count_probability.mean()))


def test_risk_by_area_counts_a_cell_at_both_ends(measured):
    table, risk = measured
    by_area = risk_by(table, risk, "area")
    assert by_area["cells"].sum() == 2 * table.n_small
    for area, row in by_area.iterrows():
        mine = ((table.cells["origin"] == area) | (table.cells["destination"] == area)).to_numpy()
        assert row["cells"] == mine.sum()
        assert row["mean_distance"] == pytest.approx(float(risk.distance[mine].mean()))
        guesses = risk.rho.to_numpy()[mine].argmax(axis=1)
        assert row["r_all"] == pytest.approx((guesses == table.cells["y"][mine]).mean())


def test_risk_by_count_and_by_datasets(measured):
    table, risk = measured
    classes = risk_by(table, risk, "true-count")
    ax = plot_risk_by_count(classes, baseline=0.25, ax=Figure().add_subplot())
    assert [bar.get_height() for bar in ax.patches] == classes["r_all"].tolist()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), classes["true_count_probability"])
    assert ax.lines[1].get_ydata()[0] == 0.25
    growth = pd.DataFrame(
        {"r_all": [0.2, 0.3], "r_all_low": [0.1, 0.2], "r_all_high": [0.3, 0.4], "r_unq": np.nan,
         "believes_release": 0.15, "no_release": 0.11, "believes_release_unq": np.nan},
        index=[1, 2],
    )  # fmt: skip
    ax = plot_risk_by_datasets(growth, ax=Figure().add_subplot())
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    assert drawn == {  # an undefined share has no line
        "R_all": [0.2, 0.3],
        "R_all, believes the release": [0.15, 0.15],
        "R_all, no release": [0.11, 0.11],
    }
    band = ax.collections[0].get_datalim(ax.transData)
    assert (band.y0, band.y1) == pytest.approx((0.1, 0.4))


def test_two_shares_that_are_equal_have_one_line():
    """The second would hide the first, and the legend would name a line that nobody sees."""
    growth = pd.DataFrame(
        {"r_all": [0.2, 0.3], "r_unq": [0.4, 0.5], "no_release": 0.11, "no_release_unq": 0.11,
         "believes_release": 0.2, "believes_release_unq": 0.4},
        index=[1, 2],
    )  # fmt: skip
    ax = plot_risk_by_datasets(growth, ax=Figure().add_subplot())
    ends = [tuple(line.get_ydata()) for line in ax.lines]
    assert len(set(ends)) == len(ends) == 5
    assert ax.lines[2].get_label() == "both, no release"


def test_a_method_of_one_mark_does_not_hide_another():
    """Six methods at one place: each has a colour of its own, and single marks are hollow."""
    frame = pd.DataFrame(
        [
            (f"method {k}", "all-others", m, 0.1, 0.3)
            for k in range(6)
            for m in (1, 10)[: 1 + k % 2]
        ],
        columns=["method", "knowledge", "datasets", "totals_error", "true_count_probability"],
    )
    lines = plot_ru_map(frame, ax=Figure().add_subplot()).lines
    assert len({line.get_color() for line in lines}) == 6
    single = [line for line in lines if len(line.get_xdata()) == 1]
    assert {line.get_fillstyle() for line in single} == {"none"}
    others = [line.get_zorder() for line in lines if line not in single]
    assert min(line.get_zorder() for line in single) > max(others)


def test_record_risk_has_every_record(people):
    risk = record_risk(people)
    ax = plot_record_risk(risk, ax=Figure().add_subplot())
    assert sum(bar.get_height() for bar in ax.patches) == people.n
    assert ax.lines[0].get_xdata()[0] == risk.bulk_limit


def test_comparison_has_a_mark_a_method_at_its_number(people):
    found = compare_risks(people, 3000)
    ax = plot_risk_comparison(found, truth=12.0, ax=Figure().add_subplot())
    places = dict(zip(ax.get_yticks(), found.methods.index, strict=True))
    marks = {
        places[y]: x
        for line in ax.lines[:-1]
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert marks == found.methods["expected"].clip(0.1).to_dict()
    assert {line.get_marker() for line in ax.lines[:-1]} == {"o", "s", "D"}, "colour alone tells"
    assert ax.lines[-1].get_xdata()[0] == 12.0
    left, right = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if left <= tick <= right]
    assert len(shown) >= 3, "numbers cannot be read off"
    labels = [ax.xaxis.get_major_formatter()(tick) for tick in shown]
    assert [float(label.replace(",", "")) for label in labels] == pytest.approx(shown)


def test_a_truth_stands_beside_its_own_marks_only(people):
    found = compare_risks(people, 3000)
    ax = plot_risk_comparison(found, truth=12.0, true_matches=40.0, ax=Figure().add_subplot())
    places = pd.Series(ax.get_yticks(), index=found.methods.index)
    for line, about, truth in zip(ax.lines[-2:], (UNIQUES, MATCHES), (12.0, 40.0), strict=True):
        low, high = sorted(line.get_ydata())
        assert set(places[places.between(low, high)].index) == set(
            found.methods.index[found.methods["about"] == about]
        )
        assert list(line.get_xdata()) == [truth, truth]
    assert [text.get_text() for text in ax.get_legend().get_texts()].count("truth") == 1


@pytest.mark.parametrize(
    ("plot", "maker"),
    [
        (plot_intruder_risk, "intruder_risk"),
        (plot_record_risk, "record_risk"),
        (plot_risk_comparison, "compare_risks"),
        (plot_risk_by_count, "risk_by"),
        (plot_risk_by_datasets, "risk_by_datasets"),
        (plot_ru_map, "risk_utility"),
    ],
)
def test_other_input_names_the_function_that_makes_the_right_one(plot, maker):
    with pytest.raises(InputError, match=maker):
        plot(None)


def test_a_plot_without_axes_is_a_figure_that_a_notebook_shows(measured):
    table, risk = measured
    before = set(plt.get_fignums())
    ax = plot_risk_by_count(risk_by(table, risk, "true-count"))
    left, _ = plot_intruder_risk(risk)
    new = set(plt.get_fignums()) - before
    assert {ax.figure.number, left.figure.number} == new
    for number in new:
        plt.close(number)
