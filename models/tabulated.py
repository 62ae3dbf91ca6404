"""PyMC distributions on ``0..upper`` that are given by the logs of their probabilities."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.truncated import UPPER_LIMIT


def doubles(*parameters: Any) -> list[Any]:
    """Parameters as tensors of double precision, which a plain number is not.

    Examples
    --------
    >>> [each.dtype for each in doubles(0.5, 3)]
    ['float64', 'float64']
    """
    return [pt.as_tensor(each).astype("float64") for each in parameters]


def pieces(
    log_table: Callable[..., Any], upper: int, *, class_name: str, signature: str
) -> dict[str, Any]:
    """Arguments of ``pm.CustomDist`` for a distribution that is a table of ``upper + 1`` values.

    Parameters
    ----------
    log_table : callable
        Log-probabilities of the counts on a new last axis, from the parameters.
    upper : int
        Largest count, 1 to 150.
    class_name : str
        Name of the distribution.
    signature : str
        Dimensions of its parameters, as numpy's generalised functions write them.

    Returns
    -------
    dict
        Forward draws, log-probability, a starting point, names and types.

    Raises
    ------
    ValueError
        If ``upper`` is out of range.

    Examples
    --------
    >>> found = pieces(
    ...     lambda chance: pt.stack([pt.log1p(-chance), pt.log(chance)], axis=-1), 1,
    ...     class_name="Coin", signature="()->()",
    ... )
    >>> coin = pm.CustomDist.dist(pt.as_tensor(0.25), **found)
    >>> np.exp(pm.logp(coin, np.arange(2)).eval()).tolist()
    [0.75, 0.25]
    """
    if not 1 <= upper <= UPPER_LIMIT:
        raise ValueError(f"upper must be a whole number from 1 to {UPPER_LIMIT}; it is {upper}")

    def draw(*parameters_and_size: Any) -> Any:
        *parameters, size = parameters_and_size
        return pm.Categorical.dist(logit_p=log_table(*parameters), size=size)

    def logp(value: Any, *parameters: Any) -> Any:
        value = pt.as_tensor(value)
        within = (value >= 0) & (value <= upper) & pt.eq(value, pt.floor(value))
        at = pt.clip(value, 0, upper).astype("int64")
        chosen = pt.eq(at[..., None], np.arange(upper + 1))
        table = log_table(*parameters)
        return pt.switch(within, pt.switch(chosen, table, 0.0).sum(axis=-1), -np.inf)

    def start(rv: Any, size: Any, *parameters: Any) -> Any:
        mean = (pt.exp(log_table(*parameters)) * np.arange(upper + 1)).sum(axis=-1)
        return pt.round(pt.broadcast_to(mean, rv.shape))

    return {
        "dist": draw,
        "logp": logp,
        "support_point": start,
        "class_name": class_name,
        "dtype": "int64",
        "signature": signature,
    }
