"""Pictures of the reports, as SVG to stand inside an HTML document.

They hold no text of the data: names of areas, groups and columns stay in the tables.
"""

import io
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

BLUE, ORANGE, RED = "#3f87c9", "#d9772b", "#d0455a"  # legible on white and on black
INK, GRID = "#010203", "#030201"  # stand-ins that the style sheet replaces, by light and by dark
VECTOR_LIMIT = 2000  # points; more are drawn as pixels, which keeps the file small

STYLE: "dict[RcKeyType, Any]" = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def convergence(groups: pd.DataFrame) -> Markup:
    """Largest R-hat against smallest ESS, one mark a group, by verdict.

    Parameters
    ----------
    groups : DataFrame
        From :func:`bayes_sdc.diagnostics.group_diagnostics`.

    Returns
    -------
    Markup
        SVG. A group without an R-hat stands at the top, one without an ESS at the left.
    """
    finite = groups["rhat"][np.isfinite(groups["rhat"])]
    rhat = groups["rhat"].clip(upper=max(finite.max(), 1.06) if len(finite) else 1.06)
    ess = groups["ess"].clip(lower=1.0)

    def draw(axes: Axes) -> None:
        marks = [("pass", "o", BLUE), ("look", "s", ORANGE), ("fail", "X", RED)]
        for verdict, marker, colour in marks:
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
        axes.axhline(1.01, color=INK, linewidth=0.9, linestyle="--")
        axes.axvline(400, color=INK, linewidth=0.9, linestyle="--")
        axes.set(xscale="log", xlabel="smallest effective sample size", ylabel="largest R-hat")
        _plain_powers(axes.xaxis, ess.max() / ess.min())
        axes.legend(loc="best")

    return _svg(
        "convergence", "Largest R-hat against smallest effective sample size by group", draw
    )


def predictive(counts: pd.DataFrame) -> Markup:
    """Numbers of cells by count: observed bars, expected marks with 95 % intervals.

    Parameters
    ----------
    counts : DataFrame
        From :func:`bayes_sdc.diagnostics.predictive_counts`.
    """
    expected = counts["expected"]
    # the mean of a skewed sample may lie outside its central interval; a bar has no negative length
    spread = [
        (expected - counts["lower"]).clip(lower=0.0),
        (counts["upper"] - expected).clip(lower=0.0),
    ]

    def draw(axes: Axes) -> None:
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
        axes.set(xlabel="count", ylabel="small cells")
        _whole_numbers(axes)
        axes.legend(loc="upper right")

    return _svg("predictive", "Observed and expected numbers of small cells by count", draw)


def margins(frame: pd.DataFrame) -> Markup:
    """Synthetic against true totals of the small cells, one mark an area and side.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.flows.utility.margins`.
    """
    totals = frame[["true", "synthetic"]].to_numpy(float)
    ends = np.array([totals.min(), totals.max()])

    def draw(axes: Axes) -> None:
        for side, marker, colour in (("origin", "o", BLUE), ("destination", "^", ORANGE)):
            part = frame[frame["side"] == side]
            axes.scatter(
                part["true"],
                part["synthetic"],
                s=18,
                marker=marker,
                color=colour,
                alpha=0.65,
                linewidths=0,
                label=side,
                rasterized=len(frame) > VECTOR_LIMIT,
            )
        axes.plot(ends, ends, color=INK, linewidth=0.9, linestyle="--", label="equal")
        axes.set(xlabel="true total", ylabel="synthetic total")
        if ends[0] > 0:
            axes.set(xscale="log", yscale="log")
            for axis in (axes.xaxis, axes.yaxis):
                _plain_powers(axis, ends[1] / ends[0])
        axes.legend(loc="upper left")

    return _svg("margins", "Synthetic against true totals of the small cells by area", draw)


def distances(share: pd.Series) -> Markup:
    """Share of cells at each distance between the true and the most probable count.

    Parameters
    ----------
    share : Series
        From :meth:`bayes_sdc.flows.intruder.IntruderRisk.distance_distribution`.
    """

    def draw(axes: Axes) -> None:
        axes.bar(share.index, share, color=BLUE, alpha=0.85)
        axes.set(xlabel="distance between true and most probable count", ylabel="share of cells")
        _whole_numbers(axes)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))

    return _svg("distances", "Share of small cells by distance of the best guess", draw)


def weights(by_distance: pd.DataFrame) -> Markup:
    """Share of unreliable importance weights by distance of the candidate from the true count.

    Parameters
    ----------
    by_distance : DataFrame
        Indexed by distance, with a column ``share``.
    """

    def draw(axes: Axes) -> None:
        axes.bar(by_distance.index, by_distance["share"], color=ORANGE, alpha=0.85)
        axes.set(xlabel="distance of the candidate from the true count", ylabel="k-hat too high")
        axes.set_ylim(0, max(1e-3, float(by_distance["share"].max()) * 1.08))
        _whole_numbers(axes)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))

    return _svg(
        "weights", "Share of pairs with too high a k-hat by distance of the candidate", draw
    )


def by_count(frame: pd.DataFrame, baseline: float | None) -> Markup:
    """Share of cells found and mean probability of the true count, by true count.

    Parameters
    ----------
    frame : DataFrame
        Indexed by true count, with columns ``found`` and ``probability``.
    baseline : float, optional
        Share found without the release.
    """

    def draw(axes: Axes) -> None:
        axes.bar(frame.index, frame["found"], color=BLUE, alpha=0.75, label="found")
        axes.plot(
            frame.index,
            frame["probability"],
            "D",
            color=ORANGE,
            markersize=4.5,
            label="mean probability",
        )
        if baseline is not None:
            axes.axhline(
                baseline, color=INK, linewidth=0.9, linestyle="--", label="without release"
            )
        axes.set(xlabel="true count", ylabel="share of cells")
        _whole_numbers(axes)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
        axes.legend(loc="upper right")

    return _svg("by-count", "Share of small cells found by true count", draw)


def risk_by_datasets(growth: pd.DataFrame) -> Markup:
    """Shares of cells found by number of released data sets.

    Parameters
    ----------
    growth : DataFrame
        From :func:`bayes_sdc.flows.repeats.risk_by_datasets`, or some of its columns; a share
        without its smallest and largest has no band.
    """

    def draw(axes: Axes) -> None:
        marks = {"r_all": ("R_all", "o", BLUE), "r_unq": ("R_unq", "^", ORANGE)}
        for column, (name, marker, colour) in marks.items():
            if column not in growth or not growth[column].notna().any():
                continue
            axes.plot(growth.index, growth[column], marker, ls="-", color=colour, ms=4, label=name)
            if f"{column}_low" in growth:
                ends = growth[f"{column}_low"], growth[f"{column}_high"]
                axes.fill_between(growth.index, *ends, color=colour, alpha=0.2, linewidth=0)
        axes.set(xlabel="released data sets", ylabel="share of cells found")
        axes.set_ylim(0.0, 1.04)
        _whole_numbers(axes)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
        axes.legend(loc="best")

    return _svg("risk-by-datasets", "Share of small cells found by number of data sets", draw)


def plot_ru_map(frame: pd.DataFrame) -> Markup:
    """Risk against loss of utility: a line a method and knowledge, a mark a number of data sets.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.flows.tradeoff.risk_utility`.

    Returns
    -------
    Markup
        SVG. The first and last mark of a line carry their numbers of data sets; low and left is
        better.
    """
    colours, styles = itertools.cycle((BLUE, ORANGE, RED, INK)), itertools.cycle(("-", "--", ":"))
    looks = itertools.cycle(zip("os^DvXP", colours, styles, strict=False))
    words = {"margins": "sums known", "all-others": "other cells known"}
    several = frame.groupby("method")["knowledge"].nunique() > 1

    def draw(axes: Axes) -> None:
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
                markersize=5,
                linewidth=1.0,
                label=f"{method}, {words[knowledge]}" if several[method] else method,
            )
            for end in (line.iloc[0], line.iloc[-1])[: min(len(line), 2)]:
                axes.annotate(
                    f"{end['datasets']:.0f}",
                    (end["totals_error"], end["true_count_probability"]),
                    xytext=(5, 4),
                    textcoords="offset points",
                    fontsize="small",
                )
        axes.set(xlabel="error of totals by area", ylabel="probability of the true count")
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.04)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(xmax=1))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize="small")

    return _svg(
        "ru-map",
        "Mean probability of the true count against error of totals, by method and number of data "
        "sets",
        draw,
    )


def record_risks(risk: np.ndarray, bulk: float) -> Markup:
    """Records by individual risk, on a logarithmic axis.

    Parameters
    ----------
    risk : array of float, shape (record,)
        Individual risks, above 0 and at most 1.
    bulk : float
        Limit of the bulk.
    """

    def draw(axes: Axes) -> None:
        lowest = min(float(risk.min()), bulk) / 1.2
        axes.hist(risk, bins=np.geomspace(lowest, 1.0, 40).tolist(), color=BLUE, alpha=0.85)
        axes.axvline(bulk, color=INK, linewidth=0.9, linestyle="--")
        axes.set(xscale="log", xlabel="individual risk", ylabel="records")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.grid(visible=False, axis="x")

    return _svg("record-risks", "Records by individual risk", draw)


def expected_by_method(methods: pd.DataFrame, truth: float | None) -> Markup:
    """Expected numbers of the methods for the sample uniques of a file, grouped by what they mean.

    Parameters
    ----------
    methods : DataFrame
        From :func:`bayes_sdc.microdata.comparison.compare_risks`.
    truth : float or None
        Number of sample uniques that are population uniques, where it is known.
    """
    colours = dict(zip(methods["about"].unique(), (BLUE, ORANGE, INK), strict=False))
    floor = 0.1  # a logarithmic axis has no 0

    def draw(axes: Axes) -> None:
        places = np.arange(len(methods))[::-1]
        for about, colour in colours.items():
            mine = (methods["about"] == about).to_numpy()
            value = methods["expected"].to_numpy()[mine].clip(floor)
            axes.plot(value, places[mine], "o", color=colour, label=about)
            low, high = (methods[end].fillna(methods["expected"]) for end in ("low", "high"))
            ends = low.to_numpy()[mine].clip(floor), high.to_numpy()[mine].clip(floor)
            axes.hlines(places[mine], *ends, color=colour, linewidth=1.2)
        if truth is not None:
            axes.axvline(max(truth, floor), color=INK, linewidth=0.9, linestyle="--", label="truth")
        axes.set(xscale="log", xlabel="expected number of sample uniques")
        axes.set_yticks(places, list(methods.index))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize="small")

    return _svg("expected-by-method", "Expected number by method", draw)


def _whole_numbers(axes: Axes) -> None:
    """Put horizontal marks at whole numbers only, and no grid between bars."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(visible=False, axis="x")


def _plain_powers(axis: Axis, width: float) -> None:
    """Label a logarithmic axis with plain numbers, more of them when it covers little."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if width < 1000 else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_locator(NullLocator())


def _svg(name: str, label: str, draw: Callable[[Axes], None]) -> Markup:
    """Draw on new axes and return an SVG element that says what it shows.

    Ids come from ``name`` and the content, so the same result gives the same bytes, and pictures
    in one document do not share an id.
    """
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(5.4, 3.3), layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        no_metadata: dict[str, None] = dict.fromkeys(["Creator", "Date", "Format", "Type"])
        figure.savefig(text, format="svg", transparent=True, metadata=no_metadata)
    drawn = text.getvalue()
    view = re.search(r'viewBox="[^"]*"', drawn)
    if view is None:
        raise RuntimeError("matplotlib drew an SVG without a view box")
    inner = drawn[drawn.index(">", view.start()) + 1 : drawn.rindex("</svg>")]
    inner = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", inner)
    inner = inner.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    inner = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "sans-serif", inner)
    opening = f'<svg class="plot" role="img" aria-label="{escape(label)}" {view[0]}>'
    return Markup(opening + inner + "</svg>")  # noqa: S704 - drawn here, from numbers alone
