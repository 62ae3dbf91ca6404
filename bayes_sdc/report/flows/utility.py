"""What both reports say about the use of a release, alone and beside other protections."""

from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.flows.intruder.comparing.tradeoff import OURS
from bayes_sdc.flows.protection import Measured
from bayes_sdc.flows.release.use.combining import CombinedTotals, by_area, possible_totals
from bayes_sdc.flows.release.use.uses import VERDICTS
from bayes_sdc.flows.release.use.utility import Utility
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.report import plots
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS, PublicShares
from bayes_sdc.report.flows.public_verdicts import public_uses, relied_on
from bayes_sdc.report.policy_limits import PUBLIC_WORDS, WITHHELD, Told
from bayes_sdc.results import or_undefined

SHARES = ("r_all", "r_unq", "true_count_probability", "totals_error", "right_band")
CLOSE = 0.10  # error of totals up to which it passes
FEW_CELLS = "Not shown: with few small counts what it is good for could reveal them."
PUBLIC_AREAS = 100  # totals of fewer areas may belong to one that can be recognised
FEW_AREAS = (
    f"Not shown: with fewer than {PUBLIC_AREAS} totals by area what it is good for could reveal "
    "single ones."
)
BY_WEIGHTS = ["r_all", "r_unq", "true_count_probability", "mean_distance"]
KNOWN = {
    "margins": "sums by origin",
    "all-others": "all other cells",
    "all-others, and totals to a base": "all other cells, and rounded totals",
    "all-but-cycle": "totals, and all other cells but one cycle",
}


def internal_utility(
    measured: Utility, compared: pd.DataFrame, combined: CombinedTotals | None
) -> dict[str, Any]:
    """Context of the internal report on this section."""
    return {
        "utility": _measures(measured),
        "utility_totals": [
            [
                f"by {side}",
                f"{t['areas']:,.0f}",
                *(
                    _percent(t[name], "{:.2%}")
                    for name in ("total_error", "mean_relative_error", "mean_relative_error_all")
                ),
            ]
            for side, t in measured.totals.iterrows()
        ],
        "combined": _combined(combined),
        "exact_totals": _exact(combined),
        "map": [_compared(row, "{:.1%}", "{:.2f}") for row in _ends(compared)],
        "map_plot": plots.ru_map(compared),
        "map_answer": _why_this(compared),
        "map_prior": compared["prior"].iloc[0],
        "ours": OURS,
    }


def external_utility(table: FlowTable, measured: Measured, public: PublicShares) -> dict[str, Any]:
    """Context of the external report: rounded means over many cells and areas, or nothing.

    The pMSE ratio is left out: it is not known how far one count can move it, so no noise can hide
    one.
    """
    use, compared = measured.utility, measured.tradeoff
    nothing: dict[str, Any] = {
        "uses": {}, "utility": [], "map": [], "map_plot": "",
        "combined": _public_combined(measured.combined),
        "exact_totals": _exact(measured.combined), "ours": OURS, "use_checks": [
            Told("use", WITHHELD, PUBLIC_WORDS[WITHHELD], "use_totals_error")
        ],
        "uses_why": FEW_CELLS if table.n_small < PUBLIC_CELLS else FEW_AREAS,
        "kept_totals": measured.keeps_totals, "kept_base": _to_a_base(measured),
    }  # fmt: skip
    areas = int(use.totals.loc[["origin", "destination"], "areas"].sum())
    if table.n_small < PUBLIC_CELLS or areas < PUBLIC_AREAS:
        return nothing
    unique = measured.risk.r_unq
    told = compared if unique.cells >= PUBLIC_CELLS else compared.assign(r_unq=np.nan)
    persons = _persons(table)
    units = dict.fromkeys(SHARES, float(table.n_small)) | {
        "mean_distance": float(table.n_small),
        "r_unq": float(max(unique.cells, 1)),
        "totals_error": persons,
    }
    # rounded before it is drawn: the points of a picture can be read back
    told = _moved(told, units, public).round(dict.fromkeys(SHARES, 2) | {"mean_distance": 1})
    if not relied_on(measured):
        # what the model predicts of a cell from the others rests on the weights, too
        hidden = (told["method"] == OURS) | (told["prior"] == "model")
        told.loc[hidden, BY_WEIGHTS] = np.nan
    # judged as it is printed, so the verdict tells nothing that the number does not
    error = round(public.moved(use.totals_error, persons, "error of totals"), 2)
    if keeps_all_areas(table, measured):
        error = 0.0  # by construction: anyone who has the release knows that they are the true ones
    judged, reason = "pass" if error <= CLOSE else "look", f"{error:.0%}, pass up to {CLOSE:.0%}"
    shown = pd.DataFrame(_ends(told)).dropna(subset=["true_count_probability"])
    return nothing | {
        "use_checks": [Told("error of totals", judged, reason, "use_totals_error")],
        "uses_why": "Not judged.",
        "uses": {} if measured.uses is None else _by_verdict(measured.uses.table, public),
        "utility": [
            ["error of totals by area", f"{error:.0%}"],
            [
                "released count in the size band of the true one",
                public.percent(use.right_band, table.n_small, "size band"),
            ],
        ],
        "map": [_compared(row, "{:.0%}", "{:.1f}", "not shown")[:-1] for row in _ends(told)],
        # numbers between the ends would stand in columns and rows of whole per cents
        "map_plot": plots.ru_map(shown) if len(shown) else "",
    }


def keeps_all_areas(table: FlowTable, measured: Measured) -> bool:
    """Whether the release keeps the total of every origin and destination exactly.

    By what is kept: the measured error is a mean of fractions, and can be 2e-17 where it is 0.
    """
    if measured.kept is None or not measured.keeps_totals:
        return False
    y = table.cells["y"].to_numpy(np.int64)
    for side in ("origin", "destination"):
        area, names = pd.factorize(table.cells[side])
        bounds = possible_totals(measured.kept, y, table.k, area, len(names))
        if (bounds[:, 0] < bounds[:, 1]).any():
            return False
    return True


def _by_verdict(uses: pd.DataFrame, public: PublicShares) -> dict[str, list[str]]:
    """Return the uses of each verdict, the best one first."""
    judged = public_uses(uses, public)
    told = {verdict: [use for of, use in judged if of == verdict] for verdict in VERDICTS}
    return {verdict: found for verdict, found in told.items() if found}


def _why_this(compared: pd.DataFrame) -> str:
    """Say in numbers what the release loses and gains against the safest other method."""
    like = compared[compared["knowledge"] != "margins"]
    first = like[like["datasets"] == like.groupby("method")["datasets"].transform("min")]
    found = first.set_index("method")[["true_count_probability", "totals_error"]]
    mine, others = found.loc[OURS], found.drop(index=OURS)
    if others.empty:
        return ""
    safest = str(others["true_count_probability"].idxmin())
    other = others.loc[safest]
    return (
        f"With one data set the model leaves a true count a probability of "
        f"{mine['true_count_probability']:.1%} on average, with totals {mine['totals_error']:.1%} "
        f"off; the safest other method, {safest}, {other['true_count_probability']:.1%}, with "
        f"totals {other['totals_error']:.1%} off."
    )


def _persons(table: FlowTable) -> float:
    """Number of persons over which one person is averaged in the error of totals.

    One person more changes the sum of absolute errors and the sum of the totals by one, on either
    side.
    """
    return float(table.cells["y"].sum() + table.low * len(table.cells)) / 2


def _moved(compared: pd.DataFrame, units: dict[str, float], public: PublicShares) -> pd.DataFrame:
    """Add noise to the measures of each method, the same for all its numbers of data sets.

    The knowledge of the intruder changes the risk but not the use, which has one noise for both.
    """
    parts = []
    for (method, knowledge), part in compared.groupby(["method", "knowledge"], sort=False):
        moved = {}
        for name, of in units.items():
            use = name in ("totals_error", "right_band")
            # anyone who knows all others learns every suppressed count: that follows from the rules
            if use or (method, knowledge) != ("suppression", "all-others"):
                called = f"{name}, {method}" if use else f"{name}, {method}, {knowledge}"
                values = public.moved_all(part[name], of, called)
                moved[name] = values.clip(upper=1.0) if name in SHARES else values
        parts.append(part.assign(**moved))
    return pd.concat(parts)


def internal_uses(measured: Measured) -> dict[str, Any]:
    """Context of what a demographer can do, and of how well rows are told from true ones.

    Rows of the first hold the verdict in words, the use, what was measured and its value, and the
    share of intervals that hold the true value.
    """
    no_intervals = "one data set" if measured.risk.datasets == 1 else "has none"
    rows = [] if measured.uses is None else [
        [
            str(row["verdict"]), str(row["use"]), str(row["measure"]),
            or_undefined(row["value"], ".2%"),
            _percent(row["covered"], "{:.1%}", no_intervals),
        ]
        for _, row in measured.uses.table.iterrows()
    ]  # fmt: skip
    told, kept, base = measured.distinguished, measured.keeps_totals, _to_a_base(measured)
    if told is None:
        return {"uses": rows, "told": [], "kept_totals": kept, "kept_base": base}
    null = "unknown" if told.null is None else "{:.2f} to {:.2f}".format(*told.null)
    return {
        "uses": rows,
        "kept_totals": kept,
        "kept_base": base,
        "told": [
            ["count, log count, smallest, largest", or_undefined(told.every.ratio, ".2f")],
            ["the same without the count", or_undefined(told.others.ratio, ".2f")],
            ["right model, by simulation (5 and 95 %)", null],
            ["excess over 1, per 10,000 cells", or_undefined(told.excess, ".2f")],
        ],
    }


def _to_a_base(measured: Measured) -> bool:
    """Whether totals are kept to multiples of a base only."""
    return measured.kept is not None and measured.kept.base > 1


def _measures(measured: Utility) -> list[list[str]]:
    bands = ", ".join(f"{a} to {b}" if a < b else f"{a}" for a, b in measured.bands)
    low, high = measured.log_ratio_interval
    one = " + 1" if measured.add_one else ""
    ratio = f"log of released{one} over true{one}"
    return [
        ["error of totals by area", f"{measured.totals_error:.2%}"],
        ["error of net migration, persons by area", f"{measured.net_migration_error:,.2f}"],
        [
            f"released count in the size band of the true one ({bands})",
            f"{measured.right_band:.1%}",
        ],
        [f"mean {ratio}", f"{measured.log_ratio_mean:+.3f}"],
        [f"{ratio}, 5 and 95 % quantiles", f"{low:+.2f} to {high:+.2f}"],
        ["pMSE", f"{measured.pmse:.3g}"],
        ["pMSE ratio", or_undefined(measured.pmse_ratio, ".2f")],
        ["released data sets", f"{measured.datasets}"],
    ]


def _combined(combined: CombinedTotals | None) -> list[list[str]]:
    """Coverage and mean width of the intervals of each kind of total."""
    if combined is None:
        return []
    return [
        [
            by_area(str(side)),
            f"{t['areas']:,.0f}",
            f"{t['exact']:,.0f}",
            f"{t['coverage']:.1%}",
            f"{t['mean_width']:,.1f}",
        ]
        for side, t in combined.by_side.iterrows()
    ]


def _exact(combined: CombinedTotals | None) -> str:
    """Name the kinds of totals that are exact, all or some of them; empty for none."""
    if combined is None:
        return ""
    return ", ".join(
        by_area(str(side)) + (" (some of them)" if t["exact"] < t["areas"] else "")
        for side, t in combined.by_side.iterrows()
        if t["exact"]
    )


def _public_combined(combined: CombinedTotals | None) -> list[list[str]]:
    """Mean widths of the totals that are not kept, which anyone can compute from the release.

    Coverage stays out: if all intervals held the truth, that would bound every true count, and the
    number of those that do not changes with single counts.
    """
    if combined is None:
        return []
    return [
        [by_area(str(side)), f"{t['mean_width'] * t['areas'] / (t['areas'] - t['exact']):,.1f}"]
        for side, t in combined.by_side.iterrows()
        if t["exact"] < t["areas"]
    ]


def _ends(compared: pd.DataFrame) -> list[pd.Series]:
    """First and last number of data sets of each method."""
    keys = ["method", "knowledge"]
    number = compared.groupby(keys)["datasets"]
    ends = (compared["datasets"] == number.transform("min")) | (
        compared["datasets"] == number.transform("max")
    )
    return [row for _, row in compared[ends].iterrows()]


def _compared(row: pd.Series, percent: str, plain: str, missing: str = "undefined") -> list[str]:
    return [
        str(row["method"]),
        KNOWN[str(row["knowledge"])],
        f"{row['datasets']}",
        _percent(row["r_all"], percent, missing),
        _percent(row["r_unq"], percent, missing),
        _percent(row["true_count_probability"], percent, missing),
        _percent(row["mean_distance"], plain, missing),
        _percent(row["totals_error"], percent),
        _percent(row["right_band"], percent),
        _percent(row["pmse_ratio"], plain),
    ]


def _percent(value: float, form: str, missing: str = "undefined") -> str:
    return missing if pd.isna(value) else form.format(value)
