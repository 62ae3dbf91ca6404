"""The released counts of the small cells, found in a table as it was released."""

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable


def released_counts(table: FlowTable, release: pd.DataFrame) -> np.ndarray:
    """Released counts of the small cells, from 0: (dataset, cell); rows may be in any order."""
    keys = [table.origin, table.destination, *table.groups]
    if "dataset" in release.columns and "dataset" not in table.frame.columns:
        frames = [frame for _, frame in release.groupby("dataset", sort=True)]
    else:
        frames = [release]
    rows = table.cells["row"].to_numpy()
    counts = []
    for frame in frames:
        missing = [name for name in [*keys, table.count] if name not in frame.columns]
        if missing:
            raise InputError(
                f"the release has no column {missing[0]!r}; it needs those of the input"
            )
        values = _in_order(table, frame, keys)[rows]
        # written so that a missing value, which compares as false, is refused too
        outside = ~((values >= table.low) & (values <= table.high) & (values % 1 == 0))
        if outside.any():
            cell = table.cells.index[int(np.argmax(outside))]
            raise InputError(
                f"the release has no count from {table.low} to {table.high} in small cell {cell}: "
                f"{values[np.argmax(outside)]}; it was not made from this table"
            )
        counts.append(values.astype(np.int64) - table.low)
    return np.stack(counts)


def _numbers(counts: pd.Series) -> np.ndarray:
    """Counts as floats; one that was withheld is missing."""
    return pd.to_numeric(counts).to_numpy(np.float64, na_value=np.nan)


def _in_order(table: FlowTable, frame: pd.DataFrame, keys: list[str]) -> np.ndarray:
    """Counts of a released frame in the row order of the table."""
    if len(frame) != len(table.frame):
        raise InputError(
            f"the release has {len(frame)} rows and the table {len(table.frame)}; "
            "pass it as synthesize returned it"
        )
    ours, theirs = table.frame[keys].astype(str), frame[keys].astype(str)
    if (ours.to_numpy() == theirs.to_numpy()).all():
        return _numbers(frame[table.count])
    repeated = theirs.duplicated()
    if repeated.any():
        pair = theirs.loc[repeated.to_numpy()].iloc[0].tolist()
        raise InputError(f"the release has {pair} twice; pass it as synthesize returned it")
    matched = ours.merge(
        theirs.assign(**{"count of the release": _numbers(frame[table.count])}),
        on=keys,
        how="left",
        validate="one_to_one",
        indicator="found",
    )
    lost = (matched["found"] != "both").to_numpy()
    if lost.any():
        pair = ours.loc[lost].iloc[0].tolist()
        raise InputError(f"the release has no row for {pair}; it was not made from this table")
    return matched["count of the release"].to_numpy(np.float64)
