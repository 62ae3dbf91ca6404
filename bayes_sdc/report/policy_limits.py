"""What both reports say about the limits of a policy.

The public reads the limits and the verdicts, but no value. A verdict on few cells is withheld: if
the share of a single cell is above its limit, the best guess for this cell is right.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from bayes_sdc.checks import Check
from bayes_sdc.policy import LimitCheck

WITHHELD = "not shown"
OF_SINGLE_CELLS = (
    "limit_pushed_over_80",
    "limit_true_count_probability",
    "limit_pmse_ratio",
)  # one cell can decide, however many there are
PUBLIC_WORDS = {
    "pass": "The limit is kept.",
    "look": "Undefined, because there is nothing of the kind; that is not a risk of 0.",
    "fail": "The limit is exceeded.",
    WITHHELD: "Not shown, because the verdict could reveal single cells.",
}
UNKNOWN = "It is not known that the limit is kept: its number cannot be relied on."
PUBLIC_REASON = {  # of a check that has no public words of its own
    "pass": "Nothing to report.",
    "look": "The agency should read the reason in its own report.",
    "fail": "Do not rely on the results.",
}


class Told(NamedTuple):
    """What a reader learns about a check."""

    name: str
    verdict: str  # of a check, or withheld
    reason: str
    key: str  # of the check


def tell_limit(limit: LimitCheck, *, at_least: int) -> Told:
    """Return what the public may read of a limit; ``at_least`` units or the verdict is withheld."""
    told = limit.units >= at_least and limit.key not in OF_SINGLE_CELLS
    verdict = limit.verdict if told else WITHHELD
    words = PUBLIC_WORDS[verdict] if limit.known or verdict == WITHHELD else UNKNOWN
    return Told(limit.name, verdict, words, limit.key)


def limit_section(
    checks: Sequence[Check],
    told: Sequence[Check | Told],
    *,
    audience: Literal["internal", "external"],
) -> dict[str, Any] | None:
    """Return the section on the policy, or None where nothing was judged by one.

    Parameters
    ----------
    checks : sequence of Check
        Of the result; those on limits are taken.
    told : sequence of Check or Told
        What the audience reads of each check.
    audience : {"internal", "external"}
        Values are internal.

    Returns
    -------
    dict or None
        ``policy``, ``date``, ``told`` (of the limits), ``columns`` and ``rows`` of a table.
    """
    limits = [check for check in checks if isinstance(check, LimitCheck)]
    if not limits:
        return None
    by_key = {one.key: one for one in told}
    internal = audience == "internal"
    columns = ["limit", "of what", "verdict", "exceeded when"]
    rows = [
        [
            limit.key.removeprefix("limit_"),
            limit.definition,
            by_key[limit.key].verdict,
            limit.exceeded_when,
            *([_value(limit)] if internal else []),
        ]
        for limit in limits
    ]
    return {
        "policy": limits[0].policy,
        "date": limits[0].date,
        "told": [by_key[limit.key] for limit in limits],
        "columns": columns + ["value"] * internal,
        "rows": rows,
    }


def _value(limit: LimitCheck) -> str:
    return "undefined" if limit.value is None else f"{limit.value:.6g}"
