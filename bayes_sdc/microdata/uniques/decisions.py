"""What follows from the probability of a population unique: a Bayes test, and sample sizes."""

import math
from collections.abc import Callable

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import is_number
from bayes_sdc.microdata.uniques.unstructured import (
    check_probability,
    check_sizes,
    unique_probability,
)


@checked
def unique_test(q: float, *, loss_accept: float, loss_reject: float) -> bool:
    """Decide whether a sample unique is to be taken for a population unique.

    Parameters
    ----------
    q : float
        Probability that it is one, in [0, 1].
    loss_accept : float
        Loss when it is taken for one and is none, above 0.
    loss_reject : float
        Loss when it is not taken for one and is one, above 0.

    Returns
    -------
    bool
        False, rejected, when ``q < loss_accept / (loss_reject + loss_accept)``.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.unique_probability, bayes_sdc.largest_sample, bayes_sdc.smallest_sample

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> unique_test(0.04, loss_accept=1, loss_reject=30)
    True
    >>> unique_test(0.04, loss_accept=1, loss_reject=10)
    False
    """
    check_probability(q)
    for name, loss in (("loss_accept", loss_accept), ("loss_reject", loss_reject)):
        if not (is_number(loss) and loss > 0 and math.isfinite(loss)):
            raise InputError(f"{name} must be above 0; it is {loss!r}")
    return not q < loss_accept / (loss_reject + loss_accept)


@checked
def largest_sample(N: int, K: int, q: float, *, concentration: float = 1.0) -> int:
    """Find the largest sample whose sample uniques are alone with probability at most q.

    Parameters
    ----------
    N, K, concentration
        As for `unique_probability`.
    q : float
        In [0, 1].

    Returns
    -------
    int
        From 0, where even one sampled member is alone with a higher probability, to N.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.smallest_sample, bayes_sdc.unique_test

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> largest_sample(46228, 1108, 0.04)
    8360
    """
    check_probability(q)
    first = _first(N, K, lambda n: unique_probability(n, N, K, concentration=concentration) > q)
    return first - 1


@checked
def smallest_sample(N: int, K: int, q: float, *, concentration: float = 1.0) -> int:
    """Find the smallest sample whose sample uniques are alone with probability at least q.

    Parameters
    ----------
    N, K, concentration
        As for `unique_probability`.
    q : float
        In [0, 1].

    Returns
    -------
    int
        From 1 to N.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.largest_sample, bayes_sdc.unique_test

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> smallest_sample(46228, 1108, 0.04)
    8361
    """
    check_probability(q)
    return _first(N, K, lambda n: unique_probability(n, N, K, concentration=concentration) >= q)


def _first(N: int, K: int, holds: Callable[[int], bool]) -> int:
    """Return the first n from 1 where ``holds``, which stays so from there on; N + 1 if none."""
    check_sizes(1, N, K)
    low, high = 1, N + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
