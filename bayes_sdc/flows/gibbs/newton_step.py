"""A Newton proposal: draw a move, and the density of a move.

With size 1 a move is a Newton step with the inverse metric as variance. Below 1 both step and
variance shrink, so moves are smaller, but a normal posterior is still matched exactly.
"""

import math

import numpy as np

from bayes_sdc.flows.model.hyperpriors import compiled

TARGET_ACCEPTANCE = 0.7  # of the joint moves; a full Newton step is their upper limit
SMALLEST_STEP = 0.01
RIDGE = 1e-8


@compiled
def newton_step(
    rng: np.random.Generator, slope: np.ndarray, metric: np.ndarray, size: float
) -> tuple[np.ndarray, float]:
    """Draw a move from the point with this slope and metric, and give its log-density."""
    root = root_of(metric)
    noise = rng.standard_normal(len(slope))
    log_q = -0.5 * (noise**2).sum()
    for k in range(len(slope)):
        log_q += math.log(root[k, k])
    move = (1.0 - math.sqrt(1.0 - size**2)) * solve_upper(root, solve_lower(root, slope))
    move += size * solve_upper(root, noise)
    return move, log_q


@compiled
def log_newton_step(move: np.ndarray, slope: np.ndarray, metric: np.ndarray, size: float) -> float:
    """Log-density of a move of :func:`newton_step`; minus infinity where that is not defined."""
    for k in range(len(slope)):
        if not math.isfinite(slope[k]):
            return -np.inf
        for other in range(len(slope)):
            if not math.isfinite(metric[k, other]):
                return -np.inf
    root = root_of(metric)
    away = move - (1.0 - math.sqrt(1.0 - size**2)) * solve_upper(root, solve_lower(root, slope))
    log_q = 0.0
    for k in range(len(move)):
        noise = 0.0
        for row in range(k, len(move)):
            noise += root[row, k] * away[row]
        log_q += math.log(root[k, k]) - 0.5 * (noise / size) ** 2
    return log_q


@compiled
def root_of(metric: np.ndarray) -> np.ndarray:
    """Cholesky factor, with a slightly larger diagonal: rounding must not make it fail.

    Where one parameter carries nearly all information, rounding loses the share of the others. Any
    metric gives a valid proposal as long as it is the same one there and back. Written out, because
    a call of LAPACK costs more than the work for one of thousands of groups.

    Raises
    ------
    ValueError
        If the metric is not positive definite: a defect of the caller, because an information is.

    Examples
    --------
    >>> root_of(np.array([[4.0, 2.0], [2.0, 5.0]])).round(6)
    array([[2., 0.],
           [1., 2.]])
    """
    root = np.zeros_like(metric)
    for row in range(len(metric)):
        for column in range(row + 1):
            rest = metric[row, column]
            if column == row:
                rest *= 1.0 + RIDGE
            for k in range(column):
                rest -= root[row, k] * root[column, k]
            if column < row:
                root[row, column] = rest / root[column, column]
            elif rest > 0.0:
                root[row, row] = math.sqrt(rest)
            else:
                raise ValueError("the information of a Newton step is not positive definite")
    return root


@compiled
def solve_lower(root: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve root x = right by substitution.

    Examples
    --------
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 6.0]))
    array([2., 2.])
    """
    x = right.copy()
    for row in range(len(x)):
        for k in range(row):
            x[row] -= root[row, k] * x[k]
        x[row] /= root[row, row]
    return x


@compiled
def solve_upper(root: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve root' x = right by substitution.

    Examples
    --------
    >>> solve_upper(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 2.0]))
    array([1.5, 1. ])
    """
    x = right.copy()
    for row in range(len(x) - 1, -1, -1):
        for k in range(row + 1, len(x)):
            x[row] -= root[k, row] * x[k]
        x[row] /= root[row, row]
    return x


@compiled
def adapted(size: float, accepted: float, rate: float) -> float:
    """Move a step size towards the target acceptance; for the warm-up only."""
    new = size * math.exp(rate * (accepted - TARGET_ACCEPTANCE))
    return min(max(new, SMALLEST_STEP), 1.0)
