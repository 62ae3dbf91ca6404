"""Pictures of the reports: the plots of :mod:`bayes_sdc.plots`, as SVG inside an HTML document.

A picture that cannot be drawn raises, and the report is not written.
"""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib
import pandas as pd
import xarray as xr
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from bayes_sdc import plots
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.model.hyperparameters import Hyperparameter
from bayes_sdc.flows.model.parameters import CI_PROB
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.microdata.comparison.result import RiskComparison
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.measure.result import Measurement, Truth
from bayes_sdc.plots.posterior import draw_hyperparameters, panels_size
from bayes_sdc.shapes import Shapes

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

INK, GRID = "#010203", "#030201"  # stand-ins that the style sheet replaces, by light and by dark
PIXELS = 150  # dots per inch of what is drawn as pixels
SIZE = (5.4, 3.3)  # inches
ONE_PICTURE = 8  # hyperparameters; more stand in two pictures

STYLE: "dict[RcKeyType, Any]" = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
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
    """Largest R-hat against smallest ESS by group."""
    return draw_svg(
        "convergence",
        "Largest R-hat against smallest effective sample size by group",
        lambda figure: plots.plot_convergence(groups, ax=figure.add_subplot()),
    )


def chains(posterior: xr.DataTree, groups: pd.DataFrame, number: int) -> Markup:
    """Traces and ranks of the worst parameters."""
    return draw_svg(
        "chains",
        "Traces and ranks of the worst parameter of each of the worst groups",
        lambda figure: plots.plot_chains(posterior, groups, number=number, figure=figure),
        (SIZE[0], 0.4 + 1.35 * min(number, len(groups))),
    )


def prior_posterior(found: Sequence[Hyperparameter]) -> list[Markup]:
    """Prior and posterior of hyperparameters; many in two pictures, to stand side by side."""
    half = len(found) if len(found) <= ONE_PICTURE else -(-len(found) // 4) * 2
    return [
        draw_svg(
            f"prior-posterior-{start}",
            "Prior and posterior of hyperparameters",
            partial(draw_hyperparameters, found[start : start + half]),
            panels_size(len(found[start : start + half])),
        )
        for start in range(0, len(found), half)
    ]


def effects(posterior: xr.DataTree, number: int) -> Markup:
    """Most extreme effects of origins and destinations."""
    return draw_svg(
        "effects",
        f"Most extreme effects of origins and destinations with {CI_PROB:.0%} intervals",
        lambda figure: plots.plot_effects(posterior, number=number, figure=figure),
        (SIZE[0], 1.0 + 0.36 * number),
    )


def predictive(counts: pd.DataFrame) -> Markup:
    """Observed and expected numbers of small cells by count."""
    return draw_svg(
        "predictive",
        "Observed and expected numbers of small cells by count",
        lambda figure: plots.plot_predictive(counts, ax=figure.add_subplot()),
    )


def predictive_by_size(counts: pd.DataFrame) -> Markup:
    """The same by size of the group."""
    return draw_svg(
        "predictive-by-size",
        "Observed and expected numbers of small cells by count and size of the group",
        lambda figure: plots.plot_predictive_by_size(counts, figure=figure),
        (SIZE[0], 2.6),
    )


def margins(frame: pd.DataFrame) -> Markup:
    """Synthetic against true totals by area."""
    return draw_svg(
        "margins",
        "Synthetic against true totals of the small cells by area",
        lambda figure: plots.plot_margins(frame, ax=figure.add_subplot()),
    )


def flows(table: FlowTable, release: pd.DataFrame, most: int) -> Markup:
    """Heat maps of the small counts, true beside synthetic."""
    return draw_svg(
        "flows",
        "Heat maps of the sums of small counts from group to group, true beside synthetic",
        lambda figure: plots.plot_flows(table, release, most=most, figure=figure),
        (SIZE[0], 3.4),
    )


def area_map(name: str, values: pd.Series, shapes: Shapes, label: str, diverging: bool) -> Markup:
    """Map of a share or a relative error by area."""
    return draw_svg(
        name,
        f"Map of areas: {label}",
        lambda figure: plots.plot_map(
            values, shapes, label=label, diverging=diverging, ax=figure.add_subplot()
        ),
        (SIZE[0], 3.9),
    )


def intruder_risk(risk: IntruderRisk) -> Markup:
    """Distances of the best guess, and probabilities of the true count."""
    return draw_svg(
        "distances",
        "Share of small cells by distance of the best guess, and cells by the probability of the "
        "true count",
        lambda figure: plots.plot_intruder_risk(risk, figure=figure),
        (SIZE[0], 2.7),
    )


def gain(risk: IntruderRisk) -> Markup:
    """Share of small counts found before and after the release, by prior."""
    return draw_svg(
        "gain",
        "Share of the small counts found before and after the release, by prior",
        lambda figure: plots.plot_gain(risk, ax=figure.add_subplot()),
        (SIZE[0], 0.9 + 0.5 * len(risk.gains)),
    )


def weights(by_distance: pd.DataFrame) -> Markup:
    """Share of unreliable importance weights by distance of the candidate."""
    return draw_svg(
        "weights",
        "Share of pairs with too high a k-hat by distance of the candidate",
        lambda figure: plots.plot_weights(by_distance, ax=figure.add_subplot()),
    )


def by_count(classes: pd.DataFrame, baseline: float | None) -> Markup:
    """Share of small cells found by true count."""
    return draw_svg(
        "by-count",
        "Share of small cells found by true count",
        lambda figure: plots.plot_risk_by_count(
            classes, baseline=baseline, ax=figure.add_subplot()
        ),
    )


def risk_by_datasets(growth: pd.DataFrame) -> Markup:
    """Share of small cells found by number of data sets."""
    return draw_svg(
        "risk-by-datasets",
        "Share of small cells found by number of data sets",
        lambda figure: plots.plot_risk_by_datasets(growth, ax=figure.add_subplot()),
    )


def ru_map(frame: pd.DataFrame) -> Markup:
    """Risk against loss of utility."""
    return draw_svg(
        "ru-map",
        "Mean probability of the true count against error of totals, by method and number of data "
        "sets",
        lambda figure: plots.plot_ru_map(frame, ax=figure.add_subplot()),
    )


def record_risk(result: Measurement) -> Markup:
    """Records by individual risk."""
    return draw_svg(
        "record-risks",
        "Records by individual risk",
        lambda figure: plots.plot_record_risk(result, ax=figure.add_subplot()),
    )


def sizes(data: Microdata) -> Markup:
    """Records by the number of records with their values."""
    return draw_svg(
        "sizes",
        "Records by the number of records with the same values",
        lambda figure: plots.plot_sizes(data, ax=figure.add_subplot()),
    )


def key_sets(table: pd.DataFrame) -> Markup:
    """Risk by set of key variables."""
    return draw_svg(
        "key-sets",
        "Rare records and expected right guesses by set of key variables",
        lambda figure: plots.plot_key_sets(table, ax=figure.add_subplot()),
        (SIZE[0], max(1.2 + 0.45 * len(table), 2.2)),
    )


def risk_comparison(comparison: RiskComparison, truth: Truth | None) -> Markup:
    """Expected number by method."""
    return draw_svg(
        "expected-by-method",
        "Expected number by method",
        lambda figure: plots.plot_risk_comparison(
            comparison,
            truth=None if truth is None else truth.tau1,
            true_matches=None if truth is None else truth.tau2,
            ax=figure.add_subplot(),
        ),
        (SIZE[0], 1.6 + 0.19 * len(comparison.methods)),
    )


def treatments(frame: pd.DataFrame) -> Markup:
    """Expected right matches against the distance of tables, one line per treatment."""
    return draw_svg(
        "treatments",
        "Expected right matches against records moved in tables of two keys, by treatment",
        lambda figure: plots.plot_treatments(frame, ax=figure.add_subplot()),
    )


def draw_svg(
    name: str, label: str, draw: Callable[[Figure], object], size: tuple[float, float] = SIZE
) -> Markup:
    """Draw on a new figure and return an SVG element that says what it shows.

    Ids come from ``name`` and the content, so the same result gives the same bytes, and pictures in
    one document do not share an id. Names of areas and groups are text of the SVG, escaped by
    matplotlib; the replacements below change tags only.
    """
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # letters that the font for measuring lacks: the browser has other fonts
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        figure = Figure(figsize=size)
        draw(figure)
        text = io.StringIO()
        no_metadata: dict[str, None] = dict.fromkeys(["Creator", "Date", "Format", "Type"])
        figure.savefig(text, format="svg", transparent=True, metadata=no_metadata, dpi=PIXELS)
    drawn = text.getvalue()
    view = re.search(r'viewBox="[^"]*"', drawn)
    if view is None:
        raise RuntimeError("matplotlib drew an SVG without a view box")
    inner = drawn[drawn.index(">", view.start()) + 1 : drawn.rindex("</svg>")]

    def in_tag(tag: re.Match[str]) -> str:
        own = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag[0])
        own = own.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
        return re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "sans-serif", own)

    inner = re.sub(r"<[^>]*>", in_tag, inner)
    opening = f'<svg class="plot" role="img" aria-label="{escape(label)}" {view[0]}>'
    return Markup(opening + inner + "</svg>")  # noqa: S704 - drawn here; matplotlib escapes text
