"""What the plots share: distinct colours, and the marks of axes."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from bayes_sdc.errors import InputError

# legible on white and on black, and distinct for colour-blind readers
BLUE, ORANGE, RED, GREEN, GREY = "#3f87c9", "#d9772b", "#d0455a", "#2a9d78", "#8a8f98"
PURPLE = "#c463a5"
VECTOR_LIMIT = 2000  # points; more are drawn as pixels, which keeps an SVG small
SHORT, LONG = 28, 44  # letters of a name beside a plot, and above one

Panels = Figure | SubFigure  # what several axes are drawn on


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new pyplot figure, which a notebook shows."""
    return new_figure(None).add_subplot() if ax is None else ax


def new_figure(figure: Panels | None, size: tuple[float, float] = (5.4, 3.3)) -> Panels:
    """Return the figure given, or a new one of pyplot, width and height in inches."""
    if figure is not None:
        return figure
    import matplotlib.pyplot as plt  # keeps figures alive, so the report does not use it

    return plt.figure(figsize=size, layout="constrained")


def expect(value: object, kind: type, maker: str) -> None:
    """Refuse what a plot cannot show, naming the function that makes the right thing."""
    if not isinstance(value, kind):
        raise InputError(
            f"this plot shows the {kind.__name__} of {maker}; it got a {type(value).__name__}"
        )


def expect_columns(frame: object, columns: Sequence[str], maker: str) -> None:
    """Refuse anything but a data frame with these columns, naming the function that makes one."""
    expect(frame, pd.DataFrame, maker)
    missing = [name for name in columns if name not in frame]  # type: ignore[operator]
    if missing:
        raise InputError(f"this plot shows the table of {maker}; the columns {missing} are missing")


def ink() -> Any:
    """Colour of lines that belong to the frame rather than to the data."""
    return matplotlib.rcParams["text.color"]


def shortened(name: object, longest: int = SHORT) -> str:
    """Shorten a long name in the middle, where codes differ least."""
    text = str(name)
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def in_lines(name: object, longest: int) -> str:
    """Break a long name between words into two lines, each shortened where it is still too long."""
    first, *rest = wrap(str(name), longest, break_long_words=False) or [""]
    return "\n".join(shortened(line, longest) for line in (first, " ".join(rest)) if line)


def sequential() -> Colormap:
    """Scale of colours for sums and shares, without the end that is invisible on black."""
    return ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.15, 1.0, 256)))


def as_pixels(bar: Colorbar) -> None:
    """Draw the hundreds of steps of a scale of colours as one picture."""
    if bar.solids is not None:
        bar.solids.set_rasterized(True)


def whole_numbers(axes: Axes) -> None:
    """Put horizontal marks at whole numbers only, and no grid between bars."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(visible=False, axis="x")


def plain_powers(axis: Axis, width: float) -> None:
    """Label a logarithmic axis with plain numbers, more of them when it covers little."""
    subs: tuple[float, ...] = (1.0, 2.0, 5.0) if width < 1000 else (1.0,)
    if width < 5:  # less than a decade: with 1, 2 and 5 alone it can have a single label
        subs = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.set_minor_locator(NullLocator())
