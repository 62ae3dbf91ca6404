"""The small counts of a table, as the questions about kept columns read them."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.flows.kept_columns.features import Codes, Mask
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator


class Small(NamedTuple):
    """The rows with small counts, in an order that does not depend on that of the file."""

    rows: Codes  # in the frame
    y: Codes  # from 0
    low: int
    strata: dict[str, Codes | None]
    rng: np.random.Generator


def small_counts(table: FlowTable) -> Small:
    """Small counts, including those of own areas, which are not released as they are either."""
    frame = table.frame
    count = frame[table.count].to_numpy(np.float64)
    names = [*table.groups, table.origin, table.destination]
    codes = [pd.factorize(frame[name].astype(str), sort=True)[0] for name in names]
    order = np.lexsort(codes[::-1])
    rows = order[(count[order] >= table.low) & (count[order] <= table.high)]
    origin, destination = codes[-2][rows], codes[-1][rows]
    strata: dict[str, Codes | None] = {
        "": None,
        "of one origin": origin,
        "of one destination": destination,
    }
    if table.groups:
        by = np.stack([c[rows] for c in codes[:-2]], axis=1)
        strata["of one group"] = np.unique(by, axis=0, return_inverse=True)[1].ravel()
    y = count[rows].astype(np.intp) - table.low
    return Small(rows, y, table.low, strata, generator(0, "kept columns"))


def where_known(known: Mask, small: Small) -> Small:
    """Those of the small counts of which something is known."""
    if known.all():
        return small
    strata = {where: None if of is None else of[known] for where, of in small.strata.items()}
    return Small(small.rows[known], small.y[known], small.low, strata, small.rng)


def moves_of(table: FlowTable) -> dict[str, Codes]:
    """Row of the way back, and of the rows beside, for each row; -1 where there is none."""
    n = len(table.frame)
    names = [table.origin, table.destination, *table.groups]
    texts = [table.frame[name].astype(str).tolist() for name in names]
    keys = list(zip(*texts, strict=True))
    places = {key: row for row, key in enumerate(keys)}
    back = [
        places.get((d, o, *by), places.get((d, o, *by[::-1]), -1)) for o, d, *by in keys
    ]  # the groups of a pair are its own, or those of its ends
    rows = np.arange(n)
    return {
        "on the way back": np.array(back, np.intp),
        "in the row before": rows - 1,
        "in the row after": np.where(rows < n - 1, rows + 1, -1),
    }
