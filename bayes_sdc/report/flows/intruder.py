"""What both reports say about the intruder: what they know, what they find, and how that varies.

The external part gives shares of many cells in whole per cents, with noise. Its picture is drawn
from the same rounded numbers, because the points of an SVG can be read.
"""

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.flows.intruder.comparing.choosing import Choice
from bayes_sdc.flows.intruder.probabilities.bayes import LARGEST_ERROR
from bayes_sdc.flows.intruder.probabilities.gain import earlier_in_words
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.protection import Measured
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.report import plots
from bayes_sdc.report.flows.gain import riskiest
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS, PublicShares
from bayes_sdc.report.flows.public_verdicts import relied_on

BELIEVED = "R_all of an intruder who believes the first released count"
NOT_SHOWN = "not shown"
MEASURES = {
    "r_all": ("R_all", "{:.1%}"),
    "r_unq": ("R_unq", "{:.1%}"),
    "mean_distance": ("mean distance", "{:.2f}"),
    "true_count_probability": ("mean probability of the true count", "{:.1%}"),
    "believes_release": ("R_all, believing the first released count", "{:.1%}"),
    "believes_release_unq": ("R_unq, believing the first released count", "{:.1%}"),
    "no_release": ("R_all, without the release", "{:.1%}"),
    "no_release_unq": ("R_unq, without the release", "{:.1%}"),
}
DATASETS_SHOWN = (1, 2, 5, 10, 20)
BESIDE = {"r_all": "", "r_unq": "_unq"}  # ends of the names of what stands beside a share
ESTIMATORS = {
    "integrated": "both effects of the target, that of its origin and that of its destination, "
    "integrated out of every posterior draw",
    "paper": "importance sampling from the fitted posterior, with smoothed weights",
    "refit": "the model refitted with every candidate count of every cell",
}
PRIORS = {
    "uniform": "every small count is equally probable before the release",
    "shape": "the shares of the counts over the table, known about from other years and countries",
    "model": "what the model predicts of the cell from all other counts",
    "given": "probabilities that the agency gave",
}


def estimator_in_words(risk: IntruderRisk) -> str:
    """How the probabilities were computed."""
    return f"{risk.estimator} ({ESTIMATORS[risk.estimator]})"


def prior_in_words(risk: IntruderRisk) -> str:
    """What the intruder expects before the release."""
    return f"{risk.prior} ({PRIORS[risk.prior]})"


def not_trusted(risks: list[IntruderRisk]) -> str:
    """Name the shares that rest on unreliable weights in a scenario: none, one or both."""
    shares = {"R_all": [one.r_all for one in risks], "R_unq": [one.r_unq for one in risks]}
    return " and ".join(
        name for name, values in shares.items() if not all(share.trusted for share in values)
    )


def in_words(share: float) -> str:
    """Return a share as one of a few bounds; never as 0, which would hold for every cell."""
    bounds = {0.01: "fewer than 1 in 100", 0.1: "fewer than 1 in 10", 0.5: "fewer than half"}
    return next((words for bound, words in bounds.items() if share < bound), "half or more")


def internal_intruder(table: FlowTable, measured: Measured) -> dict[str, Any]:
    """Context of the internal report on this section."""
    risk, repeats, growth = measured.risk, measured.repeats, measured.by_datasets
    risks = measured.scenarios
    by_distance = _weights_by_distance(table, risk)
    by_count = measured.classes["true-count"]
    groups = measured.classes["group"].sort_values(
        ["true_count_probability", "r_all"], ascending=False, kind="stable"
    )
    quarters = measured.classes["area-size"]
    return {
        "risk": risk,
        "scenarios": [risk.knowledge for risk in risks],
        "not_trusted": not_trusted(risks),
        "assumed": {
            "estimator": estimator_in_words(risk),
            "prior of the intruder": prior_in_words(risk),
            "knowledge of the intruder": risk.knows,
            **({"knowledge in the worst case, beside": risks[1].knows} if len(risks) > 1 else {}),
            "released data sets": risk.datasets,
            "R_all": risk.r_all.definition,
            "R_unq": risk.r_unq.definition,
        },
        "shares": [
            [f"{name}, {one.knowledge}" if len(risks) > 1 else name, share]
            for one in risks
            for name, share in (("R_all", one.r_all), ("R_unq", one.r_unq))
        ],
        "intruders": _side_by_side([_numbers(one) for one in risks]),
        "highest": riskiest(table, risk.strongest),
        "strongest": risk.strongest.prior,
        "distances_plot": plots.intruder_risk(risk),
        "by_count": _classes(by_count),
        "by_count_plot": plots.by_count(by_count, risk.r_all.baseline),
        "by_group": _classes(groups),
        "by_size": _classes(quarters.set_axis([_quarter(q) for q in quarters.index])),
        "largest_error": f"{LARGEST_ERROR:g}",
        "pairs": int(by_distance["pairs"].sum()),
        "pairs_flagged": int(by_distance["above"].sum()),
        "weights_plot": plots.weights(by_distance),
        "repeats": _repeats(repeats),
        "releases": len(repeats),
        "growth": _growth(growth[growth.index.isin(DATASETS_SHOWN)]),
        "growth_columns": [name for name, _ in MEASURES.values()],
        "growth_plot": plots.risk_by_datasets(growth),
        **_chosen(measured.choice),
    }


def external_intruder(table: FlowTable, measured: Measured, public: PublicShares) -> dict[str, Any]:
    """Context of the external report on this section: words and whole per cents."""
    risk, risks = measured.risk, measured.scenarios
    relied = relied_on(measured)
    rows = _side_by_side([_public_numbers(table, one, public, relied) for one in risks])
    growth = _public_growth(measured, public) if relied else measured.by_datasets.iloc[:0, :0]
    return {
        "scenarios": [one.knowledge for one in risks],
        "not_trusted": not_trusted(risks) if table.n_small >= PUBLIC_CELLS else "",
        "assumed": {
            "estimator": estimator_in_words(risk),
            "prior of the intruder": prior_in_words(risk),
            "knowledge of the intruder": risk.knows,
            **({"knowledge in the worst case, beside": risks[1].knows} if len(risks) > 1 else {}),
            "released data sets": risk.datasets,
        },
        "adds": _public_gain(measured.worst, public) if relied else "",
        "by_weights": not relied and table.n_small >= PUBLIC_CELLS,
        "prior": risk.prior,
        "shares": rows,
        "withheld": any(NOT_SHOWN in row[1:] for row in rows),
        "growth": [
            [f"{m}", *(f"{value:.0%}" for value in values)]
            for m, values in zip(growth.index, growth.to_numpy(), strict=True)
            if m in DATASETS_SHOWN
        ],
        "growth_columns": ["data sets", *(MEASURES[str(name)][0] for name in growth.columns)],
        "growth_plot": plots.risk_by_datasets(growth) if growth.size else "",
        "chosen": _public_choice(measured.choice, risk.r_all.cells if relied else 0, public),
    }


def _public_gain(risk: IntruderRisk, public: PublicShares) -> str:
    """How much the release adds for the strongest intruder, as a bound; empty for few cells."""
    found, cells = risk.strongest.guessed, risk.strongest.cells
    gain = found.gain
    if gain is None or found.before is None or cells < PUBLIC_CELLS:
        return ""
    # the same number has the same noise wherever it stands, or it could be averaged away
    same = risk.strongest.prior == risk.prior
    before = public.percent(
        found.before, cells, f"R_all, {risk.knowledge}, guessed" if same else "found before"
    )
    who = (
        "Somebody who knows every other count"
        if risk.knowledge == "all-others"
        else "The strongest intruder"
    )
    return (
        f"{who} guesses {before} of the small counts rightly {_without(risk)} "
        f"{in_words(public.moved(gain, cells, 'gain'))} in addition."
    )


def _without(risk: IntruderRisk) -> str:
    """Say what can be guessed without the released counts, and why."""
    totals, earlier = (
        risk.strongest.totals,
        earlier_in_words(risk.already_released.sizes["dataset"]),
    )
    return (
        f"{'from the totals that the release keeps, and' if totals else 'without any release,'} "
        "because some counts are more common than others. With "
        f"{'its counts' if totals else 'it'}{earlier and f' and {earlier}'} they find"
    )


def _side_by_side(columns: list[dict[str, str]]) -> list[list[str]]:
    """Rows of a table with a column for each scenario."""
    return [[name, *(column[name] for column in columns)] for name in columns[0]]


def _numbers(risk: IntruderRisk) -> dict[str, str]:
    cells = risk.rho.sizes["cell"]
    low, high = risk.expected_correct_interval
    return {
        "R_all": _percent(risk.r_all.value),
        "R_unq": _percent(risk.r_unq.value),
        BELIEVED: f"{risk.believes_release:.1%}",
        "R_unq of an intruder who believes the first released count": _percent(
            risk.r_unq.believes_release
        ),
        "R_all of an intruder who sees no release": _percent(risk.r_all.baseline),
        "R_unq of an intruder who sees no release": _percent(risk.r_unq.baseline),
        "correct guesses that the intruder expects": (
            f"{risk.expected_correct * cells:,.0f} of {cells:,}: {risk.expected_correct:.1%}"
        ),
        "95 % interval of these": f"{low * cells:,.0f} to {high * cells:,.0f}",
        "mean probability of the true count": f"{float(risk.true_count_probability.mean()):.1%}",
        "mean distance d_t": f"{float(risk.distance.mean()):.2f}",
        **{
            f"cells with a probability of the true count above {limit}": (
                f"{len(risk.highest(limit)):,}"
            )
            for limit in (0.5, 0.9)
        },
        "cells refitted": _refitted(risk),
        "cells still unreliable": f"{risk.unreliable_cells:,}",
        "smallest effective number of draws": f"{float(risk.ess.min()):,.0f}",
        "largest Monte Carlo error of a release probability": _error(risk),
    }


def _public_numbers(
    table: FlowTable, risk: IntruderRisk, public: PublicShares, relied: bool
) -> dict[str, str]:
    """Shares of the public; without those that rest on weights which cannot be relied on."""
    cells = risk.rho.sizes["cell"]

    def guess(name: str, share: Share) -> str:
        rules = 1 / (table.k + 1)
        if risk.prior == "uniform" and np.allclose(risk.prior_probability, rules):
            return f"{rules:.0%}"  # follows from the rules alone, and from no totals
        if not relied and risk.prior == "model":
            return ""
        return public.percent(share.baseline, share.cells, f"{name}, {risk.knowledge}, guessed")

    def found(name: str, share: Share) -> str:
        return public.percent(
            share.value if relied else None, share.cells, f"{name}, {risk.knowledge}"
        )

    def few(name: str, number: int, least: float = 0.0) -> str:
        if cells < PUBLIC_CELLS:
            return NOT_SHOWN
        return in_words(
            max(public.moved(number / cells, cells, f"{name}, {risk.knowledge}"), least)
        )

    believed = "R_unq of an intruder who believes the first released count"
    unique, least = risk.r_unq, 0.0 if risk.r_all.trusted else 0.01  # as the warning says
    numbers = {
        f"R_all: {risk.r_all.definition}": found("R_all", risk.r_all),
        f"R_unq: {unique.definition}": found("R_unq", unique),
        BELIEVED: public.percent(risk.believes_release, cells, BELIEVED),
        believed: public.percent(unique.believes_release, unique.cells, believed),
        "R_all found by guessing, without the release": guess("R_all", risk.r_all),
        "R_unq found by guessing, without the release": guess("R_unq", unique),
        "share of correct guesses that the intruder expects": public.percent(
            risk.expected_correct if relied else None, cells, f"expected, {risk.knowledge}"
        ),
    }
    return {name: value or NOT_SHOWN for name, value in numbers.items()} | {
        "cells refitted": few("refitted", int(risk.refitted.sum())),
        "cells that cannot be relied on": few("unreliable", risk.unreliable_cells, least),
    }


def _refitted(risk: IntruderRisk) -> str:
    every, some = int(risk.refitted.sum()), int(risk.refitted_by_fit.any("fit").sum())
    fits = risk.refitted_by_fit.sizes["fit"]
    return f"{every:,}" if fits == 1 else f"{every:,} in all {fits} fits, {some:,} in one at least"


def _error(risk: IntruderRisk) -> str:
    error = float(risk.release_probability_error.max())
    return f"{error:.3f}" if math.isfinite(error) else "unknown"


def _percent(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"


def _classes(classes: pd.DataFrame) -> list[list[str]]:
    return [
        [
            str(name),
            f"{c['cells']:,.0f}",
            f"{c['r_all']:.1%}",
            f"{c['true_count_probability']:.1%}",
            f"{c['mean_distance']:.2f}",
        ]
        for name, c in classes.iterrows()
    ]


def _quarter(number: object) -> str:
    words = {1: "1, the smallest areas", 4: "4, the largest areas"}
    return words.get(int(str(number)), str(number))


def _weights_by_distance(table: FlowTable, risk: IntruderRisk) -> pd.DataFrame:
    """Pairs of cell and candidate count, and those with too high a k-hat, by distance."""
    away = np.abs(np.arange(table.k + 1) - table.cells["y"].to_numpy()[:, None])
    above = risk.khat.to_numpy() > risk.khat_threshold
    pairs = pd.DataFrame({"distance": away.ravel(), "above": above.ravel()})
    # at distance 0 all weights are equal
    grouped = pairs[pairs["distance"] > 0].groupby("distance")["above"]
    return grouped.agg(["size", "sum", "mean"]).set_axis(["pairs", "above", "share"], axis=1)


def _repeats(repeats: pd.DataFrame) -> list[list[str]]:
    rows = []
    for column, (name, form) in MEASURES.items():
        values = repeats[column].dropna()
        if values.empty:
            rows.append([name, "undefined: there is no such cell", "none", "none", "none"])
            continue
        parts = [form.format(part) for part in (values.mean(), values.min(), values.max())]
        spread = form.format(values.std()) if len(values) > 1 else "none (one release)"
        rows.append([name, *parts, spread])
    return rows


def _growth(growth: pd.DataFrame) -> list[list[str]]:
    """Risk by number of data sets: mean of each measure, smallest and largest R_all."""

    def written(value: float, form: str) -> str:
        return form.format(value) if math.isfinite(value) else "undefined"

    return [
        [
            f"{m}",
            *(written(g[column], form) for column, (_, form) in MEASURES.items()),
            f"{g['r_all_low']:.1%} to {g['r_all_high']:.1%}",
        ]
        for m, g in growth.iterrows()
    ]


def _public_growth(measured: Measured, public: PublicShares) -> pd.DataFrame:
    """Shares of many cells in whole per cents, by number of data sets; possibly without columns."""
    worst, growth = measured.worst, measured.by_datasets
    cells = {"r_all": worst.r_all.cells, "r_unq": worst.r_unq.cells}
    told = {
        name: cells[key]
        for key, suffix in BESIDE.items()
        if cells[key] >= PUBLIC_CELLS
        for name in (key, f"believes_release{suffix}", f"no_release{suffix}")
    }
    columns = {
        name: growth[name]
        if name.startswith("no_release") and worst.prior == "uniform"  # follows from the rules
        else public.moved_all(growth[name], of, f"{name} by data sets").clip(upper=1.0)
        for name, of in told.items()
    }
    ordered = [name for name in MEASURES if name in columns]
    return pd.DataFrame(columns)[ordered].round(2) if told else growth.iloc[:0, :0]


def _chosen(choice: Choice | None) -> dict[str, Any]:
    if choice is None:
        return {"chosen": "", "candidates": []}
    rows = [
        [
            f"{number}",
            "yes" if c["chosen"] else "no",
            "yes" if c["within_limits"] else "no",
            f"{c['totals_error']:.2%}",
            f"{c['r_all']:.1%}",
            "undefined" if pd.isna(c["r_unq"]) else f"{c['r_unq']:.1%}",
            f"{c['true_count_probability']:.1%}",
            f"{c['largest_probability']:.1%}",
        ]
        for number, c in choice.candidates.iterrows()
    ]
    rows.sort(key=lambda row: row[1] == "no")  # the chosen one first
    return {"chosen": re.sub(r"^c", "C", str(choice)) + ".", "candidates": rows}


def _public_choice(choice: Choice | None, cells: int, public: PublicShares) -> str:
    """Say that there was a choice, but not the number of candidates or how many broke a limit.

    One cell can break a limit on single probabilities, so that number could reveal it.
    """
    if choice is None:
        return ""
    mean = public.percent(float(choice.procedure["r_all"].mean()), cells, "R_all by choosing")
    return (
        "The release was chosen among several for the smallest error of totals. "
        + (f"Over repetitions of drawing and choosing R_all is {mean} on average. " if mean else "")
        + "The intruder is assumed not to use that a release with good totals was selected."
    )
