r"""A national base measure of the counts, as numbers, for code that works without PyMC.

Tables from surveys, and counts that were rounded or adjusted, do not have the shape of a negative
binomial: some counts are heaped, others rare, wherever they occur. The family ``base`` multiplies
its probabilities by a measure that all cells share,

.. math:: P(Y = y) \propto h(y) \frac{\Gamma(y + r)}{y!\, \Gamma(r)}
    \left( \frac{\lambda}{\lambda + r} \right)^{y}, \qquad y = 0, \dots, K.

A factor in :math:`h` that is constant changes nothing, and one that grows like :math:`a^y` only
shifts the level, apart from the curvature of the negative binomial. So :math:`\log h` has neither:
it is a sum of the polynomials of degree 2, 3, ... that are orthogonal on the possible counts,

.. math:: \log h(y) = \sum_{d \ge 2} u_d\, q_d(y), \qquad
    u_d \sim N\!\left(0, \frac{\tau^2}{d - 1}\right), \qquad
    \log \tau \sim N(\log 0.2, 1),

each with mean square 1. High degrees, which let neighbouring counts differ, are held closer to 0:
the prior is smooth, and :math:`\tau \to 0` is the negative binomial. A count has the probability 0
only where a rule says that it cannot occur; one that was merely not seen keeps the probability that
the prior gives it.

References
----------
B. Efron, R. Tibshirani, "Using specially designed exponential families for density estimation",
Annals of Statistics 1996, doi:10.1214/aos/1032181161, for a base measure with an exponential tilt.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Log of h where a rule says 0. The probability, about 1e-26, vanishes beside 1 in double precision,
# and ratios of two of them do not overflow. Draws cut it to 0.
IMPOSSIBLE = -60.0


def possible(upper: int, impossible: Sequence[int] = ()) -> npt.NDArray[np.int64]:
    """Counts from 0 to ``upper`` that no rule excludes.

    Examples
    --------
    >>> possible(4, [0, 2]).tolist()
    [1, 3, 4]
    """
    return np.setdiff1d(np.arange(upper + 1), np.asarray(impossible, np.int64))


def basis(upper: int, impossible: Sequence[int] = ()) -> npt.NDArray[np.float64]:
    """Columns that add up to log h, each times its standard deviation over that of the whole.

    Parameters
    ----------
    upper : int
        Largest count K.
    impossible : sequence of int
        Counts with probability 0; their rows are 0.

    Returns
    -------
    array of float, shape (K + 1, possible counts - 2)
        Column d - 2 is the orthogonal polynomial of degree d with mean square 1 over the possible
        counts, over the root of d - 1.

    Raises
    ------
    ValueError
        If fewer than three counts are possible: a base measure has no freedom.

    Examples
    --------
    >>> basis(2).round(3).ravel().tolist()
    [0.707, -1.414, 0.707]
    """
    y = possible(upper, impossible)
    if len(y) < 3:
        raise ValueError("a base measure needs at least three possible counts")
    columns = np.polynomial.legendre.legvander(2.0 * (y - y[0]) / (y[-1] - y[0]) - 1.0, len(y) - 1)
    orthogonal, triangle = np.linalg.qr(columns)
    orthogonal *= np.sign(np.diag(triangle)) * np.sqrt(len(y))
    result = np.zeros((upper + 1, len(y) - 2))
    result[y] = orthogonal[:, 2:] / np.sqrt(np.arange(1.0, len(y) - 1.0))
    return result


def log_measure(
    coordinates: npt.NDArray[np.float64], upper: int, impossible: Sequence[int] = ()
) -> npt.NDArray[np.float64]:
    """Log h of every count, from the coordinates along :func:`basis`.

    Examples
    --------
    >>> log_measure(np.array([1.0]), 3, [0]).round(3).tolist()
    [-60.0, 0.707, -1.414, 0.707]
    """
    measure = basis(upper, impossible) @ coordinates
    measure[np.asarray(impossible, np.int64)] = IMPOSSIBLE
    return np.asarray(measure)
