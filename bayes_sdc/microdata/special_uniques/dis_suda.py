r"""DIS-SUDA: the file-level risk of DIS shared out over the sample uniques by their SUDA scores.

``"elliot-manning"``
    :math:`T = \Pr(cm \mid um)\, U`, U being the number of sample uniques, is shared in proportion
    to the logarithm of the score. A share above 1 is cut to 1 and
    the excess handed to the rest in the same proportion, until nothing is left; so the risks are
    :math:`\min(1, s \ln \text{score}_i)` with s such that they add up to T. A score of 1 (or a
    unique without minimal sample unique up to the maximum size) has no share unless no sample
    unique has a higher one, when all get the same; what is left when every scored record is at 1 is
    spread over those without a share.
``"sdcmicro"``
    :math:`1 / (1 + (P (1 - f) / f) / (s_i^Q A))` with :math:`A = \sum s_j^{-Q}` over scored records
    and :math:`Q = 1 + (8 - m)/20` for m keys: what the R package sdcMicro does. With equal scores
    it gives every scored record the file's DIS; its sum is in general not T.

T is not the expected number of correct matches when every sample unique is looked for once, which
is the sum of 1/F over them. DIS is the share of correct ones among unique matches of people drawn
from the population: U over the sum of F, an average of 1/F in which common combinations count most,
and never above its plain mean. So these risks rank records, and are low as matching probabilities
of the records themselves: with twelve keys and a sample of 2 % the mean of 1/F was 0.59 where DIS
was 0.18 (``tests/validation/dis_suda_study.md``).

References
----------
M. Elliot, A. Manning, "Using DIS to modify the classification of special uniques", UNECE/Eurostat
work session on statistical data confidentiality (2003), Working Paper 22. M. Templ, A. Kowarik,
B. Meindl, "Statistical disclosure control for micro-data using the R package sdcMicro", Journal of
Statistical Software 67 (2015) 4.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.special_uniques.dis import Dis, dis
from bayes_sdc.microdata.special_uniques.suda import Scale, Suda, suda
from bayes_sdc.results import Fact, Result, or_undefined

Method = Literal["elliot-manning", "sdcmicro"]
MOST_KEYS = 28  # beyond, the power Q of sdcMicro's formula is negative
METHODS = ("elliot-manning", "sdcmicro")


@dataclass(frozen=True, eq=False, repr=False)
class DisSuda(Result):
    """Risk of each record by DIS-SUDA.

    Made by :func:`bayes_sdc.dis_suda`.

    Parameters
    ----------
    risk : array of float, shape (record,)
        In [0, 1]; 0 for records that are not unique.
    method : {"elliot-manning", "sdcmicro"}
        How scores become risks.
    dis : Dis
        The file-level estimate.
    suda : Suda
        Scores and minimal sample uniques.
    total : float or None
        T, the number of sample uniques times DIS; None when DIS is undefined, and then all risks
        are 0 as there is no sample unique.
    capped : int
        Sample uniques at risk 1.
    without_share : int
        Sample uniques whose score gives them no share of their own.
    """

    risk: np.ndarray
    method: Method
    dis: Dis
    suda: Suda
    total: float | None
    capped: int
    without_share: int

    def _title(self) -> str:
        return f"DIS-SUDA by the method {self.method!r}: confidential"

    def _facts(self) -> list[Fact]:
        return [
            ("total", or_undefined(self.total, ",.2f"), "correct matches of sample uniques"),
            ("largest risk", f"{float(self.risk.max(initial=0.0)):.4f}", "of a record"),
            ("DIS", self.dis, "of the file"),
            ("capped", f"{self.capped:,}", "sample uniques at risk 1"),
            ("without share", f"{self.without_share:,}", "sample uniques without a score"),
        ]


@checked
def dis_suda(
    microdata: Microdata,
    sampling_fraction: float | None,
    *,
    max_size: int = 3,
    method: Method = "elliot-manning",
    score: Scale = "elliot",
) -> DisSuda:
    """Give each record a risk: DIS shared out by SUDA scores.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`.
    sampling_fraction : float or None
        In (0, 1]: records by people in the population; None takes the weights, as in `dis`.
    max_size : int
        Largest size of minimal sample uniques; sdcMicro looks for all sizes.
    method : {"elliot-manning", "sdcmicro"}
        How scores become risks; see the head of this module.
    score : {"elliot", "ihsn"}
        Scale of the scores. sdcMicro uses "ihsn" unless it is told otherwise.

    Returns
    -------
    DisSuda
        Risk of all records.

    Raises
    ------
    InputError
        If an argument is out of range, or "elliot-manning" is asked for scores of "ihsn", which can
        be below 1 and have no share in proportion to their logarithm.

    See Also
    --------
    bayes_sdc.dis, bayes_sdc.suda

    References
    ----------
    Elliot and Manning (2003).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("ffffm"), "job": list("cccds"), "town": list("aabab")})
    >>> found = dis_suda(read_microdata(people, keys=["sex", "job", "town"]), 0.1)
    >>> found.risk.round(3).tolist(), round(found.total, 3)
    ([0.0, 0.0, 0.107, 0.107, 0.214], 0.429)
    """
    if method not in METHODS:
        raise InputError(f"method {method!r} is unknown; choose from {list(METHODS)}")
    if method == "elliot-manning" and score != "elliot":
        raise InputError(
            f"method 'elliot-manning' takes logarithms of scores from 1, and those of {score!r} "
            "can be below 1; remedy: score='elliot', or method='sdcmicro'"
        )
    if method == "sdcmicro" and len(microdata.keys) > MOST_KEYS:
        raise InputError(
            f"method 'sdcmicro' gives lower risks to higher scores beyond {MOST_KEYS} keys, and "
            f"there are {len(microdata.keys)}; remedy: method='elliot-manning'"
        )
    file_level = dis(microdata, sampling_fraction)
    found = suda(microdata, max_size=max_size, score=score)
    places = found.contributions.index.to_numpy()
    scores = found.scores[places]
    total = None if file_level.value is None else file_level.value * len(places)
    if total is None or not len(places):
        shares = np.zeros(len(places))
    elif method == "elliot-manning":
        shares = share_out(total, scores)
    else:
        shares = _sdcmicro(scores, file_level.false_matches, len(microdata.keys))
    risk = np.zeros(microdata.n)
    risk[places] = shares
    positive = scores > (1.0 if method == "elliot-manning" else 0.0)
    return DisSuda(
        risk=risk,
        method=method,
        dis=file_level,
        suda=found,
        total=total,
        capped=int((shares == 1.0).sum()),
        without_share=int((~positive).sum()),
    )


def share_out(total: float, scores: np.ndarray) -> np.ndarray:
    """Share a total over sample uniques, none above 1.

    Parameters
    ----------
    total : float
        T, from 0 to the number of uniques.
    scores : array of float, shape (unique,)
        0 for none, otherwise 1 or more.

    Returns
    -------
    array of float, shape (unique,)
        In [0, 1]; the sum is ``total``.

    Examples
    --------
    >>> share_out(1.8, np.array([np.e, np.e, np.e**8, 1.0]))
    array([0.4, 0.4, 1. , 0. ])
    """
    n = len(scores)
    log_scores = np.log(np.maximum(scores, 1.0))
    positive = int((log_scores > 0).sum())
    if positive == 0:
        return np.full(n, min(total / n, 1.0))
    shares = np.where(log_scores > 0, 1.0, 0.0)
    if total >= positive:
        if positive < n:
            shares[log_scores == 0] = min((total - positive) / (n - positive), 1.0)
        return shares
    # with the k highest at 1, the rest share what is left; the first k that cuts nobody is right
    descending = np.sort(log_scores)[::-1]
    tails = np.cumsum(descending[::-1])[::-1]
    k = np.arange(n)
    fits = (total - k) * descending <= tails
    first = int(np.argmax(fits & (descending > 0)))
    rate = (total - first) / tails[first]
    return np.asarray(np.minimum(1.0, rate * log_scores))


def _sdcmicro(scores: np.ndarray, false_matches: float, keys: int) -> np.ndarray:
    """Shares by the formula of sdcMicro; records with score 0 have none."""
    shares = np.zeros(len(scores))
    scored = scores > 0
    power = 1.0 + (8 - keys) / 20
    logs = power * np.log(scores[scored])
    if len(logs):
        # powers of (m-1)! can be out of range: relative to the lowest score they are not
        relative = np.exp(logs - logs.min())
        shares[scored] = 1.0 / (1.0 + false_matches / (relative * (1.0 / relative).sum()))
    return shares
