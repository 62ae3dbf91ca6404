r"""Regressions on the true and on the released file, side by side.

Several data sets are combined by Reiter's rules for partially synthetic data: with the estimates
:math:`q_d` and variances :math:`u_d` of m data sets,

.. math:: \bar q, \quad T = \bar u + b / m, \quad \nu = (m - 1) (1 + m \bar u / b)^2 ,

b being the variance of the estimates. With one data set T is its own variance, which leaves out
what was drawn. The rules assume new values drawn from what the replaced records themselves say.
Those drawn from a model of all records, as :func:`bayes_sdc.treat` draws them, scatter less, and
the intervals can be too narrow.

References
----------
J. P. Reiter, "Inference for partially synthetic, public use microdata sets", Survey Methodology
2003. A. F. Karr et al., "A framework for evaluating the utility of data altered to protect
confidentiality", The American Statistician 2006, doi:10.1198/000313006X124640.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.treatment.result import Treatment

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

LEVEL = 0.95  # of the intervals
RANK = 1e-11  # of the largest singular value, below which one is nought
DETERMINED = 1e-12  # squared part of a coefficient that the data say nothing of
_UNDEFINED = (np.nan, np.nan, np.nan)


def compare_regression(
    treatment: Treatment, columns: pd.DataFrame | None, formula: str
) -> pd.DataFrame:
    """Fit one regression to the true and to every released file.

    NaN stands where the true data, or some released ones, do not determine a coefficient.
    """
    outcome, _, right = formula.partition("~")
    terms = [term.strip() for term in right.split("+")]
    if not outcome.strip() or not all(terms):
        raise InputError(f"a regression looks like 'income ~ age + sex'; it is {formula!r}")
    models = [
        _model(treatment.data, columns, codes, outcome.strip(), terms)
        for codes in (treatment.data.codes, *treatment.codes)
    ]
    fit = [least_squares(*one) for one in models]
    rows = {}
    for name in models[0][1]:
        true = after = _UNDEFINED
        if name in fit[0]:
            q, u = fit[0][name]
            true = _interval(q, u, np.inf)
        if all(name in one for one in fit[1:]):
            q, u = np.array([one[name] for one in fit[1:]]).T
            after = _interval(*combine(q, u))
        rows[f"{outcome.strip()} ~ {name}"] = {
            "true": true[0], "true_low": true[1], "true_high": true[2],
            "released": after[0], "released_low": after[1], "released_high": after[2],
            "overlap": overlap(true[1:], after[1:]),
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("coefficient")


def _interval(q: float, variance: float, df: float) -> tuple[float, float, float]:
    """Estimate, and the ends of its interval."""
    upper = 0.5 + LEVEL / 2.0
    half = float((ndtri(upper) if np.isinf(df) else stdtrit(df, upper)) * np.sqrt(variance))
    return float(q), float(q) - half, float(q) + half


def combine(q: Floats, u: Floats) -> tuple[float, float, float]:
    """Combine estimates of partially synthetic data sets: estimate, variance, degrees of freedom.

    Examples
    --------
    >>> combine(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    (2.0, 2.0, 4.0)
    """
    m, mean, within = len(q), float(q.mean()), float(u.mean())
    if m == 1:
        return mean, within, np.inf
    between = float(q.var(ddof=1))
    if between == 0.0:
        return mean, within, np.inf
    return mean, within + between / m, (m - 1) * (1.0 + m * within / between) ** 2


def overlap(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Mean share of each interval that lies in the other; NaN where one is undefined.

    Examples
    --------
    >>> overlap((0.0, 1.0), (0.5, 1.5)), overlap((0.0, 1.0), (2.0, 3.0))
    (0.5, 0.0)
    """
    if np.isnan([*a, *b]).any():
        return float("nan")
    common = min(a[1], b[1]) - max(a[0], b[0])
    if common <= 0.0 or a[1] <= a[0] or b[1] <= b[0]:
        return float(a == b)
    return 0.5 * (common / (a[1] - a[0]) + common / (b[1] - b[0]))


def _numbers(columns: pd.DataFrame | None, name: str) -> Floats:
    if columns is None or name not in columns:
        raise InputError(
            f"a regression names {name!r}, which is neither a key nor a further column"
        )
    numbers = pd.to_numeric(columns[name], errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(numbers).all():
        raise InputError(f"a regression needs numbers, and {name!r} holds none")
    return numbers


def _model(
    data: Microdata, columns: pd.DataFrame | None, codes: Codes, outcome: str, terms: Sequence[str]
) -> tuple[Floats, dict[str, Floats]]:
    """Outcome and named regressors; nan where a value is missing."""
    key, _, level = outcome.partition("=")
    if level:
        if key not in data.keys or level not in data.labels[data.keys.index(key)]:
            raise InputError(f"a regression names {outcome!r}, which is not a level of a key")
        of = codes[:, data.keys.index(key)]
        wanted = data.labels[data.keys.index(key)].index(level)
        y = np.where(of < 0, np.nan, of == wanted)
    else:
        y = _numbers(columns, outcome)
    x = {"constant": np.ones(len(codes))}
    for term in terms:
        if term not in data.keys:
            x[term] = _numbers(columns, term)
            continue
        j = data.keys.index(term)
        for place, label in list(enumerate(data.labels[j]))[1:]:
            x[f"{term}={label}"] = np.where(codes[:, j] < 0, np.nan, codes[:, j] == place)
    return y, x


def least_squares(y: Floats, x: dict[str, Floats]) -> dict[str, tuple[float, float]]:
    """Estimate and variance of each coefficient that the data determine.

    The others are left out: those that some others can make up for, as where nobody has the
    reference level, and all where there are no more records than coefficients.

    Examples
    --------
    >>> x = {"constant": np.ones(4), "b": np.array([0.0, 0, 1, 1]), "c": np.array([1.0, 1, 0, 0])}
    >>> least_squares(np.arange(4.0), x)
    {}
    """
    design = np.column_stack(list(x.values()))
    complete = np.isfinite(y) & np.isfinite(design).all(axis=1)
    design, y = design[complete], y[complete]
    if not len(y):
        return {}
    # so that the last digits do not depend on the order of the records
    order = np.lexsort([*design.T, y])
    design, y = design[order], y[order]
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    left, singular, axes = np.linalg.svd(design / scale, full_matrices=False)
    rank = int((singular > RANK * singular.max()).sum())
    left, singular, axes = left[:, :rank], singular[:rank], axes[:rank]
    free = len(y) - rank
    if free < 1:
        return {}
    beta = axes.T @ (left.T @ y / singular)
    residual = y - design @ (beta / scale)
    variance = float(residual @ residual) / free * ((axes / singular[:, None]) ** 2).sum(axis=0)
    # a coefficient is determined where its axis lies in the space of the rows
    determined = 1.0 - (axes**2).sum(axis=0) < DETERMINED
    return {
        name: (float(b / s), float(v / s**2))
        for name, b, v, s, one in zip(x, beta, variance, scale, determined, strict=True)
        if one
    }
