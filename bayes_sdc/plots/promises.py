"""Plot of risk against loss of utility by epsilon: a curve for each mechanism."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.plots.labels import label_marks
from bayes_sdc.plots.style import BLUE, ORANGE, RED, axes_or_new, expect_columns, ink


@checked
def plot_promises(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Risk against loss of utility: a curve for each mechanism, a mark for each epsilon.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.compare_promises`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Low and left is better. The ends of a curve carry their epsilon, "none" where nothing is
        bounded.

    Raises
    ------
    InputError
        If ``frame`` is another table.

    See Also
    --------
    bayes_sdc.compare_promises, bayes_sdc.plot_ru_map

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": ["model", "model"], "epsilon": [float("inf"), 1.0],
    ...     "totals_error": [0.10, 0.15], "after": [0.13, 0.12],
    ... })
    >>> [text.get_text() for text in plot_promises(frame).texts]
    ['1', 'none']
    """
    expect_columns(frame, ["method", "epsilon", "totals_error", "after"], "compare_promises")
    axes = axes_or_new(ax)
    looks = itertools.cycle(zip("os^Dv", (BLUE, ORANGE, RED, ink(), "0.5"), strict=True))
    curves, ends = [], []
    for method, part in frame.groupby("method", sort=False):
        line = part.sort_values("epsilon")
        marker, colour = next(looks)
        axes.plot(
            line["totals_error"], line["after"], marker=marker, color=colour, markersize=5,
            linewidth=1.0, label=str(method),
        )  # fmt: skip
        curves.append(line[["totals_error", "after"]].to_numpy(float))
        ends += [line.iloc[0], line.iloc[-1]][: min(len(line), 2)]
    axes.set(xlabel="error of totals by area", ylabel="probability of the true count")
    axes.set_xlim(0.0, max(0.1, 1.08 * float(frame["totals_error"].max())))
    axes.set_ylim(0.0, min(1.08, max(0.2, 1.2 * float(frame["after"].max()))))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize="small")
    marks = np.array([[end["totals_error"], end["after"]] for end in ends])
    texts = [f"{end['epsilon']:g}" if np.isfinite(end["epsilon"]) else "none" for end in ends]
    label_marks(axes, marks, texts, lines=curves)
    return axes
