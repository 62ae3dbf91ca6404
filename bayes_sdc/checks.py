"""Verdicts, as data for console, report and tests."""

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["pass", "look", "fail"]


@dataclass(frozen=True)
class Check:
    """One question, its answer and the reason.

    Made by :func:`bayes_sdc.protect_flows` and :func:`bayes_sdc.measure_microdata`.

    Parameters
    ----------
    name : str
        What was checked.
    verdict : {"pass", "look", "fail"}
        ``look``: somebody should read the reason before a release; ``fail``: do not rely on it.
    reason : str
        In words with numbers; confidential like the rest.
    key : str
        Identifies the check, whatever its name: reports find its section and its public words by
        the key.
    """

    name: str
    verdict: Verdict
    reason: str
    key: str = field(kw_only=True)
