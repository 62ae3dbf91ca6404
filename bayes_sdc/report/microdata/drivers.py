"""What drives the risk of a file, in sentences and tables: keys, values, coarser values."""

from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.microdata.measure.drivers import Drivers
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.figures import NAMED
from bayes_sdc.report.microdata.numbers import LEAST, part

SHOWN = 10  # values with the largest excess
STANDS_OUT = 0.02  # excess from which page one names a value
FEWEST = 1.0  # right matches below which a value has no share worth a word


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
    fewest = without.iloc[0]
    if fewest == uniques:
        return f"No single key: without any of them all {uniques:,} sample uniques are left."
    alike, others = without.index[without == fewest], without[without > fewest]
    it = {1: "it", 2: "either"}.get(len(alike), "any one of them")
    second = f"; without {others.index[0]}, the next, {others.iloc[0]:,.0f}" if len(others) else ""
    return (
        f"Above all {_listed(list(alike), 'or')}: without {it} {fewest:,.0f} of the {uniques:,} "
        f"sample uniques are left{second}."
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
    values = found.values
    chosen = values[(values["excess"] >= STANDS_OUT) & (values["matches"] >= FEWEST)]
    if len(values) < 2 or not len(chosen):
        return ""
    first = chosen.iloc[0]
    alike = chosen[
        (chosen["records"] == first["records"]) & np.isclose(chosen["matches"], first["matches"])
    ]
    names = [f"{row['key']} = {_shown(result, row)}" for _, row in alike.iterrows()]
    shares = [part(first["records"] / result.data.n), part(first["matches"] / found.matches)]
    of = "the right matches" if result.latent_classes is not None else "the sample uniques"
    told = f"{shares[0]} of the records, {shares[1]} of {of}"
    if len(names) == 1:
        return f"Among values, {names[0]} stands out: {told}."
    return f"Among values, {_listed(names, 'and')} stand out: each has {told}."


def _listed(names: list[str], word: str) -> str:
    """Join names of what does the same, the last by a word."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} {word} {len(names) - NAMED} more"
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _matches(number: float) -> str:
    """Write right matches with one decimal, and never as 0 what is not."""
    return f"fewer than {LEAST}" if 0.0 < number < LEAST else f"{number:,.1f}"


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
                f"{_matches(row['matches'])} ({row['matches'] / found.matches:.1%})",
            ]
            for _, row in found.values[:SHOWN].iterrows()
        ],
    }
