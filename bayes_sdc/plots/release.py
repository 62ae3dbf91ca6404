"""Plots of a release beside the true table. Confidential: they show true totals."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.use.utility import between
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.plots.map_parts import around, boxes_of, parts_of
from bayes_sdc.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    VECTOR_LIMIT,
    Panels,
    as_pixels,
    axes_or_new,
    expect,
    expect_columns,
    ink,
    new_figure,
    plain_powers,
    sequential,
    shortened,
)
from bayes_sdc.shapes import Shapes

ROWS_NAMED, COLUMNS_NAMED = 25, 12  # of a heat map that has room for each name


@checked
def plot_margins(margins: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Synthetic against true totals of the small cells, one mark per area and side.

    Parameters
    ----------
    margins : DataFrame
        From :func:`bayes_sdc.flows.release.use.utility.margins`, or ``margins`` of a
        ``Protection``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The closer to the dashed line, the better the release preserves a total.

    Raises
    ------
    InputError
        If ``margins`` is another table.

    See Also
    --------
    bayes_sdc.utility, bayes_sdc.plot_flows

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"side": ["origin"], "area": ["a"], "true": [5], "synthetic": [4.0]}
    >>> plot_margins(pd.DataFrame(row)).get_xlabel()
    'true total'
    """
    expect_columns(margins, ["side", "true", "synthetic"], "margins")
    totals = margins[["true", "synthetic"]].to_numpy(float)
    ends = np.array([totals.min(), totals.max()])
    axes = axes_or_new(ax)
    for side, marker, colour in (("origin", "o", BLUE), ("destination", "^", ORANGE)):
        part = margins[margins["side"] == side]
        axes.scatter(
            part["true"],
            part["synthetic"],
            s=18,
            marker=marker,
            color=colour,
            alpha=0.65,
            linewidths=0,
            label=side,
            rasterized=len(margins) > VECTOR_LIMIT,
        )
    axes.plot(ends, ends, color=ink(), linewidth=0.9, linestyle="--", label="equal")
    axes.set(xlabel="true total", ylabel="synthetic total")
    if ends[0] > 0:
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            plain_powers(axis, ends[1] / ends[0])
    axes.legend(loc="upper left")
    return axes


@checked
def plot_flows(
    table: FlowTable, release: pd.DataFrame, *, most: int = 50, figure: Panels | None = None
) -> np.ndarray:
    """Heat maps of the small counts from group to group, true beside synthetic.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : DataFrame
        What :func:`bayes_sdc.synthesize` returned; of several data sets the mean is
        shown.
    most : int
        Rows and columns at most, those with the largest true totals.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib Axes, shape (2,)
        Sums of the small counts, true and synthetic, with one logarithmic scale of colours. Rows
        and columns are the values of the two group columns, or areas in a table with another
        number of group columns. Empty: no small cell.

    Raises
    ------
    InputError
        If the release belongs to another table, or the table has no small cells.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.plot_margins, bayes_sdc.plot_map

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> [ax.get_title() for ax in plot_flows(table, frame.assign(n=[2, 3, 2]))]
    ['true', 'synthetic']
    """
    expect(table, FlowTable, "read_flows")
    if most < 1:
        raise InputError(f"most must be at least 1; it is {most}")
    sums = between(table, release)
    rows, columns = (
        sums["true"].groupby(level=level).sum().nlargest(most).index.sort_values()
        for level in (0, 1)
    )
    panels = new_figure(figure, (5.4, 3.4))
    axes: np.ndarray = panels.subplots(1, 2, sharex=True, sharey=True)
    shown = {
        name: sums[name].unstack().reindex(index=rows, columns=columns).to_numpy(float)
        for name in ("true", "synthetic")
    }
    values = np.concatenate([v[v > 0] for v in shown.values()])
    low, high = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    scale = LogNorm(low, max(high, low * 1.5))
    for one, (name, matrix) in zip(axes, shown.items(), strict=True):
        picture = one.imshow(
            np.ma.masked_invalid(np.where(matrix > 0, matrix, np.nan)),
            norm=scale,
            cmap=sequential(),
            interpolation="nearest",
            aspect="auto",
        )
        one.set_title(name, fontsize="medium")
        one.grid(visible=False)
        one.tick_params(labelsize="small", length=0)
    named = [(axes[0].yaxis, rows, ROWS_NAMED)]
    named += [(one.xaxis, columns, COLUMNS_NAMED) for one in axes]
    for axis, names, most_named in named:
        step = -(-len(names) // most_named)
        places = np.arange(0, len(names), step)
        axis.set_ticks(places, [shortened(name) for name in names[places]], parse_math=False)
    for one in axes:
        one.tick_params(axis="x", rotation=90)
    axes[0].set_ylabel("from")
    panels.supxlabel("to", fontsize="medium")
    bar = panels.colorbar(picture, ax=axes.tolist(), shrink=0.9, label="sum of small counts")
    as_pixels(bar)
    plain_powers(bar.ax.yaxis, high / low)
    return axes


@checked
def plot_map(
    values: pd.Series,
    shapes: Shapes,
    *,
    label: str,
    diverging: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Map of a share or a relative error by area.

    Parameters
    ----------
    values : Series
        By code of the area: shares, or relative errors, where 0.1 is 10 %. Missing ones are grey.
    shapes : Shapes
        From :func:`bayes_sdc.read_shapes`.
    label : str
        What is shown, for the scale of colours.
    diverging : bool
        Whether 0 is the middle of the scale, as for errors. The scale ends where 95 % of the areas
        lie within; the rest has the colour of the end.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The map with its scale of colours, cropped to the areas that have a value; those far from
        the rest have maps of their own below, each on a scale of its own. Degrees are drawn true to
        scale in the middle.

    Raises
    ------
    InputError
        If ``shapes`` is something else.

    See Also
    --------
    bayes_sdc.read_shapes, bayes_sdc.plot_flows

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from bayes_sdc.shapes import Shapes
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> shapes = Shapes({"01": [[square]]}, missing=(), geographic=False)
    >>> len(plot_map(pd.Series({"01": 0.1}), shapes, label="error").collections)
    1
    """
    expect(shapes, Shapes, "read_shapes")
    axes = axes_or_new(ax)
    shown = values.reindex(list(shapes.outlines)).to_numpy(float)
    size = np.abs(shown[np.isfinite(shown)])
    end = max(float(np.quantile(size, 0.95)) if len(size) else 0.0, 1e-9)
    scale = Normalize(-end, end) if diverging else Normalize(0.0, end)
    colours = ScalarMappable(scale, "PuOr" if diverging else sequential())
    faces = colours.to_rgba(np.nan_to_num(shown))
    faces[~np.isfinite(shown)] = (0.5, 0.5, 0.5, 0.35)
    paths = [
        Path.make_compound_path(*(_closed(ring) for polygon in area for ring in polygon))
        for area in shapes.outlines.values()
    ]
    boxes = boxes_of(shapes)
    main, *far = parts_of(boxes, np.isfinite(shown))
    beside = [
        axes.inset_axes((0.02 + 0.22 * k, -0.26, 0.2, 0.24)) for k in range(len(far))
    ]  # below: there it covers no area
    for one, part in zip([axes, *beside], [main, *far], strict=True):
        left, bottom, right, top = around(boxes, part)
        areas = PathCollection(
            paths, facecolors=faces, edgecolors=GREY, linewidths=0.15, rasterized=True
        )
        one.add_collection(areas)
        one.set(xlim=(left, right), ylim=(bottom, top))
        middle = np.cos(np.radians((bottom + top) / 2.0)) if shapes.geographic else 1.0
        one.set_aspect(1.0 / max(float(middle), 0.1))
        one.set(xticks=[], yticks=[])
        one.grid(visible=False)
        if one is axes:
            one.set_axis_off()
    bar = axes.figure.colorbar(
        colours,
        ax=axes,
        orientation="horizontal",
        shrink=0.8,
        label=label,
        extend="both" if diverging else "max",
        format=PercentFormatter(xmax=1),
        ticks=MaxNLocator(5),
    )
    as_pixels(bar)
    return axes


def _closed(ring: np.ndarray) -> Path:
    """Path of a ring, whether or not its last point repeats the first."""
    return Path(np.vstack([ring, ring[:1]]), closed=True)
