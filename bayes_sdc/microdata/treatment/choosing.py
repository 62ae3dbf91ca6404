"""Which records to treat, and in which keys."""

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.treatment.intruder import MatchRisk
from bayes_sdc.microdata.treatment.setting import Setting

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def choose_records(
    before: MatchRisk, setting: Setting, *, target_risk: float | None, share: float | None
) -> Flags:
    """Choose records with a risk above a target, the riskiest share, or else the sample uniques.

    Parameters
    ----------
    before : MatchRisk
        Of the untreated file.
    setting : Setting
        The file.
    target_risk : float, optional
        From 0 to below 1.
    share : float, optional
        Above 0 and at most 1; records with equal risk are taken together, so it can be more.

    Returns
    -------
    array of bool, shape (record,)
    """
    risk = before.records["risk"].to_numpy()
    if target_risk is not None:
        return np.asarray(risk > target_risk)
    if share is not None:
        number = max(1, round(share * len(risk)))
        return np.asarray(risk >= np.sort(risk)[-number])
    return np.asarray(setting.known.f == 1)


def choose_keys(
    setting: Setting,
    chosen: Flags,
    *,
    target_risk: float,
    treated: Flags | None = None,
) -> Flags:
    """Choose keys to hide, one by one: the next is the one that lowers the risk most.

    A chosen record is then one of all those that agree with it in the keys that stay: of all
    records where the intruder cannot tell which were treated, of the chosen ones where they can.

    Parameters
    ----------
    setting : Setting
        The file.
    chosen : array of bool, shape (record,)
        Records to treat.
    target_risk : float
        The search ends where no chosen record is above it, or every known key is taken.
    treated : array of bool, shape (key,), optional
        Keys that are hidden already; one more is taken, if any is left.

    Returns
    -------
    array of bool, shape (key,)
        At least one key, where some record is chosen.
    """
    sizes = tuple(map(len, setting.data.labels))
    among = chosen if setting.intruder.knows == "records" else np.ones(len(chosen), dtype=bool)
    in_file = setting.in_file.mean(axis=0)[chosen]
    treated = np.zeros(len(sizes), dtype=np.bool_) if treated is None else treated.copy()

    def risk(candidate: Flags) -> Floats:
        stays = np.flatnonzero(setting.is_known & ~candidate)
        if not len(stays):
            return np.asarray(in_file / among.sum())
        of, found = patterns(
            np.ascontiguousarray(setting.data.codes[:, stays]), tuple(sizes[j] for j in stays)
        )
        return np.asarray(in_file / np.bincount(of[among], minlength=len(found))[of[chosen]])

    while chosen.any() and not treated[setting.is_known].all():
        best: tuple[tuple[int, float], int] | None = None
        for key in np.flatnonzero(setting.is_known & ~treated):
            candidate = treated.copy()
            candidate[key] = True
            left = risk(candidate)
            score = (int((left > target_risk).sum()), float(np.sort(left).sum()))
            if best is None or score < best[0]:
                best = (score, int(key))
        assert best is not None  # noqa: S101 - some key is left
        treated[best[1]] = True
        if best[0][0] == 0:
            break
    return treated
