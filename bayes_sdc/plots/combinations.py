"""Plots of how rare key values are, and of what other keys would change."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.microdata.file.microdata import VIOLATIONS, Microdata
from bayes_sdc.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    axes_or_new,
    expect,
    expect_columns,
    shortened,
)

EDGES = np.array([1, 2, 3, 5, 10, 20, 50, 100])  # where classes of sizes begin
OTHERS = (RED, ORANGE, BLUE)  # of records below each k
MARKERS = "os^"


@checked
def plot_sizes(microdata: Microdata, *, ax: Axes | None = None) -> Axes:
    """Records by the number of records with exactly the same key values.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        One bar per class of sizes; together they hold all records.

    Raises
    ------
    InputError
        If ``microdata`` is something else.

    See Also
    --------
    bayes_sdc.read_microdata, bayes_sdc.plot_record_risk

    Examples
    --------
    >>> from bayes_sdc import read_microdata
    >>> people = pd.DataFrame({"sex": list("mmf")})
    >>> axes = plot_sizes(read_microdata(people, keys=["sex"]))
    >>> [float(bar.get_height()) for bar in axes.patches]
    [1.0, 2.0]
    """
    expect(microdata, Microdata, "read_microdata")
    axes = axes_or_new(ax)
    sizes = microdata.size_indices
    size = sizes.index.to_numpy()
    place = np.searchsorted(EDGES, size, side="right") - 1
    records = np.bincount(place, weights=size * sizes.to_numpy(), minlength=int(place.max()) + 1)
    ends = [*(EDGES[1:] - 1), None]
    names = [
        f"{low}" if low == high else f"{low} up" if high is None else f"{low} to {high}"
        for low, high in zip(EDGES, ends, strict=True)
    ]
    places = np.arange(len(records))
    axes.bar(places, records, color=[RED, *[BLUE] * (len(records) - 1)], width=0.8)
    axes.set_xticks(places, names[: len(records)])
    axes.set(xlabel="records with the same values", ylabel="records")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(visible=False, axis="x")
    return axes


@checked
def plot_key_sets(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rare records, and expected right guesses, by set of key variables.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.compare_key_sets`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        One line per set, in the order of the table: marks for the records with f below 2, 3 and 5,
        and a cross for the expected re-identifications of the closed form.

    Raises
    ------
    InputError
        If ``frame`` is another table.

    See Also
    --------
    bayes_sdc.compare_key_sets

    Examples
    --------
    >>> from bayes_sdc import compare_key_sets, read_microdata
    >>> people = pd.DataFrame({"sex": list("mmf"), "age": list("233")})
    >>> sets = {"neighbour": ["sex"], "colleague": ["sex", "age"]}
    >>> data = read_microdata(people, keys=["sex", "age"])
    >>> axes = plot_key_sets(compare_key_sets(data, sets, sampling_fraction=0.1))
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['neighbour', 'colleague']
    """
    counts = [f"records_below_{k}" for k in VIOLATIONS]
    expect_columns(frame, [*counts, "expected"], "compare_key_sets")
    axes = axes_or_new(ax)
    places = np.arange(len(frame))
    axes.hlines(places, 0.0, frame[counts[-1]], color=BLUE, linewidth=0.8, alpha=0.6)
    for k, column, colour, marker in zip(VIOLATIONS, counts, OTHERS, MARKERS, strict=True):
        axes.plot(frame[column], places, marker, color=colour, label=f"records with f < {k}")
    axes.plot(
        frame["expected"], places, "X", color=GREEN, label="expected right guesses", markersize=7
    )
    axes.set_yticks(places, [shortened(name) for name in frame.index])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("records")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    # below the label of the axis, whatever the height of the picture
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.4, 0.0), borderaxespad=4.2, ncols=2, fontsize="small"
    )
    return axes
