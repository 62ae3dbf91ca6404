"""What the methods say about a file, side by side."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayes_sdc.results import Fact, Result

UNIQUES = "sample uniques that are population uniques"
MATCHES = "correct matches of sample uniques"
DRAWN = "sample uniques times the share of correct among unique matches"


@dataclass(frozen=True, eq=False, repr=False)
class RiskComparison(Result):
    """What the methods say about a file.

    Made by :func:`bayes_sdc.compare_risks`.

    Parameters
    ----------
    methods : DataFrame
        Index ``method``. ``about``: what is expected: population uniques among the sample uniques,
        correct matches of them, or their number times DIS, which is less than that. ``expected``
        number, with ``low`` and ``high``: a 95 % interval, or the range over what the method leaves
        open; NaN where it gives none. ``by_record``: whether records differ. ``assumption`` in one
        line. From the largest expected number down, for each of the three.
    records : DataFrame
        Index ``record`` (sample uniques, by place in the file), a column a method that tells
        records apart. Risks in [0, 1], and the SUDA score. Confidential.
    agreement : DataFrame
        Spearman's rank correlation of the columns of ``records``, but for those that give all
        records the same, which ``notes`` names.
    disagreements : DataFrame
        Sample uniques by the difference between the shares of records that two methods put below
        them, largest first. Columns in two levels: ``key`` (the values), ``disagreement``
        (``difference``, and the methods ``highest`` and ``lowest``), and ``share below`` by each
        method. Confidential.
    uniques : int
        Sample uniques.
    notes : tuple of str
        What was assumed or left out.
    seed : int, optional
        Everything random followed from it.
    """

    methods: pd.DataFrame
    records: pd.DataFrame
    agreement: pd.DataFrame
    disagreements: pd.DataFrame
    uniques: int
    notes: tuple[str, ...]
    seed: int | None = None

    def __str__(self) -> str:
        """Return the expected numbers and assumptions, one per line."""
        width = max(map(len, self.methods.index))
        lines = [f"{self.uniques:,} sample uniques; of these are expected:"]
        for about, part in self.methods.groupby("about", sort=False):
            lines.append(f"{about}:")
            lines += [
                f"  {name:<{width}}  {row['expected']:>12,.2f}  {row['assumption']}"
                for name, row in part.iterrows()
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _title(self) -> str:
        return f"Methods on {self.uniques:,} sample uniques: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                str(name),
                f"{row['expected']:,.2f}"
                + ("" if np.isnan(row["low"]) else f" [{row['low']:,.2f}, {row['high']:,.2f}]"),
                f"{row['about']}; {row['assumption']}",
            )
            for name, row in self.methods.iterrows()
        ]

    def in_one_line(self) -> str:
        """Say how far the estimates of the population uniques are apart; confidential."""
        expected = self.methods.loc[self.methods["about"] == UNIQUES, "expected"]
        return (
            f"sample uniques that are population uniques, of {self.uniques:,}: "
            f"{expected.min():,.1f} ({expected.idxmin()}) to {expected.max():,.1f} "
            f"({expected.idxmax()}) by {len(expected)} methods"
        )

    def __repr__(self) -> str:
        return f"<RiskComparison: {self.in_one_line()}>"
