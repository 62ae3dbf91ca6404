"""Verdicts on a treated file by the limits of a policy."""

import numpy as np

from bayes_sdc.microdata.treatment.intruder import KNOWS
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.policy import LimitCheck, Policy


def check_treated(policy: Policy | None, treatment: Treatment) -> list[LimitCheck]:
    """Judge what is left of the risk after a treatment.

    Parameters
    ----------
    policy : Policy or None
        With a section for microdata; without a policy nothing is judged.
    treatment : Treatment
        From :func:`bayes_sdc.treat`.

    Returns
    -------
    list of LimitCheck
        One for each limit that is set. k is judged on the released values as they stand, by the
        rule for missing values: a drawn value that nobody else has is below it too.

    Raises
    ------
    InputError
        If the policy has no section for microdata.
    """
    if policy is None:
        return []
    limits, after, n = policy.for_microdata(), treatment.after, treatment.data.n
    who = f"after the treatment, {KNOWS[after.knows]}"
    if treatment.only_recoded:
        who = "after the recoding"
    checks = []
    if limits.k is not None:
        known = treatment.data.select(after.keys)
        columns = [treatment.data.keys.index(key) for key in after.keys]
        f = np.concatenate(
            [
                known.with_codes(np.ascontiguousarray(codes[:, columns])).f
                for codes in treatment.codes
            ]
        )
        below = int((f < limits.k).sum())
        checks.append(
            policy.judge(
                "k", limits.k, int(f.min()), units=n,
                definition="smallest f of a released record",
                detail=f"{below:,} released records are below it",
            )
        )  # fmt: skip
    if limits.record_risk is not None:
        above = after.above(limits.record_risk)
        checks.append(
            policy.judge(
                "record_risk", limits.record_risk, after.highest, units=n,
                definition=f"largest probability that a match of a record is right {who}",
                detail=f"{above:,} records are above it",
            )
        )  # fmt: skip
    if limits.file_risk is not None:
        checks.append(
            policy.judge(
                "file_risk", limits.file_risk, after.expected.value / n, units=n,
                definition=f"expected share of records that are matched rightly {who}",
            )
        )  # fmt: skip
    return checks
