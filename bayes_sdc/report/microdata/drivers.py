"""What drives the risk of a file, in sentences and tables: keys, values, coarser values."""

from typing import Any

import pandas as pd

from bayes_sdc.microdata.measure.drivers import Drivers
from bayes_sdc.microdata.measure.result import Measurement

SHOWN = 10  # values with the largest excess
STANDS_OUT = 0.02  # excess from which page one names a value


def tell_drivers(result: Measurement) -> str:
    """Say on page one which key, coarser values and which value take how much of the risk.

    Parameters
    ----------
    result : Measurement
        With sample uniques, or without.

    Returns
    -------
    str
        Sentences with counts, confidential.
    """
    found, uniques = result.drivers, result.data.sample_uniques
    if found is None:
        return "No key singles anybody out: no record is alone in the file with its values."
    sentences = [_left_out(found, uniques), _coarser(found, uniques), _value(result, found)]
    return " ".join(one for one in sentences if one)


def _left_out(found: Drivers, uniques: int) -> str:
    without = found.keys["without"]
    if len(without) == 1:
        return f"There is one key, {without.index[0]}."
    first, second = without.index[:2]
    if without.iloc[0] == uniques:
        return f"No single key: without any of them all {uniques:,} sample uniques are left."
    next_best = f"{second}, the next, {without.iloc[1]:,.0f}"
    return (
        f"Above all {first}: without it {without.iloc[0]:,.0f} of the {uniques:,} sample uniques "
        f"are left; without {next_best}."
    )


def _coarser(found: Drivers, uniques: int) -> str:
    """Name the two keys whose coarser values leave the fewest uniques."""
    keys = found.keys[found.keys["with_coarser"] < uniques]
    best = keys.sort_values("with_coarser", kind="stable")[:2]
    if not len(best):
        return "" if (found.keys["coarser"] == "").all() else "Coarser values leave all of them."
    told = [
        f"{row['with_coarser']:,.0f} with {row['coarser_values']} values of {key} instead of "
        f"{row['values']} ({row['coarser']})"
        for key, row in best.iterrows()
    ]
    return f"Coarser values leave {', or '.join(told)}."


def _value(result: Measurement, found: Drivers) -> str:
    first = found.values.iloc[0]
    if len(found.values) < 2 or first["excess"] < STANDS_OUT:
        return ""
    shares = [first["records"] / result.data.n, first["matches"] / found.matches]
    of = "the right matches" if result.latent_classes is not None else "the sample uniques"
    return (
        f"Among values, {first['key']} = {_shown(result, first)} stands out: "
        f"{shares[0]:.0%} of the records, {shares[1]:.0%} of {of}."
    )


def _shown(result: Measurement, row: pd.Series) -> str:
    return "(missing)" if row["value"] is None else result.data.shown(row["key"], row["value"])


def driver_tables(result: Measurement) -> dict[str, Any]:
    """Rows of what each key adds, and of the values that stand out most; none without uniques."""
    found = result.drivers
    if found is None:
        return {"drivers": [], "driving_values": []}
    return {
        "drivers": [
            [
                str(key),
                row["coarser"] or "none: it has two values or fewer",
                f"{row['values']:,}",
                f"{row['coarser_values']:,}",
                "undefined" if pd.isna(row["without"]) else f"{row['without']:,.0f}",
                f"{row['with_coarser']:,.0f}",
            ]
            for key, row in found.keys.iterrows()
        ],
        "driving_values": [
            [
                str(row["key"]),
                _shown(result, row),
                f"{row['records']:,} ({row['records'] / result.data.n:.1%})",
                f"{row['uniques']:,}",
                f"{row['matches']:,.1f} ({row['matches'] / found.matches:.1%})",
            ]
            for _, row in found.values[:SHOWN].iterrows()
        ],
    }
