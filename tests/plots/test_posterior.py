"""Plots of a posterior show the numbers of the posterior, and say what they show."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bayes_sdc import (
    InputError,
    diagnostics,
    fit_flows,
    plot_chains,
    plot_convergence,
    plot_effects,
    plot_predictive,
    plot_predictive_by_size,
    plot_prior_posterior,
    read_flows,
)
from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.parameters import draws_of, effects
from bayes_sdc.plots.style import in_lines, shortened


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(4)
    pairs = [(o, d) for o in ("$a", "b_1", "c") for d in "xyz"]
    frame = pd.DataFrame(
        {
            "o": [o for o, _ in pairs] * 2,
            "d": [d for _, d in pairs] * 2,
            "n": 1 + rng.binomial(8, 0.3, 2 * len(pairs)),
            "g": np.repeat(["east", "west"], len(pairs)),
        }
    )
    table = read_flows(frame, origin="o", destination="d", count="n", groups="g")
    return fit_flows(table, draws=40, tune=40, chains=3, seed=1)


@pytest.fixture(scope="module")
def groups(posterior):
    return diagnostics.group_diagnostics(posterior)


def test_chains_are_those_of_the_worst_parameter(posterior, groups):
    axes = plot_chains(posterior, groups, number=2, figure=Figure())
    assert axes.shape == (2, 2)
    for (trace, ranks), group, name in zip(axes, groups.index, groups["worst"], strict=False):
        draws = draws_of(posterior, group, name).transpose("chain", "draw").to_numpy()
        np.testing.assert_array_equal([line.get_ydata() for line in trace.lines], draws)
        assert trace.get_title(loc="left").startswith(f"{group}: ")
        counts = [step.get_data().values for step in ranks.patches if hasattr(step, "get_data")]
        assert [c.sum() for c in counts] == [40.0] * 3
        # all chains together fill every twentieth of the ranks alike
        np.testing.assert_array_equal(np.sum(counts, axis=0), 6.0)


def test_a_chain_that_disagrees_leans_to_one_side(posterior, groups):
    moved = posterior.copy(deep=True)
    group, name = "east", "alpha"
    moved["posterior"]["alpha"].loc[{"group": group, "chain": 2}] += 100.0
    worst = pd.DataFrame({"worst": [name], "rhat": [9.0]}, index=[group])
    _, ranks = plot_chains(moved, worst, figure=Figure())[0]
    counts = [step.get_data().values for step in ranks.patches if hasattr(step, "get_data")]
    assert counts[2][-6:].sum() == 36
    assert counts[2][:-7].sum() == 0


def test_prior_and_posterior_of_every_hyperparameter(posterior):
    axes = plot_prior_posterior(posterior, figure=Figure())
    found = hyperparameters(posterior)
    assert [one.get_title().replace("\n", " ") for one in axes] == [one.name for one in found]
    for one, shown in zip(axes, found, strict=True):
        (line,) = one.lines
        np.testing.assert_allclose(line.get_ydata(), shown.density(line.get_xdata()))
        (steps,) = one.patches
        values, edges, _ = steps.get_data()
        assert (values * np.diff(edges)).sum() == pytest.approx(1.0)
        assert edges[0] <= np.median(shown.draws) <= edges[-1]
        if "sd of level" in shown.name:  # a standard deviation is not shown below 0
            assert line.get_xdata().min() > 0


def test_effects_are_named_and_drawn_from_end_to_end(posterior):
    origins, destinations = plot_effects(posterior, number=3, ci_prob=0.5, figure=Figure())
    assert "50 % eti" in destinations.get_xlabel()
    frame = effects(posterior, ci_prob=0.5)
    for one, side in ((origins, "origin"), (destinations, "destination")):
        mine = frame[frame["side"] == side].set_index(["group", "area"])
        labels = [tuple(text.get_text().split(" | ")) for text in one.get_yticklabels()]
        chosen = mine.loc[labels]
        assert set(chosen["median"].abs()) == set(mine["median"].abs().nlargest(3))
        np.testing.assert_allclose(one.lines[0].get_xdata(), chosen["median"])
        ends = np.array([segment[:, 0] for segment in one.collections[0].get_segments()])
        np.testing.assert_allclose(ends, chosen[["lower", "upper"]])


def test_effects_of_one_group_need_no_name_of_it(posterior):
    origins, _ = plot_effects(posterior, group="west", figure=Figure())
    assert {text.get_text() for text in origins.get_yticklabels()} == {"$a", "b_1", "c"}
    assert not any(text.get_parse_math() for text in origins.get_yticklabels())
    with pytest.raises(InputError, match="north"):
        plot_effects(posterior, group="north", figure=Figure())


def predictive() -> pd.DataFrame:
    # the mean of the second lies outside of its interval
    return pd.DataFrame(
        {"observed": [400, 25], "expected": [380.5, 9.0], "lower": [300, 10], "upper": [450, 30]},
        index=[1, 2],
    )


def test_rootogram_shows_counts_and_intervals():
    ax = plot_predictive(predictive(), ax=Figure().add_subplot())
    assert [bar.get_height() for bar in ax.patches] == [400, 25]
    (segments,) = (c.get_segments() for c in ax.collections)
    np.testing.assert_allclose([s[:, 1] for s in segments], [[300, 450], [9, 30]])
    # on a square root scale 100 stands half as high as 400
    heights = ax.transData.transform([(1, 0), (1, 100), (1, 400)])[:, 1]
    assert heights[1] - heights[0] == pytest.approx((heights[2] - heights[0]) / 2)


def test_rootogram_by_size_has_a_panel_a_size():
    frame = pd.concat({"fewer than 10": predictive(), "100 or more": 2 * predictive()})
    axes = plot_predictive_by_size(frame, figure=Figure())
    assert [one.get_title() for one in axes] == [
        "groups of fewer than 10 cells",
        "groups of 100 or more cells",
    ]
    assert [bar.get_height() for bar in axes[1].patches] == [800, 50]
    with pytest.raises(InputError, match="by size"):
        plot_predictive_by_size(predictive(), figure=Figure())


def test_convergence_has_a_mark_a_group_and_says_the_verdicts():
    groups = pd.DataFrame(
        {
            "rhat": [np.inf, 1.02, 1.0],
            "ess": [0.0, 300.0, 900.0],
            "verdict": ["fail", "look", "pass"],
        }
    )
    ax = plot_convergence(groups, ax=Figure().add_subplot())
    marks = {c.get_label(): c.get_offsets().data.tolist() for c in ax.collections}
    assert marks == {
        "pass (1)": [[900.0, 1.0]],
        "look (1)": [[300.0, 1.02]],
        "fail (1)": [[1.0, 1.06]],  # what does not exist stands at the edge
    }


@pytest.mark.parametrize(
    ("plot", "maker"),
    [
        (plot_convergence, "group_diagnostics"),
        (plot_predictive, "predictive_counts"),
        (plot_predictive_by_size, "predictive_counts_by_size"),
        (plot_effects, "fit_flows"),
        (plot_prior_posterior, "fit_flows"),
    ],
)
@pytest.mark.parametrize("wrong", [None, pd.DataFrame({"x": [1]})])
def test_other_input_names_the_function_that_makes_the_right_one(plot, maker, wrong):
    with pytest.raises(InputError, match=maker):
        plot(wrong)


def test_long_names_keep_both_ends():
    assert shortened("0123456789" * 9) == "0123456789012…7890123456789"
    assert shortened("exactly as long as there is") == "exactly as long as there is"


def test_long_names_differ_in_the_lines_that_are_shown() -> None:
    """Shortened in the middle, the means of all coefficients had one title."""
    names = [f"national mean of coefficient of log_{what}_origin" for what in ("safe", "partners")]
    lines = [in_lines(name, 34) for name in names]
    assert [line.replace("\n", " ") for line in lines] == names
    assert all(len(part) <= 34 for line in lines for part in line.splitlines())
    assert all(len(part) <= 20 for part in in_lines("x" * 90 + " y " + "z" * 50, 20).splitlines())
