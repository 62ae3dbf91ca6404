"""Other protections of the same small cells: what they release, and with what probability.

Each mechanism that works on one cell at a time is a matrix M: ``M[true, released]`` is the
probability of each released count for each true one, known by construction. Suppression is not such
a matrix, because it releases sums of cells; there the intruder's posterior itself is computed.
"""

import numpy as np
import pandas as pd
import xarray as xr
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq, minimize
from scipy.special import gammaln, xlogy

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.synthetic.given_sum import counts_given_sum
from bayes_sdc.flows.table.read import FlowTable

STEEPEST = 40.0  # log ratio of neighbouring counts beyond which a tilt changes nothing


def random_rounding(low: int, high: int, *, base: int = 5) -> xr.DataArray:
    """Unbiased random rounding: up with probability remainder / base, else down.

    Parameters
    ----------
    low, high : int
        Small counts, both included.
    base : int
        Released counts are its multiples.

    Returns
    -------
    DataArray (true, released)
        M; each row has the true count as its mean.

    Raises
    ------
    InputError
        If the base is below 2.

    Examples
    --------
    >>> m = random_rounding(1, 9)
    >>> m.sel(true=2).to_series().round(12).to_dict()
    {0: 0.6, 5: 0.4, 10: 0.0}
    """
    if base < 2:
        raise InputError(f"base must be 2 or more, or nothing is rounded; it is {base}")
    true = np.arange(low, high + 1)
    released = base * np.arange(low // base, -(-high // base) + 1)
    # a count between two multiples goes to each with weight one less its distance
    distance = np.abs(true[:, np.newaxis] - released) / base
    return matrix_of(np.maximum(1.0 - distance, 0.0), true, released)


def cell_key_noise(
    low: int, high: int, *, distance: int = 3, variance: float = 1.0
) -> xr.DataArray:
    """Bounded noise of mean zero and given variance, with the largest entropy.

    The transition probabilities are in the style of the cell-key method: for each true count the
    noise is at most ``distance`` either way, never makes a count negative, has mean 0 and the
    variance asked for, and otherwise the largest entropy. They are not an official perturbation
    table: those have further rules (no released 1 or 2, a share that stays), and fix the noise of a
    cell by a key, so that it is the same in every table.

    Parameters
    ----------
    low, high : int
        Small counts, both included. A true 0 stays 0, because noise of mean zero would make it
        negative.
    distance : int
        Largest noise.
    variance : float
        Of the noise, in squared counts.

    Returns
    -------
    DataArray (true, released)
        M; each row has the true count as its mean.

    Raises
    ------
    InputError
        If the distance is below 1, or no noise on the smallest count has this variance.

    References
    ----------
    Giessing 2016, doi:10.1007/978-3-319-45381-1_18.

    Examples
    --------
    >>> m = cell_key_noise(1, 9)
    >>> m.sel(true=1, released=[0, 1, 2, 3, 4]).round(2).to_numpy().tolist()
    [0.38, 0.34, 0.19, 0.07, 0.02]
    """
    true = np.arange(low, high + 1)
    # mean zero within -down..distance gives a variance of down * distance at most, at both ends
    least = min(max(low, 1), distance)
    if distance < 1:
        raise InputError(f"distance must be 1 or more, or there is no noise; it is {distance}")
    if not 0.0 < variance < least * distance:
        raise InputError(
            f"variance must be above 0 and below {least * distance}, the most that noise of at "
            f"most {distance} has on a count of {max(low, 1)}; it is {variance}"
        )
    released = np.arange(max(low - distance, 0), high + distance + 1)
    m = np.zeros((len(true), len(released)))
    for i, count in enumerate(true.tolist()):
        noise = np.arange(-min(count, distance), distance + 1)
        p = largest_entropy(noise, variance) if count else (noise == 0).astype(float)
        m[i, count + noise - released[0]] = p
    return matrix_of(m, true, released)


def poisson_synthesis(low: int, high: int) -> xr.DataArray:
    """Saturated Poisson synthesis: a Poisson count whose rate is the true count, from low to high.

    Parameters
    ----------
    low, high : int
        Small counts, both included. A true 0 stays 0.

    Returns
    -------
    DataArray (true, released)
        M.

    References
    ----------
    Jackson, Mitra, Francis and Dove 2022, doi:10.1111/rssa.12876; truncated to the small counts,
    because every other protection here tells the small cells from the safe ones too.

    Examples
    --------
    >>> poisson_synthesis(0, 2).sel(true=1).round(4).to_numpy().tolist()
    [0.4, 0.4, 0.2]
    """
    counts = np.arange(low, high + 1)
    mean = counts[:, np.newaxis]
    weights = np.exp(xlogy(counts, mean) - gammaln(counts + 1) - mean)
    return matrix_of(weights / weights.sum(axis=1, keepdims=True), counts, counts)


def draw_release(m: xr.DataArray, true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a released count for each cell.

    Parameters
    ----------
    m : DataArray (true, released)
        A mechanism.
    true : array of int, shape (cell,)
        True counts, as published.
    rng : Generator
        Source of the draws.

    Returns
    -------
    array of int, shape (cell,)
        Positions in the ``released`` counts of ``m``.

    Examples
    --------
    >>> m = random_rounding(1, 9)
    >>> places = draw_release(m, np.array([5, 5, 2]), np.random.default_rng(1))
    >>> m["released"].to_numpy()[places].tolist()
    [5, 5, 0]
    """
    cumulative = np.cumsum(m.to_numpy(), axis=1)
    # the last released count of positive probability ends at one, whatever rounding did
    cumulative /= cumulative[:, -1:]
    rows = cumulative[true - int(m["true"][0])]
    return np.asarray((rng.random(len(true))[:, np.newaxis] >= rows).sum(axis=1))


def other_flows(table: FlowTable, *, side: str = "origin") -> pd.DataFrame:
    """Suppress the small cells: one row "other flows" per area holds their sum.

    Parameters
    ----------
    table : FlowTable
        The table to protect.
    side : {"origin", "destination"}
        Whose areas the sums are for.

    Returns
    -------
    DataFrame
        By area: ``cells``, the number of small cells that are hidden, and their ``count``.

    Raises
    ------
    InputError
        If the side is unknown.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 5]})
    >>> other_flows(read_flows(frame, origin="o", destination="d", count="n")).to_dict("index")
    {'a': {'cells': 2, 'count': 5}, 'b': {'cells': 1, 'count': 5}}
    """
    if side not in ("origin", "destination"):
        raise InputError(f"side {side!r} is unknown; choose from ['origin', 'destination']")
    counts = table.cells["y"] + table.low
    by = pd.DataFrame({"count": counts, "area": table.cells[side]}).groupby("area", sort=True)
    return by.agg(cells=("count", "size"), count=("count", "sum"))


def suppression_posterior(
    table: FlowTable, *, side: str = "origin", prior: np.ndarray | None = None
) -> xr.DataArray:
    """Compute what an intruder learns of hidden cells from the sums of one side, exactly.

    They know which cells are hidden and that each is a small count, and see the sum of each area,
    but no other small cell and no sum of the other side. Anyone who knows all other small cells
    learns the hidden one by subtraction.

    Parameters
    ----------
    table : FlowTable
        The table that is protected by :func:`other_flows`.
    side : {"origin", "destination"}
        Whose sums are published.
    prior : array of float, shape (cell, count), optional
        What they expect beforehand; by default all values are equally probable.

    Returns
    -------
    DataArray (cell, count)
        Probability of each count; rows sum to one.

    Raises
    ------
    InputError
        If the side is unknown.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 2, 5]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> suppression_posterior(table).sel(count=[1, 2, 5]).round(3).to_numpy().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    sums = other_flows(table, side=side)
    labels = {"cell": list(table.cells.index), "count": np.arange(table.low, table.high + 1)}
    area = pd.factorize(table.cells[side], sort=True)[0]
    if prior is not None:
        found = np.empty_like(prior)
        for place, (cells, count) in enumerate(zip(sums["cells"], sums["count"], strict=True)):
            mine = area == place
            found[mine] = counts_given_sum(prior[mine], int(count) - int(cells) * table.low)
        return xr.DataArray(found, labels, ("cell", "count"), "suppression_posterior")
    known: dict[tuple[int, int], np.ndarray] = {}
    rows = []
    for cells, count in zip(sums["cells"].tolist(), sums["count"].tolist(), strict=True):
        key = cells, count - cells * table.low
        if key not in known:
            known[key] = posterior_given_sum(*key, table.k)
        rows.append(known[key])
    return xr.DataArray(
        np.array(rows).reshape(-1, table.k + 1)[area],
        labels,
        ("cell", "count"),
        "suppression_posterior",
    )


def posterior_given_sum(cells: int, total: int, upper: int) -> np.ndarray:
    """Probability of one of several independent uniform counts given their sum.

    It is proportional to the number of ways in which the others make up the rest, which follows by
    convolution. Weighting every count y by ``exp(tilt * y)`` does not change the answer, since the
    sum is given, and keeps the numbers near one where the sum is.

    Parameters
    ----------
    cells : int
        Number of counts in the sum, 1 or more.
    total : int
        The sum, 0 to ``cells * upper``.
    upper : int
        Each count is 0 to ``upper``.

    Returns
    -------
    array of float, shape (upper + 1,)
        Probability of each count.

    Examples
    --------
    >>> posterior_given_sum(2, 3, 2)  # 1 + 2 or 2 + 1
    array([0. , 0.5, 0.5])
    """
    one = _tilted(upper, total / cells)
    others = _distribution_of_sum(one, cells - 1)
    rest = total - np.arange(upper + 1)
    possible = (rest >= 0) & (rest < len(others))
    weights = np.where(possible, one * others[np.where(possible, rest, 0)], 0.0)
    return np.asarray(weights / weights.sum())


def matrix_of(m: np.ndarray, true: np.ndarray, released: np.ndarray) -> xr.DataArray:
    """Label the probabilities of a mechanism."""
    return xr.DataArray(
        m, {"true": true, "released": released}, ("true", "released"), "release_probability"
    )


def largest_entropy(noise: np.ndarray, variance: float) -> np.ndarray:
    """Distribution of mean zero and given variance with the largest entropy.

    It is proportional to ``exp(a v + b v^2)``; a and b minimise the logarithm of the normalising
    constant less ``b * variance``, which is convex.
    """
    powers = np.column_stack([noise, noise**2]).astype(float)
    target = np.array([0.0, variance])

    def distribution(x: np.ndarray) -> np.ndarray:
        weights = np.exp(powers @ x - (powers @ x).max())
        return np.asarray(weights / weights.sum())

    def dual(x: np.ndarray) -> float:
        return float(np.log(np.exp(powers @ x - (powers @ x).max()).sum())) + float(
            (powers @ x).max() - target @ x
        )

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.asarray(distribution(x) @ powers - target)

    def hessian(x: np.ndarray) -> np.ndarray:
        p = distribution(x)
        mean = p @ powers
        return np.asarray((powers * p[:, np.newaxis]).T @ powers - np.outer(mean, mean))

    start = np.array([0.0, -0.5 / variance])  # what it would be without bounds
    found = minimize(
        dual, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
    )
    x = found.x
    for _ in range(3):  # the minimiser stops where the function, not the gradient, is flat
        x = x - np.linalg.solve(hessian(x), gradient(x))
    return distribution(x)


def _tilted(upper: int, mean: float) -> np.ndarray:
    """Weights exp(tilt * y) on 0..upper, summing to one, with about the given mean."""
    counts = np.arange(upper + 1)

    def weights(tilt: float) -> np.ndarray:
        w = np.exp(tilt * counts - max(tilt * upper, 0.0))
        return np.asarray(w / w.sum())

    def excess(tilt: float) -> float:
        return float(weights(tilt) @ counts) - mean

    if excess(-STEEPEST) >= 0.0:
        return weights(-STEEPEST)
    if excess(STEEPEST) <= 0.0:
        return weights(STEEPEST)
    return weights(float(brentq(excess, -STEEPEST, STEEPEST, xtol=1e-9)))


def _distribution_of_sum(one: np.ndarray, times: int) -> np.ndarray:
    """Distribution of the sum of so many independent counts, by the power of its transform."""
    length = times * (len(one) - 1) + 1
    size = next_fast_len(length, real=True)
    # rounding leaves values of about 1e-17 of either sign where there should be 0
    return np.maximum(irfft(rfft(one, size) ** times, size)[:length], 0.0)
