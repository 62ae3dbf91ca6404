"""All measures of a file side by side, beside the truth where it is known."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.microdata.comparison.result import MATCHES, UNIQUES, RiskComparison
from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.microdata.measure.result import Measurement, Truth
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.report import plots
from bayes_sdc.report.microdata.public import LEVELS

NOTHING, MUCH = 0.2, 0.7  # rank correlations: little in common below the first, much above
RANKED = {
    "individual risk": "the weight alone, so how many people a record stands for",
    "SUDA score": "the values alone, so how few of them single a record out",
    "latent classes": "how plausible the whole combination is",
    "independence": "how rare its values are one by one",
}
PAIRS = (("individual risk", "SUDA score"), ("latent classes", "SUDA score"))


def tell_comparison(found: RiskComparison, result: Measurement) -> dict[str, Any]:
    """Return expected numbers of every method, how their rankings agree, and where they do not.

    Parameters
    ----------
    found : RiskComparison
        Of the file.
    result : Measurement
        With the truth, where it is known: then every interval is marked.

    Returns
    -------
    dict
        What the template shows.
    """
    truth = result.truth
    methods = {
        str(about): [_method(str(name), row, truth) for name, row in part.iterrows()]
        for about, part in found.methods.groupby("about", sort=False)
    }
    marked = [] if truth is None else ["truth"]
    return {
        "uniques": f"{found.uniques:,}",
        "notes": found.notes,
        "plot": plots.risk_comparison(found, truth),
        "columns": ["method", "expected", "interval or range", *marked, "assumption"],
        "methods": methods,
        "above": _above(found.records),
        "words": [_in_common(found.agreement, *pair) for pair in PAIRS if _both(found, pair)],
        "ranking_columns": ["method", *found.agreement.columns],
        "rankings": [
            [
                str(name),
                *("undefined" if pd.isna(value) else f"{value:.2f}" for value in row),
            ]
            for name, row in zip(found.agreement.index, found.agreement.to_numpy(), strict=True)
        ],
    }


def tell_truth(result: Measurement) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows: each measure by each method, marked right or wrong."""
    if result.truth is None:
        return [], []
    classes = result.latent_classes
    rows: list[list[str]] = []
    for name, words in (
        ("tau1", "sample uniques that are population uniques (tau1)"),
        ("tau2", "right matches among sample uniques (tau2)"),
        ("expected", "right matches over all records"),
    ):
        truth = float(getattr(result.truth, name))
        of_classes = None if classes is None or name == "expected" else getattr(classes, name)
        estimates = {"latent classes": of_classes}
        estimates |= {of: getattr(model, name) for of, model in result.models.items()}
        rows += [
            [words, of, f"{truth:,.1f}", *_marked(one, truth)] for of, one in estimates.items()
        ]
    return ["measure", "method", "truth", "estimate", "interval", "mark"], rows


def _method(name: str, row: pd.Series, truth: Truth | None) -> list[str]:
    """Write a row of the table of methods."""
    return [
        name,
        f"{row['expected']:,.2f}",
        _range(float(row["low"]), float(row["high"])),
        *([] if truth is None else [_mark(row, truth)]),
        str(row["assumption"]),
    ]


def _marked(estimate: Estimate | Estimate90 | None, truth: float) -> list[str]:
    """Write an estimate, its interval, and its mark."""
    if estimate is None:
        return ["not estimated", "", ""]
    low, high = estimate.interval
    return [f"{estimate.value:,.1f}", f"{low:,.1f} to {high:,.1f}", _verdict(low, high, truth)]


def _mark(row: pd.Series, truth: Truth) -> str:
    """Mark the interval of a method."""
    known = {UNIQUES: truth.tau1, MATCHES: truth.tau2}.get(row["about"])
    if known is None:
        return "not asked"
    if pd.isna(row["low"]) or pd.isna(row["high"]):
        return f"{known:,.1f}: no interval"
    return f"{known:,.1f}: {_verdict(float(row['low']), float(row['high']), known)}"


def _verdict(low: float, high: float, truth: float) -> str:
    if low <= truth <= high:
        return "right"
    return "wrong, too low" if truth > high else "wrong, too high"


def _both(found: RiskComparison, pair: Iterable[str]) -> bool:
    return all(name in found.agreement for name in pair)


def _in_common(agreement: pd.DataFrame, first: str, second: str) -> str:
    """Say what a rank correlation means for a reader of both rankings."""
    rho = float(agreement.loc[[first], [second]].to_numpy()[0, 0])
    if np.isnan(rho):
        return f"{first} and {second} cannot be compared: one of them gives all records the same."
    meaning = (
        "they have nothing in common"
        if abs(rho) < NOTHING
        else "they order the records much alike"
        if rho >= MUCH
        else "they have something in common"
        if rho > 0.0
        else "they order the records against each other"
    )
    return (
        f"{first[0].upper()}{first[1:]} and {second} have a rank correlation of {rho:.2f}: "
        f"{meaning}. The first goes by {RANKED[first]}; the second by {RANKED[second]}. A record "
        "that is high by one need not be so by the other, so neither stands for the other."
    )


def _above(records: pd.DataFrame) -> list[list[str]]:
    """Sample uniques beyond levels of DIS-SUDA, which is a risk, and of the SUDA score."""
    if "SUDA score" not in records:
        return []
    score = records["SUDA score"]
    powers = [10.0**k for k in range(int(np.log10(max(score.max(), 1.0))) + 1)]
    return [
        [f"{name} > {level:,g}", f"{int((records[name] > level).sum()):,}"]
        for name, levels in (("DIS-SUDA", LEVELS), ("SUDA score", (0.0, *powers)))
        for level in levels
    ]


def _range(low: float, high: float) -> str:
    return "none given" if pd.isna(low) or pd.isna(high) else f"{low:,.2f} to {high:,.2f}"
