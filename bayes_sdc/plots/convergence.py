"""Plots of whether a posterior converged."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.errors import InputError
from bayes_sdc.flows.model.parameters import draws_of
from bayes_sdc.plots.style import (
    BLUE,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    PURPLE,
    RED,
    VECTOR_LIMIT,
    Panels,
    axes_or_new,
    expect_columns,
    ink,
    new_figure,
    plain_powers,
    shortened,
)

RANK_BINS = 20
# distinct for the colour-blind, and by their lines in black and white
CHAIN_LOOKS = ((BLUE, "-"), (ORANGE, "--"), (GREEN, ":"), (PURPLE, "-."))
SKEWED = ("phi_beta", "phi_gamma", "r")  # shown on a logarithmic axis


@checked
def plot_convergence(groups: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Largest R-hat against smallest ESS, one mark per group, by verdict.

    Parameters
    ----------
    groups : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.group_diagnostics`, or ``groups`` of a
        ``Protection``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The dashed lines are the limits of :mod:`bayes_sdc.convergence`. A group without an R-hat
        stands at the top, one without an ESS at the left.

    Raises
    ------
    InputError
        If ``groups`` is another table.

    See Also
    --------
    bayes_sdc.plot_chains, bayes_sdc.fit_flows

    Examples
    --------
    >>> import pandas as pd
    >>> groups = pd.DataFrame({"rhat": [1.002], "ess": [900.0], "verdict": ["pass"]}, index=["a"])
    >>> plot_convergence(groups).get_ylabel()
    'largest R-hat'
    """
    expect_columns(groups, ["rhat", "ess", "verdict"], "group_diagnostics")
    finite = groups["rhat"][np.isfinite(groups["rhat"])]
    rhat = groups["rhat"].clip(upper=max(finite.max(), 1.06) if len(finite) else 1.06)
    ess = groups["ess"].clip(lower=1.0)
    axes = axes_or_new(ax)
    for verdict, marker, colour in [("pass", "o", BLUE), ("look", "s", ORANGE), ("fail", "X", RED)]:
        chosen = groups["verdict"] == verdict
        if chosen.any():
            axes.scatter(
                ess[chosen],
                rhat[chosen],
                s=26,
                marker=marker,
                color=colour,
                alpha=0.8,
                linewidths=0,
                label=f"{verdict} ({int(chosen.sum())})",
                rasterized=len(groups) > VECTOR_LIMIT,
            )
    axes.axhline(RHAT_LIMIT, color=ink(), linewidth=0.9, linestyle="--")
    axes.axvline(ESS_LIMIT, color=ink(), linewidth=0.9, linestyle="--")
    axes.set(xscale="log", xlabel="smallest effective sample size", ylabel="largest R-hat")
    plain_powers(axes.xaxis, ess.max() / ess.min())
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)  # off the marks
    return axes


@checked
def plot_chains(
    posterior: xr.DataTree,
    groups: pd.DataFrame,
    *,
    number: int = 4,
    figure: Panels | None = None,
) -> np.ndarray:
    """Traces and ranks of the worst parameter of each of the worst groups.

    For other parameters: the posterior is an ArviZ DataTree, and ``arviz_plots`` draws it.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    groups : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.group_diagnostics`: worst groups first.
    number : int
        Groups to show.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (group, 2)
        Left the draws of each chain in order. Right how many draws of each chain fall in each
        twentieth of all draws: when the chains agree they are level, within the grey band that
        holds 95 % of the numbers for independent draws.

    Raises
    ------
    InputError
        If ``groups`` is another table, or of another posterior, or ``number`` is below 1.

    See Also
    --------
    bayes_sdc.plot_convergence, bayes_sdc.fit_flows

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, doi:10.1214/20-BA1221, section 4.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> from bayes_sdc.flows.diagnostics import group_diagnostics
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> plot_chains(posterior, group_diagnostics(posterior)).shape
    (2, 2)
    """
    expect_columns(groups, ["worst", "rhat"], "group_diagnostics")
    if number < 1:
        raise InputError(f"number must be 1 or more; it is {number}")
    worst = groups.iloc[:number]
    panels = new_figure(figure, (5.4, 0.4 + 1.35 * len(worst)))
    axes: np.ndarray = panels.subplots(len(worst), 2, squeeze=False)
    for (trace, ranks), group, name in zip(axes, worst.index, worst["worst"], strict=True):
        draws = draws_of(posterior, str(group), str(name)).transpose("chain", "draw").to_numpy()
        place = pd.Series(draws.ravel()).rank(method="first").to_numpy() - 1.0
        bins = (place * RANK_BINS / draws.size).astype(int).reshape(draws.shape)
        level = draws.shape[1] / RANK_BINS
        half = 1.96 * np.sqrt(level * (1.0 - 1.0 / RANK_BINS) * (1.0 - 1.0 / len(draws)))
        ranks.axhspan(max(level - half, 0.0), level + half, color=GREY, alpha=0.3, linewidth=0)
        edges = np.linspace(0.0, 1.0, RANK_BINS + 1)
        pixels, most = draws.size > VECTOR_LIMIT, 3.0 * level
        for chain, one in enumerate(draws):
            colour, line = CHAIN_LOOKS[chain % len(CHAIN_LOOKS)]
            trace.plot(one, color=colour, linewidth=0.5, alpha=0.7, rasterized=pixels)
            counts = np.bincount(bins[chain], minlength=RANK_BINS)
            look = {"color": colour, "linestyle": line, "linewidth": 1.3}
            ranks.stairs(counts, edges, baseline=None, **look)
            most = max(most, 1.05 * counts.max())
        if name in SKEWED and draws.min() > 0.0 and np.isfinite(draws).all():
            trace.set_yscale("log")
            plain_powers(trace.yaxis, draws.max() / draws.min())
            trace.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        else:
            trace.yaxis.set_major_locator(MaxNLocator(3))
        ranks.set_ylim(0.0, most)  # from 0 to 3: a ragged line should not look like a bad one
        trace.set_title(
            f"{shortened(group)}: {shortened(name, LONG)}",
            loc="left",
            fontsize="small",
            parse_math=False,
        )
        for one in (trace, ranks):
            one.grid(visible=False)
            one.xaxis.set_major_locator(MaxNLocator(4, integer=one is trace))
            one.tick_params(labelsize="small")
        ranks.yaxis.set_major_locator(MaxNLocator(3))
    axes[-1, 0].set_xlabel("draw")
    axes[-1, 1].set_xlabel("rank among all draws")
    return axes
