"""Plot of what an intruder knows before and after the release."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.plots.style import BLUE, axes_or_new, expect, ink

NAMES = {
    "uniform": "nothing: all equal",
    "shape": "shares of the counts",
    "model": "the model's prediction",
    "given": "the weights given",
}


@checked
def plot_gain(risk: IntruderRisk, *, ax: Axes | None = None) -> Axes:
    """Share of small counts found before and after the release, by what the intruder expects.

    Parameters
    ----------
    risk : IntruderRisk
        From :func:`bayes_sdc.intruder_risk`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        A line for each prior, the strongest on top: hollow before, filled after.

    Raises
    ------
    InputError
        If ``risk`` is something else.

    See Also
    --------
    bayes_sdc.intruder_gain, bayes_sdc.plot_intruder_risk

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, plot_gain, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> plot_gain(risk).get_xlabel()
    'share of small counts found'
    """
    expect(risk, IntruderRisk, "intruder_risk")
    axes = axes_or_new(ax)
    top = risk.strongest
    others = [gain for gain in risk.gains.values() if gain is not top]
    gains = [top, *sorted(others, key=lambda gain: gain.bits.after or -np.inf, reverse=True)]
    for place, gain in enumerate(reversed(gains)):
        before, after = gain.guessed.before or 0.0, gain.guessed.after or 0.0
        axes.plot([before, after], [place, place], color=BLUE, linewidth=2.5)
        axes.plot([before], [place], "o", markersize=9, markerfacecolor="none", color=ink())
        axes.plot([after], [place], "o", markersize=5, color=BLUE)
        text = f"{before:.1%} → {after:.1%}"
        axes.annotate(
            text, (max(before, after), place), (9, 0), textcoords="offset points", va="center"
        )
    names = [NAMES[gain.prior] + ("\n(strongest)" if gain is top else "") for gain in gains]
    axes.set_yticks(range(len(gains)), reversed(names))
    axes.set_ylim(-0.6, len(gains) - 0.4)
    largest = max(max(gain.guessed.before or 0.0, gain.guessed.after or 0.0) for gain in gains)
    axes.set_xlim(0.0, 1.6 * largest or 1.0)  # room for the numbers
    axes.set_xticks([tick for tick in axes.get_xticks() if 0.0 <= tick <= 1.0])
    axes.set_xlabel("share of small counts found")
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.grid(visible=False, axis="y")
    return axes
