"""Treatments of a file of persons: remaining risk against loss of utility."""

import itertools

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.plots.style import BLUE, ORANGE, RED, axes_or_new, expect_columns, ink


@checked
def plot_treatments(
    frame: pd.DataFrame, *, strongest: bool = False, ax: Axes | None = None
) -> Axes:
    """Expected right matches against the distance of tables, one line per method.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.compare_treatments`.
    strongest : bool
        Whether the intruder knows which records were treated.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Marks carry their strengths; low and left is better.

    Raises
    ------
    InputError
        If ``frame`` is another table.

    See Also
    --------
    bayes_sdc.compare_treatments

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {
    ...         "method": ["untreated", "pram"], "strength": [float("nan"), 0.1],
    ...         "expected": [9.0, 4.0], "strongest": [9.0, 5.0], "two_way": [0.0, 0.1],
    ...     }
    ... )
    >>> [text.get_text() for text in plot_treatments(frame).texts]
    ['', '0.1']
    """
    risk = "strongest" if strongest else "expected"
    expect_columns(frame, ["method", "strength", risk, "two_way"], "compare_treatments")
    looks = itertools.cycle(zip("Xos^D", (ink(), BLUE, ORANGE, RED, ink()), strict=True))
    axes = axes_or_new(ax)
    lost, words = "two_way", "records moved in tables of two keys"
    if frame["two_way"].isna().all():  # a file with one key has no such table
        expect_columns(frame, ["treated"], "compare_treatments")
        lost, words = "treated", "records treated"
    for method, line in frame.groupby("method", sort=False):
        marker, colour = next(looks)
        axes.plot(
            line[lost], line[risk], marker=marker, color=colour, markersize=5, linewidth=1.0,
            label=str(method),
        )  # fmt: skip
        for _, mark in line.iterrows():
            shown = "" if pd.isna(mark["strength"]) else f"{mark['strength']:g}"
            axes.annotate(
                shown, (mark[lost], mark[risk]), xytext=(5, 4), textcoords="offset points",
                fontsize="small",
            )  # fmt: skip
    axes.set(xlabel=words, ylabel="expected right matches")
    axes.set_xlim(left=0.0)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.legend(fontsize="small")
    return axes
