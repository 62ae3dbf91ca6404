"""Plots of what an intruder learns, and of what protection costs."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.plots.labels import label_marks
from bayes_sdc.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    Panels,
    axes_or_new,
    expect,
    expect_columns,
    ink,
    new_figure,
    whole_numbers,
)

PROBABILITY_BINS = 20


@checked
def plot_intruder_risk(risk: IntruderRisk, *, figure: Panels | None = None) -> np.ndarray:
    """Distance of the intruder's best guess, and their probability of the true count.

    Parameters
    ----------
    risk : IntruderRisk
        From :func:`bayes_sdc.intruder_risk`.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (2,)
        Left the share of cells at each distance d_t, where a tie counts as its lowest count, with
        R_all beside what is found without the release; right the number of cells by the
        probability of the true count.

    Raises
    ------
    InputError
        If ``risk`` is something else.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.plot_gain, bayes_sdc.plot_risk_by_count

    References
    ----------
    Hawala, Reiter and Wang, section 3, eq. (9) to (11).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> [ax.get_ylabel() for ax in plot_intruder_risk(risk)]
    ['share of cells', 'cells']
    """
    expect(risk, IntruderRisk, "intruder_risk")
    axes: np.ndarray = new_figure(figure, (5.4, 2.7)).subplots(1, 2)
    plot_distances(risk.distance_distribution(), ax=axes[0])
    found, without = (
        "undefined" if value is None else f"{value:.1%}"
        for value in (risk.r_all.value, risk.r_all.baseline)
    )
    axes[0].set_title(f"R_all {found}, without release {without}", fontsize="small")
    probability = risk.true_count_probability.to_numpy()
    bins = np.linspace(0.0, float(probability.max()), PROBABILITY_BINS + 1)
    axes[1].hist(probability, bins=bins.tolist(), color=BLUE, alpha=0.85)
    mean = float(probability.mean())
    axes[1].axvline(mean, color=ink(), linewidth=0.9, linestyle="--")
    axes[1].set_title(f"mean {mean:.1%} (dashed)", fontsize="small")
    axes[1].set(xlabel="probability of the true count", ylabel="cells")
    axes[1].set_xlim(left=0.0)
    axes[1].xaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes[1].yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes[1].grid(visible=False, axis="x")
    return axes


def plot_distances(share: pd.Series, *, ax: Axes | None = None) -> Axes:
    """Share of cells at each distance between the true and the most probable count.

    Parameters
    ----------
    share : Series
        From :meth:`bayes_sdc.flows.intruder.result.IntruderRisk.distance_distribution`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    axes = axes_or_new(ax)
    axes.bar(share.index, share, color=BLUE, alpha=0.85)
    axes.set(xlabel="distance of the best guess", ylabel="share of cells")
    whole_numbers(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    return axes


def plot_weights(by_distance: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Share of unreliable importance weights by distance of the candidate from the true count.

    Parameters
    ----------
    by_distance : DataFrame
        Indexed by distance, with a column ``share``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    axes = axes_or_new(ax)
    axes.bar(by_distance.index, by_distance["share"], color=ORANGE, alpha=0.85)
    axes.set(xlabel="distance of the candidate from the true count", ylabel="k-hat too high")
    largest = float(by_distance["share"].max())
    axes.set_ylim(0, largest * 1.08 if largest > 0 else 0.1)
    if largest == 0:
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center")
    whole_numbers(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    return axes


@checked
def plot_risk_by_count(
    classes: pd.DataFrame, *, baseline: float | None = None, ax: Axes | None = None
) -> Axes:
    """Share of cells found and mean probability of the true count, by true count.

    Parameters
    ----------
    classes : DataFrame
        From :func:`bayes_sdc.risk_by` with ``by="true-count"``.
    baseline : float, optional
        Share found without the release, in [0, 1]: ``risk.r_all.baseline``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Bars for the share found, marks for the mean probability.

    Raises
    ------
    InputError
        If ``classes`` is another table.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.risk_by

    Examples
    --------
    >>> import pandas as pd
    >>> classes = pd.DataFrame({"r_all": [0.2, 0.1], "true_count_probability": [0.2, 0.1]})
    >>> plot_risk_by_count(classes.set_axis([1, 2]), baseline=0.5).get_xlabel()
    'true count'
    """
    expect_columns(classes, ["r_all", "true_count_probability"], "risk_by")
    axes = axes_or_new(ax)
    axes.bar(classes.index, classes["r_all"], color=BLUE, alpha=0.75, label="found")
    axes.plot(
        classes.index,
        classes["true_count_probability"],
        "D",
        color=ORANGE,
        markersize=4.5,
        label="mean probability",
    )
    if baseline is not None:
        axes.axhline(baseline, color=ink(), linewidth=0.9, linestyle="--", label="without release")
    axes.set(xlabel="true count", ylabel="share of cells")
    whole_numbers(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    # below, because a bar can be high anywhere
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize="small")
    return axes


@checked
def plot_risk_by_datasets(growth: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Shares of cells found by number of released data sets.

    Parameters
    ----------
    growth : DataFrame
        From :func:`bayes_sdc.risk_by_datasets`, or some of its columns; a share
        without its smallest and largest has no band.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        A line for R_all and one for R_unq; the bands reach from the smallest to the largest of the
        releases. Beside each, dashed, the share found by believing the first released count, and,
        dotted, by guessing without the release.

    Raises
    ------
    InputError
        If ``growth`` is not a data frame.

    See Also
    --------
    bayes_sdc.risk_by_datasets

    Examples
    --------
    >>> import pandas as pd
    >>> growth = pd.DataFrame({"r_all": [0.2, 0.3]}, index=[1, 2])
    >>> plot_risk_by_datasets(growth).get_xlabel()
    'released data sets'
    """
    expect_columns(growth, [], "risk_by_datasets")
    axes = axes_or_new(ax)
    marks = {"r_all": ("R_all", "o", BLUE), "r_unq": ("R_unq", "^", ORANGE)}
    for column, (name, marker, colour) in marks.items():
        if column not in growth or not growth[column].notna().any():
            continue
        axes.plot(growth.index, growth[column], marker, ls="-", color=colour, ms=4, label=name)
        if f"{column}_low" in growth:
            ends = growth[f"{column}_low"], growth[f"{column}_high"]
            axes.fill_between(growth.index, *ends, color=colour, alpha=0.2, linewidth=0)
        end = "" if column == "r_all" else "_unq"
        others = (
            ("believes_release", "believes the release", "--"),
            ("no_release", "no release", ":"),
        )
        for other, who, style in others:
            if other + end not in growth:
                continue
            beside, whose, look = growth[other + end], f"{name}, {who}", colour
            if f"{other}_unq" in growth and growth[f"{other}_unq"].equals(growth[other]):
                if end:
                    continue  # one line for both, or the second would hide the first
                whose, look = f"both, {who}", ink()
            axes.plot(growth.index, beside, ls=style, lw=1, color=look, label=whose)
    axes.set(xlabel="released data sets", ylabel="share of cells found")
    axes.set_ylim(0.0, 1.04)
    whole_numbers(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    if axes.get_legend_handles_labels()[0]:  # below, because a curve can be anywhere
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize="small")
    return axes


@checked
def plot_ru_map(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Risk against loss of utility: one line per method and knowledge, marks by data sets.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.risk_utility`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The first and last mark of a line show their numbers of data sets; low and left is better.

    Raises
    ------
    InputError
        If ``frame`` is another table.

    See Also
    --------
    bayes_sdc.risk_utility

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {
    ...         "method": ["model", "model"],
    ...         "knowledge": ["all-others", "all-others"],
    ...         "datasets": [1, 5],
    ...         "totals_error": [0.10, 0.05],
    ...         "true_count_probability": [0.15, 0.30],
    ...     }
    ... )
    >>> [text.get_text() for text in plot_ru_map(frame).texts]
    ['1', '5']
    """
    columns = ["method", "knowledge", "datasets", "totals_error", "true_count_probability"]
    expect_columns(frame, columns, "risk_utility")
    colours = itertools.cycle((BLUE, ORANGE, RED, ink(), GREEN, PURPLE, GREY))
    styles = itertools.cycle(("-", "--", ":"))
    looks = itertools.cycle(zip("os^DvXP", colours, styles, strict=False))
    words = {
        "margins": "sums known",
        "all-others": "other cells known",
        "all-others, and totals to a base": "rounded totals and other cells known",
        "all-but-cycle": "totals and most cells known",
    }
    several = frame.groupby("method")["knowledge"].nunique() > 1
    axes = axes_or_new(ax)
    lines, ends, numbers = [], [], []
    for method, knowledge in frame[["method", "knowledge"]].drop_duplicates().to_numpy():
        mine = (frame["method"] == method) & (frame["knowledge"] == knowledge)
        line = frame[mine].sort_values("datasets")
        marker, colour, style = next(looks)
        axes.plot(
            line["totals_error"],
            line["true_count_probability"],
            marker=marker,
            linestyle=style,
            color=colour,
            linewidth=1.0,
            label=f"{method}, {words[knowledge]}" if several[method] else method,
            # one mark has no line to find it by, so it must show what it lies upon
            markersize=7 if len(line) == 1 else 5,
            fillstyle="none" if len(line) == 1 else "full",
            zorder=3 if len(line) == 1 else 2,
        )
        points = line[["totals_error", "true_count_probability"]].to_numpy(float)
        lines.append(points)
        for end in (0, -1)[: min(len(line), 2)]:
            ends.append(points[end])
            numbers.append(f"{line['datasets'].iloc[end]:.0f}")
    axes.set(xlabel="error of totals by area", ylabel="probability of the true count")
    axes.set_xlim(0.0, max(0.1, 1.08 * float(frame["totals_error"].max())))
    axes.set_ylim(0.0, 1.08)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize="small")
    label_marks(axes, np.array(ends), numbers, lines=lines)
    return axes
