"""What the release is still good for: totals by area, true against synthetic."""

import pandas as pd

from bayes_sdc.flows.released import released_counts
from bayes_sdc.flows.table import FlowTable


def margins(table: FlowTable, release: pd.DataFrame) -> pd.DataFrame:
    """Totals of the small cells by origin and by destination, before and after.

    Safe cells are equal on both sides, so they are left out of the comparison. With several data
    sets the synthetic total is their mean.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : pandas.DataFrame
        What :func:`bayes_sdc.flows.synthesis.synthesize` returned.

    Returns
    -------
    pandas.DataFrame
        One row for each side ("origin", "destination") and area: ``cells`` (number of small
        cells), ``true`` and ``synthetic`` totals of their counts. Confidential: an area with one
        small cell shows its true count.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [1, 4]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> margins(table, frame.assign(n=[2, 2]))
              side area  cells  true  synthetic
    0       origin    a      2     5        4.0
    1  destination    x      1     1        2.0
    2  destination    y      1     4        2.0
    """
    synthetic = released_counts(table, release).mean(axis=0) + table.low
    cells = table.cells.assign(true=table.cells["y"] + table.low, synthetic=synthetic)
    sides = []
    for side in ("origin", "destination"):
        totals = cells.groupby(side, sort=True).agg(
            cells=("y", "size"), true=("true", "sum"), synthetic=("synthetic", "sum")
        )
        sides.append(totals.rename_axis("area").reset_index().assign(side=side))
    columns = ["side", "area", "cells", "true", "synthetic"]
    return pd.concat(sides, ignore_index=True)[columns]
