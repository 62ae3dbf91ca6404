r"""Ewens' and Pitman's sampling formulas: uniques from the size indices of a file alone.

Both say how the next record falls: with n records in K combinations, into one that has i records
with probability :math:`(i - \alpha) / (\theta + n)`, and into a new one otherwise; Ewens' formula
is :math:`\alpha = 0`. So a combination that is unique among n stays so up to N with probability

.. math:: \prod_{t=n}^{N-1} \frac{\theta + t - 1 + \alpha}{\theta + t}
   = \frac{\Gamma(\theta + \alpha + N - 1)\, \Gamma(\theta + n)}
          {\Gamma(\theta + \alpha + n - 1)\, \Gamma(\theta + N)},

which is :math:`(\theta + n - 1)/(\theta + N - 1)` for Ewens and close to
:math:`(n/N)^{1-\alpha}` for large n. All sample uniques have the same probability.

Estimators: "moments" equates the expected with the observed number of uniques (Ewens), or of
uniques and of combinations (Pitman); "maximum-likelihood"; "quick" is the limit for large files:
:math:`\theta = s_1` for Ewens, and :math:`\alpha = s_1 / K` with the power above for Pitman.

References
----------
W. J. Ewens, "The sampling theory of selectively neutral alleles", Theoretical Population Biology 3
(1972) 87-112, https://doi.org/10.1016/0040-5809(72)90035-4. J. Pitman, "Exchangeable and partially
exchangeable random partitions", Probability Theory and Related Fields 102 (1995) 145-158,
https://doi.org/10.1007/BF01213386. N. Hoshino, "Applying Pitman's sampling formula to microdata
disclosure risk assessment", Journal of Official Statistics 17 (2001) 499-520.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.size_models.estimation import (
    ESTIMATORS,
    Estimator,
    ewens_theta,
    likelihood_covariance,
    moment_covariance,
    pitman_likelihood,
    pitman_moments,
    profile_theta,
    theta_of,
)
from bayes_sdc.microdata.size_models.partitions import (
    covariance_of_counts,
    expected_combinations,
    expected_sizes,
    first_alone,
    stays_unique,
)
from bayes_sdc.microdata.size_models.size_table import (
    EVERY_UNIQUE,
    SizeModel,
    SizeTable,
    check_sizes,
    completions,
    goodness_of_fit,
    without_solution,
)

ASSUMPTION = {
    "Ewens": "every combination grows in proportion to its size; all uniques are equally at risk",
    "Pitman": "as Ewens, but new combinations keep turning up; all uniques are equally at risk",
}


@checked
def ewens(
    size_indices: Any,
    n: int,
    N: int,
    *,
    estimator: Estimator = "maximum-likelihood",
) -> SizeModel:
    """Population uniques by Ewens' sampling formula.

    Parameters
    ----------
    size_indices : mapping, Series or sequence
        Number of combinations by size, or in the order of sizes from 1; the last class may be open,
        as ``"11+"``. The number of combinations is all that matters beyond the uniques, so an open
        class leaves nothing undetermined.
    n, N : int
        Records in the file, people in the population.
    estimator : {"moments", "maximum-likelihood", "quick"}
        How theta is estimated.

    Returns
    -------
    SizeModel
        With the parameter ``theta``; undefined where every record is unique.

    Raises
    ------
    InputError
        If the indices do not add up to n, or the estimator is unknown.

    See Also
    --------
    bayes_sdc.pitman, bayes_sdc.poisson_gamma, bayes_sdc.zayatz

    References
    ----------
    Ewens (1972), doi:10.1016/0040-5809(72)90035-4, eq. (20) for the likelihood equation.

    Examples
    --------
    >>> sizes = [2249, 521, 275, 132, 104, 60, 59, 34, 46, 19, 124]
    >>> print(ewens(sizes, 9_809, 4_867_000, estimator="moments"))
    Ewens (moments): 5.877 (standard error 0.0358)
    """
    _check_estimator(estimator)
    table = check_sizes(size_indices, n, N)
    s1, k = table.uniques, table.combinations
    if k == table.n:
        return _without_solution("Ewens", table, estimator, EVERY_UNIQUE)
    theta, error = ewens_theta(table, estimator)
    probability = stays_unique(0.0, theta, table.n, table.N)
    slope = _slope(lambda t: s1 * stays_unique(0.0, t, table.n, table.N), theta)
    fit, fit_p = goodness_of_fit(
        table,
        lambda size: expected_sizes(0.0, theta, table.n, size),
        expected_combinations(0.0, theta, table.n),
        1,
    )
    notes = table.notes
    if k == 1:
        notes = (*notes, "a single combination: theta is 0")
    return SizeModel(
        model="Ewens",
        estimator=estimator,
        assumption=ASSUMPTION["Ewens"],
        parameters={"theta": theta},
        standard_errors={} if error is None else {"theta": error},
        probability=probability,
        expected=s1 * probability,
        expected_error=None if error is None else abs(slope) * error,
        expected_range=(s1 * probability,) * 2 if table.open_cells else None,
        population_uniques=table.N * first_alone(0.0, theta, table.N),
        fit=fit,
        fit_p=fit_p,
        notes=notes,
    )


@checked
def pitman(
    size_indices: Any,
    n: int,
    N: int,
    *,
    estimator: Estimator = "maximum-likelihood",
) -> SizeModel:
    """Population uniques by Pitman's sampling formula.

    Parameters
    ----------
    size_indices : mapping, Series or sequence
        As for `ewens`. With an open class, maximum likelihood is given for its most equal
        completion, with the range over all of them.
    n, N : int
        Records in the file, people in the population.
    estimator : {"moments", "maximum-likelihood", "quick"}
        How alpha and theta are estimated; "quick" has no theta.

    Returns
    -------
    SizeModel
        With the parameters ``alpha``, in [0, 1), and ``theta``; undefined where every record is
        unique, or none is.

    Raises
    ------
    InputError
        If the indices do not add up to n, or the estimator is unknown.

    See Also
    --------
    bayes_sdc.ewens, bayes_sdc.poisson_gamma, bayes_sdc.zayatz

    References
    ----------
    Pitman (1995), eq. (16); Hoshino (2001).

    Examples
    --------
    >>> sizes = [2249, 521, 275, 132, 104, 60, 59, 34, 46, 19, 124]
    >>> found = pitman(sizes, 9_809, 4_867_000, estimator="quick")
    >>> round(found.expected, 2), round(found.parameters["alpha"], 3)
    (213.64, 0.621)
    """
    _check_estimator(estimator)
    table = check_sizes(size_indices, n, N)
    s1, k = table.uniques, table.combinations
    if k == table.n or k < 2 or s1 == 0:
        reason = EVERY_UNIQUE if k == table.n else "there are no two combinations, or no uniques"
        return _without_solution("Pitman", table, estimator, reason)
    if estimator == "quick":
        return _quick_pitman(table)
    if estimator == "moments":
        done, solved = [table], [pitman_moments(table)]
    else:
        done = completions(table)
        solved = [pitman_likelihood(completion) for completion in done]
    if solved[0] is None:
        reason = "no alpha in [0, 1) gives both the uniques and the combinations"
        return _without_solution("Pitman", table, estimator, reason)
    alpha, theta = solved[0]
    covariance = (
        moment_covariance(alpha, theta, table.n)
        if estimator == "moments"
        else likelihood_covariance(alpha, theta, done[0])
    )

    def expected(a: float, t: float) -> float:
        return s1 * stays_unique(a, t, table.n, table.N)

    notes = table.notes
    spread = None
    if table.open_cells:
        spread = (expected(alpha, theta),) * 2
        if estimator == "maximum-likelihood":
            other = solved[1]
            assert other is not None  # noqa: S101 the likelihood always has a maximum
            spread = _range_on_profile(table, alpha, other[0])
            notes = (*notes, "parameters are those of the most equal completion of the open class")
    if alpha == 0.0:
        notes = (*notes, "the likelihood is largest at alpha = 0, which is Ewens' formula")
    errors, error = _standard_errors(covariance, expected, alpha, theta)
    fit, fit_p = goodness_of_fit(
        table,
        lambda size: expected_sizes(alpha, theta, table.n, size),
        expected_combinations(alpha, theta, table.n),
        2,
    )
    return SizeModel(
        model="Pitman",
        estimator=estimator,
        assumption=ASSUMPTION["Pitman"],
        parameters={"alpha": alpha, "theta": theta},
        standard_errors=errors,
        probability=stays_unique(alpha, theta, table.n, table.N),
        expected=expected(alpha, theta),
        expected_error=error,
        expected_range=spread,
        population_uniques=table.N * first_alone(alpha, theta, table.N),
        fit=fit,
        fit_p=fit_p,
        notes=notes,
    )


def _standard_errors(
    covariance: np.ndarray | None,
    expected: Callable[[float, float], float],
    alpha: float,
    theta: float,
) -> tuple[dict[str, float], float | None]:
    """Standard errors of the parameters and, by linearization, of the expected number."""
    if covariance is None:
        return {}, None
    gradient = np.array(
        [
            _slope(lambda a: expected(a, theta), alpha),
            _slope(lambda t: expected(alpha, t), theta),
        ]
    )
    errors = dict(zip(("alpha", "theta"), np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return errors, float(np.sqrt(gradient @ covariance @ gradient))


def _check_estimator(estimator: str) -> None:
    if estimator not in ESTIMATORS:
        raise InputError(f"estimator {estimator!r} is unknown; choose from {list(ESTIMATORS)}")


def _without_solution(model: str, table: SizeTable, estimator: str, reason: str) -> SizeModel:
    return without_solution(
        model, table, estimator=estimator, assumption=ASSUMPTION[model], reason=reason
    )


def _quick_pitman(table: SizeTable) -> SizeModel:
    """Pitman's formula for large files; theta has no part in it."""
    s1, k = table.uniques, table.combinations
    alpha = s1 / k
    probability = (table.n / table.N) ** (1.0 - alpha)
    # errors and fit need some theta: the one that gives the number of combinations
    theta = theta_of(alpha, lambda t: expected_combinations(alpha, t, table.n) - k)
    spread = fit = fit_p = None
    if theta is not None:
        moments = covariance_of_counts(alpha, theta, table.n)
        gradient = np.array([1.0 / k, -s1 / k**2])
        spread = float(np.sqrt(max(gradient @ moments @ gradient, 0.0)))
        fit, fit_p = goodness_of_fit(
            table,
            lambda size: expected_sizes(alpha, theta, table.n, size),
            expected_combinations(alpha, theta, table.n),
            2,
        )
    expected = s1 * probability
    return SizeModel(
        model="Pitman",
        estimator="quick",
        assumption=ASSUMPTION["Pitman"],
        parameters={"alpha": alpha},
        standard_errors={} if spread is None else {"alpha": spread},
        probability=probability,
        expected=expected,
        expected_error=None if spread is None else expected * math.log(table.N / table.n) * spread,
        expected_range=(expected, expected) if table.open_cells else None,
        population_uniques=s1 * (table.N / table.n) ** alpha,
        fit=fit,
        fit_p=fit_p,
        notes=table.notes,
    )


def _slope(function: Callable[[float], float], at: float) -> float:
    """Derivative by central differences; one-sided at 0."""
    if math.isinf(at):
        return 0.0
    step = 1e-5 * max(abs(at), 1e-3)
    below = max(at - step, 0.0) if at >= 0 else at - step
    return (function(at + step) - function(below)) / (at + step - below)


def _range_on_profile(table: SizeTable, first: float, second: float) -> tuple[float, float]:
    """Range of the expected number over all completions of the open class.

    The completions enter the slope of the likelihood in alpha through a sum of a concave function
    of the sizes, so the alphas of all lie between those of the two extremes, and theta follows.
    """
    values = []
    for alpha in np.linspace(first, second, 101):
        theta = profile_theta(float(alpha), table.n, table.combinations)
        values.append(table.uniques * stays_unique(float(alpha), theta, table.n, table.N))
    return min(values), max(values)
