"""Plots of a posterior: what the model learned, and whether it fits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.model.hyperparameters import Hyperparameter, hyperparameters
from bayes_sdc.flows.model.parameters import CI_PROB, effects, extreme
from bayes_sdc.plots.style import (
    BLUE,
    LONG,
    ORANGE,
    Panels,
    axes_or_new,
    expect,
    expect_columns,
    in_lines,
    ink,
    new_figure,
    shortened,
    whole_numbers,
)

HISTOGRAM_BINS = 30
LINE = 34  # letters above a panel of half the width


@checked
def plot_prior_posterior(posterior: xr.DataTree, *, figure: Panels | None = None) -> np.ndarray:
    """Posterior of each hyperparameter as a histogram, its prior as a line.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (hyperparameter,)
        One panel each, as :func:`bayes_sdc.flows.model.hyperparameters.hyperparameters` names them.
        The horizontal axis is twice as wide as the posterior; a prior much wider than that looks
        flat.

    Raises
    ------
    InputError
        If ``posterior`` is something else.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.plot_effects

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> plot_prior_posterior(posterior)[0].get_title()
    'national mean of level'
    """
    expect(posterior, xr.DataTree, "fit_flows")
    return draw_hyperparameters(hyperparameters(posterior), figure)


def panels_size(number: int) -> tuple[float, float]:
    """Width and height in inches of so many hyperparameters, two in a row."""
    return 5.4, 0.5 + 1.3 * -(-number // 2)


def draw_hyperparameters(found: Sequence[Hyperparameter], figure: Panels | None) -> np.ndarray:
    """Draw what :func:`plot_prior_posterior` shows, of some hyperparameters.

    Parameters
    ----------
    found : sequence of Hyperparameter
        Which.
    figure : matplotlib Figure or SubFigure, or None
        Where to draw.

    Returns
    -------
    array of matplotlib Axes, shape (hyperparameter,)
    """
    panels = new_figure(figure, panels_size(len(found)))
    rows = -(-len(found) // 2)
    axes: np.ndarray = panels.subplots(rows, 2, squeeze=False).ravel()
    for one, shown in zip(axes, found, strict=False):
        low, high = np.quantile(shown.draws, [0.001, 0.999])
        reach = max(high - low, 1e-6) / 2.0
        x = np.linspace(low - reach, high + reach, 200)
        x = x[(x >= low) | (shown.density(x) > 0.0)]  # a standard deviation is not below 0
        edges = np.linspace(low, low + 2.0 * reach, HISTOGRAM_BINS + 1)
        density, _ = np.histogram(shown.draws, edges, density=True)
        one.stairs(density, edges, fill=True, color=BLUE, alpha=0.6, label="posterior")
        one.plot(x, shown.density(x), color=ORANGE, linewidth=1.6, label="prior")
        one.set_title(in_lines(shown.name, LINE), fontsize="small", parse_math=False)
        one.set_yticks([])
        one.grid(visible=False)
        one.spines["left"].set_visible(False)
        one.xaxis.set_major_locator(MaxNLocator(4))
        one.tick_params(labelsize="small")
    for one in axes[len(found) :]:
        one.remove()
    panels.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return axes[: len(found)]


@checked
def plot_effects(
    posterior: xr.DataTree,
    *,
    number: int = 10,
    group: str | None = None,
    ci_prob: float = CI_PROB,
    figure: Panels | None = None,
) -> np.ndarray:
    """The most extreme effects of origins and of destinations, with their intervals.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    number : int
        Effects on each side, those whose median is farthest from 0.
    group : str, optional
        Effects of this group only.
    ci_prob : float
        Probability of the intervals, which have equal tails ("eti"), above 0 and below 1.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (2,)
        Origins and destinations: deviations from the group's mean on the scale of the log rate,
        posterior median and interval.

    Raises
    ------
    InputError
        If there is no such group, or ``ci_prob`` is out of range.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.plot_prior_posterior

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> [ax.get_title() for ax in plot_effects(posterior)]
    ['origins', 'destinations']
    """
    expect(posterior, xr.DataTree, "fit_flows")
    shown = extreme(effects(posterior, ci_prob=ci_prob), number=number, group=group)
    several = group is None and posterior["posterior"].sizes["group"] > 1
    rows = int(shown.groupby("side").size().max())
    axes: np.ndarray = new_figure(figure, (5.4, 1.0 + 0.36 * rows)).subplots(2, 1, sharex=True)
    for one, side in zip(axes, ("origin", "destination"), strict=True):
        part = shown[shown["side"] == side].sort_values("median", kind="stable")
        places = np.arange(len(part))
        one.hlines(places, part["lower"], part["upper"], color=BLUE, linewidth=1.6)
        one.plot(part["median"], places, "o", color=BLUE, markersize=4)
        one.axvline(0.0, color=ink(), linewidth=0.9, linestyle="--")
        names = part["group"] + " | " + part["area"] if several else part["area"]
        one.set_yticks(places, [shortened(name, LONG) for name in names], parse_math=False)
        one.tick_params(axis="y", labelsize="small", length=0)
        one.grid(visible=False, axis="y")
        one.set_title(f"{side}s", fontsize="medium")
    axes[1].set_xlabel(f"log rate less the group's mean, {100 * ci_prob:g} % eti")
    return axes


@checked
def plot_predictive(counts: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rootogram: observed and expected numbers of cells by count, on a square root scale.

    Parameters
    ----------
    counts : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.predictive_counts`, or ``predictive`` of a
        ``Protection``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Bars for the observed numbers, marks with 95 % intervals for the expected ones.

    Raises
    ------
    InputError
        If ``counts`` is another table.

    See Also
    --------
    bayes_sdc.plot_predictive_by_size, bayes_sdc.fit_flows

    References
    ----------
    Kleiber and Zeileis 2016, doi:10.1080/00031305.2016.1173590.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"observed": [30], "expected": [28.0], "lower": [20.0], "upper": [36.0]}
    >>> plot_predictive(pd.DataFrame(row, index=[1])).get_yscale()
    'function'
    """
    expect_columns(counts, ["observed", "expected", "lower", "upper"], "predictive_counts")
    expected = counts["expected"]
    # the mean of a skewed sample may lie outside its central interval, but a bar has no negative
    # length
    spread = [
        (expected - counts["lower"]).clip(lower=0.0),
        (counts["upper"] - expected).clip(lower=0.0),
    ]
    axes = axes_or_new(ax)
    axes.bar(counts.index, counts["observed"], color=BLUE, alpha=0.75, label="observed")
    axes.errorbar(
        counts.index,
        expected,
        yerr=np.stack(spread),
        fmt="D",
        markersize=4,
        capsize=3,
        color=ORANGE,
        label="expected, 95 % interval",
    )
    axes.set_yscale("function", functions=(_root, np.square))
    axes.set_ylim(bottom=0.0)
    axes.set(xlabel="count", ylabel="small cells")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    whole_numbers(axes)
    # below, because a bar can be high anywhere
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small")
    return axes


def _root(x: np.ndarray) -> np.ndarray:
    """Square root; values below 0 are off the axis."""
    return np.asarray(np.sqrt(np.maximum(x, 0.0)))


@checked
def plot_predictive_by_size(counts: pd.DataFrame, *, figure: Panels | None = None) -> np.ndarray:
    """Rootogram of the counts for small, medium and large groups.

    Parameters
    ----------
    counts : DataFrame
        From :func:`bayes_sdc.flows.release.synthetic.predictive.predictive_counts_by_size`, or
        ``predictive_by_size`` of a ``Protection``.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (size,)
        As :func:`plot_predictive`, one for each size of group that occurs.

    Raises
    ------
    InputError
        If ``counts`` is another table.

    See Also
    --------
    bayes_sdc.plot_predictive, bayes_sdc.fit_flows

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"observed": [30], "expected": [28.0], "lower": [20.0], "upper": [36.0]}
    >>> index = pd.MultiIndex.from_tuples([("fewer than 10", 1)], names=["size", "count"])
    >>> plot_predictive_by_size(pd.DataFrame(row, index=index)).shape
    (1,)
    """
    expect_columns(counts, ["observed", "expected"], "predictive_counts_by_size")
    if counts.index.nlevels != 2:
        raise InputError(
            "this plot shows the table of predictive_counts_by_size, by size and count"
        )
    sizes = list(counts.index.unique(0))
    panels = new_figure(figure, (5.4, 2.6))
    axes: np.ndarray = panels.subplots(1, len(sizes), squeeze=False).ravel()
    for one, size in zip(axes, sizes, strict=True):
        plot_predictive(counts.loc[size], ax=one)
        one.set_title(f"groups of {size} cells", fontsize="small")
        one.get_legend().remove()
        one.set_ylabel("small cells" if one is axes[0] else "")
        one.tick_params(labelsize="small")
    panels.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return axes
