r"""Uniques from the size indices when the number of possible combinations is known, and Zayatz'.

Poisson-gamma: each of K possible combinations, empty ones included, has a rate
:math:`\pi \sim \mathrm{Gamma}(\alpha, \mathrm{scale}\ \beta)` with :math:`K \alpha \beta = 1`; its
sample frequency is Poisson with mean :math:`n \pi`, so negative binomial with mean n/K. Then

.. math:: \Pr(F = 1 \mid f = 1) = \left(\frac{1 + n \beta}{1 + N \beta}\right)^{1 + \alpha}.

Estimators: "maximum-likelihood"; "moments" equates the variance of the frequencies; "quick" equates
the number of sample uniques. Frequencies that vary no more than a Poisson variable give an infinite
alpha: all combinations equally likely.

Zayatz: the combinations of the population are taken to be of the sizes found in the file, and a
combination of size i is unique in the sample with the hypergeometric probability
:math:`P_i = i \binom{N-i}{n-1} / \binom{N}{n}`; by Bayes' rule
:math:`\Pr(F = 1 \mid f = 1) = s_1 P_1 / \sum_i s_i P_i`.

References
----------
J. G. Bethlehem, W. J. Keller, J. Pannekoek, "Disclosure control of microdata", Journal of the
American Statistical Association 85 (1990) 38-45,
https://doi.org/10.1080/01621459.1990.10475304. L. V. Zayatz, "Estimation of the percent of
unique population elements on a microdata file using the sample", Bureau of the Census, Statistical
Research Division Report 91/08 (1991).
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaln, gammaln, xlog1py, xlogy

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.size_models.estimation import ESTIMATORS, Estimator
from bayes_sdc.microdata.size_models.size_table import (
    EVERY_UNIQUE,
    SizeModel,
    SizeTable,
    check_sizes,
    completions,
    goodness_of_fit,
    without_solution,
)

LOG_ALPHA = (-45.0, 25.0)  # beyond these the distribution no longer changes
NO_GAIN = 1e-4  # in the log-likelihood over cells that are all equally likely


@checked
def poisson_gamma(
    size_indices: Any,
    n: int,
    N: int,
    *,
    cells: int,
    estimator: Estimator = "maximum-likelihood",
) -> SizeModel:
    """Population uniques by the Poisson-gamma model.

    Parameters
    ----------
    size_indices : mapping, Series or sequence
        Number of combinations by size, or in the order of sizes from 1; the last class may be open.
    n, N : int
        Records in the file, people in the population.
    cells : int
        Possible combinations, empty ones included and structural zeros left out.
    estimator : {"moments", "maximum-likelihood", "quick"}
        How alpha is estimated.

    Returns
    -------
    SizeModel
        With the parameter ``alpha``, above 0; undefined where every record is unique.

    Raises
    ------
    InputError
        If the indices do not add up to n, there are fewer cells than combinations, or the estimator
        is unknown.

    See Also
    --------
    bayes_sdc.ewens, bayes_sdc.pitman, bayes_sdc.zayatz

    References
    ----------
    Bethlehem, Keller and Pannekoek (1990), sec. 3.

    Examples
    --------
    >>> found = poisson_gamma([30, 10, 5, 5], 85, 1000, cells=200)
    >>> round(found.expected, 2), round(found.parameters["alpha"], 2)
    (2.16, 0.4)
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"estimator {estimator!r} is unknown; choose from {list(ESTIMATORS)}")
    table = check_sizes(size_indices, n, N)
    cells = _check_cells(cells, table)
    assumption = (
        f"rates of {cells:,} possible combinations follow one gamma distribution; all uniques are "
        "equally at risk"
    )
    if table.combinations == table.n:
        return without_solution(
            "Poisson-gamma", table, estimator=estimator, assumption=assumption, reason=EVERY_UNIQUE
        )
    mean, s1 = table.n / cells, table.uniques
    if estimator == "quick" and s1 == 0:
        raise InputError(
            "estimator 'quick' equates the number of uniques, and there are none; remedy: "
            "estimator='maximum-likelihood'"
        )
    done = [table] if estimator == "quick" else completions(table)
    alphas = [_alpha(completion, mean, cells, estimator) for completion in done]
    alpha = alphas[0]
    error = _alpha_error(alpha, mean, done[0], cells, estimator)
    probability = stays_unique(alpha, table.n, table.N, cells)
    spread = None
    if table.open_cells:
        # alpha of every completion is between those of the extremes
        between = np.geomspace(min(alphas[0], 1e12), min(alphas[-1], 1e12), 101)
        values = [s1 * stays_unique(float(a), table.n, table.N, cells) for a in between]
        spread = (min(values), max(values))
    slope = _slope(alpha, table, cells)
    fit, fit_p = goodness_of_fit(
        table,
        lambda size: cells * np.exp(_log_pmf(size, alpha, mean)),
        cells * -math.expm1(float(_log_pmf(np.zeros(1), alpha, mean)[0])),
        1,
    )
    notes = table.notes
    if math.isinf(alpha):
        notes = (
            *notes,
            "there are as many uniques, or frequencies vary as little, as with all cells equally "
            "likely or beyond; more cells would leave room for a model",
        )
    return SizeModel(
        model="Poisson-gamma",
        estimator=estimator,
        assumption=assumption,
        parameters={"alpha": alpha},
        standard_errors={} if error is None else {"alpha": error},
        probability=probability,
        expected=s1 * probability,
        expected_error=None if error is None else s1 * abs(slope) * error,
        expected_range=spread,
        population_uniques=cells * float(np.exp(_log_pmf(np.ones(1), alpha, table.N / cells)[0])),
        fit=fit,
        fit_p=fit_p,
        notes=notes,
    )


def _slope(alpha: float, table: SizeTable, cells: int) -> float:
    """What a unit more of alpha does to the probability that a unique stays one."""
    if math.isinf(alpha):
        return 0.0
    step = 1e-4 * alpha
    high, low = (
        stays_unique(near, table.n, table.N, cells) for near in (alpha + step, alpha - step)
    )
    return (high - low) / (2 * step)


def _check_cells(cells: int, table: SizeTable) -> int:
    """Refuse fewer cells than combinations that occur."""
    if isinstance(cells, bool) or not isinstance(cells, int | np.integer):
        raise InputError(f"cells must be a whole number; it is {cells!r}")
    if cells < max(table.combinations, 2):
        raise InputError(
            f"cells = {cells:,} possible combinations are fewer than the {table.combinations:,} "
            "that occur, or than two; the product of the numbers of levels is an upper limit"
        )
    return int(cells)


def _log_pmf(size: np.ndarray, alpha: float, mean: float) -> np.ndarray:
    """Log-probability of a frequency: negative binomial, or Poisson for an infinite alpha."""
    if math.isinf(alpha):
        return np.asarray(xlogy(size, mean) - gammaln(size + 1) - mean)
    # written out: scipy.stats has the same, and takes half a second to import
    success = alpha / (alpha + mean)
    count = gammaln(alpha + size) - gammaln(size + 1) - gammaln(alpha)
    return np.asarray(count + alpha * np.log(success) + xlog1py(size, -success))


def stays_unique(alpha: float, n: int, N: int, cells: int) -> float:
    """Probability that the rest of the population adds nobody to a sample unique."""
    if math.isinf(alpha):
        return math.exp(-(N - n) / cells)
    beta = 1.0 / (cells * alpha)
    return math.exp(-(1.0 + alpha) * math.log1p((N - n) * beta / (1.0 + n * beta)))


def _alpha(table: SizeTable, mean: float, cells: int, estimator: Estimator) -> float:
    if estimator == "moments":
        excess = float(table.size**2 @ table.cells) / cells - mean**2 - mean
        return mean**2 / excess if excess > 0 else math.inf
    if estimator == "quick":
        share = table.uniques / table.n
        if share >= math.exp(-mean):
            return math.inf

        def surplus(log_alpha: float) -> float:
            alpha = math.exp(log_alpha)
            return (1.0 + alpha) * math.log1p(mean / alpha) + math.log(max(share, 1e-300))

        return math.exp(brentq(surplus, *LOG_ALPHA, xtol=1e-13))
    found = minimize_scalar(
        lambda log_alpha: -_log_likelihood(math.exp(log_alpha), mean, table, cells),
        bounds=_bracket(mean, table, cells),
        method="bounded",
        options={"xatol": 1e-10},
    )
    # all cells equally likely have the log-likelihood -n, without terms that hold no alpha
    return math.inf if -found.fun <= NO_GAIN - table.n else math.exp(float(found.x))


def _bracket(mean: float, table: SizeTable, cells: int) -> tuple[float, float]:
    """Log-alphas around the best of a grid, since the likelihood is flat far from its maximum."""
    grid = np.linspace(*LOG_ALPHA, 141)
    values = [_log_likelihood(math.exp(a), mean, table, cells) for a in grid]
    best = int(np.argmax(values))
    return float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 140)])


def _log_likelihood(alpha: float, mean: float, table: SizeTable, cells: int) -> float:
    """Without terms that hold no alpha; empty cells are in the term of all cells."""
    # log of alpha (alpha + 1) ... ; differences of gammaln lose all digits where alpha is large
    joins = (gammaln(table.size) - betaln(alpha, table.size)) @ table.cells
    empty = -cells * alpha * math.log1p(mean / alpha)
    return float(joins + empty - table.n * math.log(alpha + mean))


def _alpha_error(
    alpha: float, mean: float, table: SizeTable, cells: int, estimator: Estimator
) -> float | None:
    """Standard error of alpha: from the information, or from the variance of what is equated."""
    if math.isinf(alpha):
        return None
    if estimator == "maximum-likelihood":
        step = 1e-3 * alpha
        values = [_log_likelihood(alpha + k * step, mean, table, cells) for k in (-1, 0, 1)]
        information = -(values[0] - 2 * values[1] + values[2]) / step**2
        return 1.0 / math.sqrt(information) if information > 0 else None
    if estimator == "quick":
        p = math.exp(float(_log_pmf(np.ones(1), alpha, mean)[0]))
        step = 1e-4 * alpha
        high, low = (
            cells * math.exp(float(_log_pmf(np.ones(1), a, mean)[0]))
            for a in (alpha + step, alpha - step)
        )
        slope = (high - low) / (2 * step)
        return math.sqrt(cells * p * (1 - p)) / abs(slope) if slope else None
    m1, m2, m3, m4 = (
        mean**r * math.prod((alpha + i) / alpha for i in range(r)) for r in range(1, 5)
    )
    second, third, fourth = m2 + m1, m3 + 3 * m2 + m1, m4 + 6 * m3 + 7 * m2 + m1
    # the mean is given, so only what squares do beyond it is at random
    variance = fourth - second**2 - (third - second * m1) ** 2 / (second - m1**2)
    return alpha**2 / mean**2 * math.sqrt(max(variance, 0.0) / cells)


@checked
def zayatz(size_indices: Any, n: int, N: int) -> SizeModel:
    """Population uniques by Zayatz' estimator.

    Parameters
    ----------
    size_indices : mapping, Series or sequence
        Number of combinations by size, or in the order of sizes from 1; the last class may be open.
    n, N : int
        Records in the file, people in the population.

    Returns
    -------
    SizeModel
        Without parameters; undefined where every record is unique.

    Raises
    ------
    InputError
        If the indices do not add up to n.

    See Also
    --------
    bayes_sdc.ewens, bayes_sdc.pitman, bayes_sdc.poisson_gamma

    References
    ----------
    Zayatz (1991).

    Examples
    --------
    >>> round(zayatz([30, 10, 5, 5], 85, 1000).expected, 2)
    11.8
    """
    table = check_sizes(size_indices, n, N)
    estimator = "Bayes' rule"
    assumption = (
        "the population's combinations are of the sizes found in the file; all uniques are equally "
        "at risk"
    )
    if table.combinations == table.n:
        return without_solution(
            "Zayatz", table, estimator=estimator, assumption=assumption, reason=EVERY_UNIQUE
        )
    s1, notes = table.uniques, table.notes
    first = table.n / table.N
    sums = [float(_alone(table.size, table.n, table.N) @ table.cells)]
    if table.open_cells:
        low, high = _hull_sums(table)
        even = completions(table)[0]
        notes = (*notes, "the open class is spread evenly; the range is that of a convex hull")
        sums = [
            float(_alone(even.size, table.n, table.N) @ even.cells),
            sums[0] + low,
            sums[0] + high,
        ]
    shares = [min(s1 * first / total, 1.0) if total > 0 else 0.0 for total in sums]
    if s1 == 0:
        notes = (*notes, "no uniques")
    return SizeModel(
        model="Zayatz",
        estimator=estimator,
        assumption=assumption,
        parameters={},
        standard_errors={},
        probability=shares[0],
        expected=s1 * shares[0],
        expected_error=None,
        expected_range=(s1 * shares[2], s1 * shares[1]) if table.open_cells else None,
        population_uniques=s1 * shares[0] / first,
        fit=None,
        fit_p=None,
        notes=notes,
    )


def _alone(size: np.ndarray, n: int, N: int) -> np.ndarray:
    """Probability that a combination of each size has one record in a sample."""
    # from one size to the next, without differences of large logarithms
    t = np.arange(1, min(int(size.max(initial=1)), N - n + 1))
    steps = np.concatenate([[0.0], np.cumsum(np.log1p(-(n - 1) / (N - t)))])
    inside = np.minimum(size, len(steps))
    return np.where(size <= N - n + 1, size * (n / N) * np.exp(steps[inside - 1]), 0.0)


def _hull_sums(table: SizeTable) -> tuple[float, float]:
    """Least and largest sum over the open class of the probability to be alone.

    The mean over combinations of a function of their size lies in the convex hull of its graph, at
    the mean size.
    """
    largest = table.open_records - table.open_size * (table.open_cells - 1)
    sizes = np.arange(table.open_size, largest + 1)
    values = _alone(sizes, table.n, table.N)
    mean = table.open_records / table.open_cells
    bounds = []
    for sign in (1.0, -1.0):
        hull: list[int] = []
        for i in range(len(sizes)):
            while len(hull) > 1 and sign * _turn(sizes, values, hull[-2], hull[-1], i) <= 0:
                hull.pop()
            hull.append(i)
        bounds.append(float(np.interp(mean, sizes[hull], values[hull])) * table.open_cells)
    return bounds[0], bounds[1]


def _turn(x: np.ndarray, y: np.ndarray, a: int, b: int, c: int) -> float:
    """Above 0 when the path from a over b to c turns left."""
    return float((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))
