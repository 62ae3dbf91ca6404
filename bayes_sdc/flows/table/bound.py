"""The bound of the steps of a model: its width, its centres, and how a posterior keeps them.

What the bound does is in :mod:`bayes_sdc.flows.model.bounded`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayes_sdc.errors import InputError

SMALLEST = 0.01  # below it nothing of the table remains, and the shares can be released instead
LARGEST_SUM = 600.0  # of all steps of a count: the exponential of it is a number


class Bound(NamedTuple):
    """How far one person can move the log-likelihood, and about what."""

    epsilon: float  # width of the interval of every step
    centres: tuple[float, ...]  # (K,) of the log of P(k + 1) / P(k)


def check_bound(bound: Bound, upper: int) -> None:
    """Refuse an impossible bound.

    Parameters
    ----------
    bound : Bound
        Width and centres.
    upper : int
        Largest count K, from 0.

    Raises
    ------
    InputError
        If epsilon is not a number that bounds anything, or there is not a finite centre for each
        step.
    """
    epsilon = bound.epsilon
    if not math.isfinite(epsilon) or epsilon < SMALLEST:
        raise InputError(
            f"epsilon must be a number from {SMALLEST} on; it is {epsilon}. With less, nothing of "
            "the counts is left: release the shares instead"
        )
    if len(bound.centres) != upper or not np.isfinite(bound.centres).all():
        raise InputError(
            f"centres: {upper} finite numbers are needed, one for each step from a count to the "
            f"next; there are {len(bound.centres)}"
        )
    sum_of_steps = float(np.abs(bound.centres).sum()) + upper * epsilon / 2.0
    if sum_of_steps > LARGEST_SUM:
        most = 2.0 * (LARGEST_SUM - float(np.abs(bound.centres).sum())) / upper
        raise InputError(
            f"epsilon: {epsilon} bounds nothing here; choose at most {most:.0f}, or leave it out"
        )


def centres_of(shares: Sequence[float]) -> tuple[float, ...]:
    """Log ratios of the shares of neighbouring counts.

    Parameters
    ----------
    shares : sequence of float
        Of each count from the lowest to the highest, above 0; they need not sum to one.

    Raises
    ------
    InputError
        If a share is not above 0.

    Examples
    --------
    >>> [round(centre, 3) for centre in centres_of([0.5, 0.3, 0.2])]
    [-0.511, -0.405]
    """
    values = np.asarray(shares, np.float64)
    if values.ndim != 1 or not (np.isfinite(values).all() and (values > 0.0).all()):
        raise InputError(f"centres: shares must be finite numbers above 0; they are {list(shares)}")
    return tuple(float(ratio) for ratio in np.diff(np.log(values)))


def attributes_of(bound: Bound | None) -> dict[str, Any]:
    """Attributes by which a posterior keeps a bound; empty without one.

    Examples
    --------
    >>> bound_of(attributes_of(Bound(1.0, (-0.5,))))
    Bound(epsilon=1.0, centres=(-0.5,))
    """
    if bound is None:
        return {}
    return {"epsilon": bound.epsilon, "centres": json.dumps(bound.centres)}


def bound_of(attributes: Mapping[Any, Any]) -> Bound | None:
    """Return the bound that a posterior was fitted with; None without one.

    Raises
    ------
    InputError
        If one part of it is missing.
    """
    kept = {"epsilon", "centres"} & set(attributes)
    if not kept:
        return None
    if len(kept) == 1:
        raise InputError(
            f"the posterior has {min(kept)} but not the other half of its bound; fit it again"
        )
    centres = tuple(float(centre) for centre in json.loads(attributes["centres"]))
    return Bound(float(attributes["epsilon"]), centres)
