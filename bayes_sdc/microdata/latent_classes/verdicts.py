"""When the data cannot tell: the verdicts on an estimate by latent classes, and their limits."""

import math
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.convergence import ESS_FAIL, RHAT_FAIL

#: Posterior standard deviation of kappa above which it is the prior's, which has 1 / sqrt(12).
KAPPA_SD = 0.27
#: Relative standard deviation of tau1, misfit included, above which an estimate is not trusted: a
#: 90 % interval then reaches a third of the estimate to either side.
RELATIVE_SD = 0.2
#: R-hat of tau1 or tau2 above which chains are said to disagree about them. At 1.1 their mean is
#: off by 0.23 standard deviations, a seventh of half an interval.
AGREE = 1.1
#: Keys shared by the members of households from which the estimate is too low: with four of seven
#: it was 0.6 to 0.8 of the truth, with one of five 0.95.
SHARED = 3
#: Gain of the log likelihood above which combinations scatter about the classes for certain.
GAIN = 10.0


class Facts(NamedTuple):
    """What the verdicts rest on.

    Parameters
    ----------
    n : int
        Records.
    fraction : float
        n / N.
    tau1 : float
        Estimated sample uniques that are population uniques.
    tau1_sd : float
        Its posterior standard deviation.
    kappa_sd : float
        Posterior standard deviation of kappa.
    gain : float
        Of the log likelihood by the scatter.
    rhat, ess : array, shape (quantity,)
        Of what does not depend on the labels of the classes.
    names : tuple of str
        Of these quantities.
    shared : int
        Keys that the members of a household share, where households are in the sample whole.
    """

    n: int
    fraction: float
    tau1: float
    tau1_sd: float
    kappa_sd: float
    gain: float
    rhat: npt.NDArray[np.float64]
    ess: npt.NDArray[np.float64]
    names: tuple[str, ...]
    shared: int = 0

    @property
    def relative_sd(self) -> float:
        """Standard deviation of tau1 as a share of it; 0 where nobody is at risk."""
        return self.tau1_sd / self.tau1 if self.tau1 > 0.0 else 0.0

    @property
    def agree(self) -> bool:
        """Whether the chains agree about tau1 and tau2, however slowly their classes mix."""
        of_totals = [name.startswith("tau") for name in self.names]
        return bool((self.rhat[of_totals] <= AGREE).all())

    @property
    def trusted(self) -> bool:
        """Whether the chains agree about the estimate, and it is of use and not known to be low."""
        return self.agree and self.relative_sd <= RELATIVE_SD and self.shared < SHARED


def beside(value: float, limit: float, form: str) -> str:
    """Write a value so that it differs from its limit where it does, with more digits if need be.

    Examples
    --------
    >>> beside(0.2712, 0.27, ".2f"), beside(0.31, 0.27, ".2f"), beside(0.27, 0.27, ".2f")
    ('0.271', '0.31', '0.27')
    """
    digits = int(re.sub("[^0-9]", "", form))
    forms = [form.replace(str(digits), str(k)) for k in range(digits, digits + 5)]
    exact = format(limit, forms[-1])
    for one in forms:
        if (told := format(value, one)) != format(limit, one) or format(value, forms[-1]) == exact:
            return told
    return told


def judge(facts: Facts) -> list[Check]:
    """Judge an estimate by every limit.

    Examples
    --------
    >>> fine = Facts(5000, 0.2, 100.0, 5.0, 0.1, 3.0, np.ones(1), np.full(1, 900.0), ("tau1",))
    >>> [check.verdict for check in judge(fine)]
    ['pass', 'pass', 'pass', 'pass', 'pass']
    >>> [check.verdict for check in judge(fine._replace(tau1_sd=40.0, fraction=0.01))]
    ['pass', 'look', 'look', 'pass', 'pass']
    """
    every = [_convergence(facts), _width(facts), _fraction(facts), _kappa(facts), _gain(facts)]
    return [*every, *_households(facts)]


def _convergence(facts: Facts) -> Check:
    bad = [
        f"{name} (R-hat {rhat:.3f}, effective size {ess:,.0f})"
        for name, rhat, ess in zip(facts.names, facts.rhat, facts.ess, strict=True)
        if not (rhat <= RHAT_FAIL and ess >= ESS_FAIL)
    ]
    limits = f"R-hat above {RHAT_FAIL:g} or effective size below {ESS_FAIL:g}"
    if not bad:
        return Check(
            "latent classes: chains", "pass", f"the chains agree: none has {limits}",
            key="classes_chains",
        )  # fmt: skip
    reason = f"{limits}: {', '.join(bad)}"
    if not facts.agree:
        reason += ". The chains disagree about the estimate itself, so it is not trusted"
    return Check("latent classes: chains", "look", reason, key="classes_chains")


def _width(facts: Facts) -> Check:
    share = facts.relative_sd
    text = (
        f"the standard deviation of tau1 is {beside(share, RELATIVE_SD, '.0%')} of it; the limit "
        f"is {RELATIVE_SD:.0%}"
    )
    if share > RELATIVE_SD:
        text += ": above it one estimate in ten or more is wrong by a third, so it is not trusted"
    verdict: Verdict = "look" if share > RELATIVE_SD else "pass"
    return Check("latent classes: width", verdict, text, key="classes_width")


def _fraction(facts: Facts) -> Check:
    limit = 1.0 / math.log(facts.n) if facts.n > math.e else 1.0
    low = facts.fraction < limit
    text = (
        f"the sampling fraction is {beside(facts.fraction, limit, '.2%')}; the limit, 1 / log n of "
        f"the {facts.n:,} records, is {limit:.2%}"
    )
    if low:
        text += (
            ". Below it no estimate is right for every population: this one rests on the way the "
            "key variables are dependent in the file"
        )
    return Check(
        "latent classes: fraction", "look" if low else "pass", text, key="classes_fraction"
    )


def _kappa(facts: Facts) -> Check:
    open_ = facts.kappa_sd > KAPPA_SD
    sd = beside(facts.kappa_sd, KAPPA_SD, ".2f")
    text = f"the standard deviation of kappa is {sd}; the limit is {KAPPA_SD:g}"
    if open_:
        text += ": the file does not tell how scatter goes with size, the interval is the prior's"
    verdict: Verdict = "look" if open_ else "pass"
    return Check("latent classes: shape of the scatter", verdict, text, key="classes_kappa")


def _households(facts: Facts) -> list[Check]:
    """Whether households make the file look less varied than the population; none without them."""
    if facts.shared < SHARED:
        return []
    reason = (
        f"people of a household were sampled together and share {facts.shared} keys, so the file "
        "looks less varied than the population: the estimate can be too low by a third, and is "
        "not trusted"
    )
    return [Check("latent classes: households", "look", reason, key="classes_households")]


def _gain(facts: Facts) -> Check:
    text = f"scatter about the classes gains {beside(facts.gain, GAIN, ',.1f')} in log likelihood"
    if facts.gain > GAIN:
        text += (
            f", above {GAIN:g}: methods without it (log-linear models, latent classes alone) "
            "would find too many population uniques, by 1.4 to 1.8 times in such populations"
        )
    verdict: Verdict = "look" if facts.gain > GAIN else "pass"
    return Check("latent classes: scatter", verdict, text, key="classes_scatter")
