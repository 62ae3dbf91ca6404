"""Plots of the risk of records."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from bayes_sdc.arguments import checked
from bayes_sdc.microdata.comparison.result import MATCHES, UNIQUES, RiskComparison
from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.plots.style import BLUE, ORANGE, axes_or_new, expect, ink, plain_powers

FLOOR = 0.1  # a logarithmic axis has no 0


@checked
def plot_record_risk(risk: RecordRisk | Measurement, *, ax: Axes | None = None) -> Axes:
    """Records by individual risk, on a logarithmic axis.

    Parameters
    ----------
    risk : RecordRisk or Measurement
        From :func:`bayes_sdc.record_risk`, or :func:`bayes_sdc.measure_microdata`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        A histogram; the dashed line is the limit of the bulk, above which a risk stands out. Of a
        measurement, sample uniques have their risk by latent classes, and the outline is the closed
        form.

    Raises
    ------
    InputError
        If ``risk`` is something else.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.measure_microdata, bayes_sdc.plot_risk_comparison

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_microdata, record_risk
    >>> people = pd.DataFrame({"sex": list("mmf"), "w": [10, 30, 5]})
    >>> risk = record_risk(read_microdata(people, keys=["sex"], weight="w"))
    >>> plot_record_risk(risk).get_xlabel()
    'individual risk'
    """
    if isinstance(risk, Measurement):
        closed, shown = risk.risk, risk.recommended_risk
    else:
        expect(risk, RecordRisk, "record_risk")
        closed, shown = risk, risk.risk
    axes = axes_or_new(ax)
    lowest = min(float(closed.risk.min()), float(shown.min()), closed.bulk_limit) / 1.2
    bins = np.geomspace(lowest, 1.0, 40).tolist()
    axes.hist(shown, bins=bins, color=BLUE, alpha=0.85)
    if isinstance(risk, Measurement) and risk.latent_classes is not None:
        axes.hist(closed.risk, bins=bins, histtype="step", color=ink(), linewidth=0.9)
    axes.axvline(closed.bulk_limit, color=ink(), linewidth=0.9, linestyle="--")
    axes.set(xscale="log", xlabel="individual risk", ylabel="records")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(visible=False, axis="x")
    return axes


@checked
def plot_risk_comparison(
    comparison: RiskComparison,
    *,
    truth: float | None = None,
    true_matches: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Expected numbers of every method for the sample uniques of a file, by their meaning.

    Parameters
    ----------
    comparison : RiskComparison
        From :func:`bayes_sdc.compare_risks`.
    truth : float, optional
        Number of sample uniques that are population uniques, where it is known.
    true_matches : float, optional
        Correct matches of sample uniques to be expected, where they are known.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        One mark per method on a logarithmic axis, where numbers below 0.1 stand at 0.1, with the
        interval or range of those that give one, and a dashed line beside the marks whose truth is
        known.

    Raises
    ------
    InputError
        If ``comparison`` is something else.

    See Also
    --------
    bayes_sdc.compare_risks, bayes_sdc.plot_record_risk

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from bayes_sdc import compare_risks, read_microdata
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    >>> found = compare_risks(read_microdata(frame, keys=list("abcd")), 3000)
    >>> len(plot_risk_comparison(found).get_yticks()) == len(found.methods)
    True
    """
    expect(comparison, RiskComparison, "compare_risks")
    axes = axes_or_new(ax)
    methods = comparison.methods
    colours = dict(zip(methods["about"].unique(), (BLUE, ORANGE, ink()), strict=False))
    places = np.arange(len(methods))[::-1]
    for (about, colour), marker in zip(colours.items(), "osD", strict=False):
        mine = (methods["about"] == about).to_numpy()
        value = methods["expected"].to_numpy()[mine].clip(FLOOR)
        axes.plot(value, places[mine], marker, color=colour, label=about)
        low, high = (methods[end].fillna(methods["expected"]) for end in ("low", "high"))
        ends = low.to_numpy()[mine].clip(FLOOR), high.to_numpy()[mine].clip(FLOOR)
        axes.hlines(places[mine], *ends, color=colour, linewidth=1.2)
    known = {UNIQUES: truth, MATCHES: true_matches}
    told = {about: number for about, number in known.items() if number is not None}
    for about, number in told.items():
        block = places[(methods["about"] == about).to_numpy()]
        ends_of_line = [block.min() - 0.5, block.max() + 0.5]  # beside its own marks only
        axes.plot(
            [max(number, FLOOR)] * 2, ends_of_line, color=ink(), linewidth=0.9, linestyle="--",
            label="truth" if about == next(iter(told)) else None,
        )  # fmt: skip
    axes.set(xscale="log", xlabel="expected number of sample uniques")
    axes.set_yticks(places, list(methods.index))
    left, right = axes.get_xlim()
    plain_powers(axes.xaxis, right / left)
    # below the label of the axis, whatever the height of the picture
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 0.0), borderaxespad=4.2, fontsize="small")
    return axes
