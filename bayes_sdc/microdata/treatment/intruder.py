"""The risk of a treated file: matches of an intruder with the population behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.microdata.treatment.matching import Matches
from bayes_sdc.results import Fact, Result, with_interval

Floats = npt.NDArray[np.float64]

Knowledge = Literal["population", "sample"]
Knows = Literal["records", "keys"]
KNOWLEDGE = {
    "population": "the intruder does not know whether their target is in the file",
    "sample": "the intruder knows that their target is in the file",
}
KNOWS = {
    "records": "they know which records were treated, which keys, and how",
    "keys": "they know which keys were treated, how, and the share of treated records",
}
LEVEL = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class MatchRisk(Result):
    """Risk that an intruder matches people to their records; made by :func:`bayes_sdc.treat`.

    Every record of the file is a target once. The intruder takes the record that is most probably
    the target's, and one of them at random where several are. Matches are on the keys they know, by
    their true values. Confidential.

    Parameters
    ----------
    records : DataFrame
        By record, in the order of the file, counted from 0; all columns but ``tied`` in [0, 1].
        ``right``: probability that the best match is right where the target is in the file, a mean
        over data sets and over the lot among ties. ``in_file``: mean of f / F, the share of the
        people with these key values who are in the file (1 where the target is known to be in it).
        ``risk``: their product, the probability that a match with this record is right for one of
        the F people at random; ``risk_low`` and ``risk_high``: central 90 % interval over what is
        uncertain of the model. ``believed``: the probability that the intruder gives to the
        target's own record, in the file. ``tied``: records that share the highest probability, a
        mean over data sets.
    expected : Estimate90
        Expected match risk: the sum of ``risk``, right matches when every record is a target.
    true_rate : float
        True match rate: right and unique matches per record, by the same product.
    false_rate : float or None
        False match rate: the share of unique matches that are wrong; None where there is none.
    knowledge, knows : str
        What the intruder knows of the target, and of the treatment.
    keys : tuple of str
        Keys of the target that they know.
    datasets : int
        Data sets that the numbers are means of.
    """

    records: pd.DataFrame
    expected: Estimate90
    true_rate: float
    false_rate: float | None
    knowledge: Knowledge
    knows: Knows
    keys: tuple[str, ...]
    datasets: int

    @property
    def highest(self) -> float:
        """Risk of the record at most risk."""
        return float(self.records["risk"].max())

    def above(self, level: float) -> int:
        """Count the records whose risk is above a level."""
        return int((self.records["risk"] > level).sum())

    def _title(self) -> str:
        return f"Risk of matching by {', '.join(self.keys)}: confidential"

    def _facts(self) -> list[Fact]:
        expected = with_interval(self.expected.value, self.expected.interval)
        false = "undefined" if self.false_rate is None else f"{self.false_rate:.1%}"
        return [
            ("expected matches", expected, f"right, of {len(self.records):,} records as targets"),
            ("highest risk", f"{self.highest:.3f}", "of a record"),
            ("true match rate", f"{self.true_rate:.2%}", "right and unique matches, of records"),
            ("false match rate", false, "wrong among unique matches"),
            ("knowledge", self.knowledge, KNOWLEDGE[self.knowledge]),
            ("knows", self.knows, KNOWS[self.knows]),
        ]


def risk_of_matches(
    matches: Sequence[Matches],
    in_file: Floats,
    *,
    knowledge: Knowledge,
    knows: Knows,
    keys: tuple[str, ...],
) -> MatchRisk:
    """Put matches and population together.

    Parameters
    ----------
    matches : sequence of Matches
        One a data set.
    in_file : array of float, shape (draw, record)
        Means of f / F by draw of the model; ones where the target is known to be in the file.
    knowledge, knows, keys
        What the intruder knows.

    Returns
    -------
    MatchRisk
        Means over the data sets.

    Examples
    --------
    >>> two = Matches(np.array([1.0, 0.5]), np.array([0.9, 0.5]), np.array([1, 2]))
    >>> risk = risk_of_matches(
    ...     [two], np.array([[0.2, 1.0]]), knowledge="population", knows="keys", keys=("age",)
    ... )
    >>> risk.records["risk"].tolist(), risk.expected.value, risk.true_rate
    ([0.2, 0.5], 0.7, 0.1)
    """
    right = np.mean([one.right for one in matches], axis=0)
    alone = [np.where(one.tied == 1, one.right, 0.0) for one in matches]
    claims = float(np.mean([np.sum(one.tied == 1) for one in matches]))
    share = in_file.mean(axis=0)
    low, high = np.quantile(in_file, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    # of a sum in sorted order, which does not depend on the order of the records
    sums = np.sort(in_file * right, axis=1).sum(axis=1)
    ends = np.quantile(sums, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    certain = float(np.sort(np.mean(alone, axis=0) * share).sum())
    records = pd.DataFrame(
        {
            "right": right,
            "in_file": share,
            "risk": np.clip(right * share, 0.0, 1.0),
            "risk_low": np.clip(right * low, 0.0, 1.0),
            "risk_high": np.clip(right * high, 0.0, 1.0),
            "believed": np.mean([one.believed for one in matches], axis=0),
            "tied": np.mean([one.tied for one in matches], axis=0),
        }
    ).rename_axis("record")
    value = float(np.sort(records["risk"]).sum())
    return MatchRisk(
        records=records,
        expected=Estimate90(value, (float(ends[0]), float(ends[1])), float(sums.std())),
        true_rate=certain / len(right),
        # rounding of means over data sets must not lead below 0
        false_rate=max(1.0 - certain / claims, 0.0) if claims > 0.0 else None,
        knowledge=knowledge,
        knows=knows,
        keys=keys,
        datasets=len(matches),
    )
