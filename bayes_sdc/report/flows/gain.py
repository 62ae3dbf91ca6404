"""What the release adds to what an intruder knew, in words and numbers for a board.

The internal report shows them first. The public reads one rounded sentence.
"""

from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.flows.intruder.log_ratios import NO_PROMISE, LogRatios, log_ratios
from bayes_sdc.flows.intruder.probabilities.change import before_and_after, bits_gained, points
from bayes_sdc.flows.intruder.probabilities.gain import LIMITS, PRIORS, Gain, headline
from bayes_sdc.flows.intruder.probabilities.learning import MOVED
from bayes_sdc.flows.intruder.probabilities.prior import shares_of_counts
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.protection import Measured
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.report import plots
from bayes_sdc.report.policy_limits import Told
from bayes_sdc.results import or_undefined

HIGHEST = 20  # rows shown
BY_RELEASE, LIFTED, ANYWAY = "the release", "nearly known before", "known anyway"
BY_TOTALS = "known given the totals"  # which the release keeps, and so tells


def trust_check(measured: Measured | None) -> list[Told]:
    """Return the doubt about what the release adds; none where there is no doubt.

    Parameters
    ----------
    measured : Measured or None
        Of a table with small cells.
    """
    gain = None if measured is None else measured.worst.strongest
    if gain is None or gain.trusted:
        return []
    reason = (
        f"{gain.unreliable:,} of {gain.cells:,} cells rest on unreliable weights or too few draws"
    )
    return [Told("trust", "look", reason, "gain_trust")]


def internal_gain(table: FlowTable, risk: IntruderRisk) -> dict[str, Any]:
    """Context of what the internal report tells first: headline, priors, cells, and log ratios.

    Parameters
    ----------
    table : FlowTable
        The input.
    risk : IntruderRisk
        Of the intruder who knows most.
    """
    gain = risk.strongest
    ratios = log_ratios(risk)
    earlier = risk.already_released.sizes["dataset"]
    return {
        "gain": gain,
        "gain_headline": headline(gain, earlier),
        "gain_knows": knows(risk.knowledge),
        "gain_pair": before_words(gain),
        "gain_tiles": _tiles(gain),
        "gain_expects": PRIORS[gain.prior],
        "gain_priors": {name: PRIORS[name] for name in risk.gains},
        "gain_anyway": int((gain.by_cell["before"] > LIMITS[0]).sum()),
        "gain_columns": COLUMNS,
        "gain_rows": [_row(one, one is gain) for one in risk.gains.values()],
        "gain_plot": plots.gain(risk),
        "gain_largest": _most_moved(table, gain),
        "common_count": int(np.argmax(shares_of_counts(table))) + table.low,
        "common_share": f"{shares_of_counts(table).max():.1%}",
        "earlier_releases": earlier,
        "paper": f"{risk.r_all.value:.1%}" if risk.r_all.value is not None else "",
        "paper_prior": risk.prior,
        "paper_baseline": "" if risk.r_all.baseline is None else f"{risk.r_all.baseline:.1%}",
        "log_ratios": _ratio_rows(ratios),
        "no_promise": NO_PROMISE,
        "moved_factor": f"{MOVED:g}",
    }


def knows(knowledge: str) -> str:
    """Say what the strongest intruder knows of the other small counts; empty for nothing."""
    if knowledge.startswith("all-others"):
        return "every other small count"
    if knowledge.startswith("all-but-cycle"):
        return "every small count but those of one cycle of totals"
    return ""


def riskiest(table: FlowTable, gain: Gain) -> list[list[str]]:
    """Cells whose true count is most probable, and whether the release made it so."""
    cells = gain.by_cell.assign(
        pushed=(gain.by_cell["before"] <= LIMITS[1]) & (gain.by_cell["after"] > LIMITS[1])
    )
    first = cells.sort_values(["pushed", "after"], ascending=False, kind="stable").iloc[:HIGHEST]
    why = [
        BY_RELEASE if moved else LIFTED if pushed else BY_TOTALS if gain.totals else ANYWAY
        for moved, pushed in zip(first["moved"], first["pushed"], strict=True)
    ]
    return [[*row, reason] for row, reason in zip(_cells(table, first), why, strict=True)]


def _most_moved(table: FlowTable, gain: Gain) -> list[list[str]]:
    """Cells whose probability of the true count the release raises by the largest factor."""
    first = gain.by_cell.sort_values("bits", ascending=False, kind="stable").iloc[:HIGHEST]
    factors = [f"{2.0**bits:.2f}" for bits in first["bits"]]
    return [[*row, factor] for row, factor in zip(_cells(table, first), factors, strict=True)]


def _cells(table: FlowTable, shown: pd.DataFrame) -> list[list[str]]:
    cells = table.cells.loc[shown.index]
    names = [cells[name].astype(str) for name in ("origin", "destination", "group")]
    rows = zip(*names, cells["y"], shown["before"], shown["after"], strict=True)
    return [[*names, f"{y + table.low}", f"{p:.1%}", f"{q:.1%}"] for *names, y, p, q in rows]


def before_words(gain: Gain) -> str:
    """Say what a pair of numbers compares."""
    if gain.totals:
        return "from the totals that the release keeps alone, and from the whole release"
    return "before any release and after it"


def _tiles(gain: Gain) -> list[tuple[str, str]]:
    """The three numbers of the headline, with their meaning."""
    found, bits = gain.guessed, gain.bits
    return [
        (before_and_after(found), f"of the small counts found, {before_words(gain)}"),
        (
            "undefined" if bits.gain is None else bits_gained(bits),
            "more known about a true count on average (1 bit: its probability doubles)",
        ),
        (
            f"{gain.pushed[0.8]:,} of {gain.cells:,}",
            "cells pushed past a probability of 80 % of their true count",
        ),
    ]


def _row(gain: Gain, strongest: bool) -> list[str]:
    found = gain.guessed
    error = found.monte_carlo_error
    return [
        f"{gain.prior}{' (strongest)' if strongest else ''}",
        or_undefined(found.before, ".1%"),
        or_undefined(found.after, ".1%"),
        "undefined" if found.gain is None else points(found.gain),
        "unknown (one chain)" if error is None else f"{100 * error:.2f} points",
        "none: there is no such cell"
        if gain.unique.before is None
        else before_and_after(gain.unique),
        before_and_after(gain.probability),
        bits_gained(gain.bits),
        "undefined"
        if gain.bits.interval is None
        else "{:+.3f} to {:+.3f}".format(*gain.bits.interval),
        " / ".join(f"{gain.pushed[limit]:,}" for limit in LIMITS),
        f"{gain.largest_ratio:.2f}",
    ]


#: Heads of the columns of the rows by prior.
COLUMNS = [
    "prior",
    "found before",
    "found after",
    "gain",
    "Monte Carlo error",
    "R_unq, before → after",
    "mean probability of the true count",
    "information",
    "95 % interval",
    "pushed past 50 / 80 / 95 %",
    "largest ratio",
]


def _ratio_rows(ratios: LogRatios) -> list[list[str]]:
    return [
        [
            str(name),
            f"{row['neighbours']:.3f}",
            f"{row['neighbours_at_least']:.3f}",
            f"{row['epsilon_neighbours']:.3f}",
            f"{row['any_pair']:.3f}",
            f"{row['any_pair_at_least']:.3f}",
            f"{row['epsilon_any_pair']:.3f}",
        ]
        for name, row in ratios.distribution.iterrows()
    ]
