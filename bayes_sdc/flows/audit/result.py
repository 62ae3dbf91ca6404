"""What an audit found: bounds of hidden counts, and how many follow from what is published."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.families import Ints
from bayes_sdc.results import Fact, Result

SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """Bounds of hidden counts given published totals; made by :func:`bayes_sdc.audit_totals`.

    Confidential where the counts are: a pinned cell shows its true count.

    Parameters
    ----------
    bounds
        One row per hidden cell, in the order of the table's small cells: its codes; ``lower`` and
        ``upper``, least and most over all whole counts that fit the totals (``upper`` is missing
        where nothing limits it); ``pinned``, whether they are equal; ``exact``, whether some table
        reaches both; and ``why``, what pins it, in words.
    source
        File name, or ``"DataFrame"``.
    published
        Kinds of totals, as in ``"origin"``.
    totals
        Number of totals.
    before
        How many values each cell could have without the totals: (cell,), 0 for any number.
    notes
        What was seen on the way.
    covered
        Number of cells in an exact total: anyone who knows all other small counts knows these.
    besides
        Bounds of rows that are not small cells but that no release shows either: small own-area
        counts, and counts that rest on too few people. None if there are none.
    in_doubt
        Number of further counts that follow if sums inside the table that may be chance are totals.
        Until somebody says what they are, no audit has shown that nothing follows.
    """

    bounds: pd.DataFrame
    source: str
    published: tuple[str, ...]
    totals: int
    before: Ints
    notes: tuple[str, ...] = ()
    covered: int = 0
    besides: pd.DataFrame | None = None
    in_doubt: int = 0

    @property
    def pinned_besides(self) -> int:
        """Number of further hidden rows whose count follows: own-area and withheld ones."""
        return 0 if self.besides is None else int(self.besides["pinned"].sum())

    @property
    def cells(self) -> int:
        """Number of hidden cells."""
        return len(self.bounds)

    @property
    def pinned(self) -> int:
        """Number of cells whose count follows from what is published."""
        return int(self.bounds["pinned"].sum())

    @property
    def share_pinned(self) -> float | None:
        """Share of the cells that are pinned, or None without cells."""
        return self.pinned / self.cells if self.cells else None

    @property
    def left(self) -> Ints:
        """How many values are left for each cell: (cell,), 0 for any number."""
        width = (self.bounds["upper"] - self.bounds["lower"] + 1).fillna(0)
        return width.to_numpy(np.int64)

    @property
    def narrowed(self) -> int:
        """Number of cells that are not pinned but have fewer values left than without totals."""
        left = self.left
        fewer = (left > 0) & ((left < self.before) | (self.before == 0))
        return int((fewer & ~self.bounds["pinned"].to_numpy(bool)).sum())

    @property
    def two_left(self) -> int:
        """Number of cells that can have one of two values."""
        return int((self.left == 2).sum())

    @property
    def inexact(self) -> int:
        """Number of cells whose bounds hold but may not be the tightest."""
        return int((~self.bounds["exact"]).sum())

    def by(self, column: str) -> pd.DataFrame:
        """Count cells and pinned cells by a column of ``bounds``, such as ``group`` or ``origin``.

        Parameters
        ----------
        column : str
            Its name.

        Returns
        -------
        DataFrame
            ``cells``, ``pinned`` and ``share``, most pinned first.
        """
        if column not in self.bounds.columns:
            raise InputError(f"no column {column!r}; there are {list(self.bounds.columns)}")
        pinned = self.bounds.groupby(column)["pinned"]
        found = pd.DataFrame({"cells": pinned.size(), "pinned": pinned.sum()})
        found["share"] = found["pinned"] / found["cells"]
        return found.sort_values(["pinned", "cells"], ascending=False, kind="stable")

    def check(self) -> Check:
        """Judge the audit: a pinned cell fails it; a cell with two values left calls for a look."""
        doubt = self.two_left or self.inexact or self.in_doubt
        verdict: Verdict = (
            "fail" if self.pinned + self.pinned_besides else "look" if doubt else "pass"
        )
        return Check("published totals", verdict, self._reason(), key="published_totals")

    def _reason(self) -> str:
        text = (
            f"totals by {', '.join(self.published)} pin {_share(self.pinned, self.cells)} exactly"
            if self.published
            else f"no total is published; {_share(self.pinned, self.cells)} pinned"
        )
        if self.pinned:
            first = self.bounds[self.bounds["pinned"]].iloc[0]
            text += f", first {first.name} ({first['why']})"
        if self.besides is not None and self.pinned_besides:
            first = self.besides[self.besides["pinned"]].iloc[0]
            text += (
                f"; of other rows that are not released {self.pinned_besides:,} of "
                f"{len(self.besides):,}, first {first.name} ({first['why']})"
            )
        if self.two_left:
            text += f"; {self.two_left:,} more can only have one of two values"
        if self.covered:
            text += f"; anyone who knows all other small counts too finds {self.covered:,} exactly"
        if self.inexact:
            text += f"; the bounds of {self.inexact:,} hold but may not be the tightest"
        return text

    def summary(self) -> str:
        """Return a few lines: how many cells are pinned, narrowed and free, and the first pinned.

        Returns
        -------
        str
            Text for the console; confidential.
        """
        numbers = {
            "pinned: the count follows": self.pinned,
            "two values left": self.two_left,
            "fewer values left, not pinned": self.narrowed,
        }
        lines = [
            "confidential: these lines reveal hidden counts",
            f"{self.source}: {self.cells:,} hidden cell{'s' * (self.cells != 1)}, {self.totals:,} "
            f"total{'s' * (self.totals != 1)}"
            + (f" by {', '.join(self.published)}" if self.published else ""),
            *(f"  {what:<32}{_share(n, self.cells):>24}" for what, n in numbers.items()),
        ]
        for cell, row in self.bounds[self.bounds["pinned"]].head(SHOWN).iterrows():
            lines.append(f"  {cell} is {row['lower']:,}: {row['why']}")
        if self.besides is not None:
            share = _share(self.pinned_besides, len(self.besides))
            lines.append(f"  {'pinned own areas, withheld rows':<32}{share:>24}")
            for cell, row in self.besides[self.besides["pinned"]].head(SHOWN).iterrows():
                lines.append(f"  {cell} is {row['lower']:,}: {row['why']}")
        if self.covered:
            lines.append(
                f"  anyone who knows all other hidden counts finds {self.covered:,} by subtraction"
            )
        if self.pinned > SHOWN:
            lines.append(f"  and {self.pinned - SHOWN:,} more")
        if self.inexact:
            lines.append(f"  bounds of {self.inexact:,} cells hold but may not be the tightest")
        if self.in_doubt:
            lines.append(f"  in doubt: {self.in_doubt:,} more, if what may be chance is a total")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _title(self) -> str:
        return f"Audit of {self.source}: confidential"

    def _facts(self) -> list[Fact]:
        return [
            ("hidden cells", f"{self.cells:,}", "whose count is not published"),
            ("pinned", _share(self.pinned, self.cells), "the count follows from the totals"),
            ("two values left", _share(self.two_left, self.cells), "given the totals"),
            ("narrowed", _share(self.narrowed, self.cells), "fewer values left, not pinned"),
            ("totals", f"{self.totals:,}", f"by {', '.join(self.published) or 'nothing'}"),
            ("not tightest", f"{self.inexact:,}", "bounds hold but may not be the tightest"),
        ]


def _share(number: int, of: int) -> str:
    return f"{number:,} of {of:,}" + (f" ({number / of:.1%})" if of else "")
