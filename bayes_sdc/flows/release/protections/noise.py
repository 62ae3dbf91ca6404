"""Noise that does not depend on other cells: geometric noise with its epsilon, and cell keys.

Geometric noise is the discrete Laplace distribution; with parameter epsilon the probability of a
released count changes by at most a factor exp(epsilon) for one person more or less. Clamping to the
small counts uses the noisy count alone, and does not change that.

With cell keys the noise of a cell follows from a key of the persons in it, so a count is the same
in every table and in every repetition, and averaging repetitions reveals nothing. The probabilities
of the noise are a *perturbation table*: for each true count mean 0, variance V, at most D either
way, no negative count, no released count from 1 to ``none_up_to``, and otherwise the largest
entropy.

References
----------
A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms",
SIAM Journal on Computing 41, 2012, doi:10.1137/09076828X. S. Giessing, "Computational issues in the
design of transition probabilities and disclosure risk estimation for additive noise", 2016,
doi:10.1007/978-3-319-45381-1_18.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.protections.alternatives import largest_entropy, matrix_of

BEYOND = 1e-12  # of the unclamped noise: probability of the last values and all beyond


def geometric_noise(low: int, high: int, *, epsilon: float, clamped: bool = True) -> xr.DataArray:
    """Two-sided geometric noise, clamped to the small counts or unclamped.

    Parameters
    ----------
    low, high : int
        Small counts, both included.
    epsilon : float
        Above 0: the log probability of every released count changes by at most this for a person
        more or less in the cell.

    Returns
    -------
    DataArray (true, released)
        M; rows sum to one.

    Raises
    ------
    InputError
        If epsilon is not above 0.

    Examples
    --------
    >>> geometric_noise(1, 3, epsilon=np.log(2)).round(4).to_numpy().tolist()
    [[0.6667, 0.1667, 0.1667], [0.3333, 0.3333, 0.3333], [0.1667, 0.1667, 0.6667]]
    """
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise InputError(f"epsilon must be above 0, or there is nothing but noise; it is {epsilon}")
    counts = np.arange(low, high + 1)
    reach = 0 if clamped else math.ceil(-math.log(BEYOND) / epsilon)
    released = np.arange(low - reach, high + reach + 1)
    ratio = math.exp(-epsilon)
    away = np.abs(released - counts[:, np.newaxis])
    m = (1.0 - ratio) / (1.0 + ratio) * ratio**away
    # the values beyond a bound add up to a geometric tail
    m[:, 0] = ratio ** away[:, 0] / (1.0 + ratio)
    m[:, -1] = ratio ** away[:, -1] / (1.0 + ratio)
    return matrix_of(m, counts, released)


def perturbation_table(
    largest: int, *, distance: int, variance: float, none_up_to: int = 0
) -> xr.DataArray:
    """Perturbation table of the cell-key method: noise of largest entropy for each true count.

    Parameters
    ----------
    largest : int
        Largest true count of the table; above ``distance + none_up_to`` all rows have one shape.
    distance : int
        D: largest noise either way.
    variance : float
        V: of the noise, in squared counts.
    none_up_to : int
        No count from 1 to this one is released: 0 by default, 2 in some censuses.

    Returns
    -------
    DataArray (true, released)
        Rows sum to one, with the true count as mean and the variance asked for; a true 0 stays 0.

    Raises
    ------
    InputError
        If no noise on some count has this variance.

    Examples
    --------
    >>> table = perturbation_table(9, distance=5, variance=3.0, none_up_to=2)
    >>> table.sel(true=1).to_series().round(3)[lambda p: p > 0].to_dict()
    {0: 0.734, 3: 0.137, 4: 0.073, 5: 0.037, 6: 0.019}
    """
    if distance < 1 or none_up_to < 0 or largest < 1:
        raise InputError(
            "distance and largest must be 1 or more, and none_up_to 0 or more; they are "
            f"{distance}, {largest} and {none_up_to}"
        )
    true = np.arange(largest + 1)
    released = np.arange(largest + distance + 1)
    m = np.zeros((len(true), len(released)))
    m[0, 0] = 1.0
    for count in range(1, largest + 1):
        noise = np.arange(-distance, distance + 1)
        goal = count + noise
        noise = noise[(goal == 0) | (goal > none_up_to)]
        refuse_variance(count, noise, variance)
        m[count, count + noise] = largest_entropy(noise, variance)
    return matrix_of(m, true, released)


def refuse_variance(count: int, noise: np.ndarray, variance: float) -> None:
    """Refuse a variance that no noise of mean zero on these values has."""
    below, above = noise[noise < 0], noise[noise > 0]
    if 0 in noise:
        least = 0.0
    elif len(below) and len(above):  # on the two values next to it
        least = float(-below.max() * above.min())
    else:
        least = math.inf
    most = float(-noise.min() * noise.max())
    if not least < variance < most:
        raise InputError(
            f"variance must be above {least:g} and below {most:g} for a true count of {count}; it "
            f"is {variance}"
        )


def cell_keys(labels: Sequence[str], secret: str) -> np.ndarray:
    """Keys of cells from 0 to 1, the same for the same cell and secret.

    An agency adds up random numbers of the persons in the cell; where persons are not available, a
    keyed hash of the cell's label serves.

    Parameters
    ----------
    labels : sequence of str
        Of the cells.
    secret : str
        Confidential: anyone who knows it can remove the noise.

    Returns
    -------
    array of float, shape (cell,)
        In [0, 1).

    Examples
    --------
    >>> one, same, other = cell_keys(["a>b", "a>b", "a>c"], "secret")
    >>> bool(one == same), bool(one == other)
    (True, False)
    """
    key = secret.encode()
    digests = [hashlib.blake2b(label.encode(), key=key[:64], digest_size=8) for label in labels]
    return np.array([int.from_bytes(d.digest()) >> 11 for d in digests]) / 2.0**53


def perturbed(table: xr.DataArray, true: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Look the released count of each cell up by its key.

    Parameters
    ----------
    table : DataArray (true, released)
        From :func:`perturbation_table`.
    true : array of int, shape (cell,)
        True counts.
    keys : array of float, shape (cell,)
        From :func:`cell_keys`.

    Returns
    -------
    array of int, shape (cell,)
        Positions in the ``released`` counts of ``table``.

    Examples
    --------
    >>> table = perturbation_table(3, distance=1, variance=0.5)
    >>> perturbed(table, np.array([2, 2]), np.array([0.1, 0.9])).tolist()
    [1, 3]
    """
    cumulative = np.cumsum(table.to_numpy(), axis=1)
    cumulative /= cumulative[:, -1:]
    rows = cumulative[true - int(table["true"][0])]
    return np.asarray((keys[:, np.newaxis] >= rows).sum(axis=1))
