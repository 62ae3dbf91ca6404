"""Weights of the small cells: how much of its log-likelihood each brings into a fit.

With weights below 1 the posterior becomes a pseudo-posterior, on which a cell has less influence.
What that promises is local, to this table, and asymptotic, so it is no bound for every table and
has no epsilon.

References
----------
T. Savitsky, M. Williams, J. Hu, "Bayesian pseudo posterior mechanism under asymptotic differential
privacy", Journal of Machine Learning Research 23, 2022, arXiv:1909.11796.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable

Weights = pd.Series | Sequence[float]

LOCAL = (
    "weights lower what single cells tell of themselves in this table, judged by the draws of its "
    "own fit; that is local and asymptotic, and no bound for every table"
)


def weights_by_cell(table: FlowTable, weights: Weights) -> np.ndarray:
    """Return a weight for each small cell, in the order of ``table.cells``.

    Parameters
    ----------
    table : FlowTable
        The table.
    weights : Series or sequence of float
        From 0 to 1: labelled as in ``table.cells``, where a cell that is not named has weight 1; or
        one for each small cell, in that order.

    Raises
    ------
    InputError
        If a weight is not from 0 to 1, or belongs to no small cell.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> label = table.cells.index[1]
    >>> weights_by_cell(table, pd.Series({label: 0.25})).tolist()
    [1.0, 0.25, 1.0]
    """
    labels = [str(label) for label in table.cells.index]
    if isinstance(weights, pd.Series):
        given = weights.rename(index=str)
        unknown = given.index.difference(labels)
        if len(unknown) or given.index.has_duplicates:
            named = unknown[0] if len(unknown) else given.index[given.index.duplicated()][0]
            why = "is no small cell of the table" if len(unknown) else "has two weights"
            raise InputError(f"weights: {named!r} {why}; label them as in table.cells")
        values = given.reindex(labels, fill_value=1.0).to_numpy()
    else:
        values = np.array(list(weights), dtype=object)
        if len(values) != len(labels):
            raise InputError(
                f"weights: there are {len(values)} for {len(labels)} small cells; give one for "
                "each in the order of table.cells, or a Series with their labels"
            )
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights: they must be numbers from 0 to 1") from None
    wrong = np.flatnonzero(~((found >= 0.0) & (found <= 1.0)))
    if len(wrong):
        raise InputError(
            f"weights: they must be from 0 to 1; that of {labels[wrong[0]]!r} is {found[wrong[0]]}"
        )
    return found
