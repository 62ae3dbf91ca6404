"""Verdicts on the intruder's risk, and on the use of a release, by the limits of a policy."""

from dataclasses import replace
from typing import Literal

from bayes_sdc.flows.intruder.comparing.choosing import Choice
from bayes_sdc.flows.intruder.probabilities.gain import PRIORS
from bayes_sdc.flows.intruder.result import UNIQUE, IntruderRisk
from bayes_sdc.flows.release.use.utility import Utility
from bayes_sdc.policy import LimitCheck, Policy

GAINS = {
    "gain_bits": "bits that the release adds to the mean log2 probability of the true count",
    "pushed_over_80": "cells that the release pushes past a probability of 80 % of the true count",
}

ROUNDING = 1e-9  # of a sum of shares
USES = {
    "totals_error": "error of the totals of small cells by area, relative to them",
    "pmse_ratio": "pMSE ratio, how well released rows are told from true ones",
}


def check_limits(
    policy: Policy | None,
    risk: IntruderRisk | None,
    choice: Choice | None = None,
    *,
    unique: str,
) -> list[LimitCheck]:
    """Judge the risk of a release by the limits of a policy.

    Parameters
    ----------
    policy : Policy or None
        With a section for flows; without a policy nothing is judged.
    risk : IntruderRisk or None
        None when the table has no small cells: then every measure is undefined.
    choice : Choice, optional
        How the release was chosen: then each measure is judged by the winner or by the mean over
        repetitions of the procedure, whichever is larger.
    unique : {"single-mover", "isolated"}
        Which cells R_unq is about.

    Returns
    -------
    list of LimitCheck
        One for each limit on risk that is set, in the order of `bayes_sdc.FlowLimits`. A limit that
        is kept by a number which cannot be relied on is to be looked at, unless the worst it can be
        keeps it too: nobody knows that it is kept. A share or a mean can be relied on where at most
        one of its cells in a hundred cannot, a number of cells or a largest value where all can.

    Raises
    ------
    InputError
        If the policy has no section for flows.

    Examples
    --------
    >>> import datetime
    >>> from bayes_sdc import FlowLimits, Policy
    >>> policy = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.3))
    >>> [(check.name, check.verdict) for check in check_limits(policy, None, unique="isolated")]
    [('limit r_all', 'look')]
    """
    if policy is None:
        return []
    limits = policy.for_flows()
    checks = []
    if limits.r_all is not None:
        checks.append(_share(policy, "r_all", limits.r_all, "all small cells", risk, choice))
    if limits.r_unq is not None:
        checks.append(_share(policy, "r_unq", limits.r_unq, UNIQUE[unique], risk, choice))
    if limits.true_count_probability is not None:
        checks.append(_single_cells(policy, limits.true_count_probability, risk, choice))
    for key, limit in (("gain_bits", limits.gain_bits), ("pushed_over_80", limits.pushed_over_80)):
        if limit is not None:
            checks.append(_gain(policy, key, limit, risk, choice))
    return checks


def _known(check: LimitCheck, trusted: bool, worst: float | None) -> LimitCheck:
    """Pass no limit that is kept by an unreliable number: it is not known to be kept.

    It is where even the worst value keeps it that the cells could have that cannot be relied on.
    """
    if trusted or check.verdict != "pass":
        return check
    if worst is not None and worst <= check.limit + ROUNDING:
        kept = "kept even at the worst that the cells can be which cannot be relied on"
        return replace(check, reason=f"{check.reason}; {kept}")
    unknown = (
        "not known to be kept: weights or Monte Carlo errors are unreliable; refit these cells "
        "(refits) or take more draws"
    )
    return replace(check, verdict="look", reason=f"{check.reason}; {unknown}", known=False)


def _share(
    policy: Policy,
    key: Literal["r_all", "r_unq"],
    limit: float,
    among: str,
    risk: IntruderRisk | None,
    choice: Choice | None,
) -> LimitCheck:
    definition = f"share found of {among}"
    if risk is None:
        return policy.judge(key, limit, None, units=0, definition=definition)
    share = risk.r_all if key == "r_all" else risk.r_unq
    value, detail = share.value, str(share)
    if value is not None and choice is not None:
        procedure = float(choice.procedure[key].mean())
        value = max(value, procedure)
        detail += f"; over repetitions of drawing and choosing {procedure:.1%}"
    check = policy.judge(key, limit, value, units=share.cells, definition=definition, detail=detail)
    worst = None if value is None else value + risk.unreliable_cells / max(share.cells, 1)
    return _known(check, share.trusted, worst)


def _single_cells(
    policy: Policy, limit: float, risk: IntruderRisk | None, choice: Choice | None
) -> LimitCheck:
    key, definition = "true_count_probability", "largest probability of the true count of a cell"
    if risk is None:
        return policy.judge(key, limit, None, units=0, definition=definition)
    probability = risk.true_count_probability.to_numpy()
    unreliable = risk.unreliable_cells
    value, chosen = float(probability.max()), ""
    if choice is not None:
        procedure = float(choice.procedure["largest_probability"].mean())
        value = max(value, procedure)
        chosen = f"; over repetitions of drawing and choosing the largest is {procedure:.1%}"
    check = policy.judge(
        key,
        limit,
        value,
        units=len(probability),
        definition=definition,
        detail=f"{int((probability > limit).sum())} of {len(probability)} cells are above it"
        + chosen
        + (
            f"; weights or Monte Carlo errors are unreliable in {unreliable} cells"
            if unreliable
            else ""
        ),
    )
    return _known(check, not unreliable, 1.0)


def _gain(
    policy: Policy, key: str, limit: float, risk: IntruderRisk | None, choice: Choice | None
) -> LimitCheck:
    """Judge what the release adds, for the intruder who says most of the true counts."""
    definition = GAINS[key]
    if risk is None:
        return policy.judge(key, limit, None, units=0, definition=definition)
    gain = risk.strongest
    value: float | None = gain.bits.gain if key == "gain_bits" else gain.pushed[0.8]
    detail = f"of the intruder who {PRIORS[gain.prior]}"
    if value is not None and choice is not None:
        procedure = float(choice.procedure[key].mean())
        value = max(value, procedure)
        detail += f"; over repetitions of drawing and choosing {procedure:.6g}"
    check = policy.judge(key, limit, value, units=gain.cells, definition=definition, detail=detail)
    if key == "gain_bits":  # a mean, which one cell in a hundred hardly moves
        return _known(check, gain.trusted, None)
    return _known(check, not gain.unreliable, None if value is None else value + gain.unreliable)


def check_use(policy: Policy | None, measured: Utility | None, *, cells: int) -> list[LimitCheck]:
    """Judge what users lose by the limits of a policy.

    Parameters
    ----------
    policy : Policy or None
        With a section for flows; without a policy nothing is judged.
    measured : Utility or None
        Of the release; None when the table has no small cells: then it is the table.
    cells : int
        Number of small cells.

    Returns
    -------
    list of LimitCheck
        One for each limit on use that is set.

    Examples
    --------
    >>> import datetime
    >>> from bayes_sdc import FlowLimits, Policy
    >>> policy = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(totals_error=0.1))
    >>> [(check.name, check.verdict) for check in check_use(policy, None, cells=0)]
    [('limit totals_error', 'pass')]
    """
    if policy is None:
        return []
    limits = policy.for_flows()
    # without small cells the release is the table itself
    found: dict[str, float | None] = {"totals_error": 0.0, "pmse_ratio": 1.0}
    if measured is not None:
        found = {"totals_error": measured.totals_error, "pmse_ratio": measured.pmse_ratio}
    return [
        policy.judge(key, limit, found[key], units=cells, definition=USES[key])
        for key in USES
        if (limit := getattr(limits, key)) is not None
    ]


def worse_checks(one: list[LimitCheck], other: list[LimitCheck]) -> list[LimitCheck]:
    """Of two risks judged by the same limits, the worse check of each limit.

    An intruder who knows less does not succeed less often in every table.

    Parameters
    ----------
    one, other : list of LimitCheck
        From :func:`check_limits` with the same policy.

    Returns
    -------
    list of LimitCheck
        As many as in each of them; the first where they are equal.
    """
    order = ("pass", "look", "fail")

    def bad(check: LimitCheck) -> tuple[int, float]:
        return order.index(check.verdict), -1.0 if check.value is None else check.value

    return [max(pair, key=bad) for pair in zip(one, other, strict=True)]
