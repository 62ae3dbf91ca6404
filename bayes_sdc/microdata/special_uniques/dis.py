r"""Data intrusion simulation (DIS), general form: the probability that a unique match is correct.

An intruder matches somebody of the population against the file and finds exactly one record. Among
such matches the correct ones are the sample uniques, U of them, and the false ones the members of
the population that are not in the file but share the values of a sample unique,
:math:`V = \sum_{f_k=1} (F_k - 1)`; so

.. math:: \theta = \Pr(cm \mid um) = U / (U + V).

Each record k of a pair, left out of the sample, would have been one of these V; it is in the
sample with odds :math:`\pi_k / (1 - \pi_k)`. So :math:`W = \sum_{f_k = 2} (1 - \pi_k)/\pi_k`
estimates V without bias, and with one sampling fraction the estimate is U f / (U f + P (1 - f)),
P records being in pairs. Cells being nearly independent, the mean of :math:`(W - V)^2` is estimated
without bias from pairs and triples, which gives the standard error by the delta method.

References
----------
C. J. Skinner, M. J. Elliot, "A measure of disclosure risk for microdata", Journal of the Royal
Statistical Society B 64 (2002) 855-867,
https://doi.org/10.1111/1467-9868.00365, for one sampling fraction; C. J. Skinner, R. G. Carter,
"Estimation of a measure of disclosure risk for survey microdata under unequal probability
sampling", Survey Methodology 29 (2003) 177-180, for weights. M. Elliot, A. Manning, "Using DIS to
modify the classification of special uniques", UNECE/Eurostat work session on statistical data
confidentiality (2003), Working Paper 22.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.results import Fact, Result, or_undefined

LEVEL = 0.95


@dataclass(frozen=True, repr=False)
class Dis(Result):
    """Probability that a unique match is correct, by the general form.

    Made by :func:`bayes_sdc.dis`.

    Parameters
    ----------
    value : float or None
        In [0, 1]; None without sample uniques and pairs: then nothing is known about unique
        matches, which is not a risk of 0.
    standard_error : float or None
        By the delta method.
    delta_interval : tuple of float or None
        Normal 95 % interval by the delta method, cut off at 0 and 1.
    beta_interval : tuple of float or None
        95 % interval from the Beta posterior of the share of uniques among uniques and pairs, under
        Jeffreys' prior. It stays sensible where uniques or pairs are few.
    uniques : int
        Sample uniques.
    pair_records : int
        Records with f = 2.
    false_matches : float
        Estimated number of people outside the file that share the values of a sample unique.
    sampling_fraction : float or None
        As given; None when the inclusion probabilities are those of the weights.
    raised_weights : int
        Records in pairs with a weight below 1, counted as 1: each stands at least for itself.
    """

    value: float | None
    standard_error: float | None
    delta_interval: tuple[float, float] | None
    beta_interval: tuple[float, float] | None
    uniques: int
    pair_records: int
    false_matches: float
    sampling_fraction: float | None
    raised_weights: int

    def __float__(self) -> float:
        """Return the value; an undefined one raises."""
        if self.value is None:
            raise InputError(
                "DIS is undefined: the file has neither sample uniques nor records in pairs; "
                "remedy: more detailed keys, if an intruder knows them"
            )
        return self.value

    def __str__(self) -> str:
        """Return the estimate in words."""
        if self.value is None or self.beta_interval is None:
            return "undefined (neither sample uniques nor records in pairs)"
        low, high = self.beta_interval
        return (
            f"{self.value:.4g} (95 % interval {low:.4g} to {high:.4g}; {self.uniques:,} sample "
            f"uniques, {self.pair_records:,} records in pairs)"
        )

    def _title(self) -> str:
        return "DIS: probability that a unique match is correct"

    def _facts(self) -> list[Fact]:
        delta, beta = (
            "undefined" if one is None else "{:.4g} to {:.4g}".format(*one)
            for one in (self.delta_interval, self.beta_interval)
        )
        return [
            ("DIS", or_undefined(self.value, ".4g"), f"{self.uniques:,} sample uniques"),
            ("95 % interval", beta, "from the Beta posterior, Jeffreys' prior"),
            ("pairs", f"{self.pair_records:,}", "records with f = 2"),
            ("standard error", or_undefined(self.standard_error, ".3g"), "delta method"),
            ("normal interval", delta, "95 %, delta method, cut off at 0 and 1"),
            (
                "false matches",
                f"{self.false_matches:,.1f}",
                "people outside the file",
            ),
            (
                "raised weights",
                f"{self.raised_weights:,}",
                "in pairs, weights below 1",
            ),
        ]


@checked
def dis(microdata: Microdata, sampling_fraction: float | None) -> Dis:
    """Estimate the probability that a unique match is correct, by the general form.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`.
    sampling_fraction : float or None
        Records by people in the population, in (0, 1]. None takes the inclusion probability of each
        record from its weight, as its inverse.

    Returns
    -------
    Dis
        Estimate with two intervals.

    Raises
    ------
    InputError
        If the fraction is out of range, or None and the file has no weights.

    See Also
    --------
    bayes_sdc.dis_special, bayes_sdc.dis_suda

    References
    ----------
    Skinner and Elliot (2002); Skinner and Carter (2003); Elliot and Manning (2003).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"job": list("aabcd")})
    >>> print(dis(read_microdata(people, keys=["job"]), 0.1))
    0.1429 (95 % interval 0.02154 to 0.6547; 3 sample uniques, 2 records in pairs)
    """
    raised = 0
    f, pairs = microdata.f, microdata.f == 2
    if sampling_fraction is None:
        if microdata.weights is None:
            raise InputError(
                "sampling_fraction None takes inclusion probabilities from the weights, and the "
                "file has none; name its weight column, or give the fraction"
            )
        weights = np.maximum(microdata.weights, 1.0)
        raised = int((microdata.weights[pairs] < 1.0).sum())
        # odds of having been left out: of the record, and of those it shares its values with
        own = weights - 1.0
        totals = np.bincount(microdata.combination, weights)[microdata.combination]
        equal = microdata.combinations["records"].to_numpy()[microdata.combination]
        others = totals - weights - (f - 1.0)
        # matched by a rule about missing values: their weights are in the sum of the combination
        summed = microdata.combinations["weight_sum"].to_numpy()[microdata.combination]
        others = np.where(equal == f, others, np.maximum(summed - microdata.weights - (f - 1.0), 0))
    else:
        check_fraction(sampling_fraction)
        own = np.full(microdata.n, 1.0 / sampling_fraction - 1.0)
        others = own * (f - 1.0)
    return _estimate(f, own, others, sampling_fraction, raised)


def _estimate(
    f: np.ndarray,
    own: np.ndarray,
    others: np.ndarray,
    sampling_fraction: float | None,
    raised: int,
) -> Dis:
    """Estimate from frequencies and odds; arrays by record."""
    pairs, triples = f == 2, f == 3
    uniques, pair_records = int((f == 1).sum()), int(pairs.sum())
    false = float(others[pairs].sum())
    if uniques + pair_records == 0:
        return Dis(None, None, None, None, 0, 0, 0.0, sampling_fraction, raised)
    if uniques + false == 0:
        # a census without uniques: nobody can be matched uniquely
        return Dis(None, None, None, None, 0, pair_records, 0.0, sampling_fraction, raised)
    value = uniques / (uniques + false)
    # by pairs: W squared, and the part of V squared that is linear in V; by triples the rest of it,
    # with the product of two odds at most the square of their mean
    squared = (others[pairs] * (own + others)[pairs]).sum() + false
    squared += 0.5 * (others[triples] ** 2).sum()
    error = float(np.sqrt(squared)) * uniques / (uniques + false) ** 2
    half = float(ndtri(0.5 + LEVEL / 2)) * error
    mean = false / pair_records if pair_records else float(own[f == 1].mean())
    return Dis(
        value=value,
        standard_error=error,
        delta_interval=(max(value - half, 0.0), min(value + half, 1.0)),
        beta_interval=_beta_interval(uniques, pair_records, mean),
        uniques=uniques,
        pair_records=pair_records,
        false_matches=false,
        sampling_fraction=sampling_fraction,
        raised_weights=raised,
    )


def _beta_interval(uniques: int, pair_records: int, odds: float) -> tuple[float, float]:
    """Interval of theta when uniques and pairs are Poisson with means in the ratio x to 1 - x.

    A pair stands for two false matches at odds each, so theta = x / (x + 2 odds (1 - x)).
    """
    tails = np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    x = betaincinv(uniques + 0.5, pair_records / 2 + 0.5, tails)
    low, high = x / (x + 2.0 * odds * (1.0 - x))
    return float(low), float(high)


def check_fraction(sampling_fraction: float) -> None:
    """Raise unless the sampling fraction is in (0, 1]."""
    if (
        isinstance(sampling_fraction, bool)
        or not isinstance(sampling_fraction, int | float | np.number)
        or not 0.0 < sampling_fraction <= 1.0
    ):
        raise InputError(
            f"sampling_fraction must be above 0 and at most 1; it is {sampling_fraction!r}. It is "
            "the number of records divided by the number of people in the population"
        )
