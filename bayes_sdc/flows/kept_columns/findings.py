"""What columns tell of small counts beside what everybody sees of the areas."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.checks import Verdict
from bayes_sdc.flows.kept_columns.features import Codes, Column
from bayes_sdc.flows.kept_columns.functions import ACCIDENT, codes_of, depends_on
from bayes_sdc.flows.kept_columns.levels import from_levels, from_shares
from bayes_sdc.flows.kept_columns.selection import END_NAMES, with_another
from bayes_sdc.flows.kept_columns.statistics import statistic_in
from bayes_sdc.flows.kept_columns.totals import ends_of
from bayes_sdc.flows.table.families import keyed
from bayes_sdc.flows.table.read import FlowTable

ALARM = 0.01  # chance of a false alarm over all questions asked of a table
STRONG_LEVELS = 0.5  # small counts given beyond those that the areas give; distances do a little


class Finding(NamedTuple):
    """Something that columns reveal about small counts."""

    verdict: Verdict
    log_chance: float
    columns: tuple[str, ...]
    words: str


def levels(table: FlowTable, kept: Sequence[Column], rows: Codes) -> Iterator[Finding]:
    """Shares of totals, and distances from what areas lead one to expect, beside safe counts.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    kept : sequence of Column
        Columns that are released because they were named.
    rows : array of int
        Those with small counts.
    """
    count = table.frame[table.count].to_numpy(np.float64)
    hidden = np.zeros(len(count), bool)
    hidden[rows] = True
    safe = count > table.high
    ends = [
        np.asarray(pd.factorize(table.frame[name].astype(str))[0], np.intp)
        for name in (table.origin, table.destination)
    ]
    keys = {
        "the total": np.zeros(len(count), np.intp),
        "the total of the origin": ends[0],
        "the total of the destination": ends[1],
    }
    if table.groups:
        texts = [table.frame[name].astype(str).to_numpy(object) for name in table.groups]
        keys["the total of the group"] = np.asarray(keyed(texts, len(count))[0], np.intp)
    numeric = [column for column in kept if np.isfinite(column.numbers).any()]
    log_alarm = np.log(ALARM / max(12 * len(numeric), 1))
    for column in numeric:
        bounded = from_shares(column.numbers, count, hidden, safe, keys)
        worst = min(bounded, key=lambda found: found.log_chance, default=None)
        if worst is not None and worst.share > 0.0 and worst.log_chance < log_alarm:
            yield Finding(
                "fail", worst.log_chance, (column.name,),
                f"{worst.words}, which the safe counts give: this leaves fewer values for "
                f"{worst.share:.0%} of the small counts",
            )  # fmt: skip
            continue
        for sides in ([ends[0]], [ends[1]], ends):
            found = from_levels(column.numbers, count, hidden, safe, sides)
            if found and found.share >= STRONG_LEVELS and found.log_chance < log_alarm:
                yield Finding(
                    "fail", found.log_chance, (column.name,),
                    f"{found.words}, read off the safe counts, it gives {found.share:.0%} of the "
                    "small counts more than the areas alone",
                )  # fmt: skip
                break


def statistics(table: FlowTable, kept: Sequence[str], areas: Sequence[str]) -> Iterator[Finding]:
    """Columns of areas that were made from their small counts.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    kept, areas : sequence of str
        Columns that are released because they were named, and because they describe areas.
    """
    ends = ends_of(table)
    for place, name in enumerate(kept):
        column = table.frame[name]
        others = [*areas, *kept[:place]]
        if why := with_another(table, name, others, ends):
            yield Finding("fail", -np.inf, (name,), why)
            continue
        for side in END_NAMES:
            if depends_on(codes_of(column), getattr(ends, side)) is not False:
                found = statistic_in(table, column, side, ends)
                if found is not None:
                    yield Finding(
                        "fail" if found.log_chance < np.log(ACCIDENT) else "look",
                        found.log_chance, (name,), f"it goes by {found.words}, which is hidden",
                    )  # fmt: skip
                    break
