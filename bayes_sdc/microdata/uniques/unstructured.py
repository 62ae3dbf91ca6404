r"""Population uniques when nothing is assumed of how the cells of the table relate.

The N members of a population fall into K cells, n of them are sampled at random, and s cells hold
one sampled member. With the symmetric Dirichlet-multinomial prior of concentration c on the
population table, each of these s is alone in the population with the same probability

.. math:: Q = \frac{\Gamma(A - a + N - n) \, \Gamma(A)}{\Gamma(A - a) \, \Gamma(A + N - n)}
    = \prod_{j=0}^{N-n-1} \left(1 - \frac{a}{A + j}\right),
    \qquad A = K c + n, \quad a = c + 1 .

c = 1 is the uniform prior on all tables and c = infinity the multinomial prior with equal cells.
K counts the cells that can be occupied. Structural zeros, combinations that cannot occur such as a
married child, must not be counted: with too many cells every sample unique looks rare.

References
----------
A. Cohen and H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables",
eq. (2.4) and (2.6), which are c = 1 and c = infinity; the Bayes test and the sample sizes are those
of their section 2.
"""

import math
from collections.abc import Mapping

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import check_whole, is_number

LEAST_CONCENTRATION = 1e-300  # the inverse of less is no number
SUMMED = 1 << 12  # factors multiplied one by one; the others have gamma functions from this on


@checked
def unique_probability(n: int, N: int, K: int, *, concentration: float = 1.0) -> float:
    """Probability that a sample unique is alone in the population.

    Parameters
    ----------
    n : int
        Sampled members, 1 to N.
    N : int
        Members of the population.
    K : int
        Cells that can be occupied, without structural zeros; 1 or more.
    concentration : float
        c, above 0; ``math.inf`` for the multinomial prior.

    Returns
    -------
    float
        Q, in [0, 1].

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.expected_uniques, bayes_sdc.learn_uniques, bayes_sdc.unique_test

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> round(108 * unique_probability(8399, 46228, 1108), 4)
    4.3553
    """
    check_sizes(n, N, K)
    check_concentration(concentration)
    return _none_added(n, N, K, concentration, 1)


@checked
def expected_uniques(s: int, n: int, N: int, K: int, *, concentration: float = 1.0) -> float:
    """Expected number of sample uniques that are alone in the population.

    Parameters
    ----------
    s : int
        Sample uniques, 0 to n.
    n, N, K, concentration
        As for `unique_probability`.

    Returns
    -------
    float
        s Q.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.unique_probability, bayes_sdc.uniques_deviation, bayes_sdc.learn_uniques

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> round(expected_uniques(7, 100, 1000, 50), 6)
    0.140414
    """
    _check_uniques(s, n, K)
    return s * unique_probability(n, N, K, concentration=concentration)


@checked
def uniques_deviation(s: int, n: int, N: int, K: int, *, concentration: float = 1.0) -> float:
    """Posterior standard deviation of the number of population uniques among sample uniques.

    Parameters
    ----------
    s, n, N, K, concentration
        As for `expected_uniques`.

    Returns
    -------
    float
        From the probability that two given sample uniques are both alone.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.expected_uniques, bayes_sdc.unique_probability

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> round(uniques_deviation(108, 8399, 46228, 1108), 3)
    2.043
    """
    _check_uniques(s, n, K)
    one = unique_probability(n, N, K, concentration=concentration)
    if s < 2:
        return math.sqrt(s * one * (1.0 - one))
    both = _none_added(n, N, K, concentration, 2)
    return math.sqrt(max(0.0, s * one + s * (s - 1) * both - (s * one) ** 2))


def _none_added(n: int, N: int, K: int, c: float, cells: int) -> float:
    """Probability that ``cells`` given sample uniques are all alone in the population."""
    unsampled = N - n
    if unsampled == 0:
        return 1.0
    if math.isinf(K * c):  # also where c is finite and so large that it makes no difference
        return math.exp(unsampled * math.log1p(-cells / K)) if cells < K else 0.0
    total, a = K * c + n, cells * (c + 1.0)
    rest = (K - cells) * c + (n - cells)  # total - a, without cancellation
    if rest <= 0:
        return 0.0
    summed = min(unsampled, SUMMED)
    log_q = _log_product(total, a, summed)
    if summed < unsampled:
        log_q += _log_tail(rest + summed, a, float(unsampled - summed))
    return min(1.0, math.exp(log_q))


@numba.njit(cache=True, nogil=True)
def _log_product(total: float, a: float, length: int) -> float:
    """Sum of log(1 - a / (total + j)) over j from 0 to length - 1, with compensation."""
    value = error = 0.0
    for j in range(length):
        term = math.log1p(-a / (total + j)) - error
        new = value + term
        error = (new - value) - term
        value = new
    return value


def _log_tail(x: float, a: float, b: float) -> float:
    """Log of G(x + a) G(x + b) / (G(x) G(x + a + b)), G the gamma function, for large x.

    By Stirling's series, term by term in a form without cancellation. It is symmetric in a and b,
    and no part of x log x is much larger than the whole where the smaller one is taken for b.
    """
    a, b = max(a, b), min(a, b)
    y = x + a
    main = x * _log1p_less(b / x) - y * _log1p_less(b / y) + b * math.log1p(-a / (y + b))
    half = -0.5 * math.log1p(a / x * (b / (y + b)))
    twelfth = (b / (y * (y + b)) - b / (x * (x + b))) / 12.0
    return main + half + twelfth


def _log1p_less(x: float) -> float:
    """log(1 + x) - x for x above 0, by 2 atanh(s) with s = x / (2 + x)."""
    if x > 1:
        return math.log1p(x) - x
    s = x / (2.0 + x)
    series = sum(s ** (2 * k) / (2 * k + 1) for k in range(1, 18))
    return 2.0 * s * series - x * s


def check_size_indices(
    size_indices: pd.Series | Mapping[int, int], K: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return sizes, numbers of cells and n, or refuse what is no table of K cells."""
    check_sizes(1, 1, K)
    if not isinstance(size_indices, pd.Series | Mapping):
        raise InputError("size_indices must be a Series, with the sizes as its index")
    table = pd.Series(size_indices)
    sizes = check_whole(table.index, "the index of size_indices, cells by size,")
    cells = check_whole(table, "size_indices, numbers of cells by size,", 0)
    if sizes.ndim != 1 or not cells.sum():
        raise InputError("size_indices must tell of at least one cell, by size")
    if cells.sum() > K:
        raise InputError(f"{cells.sum():,} cells are occupied, but K is only {K:,}")
    return sizes, cells, int(sizes @ cells)


def check_sizes(n: int, N: int, K: int) -> None:
    """Refuse sizes of sample, population and table that do not go together."""
    for name, value in (("n", n), ("N", N), ("K", K)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be a whole number, 1 or more; it is {value!r}")
    if n > N:
        raise InputError(f"the sample, n={n:,}, is larger than the population, N={N:,}")


def _check_uniques(s: int, n: int, K: int) -> None:
    whole = isinstance(s, int | np.integer) and not isinstance(s, bool)
    if not whole or not 0 <= s <= min(n, K):
        raise InputError(f"s must be a whole number from 0 to n and to K; it is {s!r}")


def check_concentration(c: float) -> None:
    """Refuse a concentration that is not above 0."""
    if not is_number(c) or not c >= LEAST_CONCENTRATION:
        raise InputError(f"concentration must be {LEAST_CONCENTRATION:g} or more; it is {c!r}")


def check_probability(q: float) -> None:
    """Refuse what is no probability."""
    if not is_number(q) or not 0 <= q <= 1:
        raise InputError(f"q must be from 0 to 1; it is {q!r}")
