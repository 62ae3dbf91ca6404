r"""Individual risk: the expected inverse population frequency of a record's combination.

With the superpopulation model :math:`\pi_k \propto 1/\pi_k`,
:math:`F_k \mid \pi_k \sim \mathrm{Poisson}(N \pi_k)` and
:math:`f_k \mid F_k \sim \mathrm{Binomial}(F_k, p_k)`, the frequency :math:`F_k - f_k` given
:math:`f_k` is negative binomial, and the risk of each record with f = f_k, p = p_k, q = 1 - p is

.. math:: r = E[1/F \mid f] = \frac{p}{f} \, {}_2F_1(1, 1; f + 1; q) = p I_f,
    \qquad I_f = \int_0^1 \frac{(1 - u)^{f - 1}}{1 - q u} \, du .

The closed forms in p and log p lose all digits near p = 1 and for larger f. Here the series in q is
summed where it converges fast (q at most one half, or large f), and otherwise the recurrence
:math:`q I_{f+1} = 1/f - p I_f` runs upwards from :math:`I_1 = -\log(p) / q`, which shrinks errors
by p / q < 1 a step.

References
----------
S. Polettini, "A note on the individual risk of disclosure", eq. (1) to (10). The closed form
printed for f = 3 divides by 2 q^2 and should by 2 q^3; the printed rule for the order of the
approximation is discussed in `terms_for_error`.
"""

import math
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.tabulate import sums

Method = Literal["exact", "order-1", "order-2"]
ORDERS = {"order-1": 1, "order-2": 2}
SERIES_FROM = 40  # with at least this f the series needs at most 22 terms, for any q
MOST_TERMS = 10_000

Floats = npt.NDArray[np.float64]


@checked
def individual_risk(
    f: npt.ArrayLike,
    p: npt.ArrayLike,
    *,
    method: Method = "exact",
    terms: int | None = None,
) -> Floats:
    """Compute the individual risk of records from sample frequency and inclusion probability.

    Parameters
    ----------
    f : array_like of int
        Sample frequency of the record's combination, 1 or more; any shape.
    p : array_like of float
        Probability to be in the sample, above 0 and at most 1, usually f / F; of a shape that goes
        with that of ``f``.
    method : {"exact", "order-1", "order-2"}
        ``"order-1"`` and ``"order-2"`` are the published approximations (10) and (9), which are
        always too low.
    terms : int, optional
        With ``"exact"`` only: cut the series after the power ``terms`` of q. 1 and 2 are the two
        approximations above.

    Returns
    -------
    array of float
        Risk, in [p / f, 1 / f], without unit.

    Raises
    ------
    InputError
        If a frequency or probability is out of range, or an argument is unknown.

    See Also
    --------
    bayes_sdc.household_risk, bayes_sdc.record_risk, bayes_sdc.terms_for_error

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> individual_risk([1, 2, 10], 0.1).round(6).tolist()
    [0.255843, 0.082684, 0.010976]
    >>> individual_risk(4, 0.01, method="order-2").round(6).tolist()
    0.003158
    """
    frequency = check_whole(f, "f")
    inclusion = check_numbers(p, "p").astype(np.float64)
    wrong = inclusion[~((inclusion > 0) & (inclusion <= 1))]
    if wrong.size:
        raise InputError(f"p must be above 0 and at most 1; it is {wrong.flat[0]:g}")
    try:
        frequency, inclusion = np.broadcast_arrays(frequency, inclusion)
    except ValueError as error:
        raise InputError(
            f"f has shape {frequency.shape} and p {inclusion.shape}, which do not match"
        ) from error
    if method in ORDERS and terms is None:
        terms = ORDERS[method]
    elif method != "exact":
        raise InputError(
            f"method {method!r} does not go with terms"
            if method in ORDERS
            else f"method {method!r} is unknown; choose from {['exact', *ORDERS]}"
        )
    if terms is None:
        risk = _exact(np.ravel(frequency), np.ravel(inclusion))
    else:
        if isinstance(terms, bool) or not isinstance(terms, int | np.integer) or terms < 0:
            raise InputError(f"terms must be a whole number, 0 or more; it is {terms!r}")
        risk = _series(np.ravel(frequency), np.ravel(inclusion), int(terms))
    return np.asarray(risk.reshape(frequency.shape), dtype=np.float64)


def check_numbers(values: Any, name: str) -> npt.NDArray[Any]:
    """Return values as an array of integers or floating-point numbers, or refuse them."""
    try:
        given = np.asarray(values)
        if given.dtype == object:
            given = np.asarray(given.tolist())  # Python's whole numbers stay whole
        if given.dtype == object:
            given = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold numbers: {error}") from error
    if given.dtype.kind not in "iuf":
        raise InputError(f"{name} must hold numbers; it is {np.array2string(given, threshold=9)}")
    return given


def is_number(value: Any) -> bool:
    """Tell whether a value is one number, and not text, a list or True; NaN is one."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_whole(values: Any, name: str, least: int = 1) -> npt.NDArray[np.int64]:
    """Return whole numbers, at least ``least``, as an array, or refuse what is none."""
    given = check_numbers(values, name)
    wrong = given[~((given >= least) & (given <= 2**53) & (given == np.floor(given)))]
    if wrong.size:
        raise InputError(f"{name} must hold whole numbers from {least}; it is {wrong.flat[0]}")
    return given.astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _exact(f: np.ndarray, p: np.ndarray) -> np.ndarray:
    risk = np.empty(len(f))
    for i in range(len(f)):
        q = 1.0 - p[i]
        if f[i] >= SERIES_FROM or q <= 0.5:
            term = total = 1.0
            j = 0
            while term > 1e-17 * total:
                term *= (j + 1.0) * q / (f[i] + 1.0 + j)
                total += term
                j += 1
            value = p[i] / f[i] * total
        else:
            integral = -math.log(p[i]) / q
            for j in range(1, f[i]):
                integral = (1.0 / j - p[i] * integral) / q
            value = p[i] * integral
        risk[i] = min(value, 1.0 / f[i])  # rounding must not push it above its limit
    return risk


@numba.njit(cache=True, nogil=True)
def _series(f: np.ndarray, p: np.ndarray, terms: int) -> np.ndarray:
    risk = np.empty(len(f))
    for i in range(len(f)):
        q = 1.0 - p[i]
        term = total = 1.0
        for j in range(terms):
            term *= (j + 1.0) * q / (f[i] + 1.0 + j)
            total += term
            if term <= 1e-17 * total:
                break
        risk[i] = min(p[i] / f[i] * total, 1.0 / f[i])
    return risk


@checked
def terms_for_error(f: int, p: float, error: float) -> int:
    r"""Find how many terms bring the series within an absolute error of the exact risk.

    The terms after the power j sum to at most

    .. math:: \frac{p}{f} t_{j+1} \min\left(\frac{1}{p}, \frac{f + j + 1}{f - 1}\right),
        \qquad t_j = \frac{j! \, q^j}{(f+1)_j},

    because their ratios stay below q, and because without the powers of q they telescope. The
    published rule, :math:`j > -\log(\varepsilon) / \log(f)`, has no answer for f = 1 and can be
    too low: for f = 2, p = 0.04 and an error of 0.0001 it asks for 14 terms, which leave 0.00067.

    Parameters
    ----------
    f : int
        Sample frequency, 1 or more.
    p : float
        Probability to be in the sample, above 0 and at most 1.
    error : float
        Largest absolute error that is acceptable, above 0.

    Returns
    -------
    int
        ``terms`` for `individual_risk`.

    Raises
    ------
    InputError
        If a value is out of range, or more than 10,000 terms are needed: use the exact method.

    See Also
    --------
    bayes_sdc.individual_risk, bayes_sdc.household_risk

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> terms_for_error(5, 0.1, 1e-4)
    5
    """
    frequency = int(check_whole(f, "f")) if is_number(f) else 0
    if frequency < 1:
        raise InputError(f"f must be a whole number from 1; it is {f!r}")
    if not is_number(p) or not 0 < p <= 1:
        raise InputError(f"p must be above 0 and at most 1; it is {p!r}")
    if not is_number(error) or not error > 0:
        raise InputError(f"error must be above 0; it is {error!r}")
    q, term = 1.0 - p, 1.0
    for terms in range(MOST_TERMS + 1):
        term *= (terms + 1.0) * q / (frequency + 1.0 + terms)  # of the power terms + 1
        rest = 1.0 / p
        if frequency > 1:
            rest = min(rest, (frequency + terms + 1.0) / (frequency - 1.0))
        if p / frequency * term * rest <= error:
            return terms
    raise InputError(
        f"more than {MOST_TERMS:,} terms are needed for f={f} and p={p}; use method='exact'"
    )


@checked
def household_risk(risk: npt.ArrayLike, household: Any) -> Floats:
    """Compute the risk that at least one member of a record's household is re-identified.

    Parameters
    ----------
    risk : array_like of float, shape (record,)
        Individual risks, in [0, 1]; re-identifications are taken as independent.
    household : array_like, shape (record,)
        Equal for the members of a household. A record without one (None, NaN, empty or blank text)
        is a household of its own.

    Returns
    -------
    array of float, shape (record,)
        One minus the product of (1 - risk) over the members, the same for all of them.

    Raises
    ------
    InputError
        If a risk is outside [0, 1], an id is a list or the lengths differ.

    See Also
    --------
    bayes_sdc.individual_risk, bayes_sdc.record_risk

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> household_risk([0.1, 0.2, 0.5], ["h1", "h1", None]).round(6).tolist()
    [0.28, 0.28, 0.5]
    """
    risks = check_risks(risk)
    try:
        members = pd.Series(household).reset_index(drop=True)
        number, found = pd.factorize(members)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"household must have one id a record, a text or a number: {error}"
        ) from error
    if len(members) != len(risks):
        raise InputError(f"{len(risks)} risks but {len(members)} household ids")
    blank = members.map(lambda value: isinstance(value, str) and not value.strip())
    alone = (members.isna() | blank.astype(bool)).to_numpy()
    number = np.where(alone, len(found) + np.arange(len(risks)), number)
    certain = risks == 1
    kept = np.log1p(-np.where(certain, 0.0, risks))
    groups = len(found) + len(risks)
    result = -np.expm1(sums(number, kept, groups))
    result[number[certain]] = 1.0
    return np.asarray(np.clip(result[number], 0.0, 1.0) + 0.0, dtype=np.float64)  # no -0.0


def check_risks(risk: npt.ArrayLike) -> Floats:
    """Return risks as an array of one dimension, or refuse what is outside [0, 1]."""
    risks = check_numbers(risk, "risk").astype(np.float64)
    if risks.ndim != 1:
        raise InputError(f"risk must have one dimension; its shape is {risks.shape}")
    if not bool(np.all((risks >= 0) & (risks <= 1))):
        raise InputError("risks must be from 0 to 1")
    return risks
