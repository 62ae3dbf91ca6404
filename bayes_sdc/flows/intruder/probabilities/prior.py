"""The intruder's prior over the counts of each cell."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable

NAMED = ("uniform", "shape", "model")


def prior_of_cells(
    prior: str | Sequence[float] | pd.Series | pd.DataFrame,
    table: FlowTable,
    prediction: np.ndarray | None,
    targets: np.ndarray | None = None,
) -> np.ndarray:
    """Prior probabilities of the counts of each target cell; rows sum to one.

    Counts that a rule of the table excludes have prior 0, because everybody knows the rule.

    Parameters
    ----------
    prior : "uniform", "shape", "model", sequence of float or DataFrame
        As for :func:`bayes_sdc.intruder_risk`.
    table : FlowTable
        Its counts and cells.
    prediction : array of float, shape (target, count)
        Of the model from the other cells; used by "model" only.
    targets : array of int, optional
        Positions of the target cells; by default all.

    Returns
    -------
    array of float, shape (target, count)

    Raises
    ------
    InputError
        If the prior is no probability distribution, or leaves out a cell.
    """
    counts = np.arange(table.low, table.high + 1)
    labels = table.cells.index if targets is None else table.cells.index[targets]
    shape = (len(labels), len(counts))
    if isinstance(prior, str):
        if prior == "model" and prediction is not None:
            return _possible(prediction, table, labels)
        if prior == "shape":
            return np.tile(shares_of_counts(table), (len(labels), 1))
        if prior != "uniform":
            raise InputError(f"prior {prior!r} is unknown; choose from {list(NAMED)} or give it")
        return _possible(np.full(shape, 1.0 / len(counts)), table, labels)
    if isinstance(prior, pd.DataFrame):
        if sorted(map(str, prior.columns)) != sorted(map(str, counts)):
            raise InputError(
                f"prior: the columns must be the counts {counts[0]} to {counts[-1]}; they are "
                f"{list(prior.columns)}"
            )
        if prior.index.has_duplicates:
            twice = prior.index[prior.index.duplicated()][0]
            raise InputError(f"prior: the cell {twice!r} has more than one row; keep one")
        ordered = prior.rename(columns=str)[[str(count) for count in counts]]
        missing = table.cells.index.difference(prior.index)
        if len(missing):
            raise InputError(
                f"prior: no row for the small cell {missing[0]!r}; the labels are those of "
                "table.cells"
            )
        weights = _numbers(ordered.loc[labels])
    else:
        if isinstance(prior, pd.Series):
            if sorted(map(str, prior.index)) != sorted(map(str, counts)):
                raise InputError(
                    f"prior: the index must be the counts {counts[0]} to {counts[-1]}; it is "
                    f"{list(prior.index)}"
                )
            prior = prior.rename(index=str)[[str(count) for count in counts]]
        row = _numbers(prior)
        if row.shape != (len(counts),):
            raise InputError(
                f"prior: give {len(counts)} weights, one for each count from {counts[0]} to "
                f"{counts[-1]}; got {prior!r}"
            )
        weights = np.tile(row, (len(labels), 1))
    bad = ~np.isfinite(weights).all(axis=1) | (weights < 0.0).any(axis=1)
    bad |= ~(weights.max(axis=1) > 0.0)
    if bad.any():
        cell = labels[int(np.argmax(bad))]
        raise InputError(
            f"prior: the weights must not be negative and not all zero; those of cell {cell!r} are "
            f"{weights[np.argmax(bad)].tolist()}"
        )
    weights = weights / weights.max(axis=1, keepdims=True)  # before the sum, which may overflow
    return _possible(np.asarray(weights / weights.sum(axis=1, keepdims=True)), table, labels)


def _possible(prior: np.ndarray, table: FlowTable, labels: pd.Index) -> np.ndarray:
    """The prior without the counts that a rule excludes."""
    if not table.impossible:
        return prior
    left = prior.copy()
    left[:, list(table.impossible)] = 0.0
    total = left.sum(axis=1, keepdims=True)
    if not (total > 0.0).all():
        cell = labels[int(np.argmin(total))]
        raise InputError(
            f"prior: the weights of cell {cell!r} are those of counts that the model's rule "
            "excludes; give the others some"
        )
    return np.asarray(left / total)


def shares_of_counts(table: FlowTable) -> np.ndarray:
    """Shares of the counts over all small cells: (count,); they add up to one.

    An intruder knows roughly what they are from other years and countries. Taken from the true
    counts they are the best that they could know, so the risk is not understated.
    """
    number = np.bincount(table.cells["y"], minlength=table.k + 1)
    return np.asarray(number / number.sum())


def _numbers(values: object) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"prior: the weights must be numbers; got {values!r}") from None
