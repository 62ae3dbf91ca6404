"""IRS county-to-county migration files: every row in its class, and the rule that hid the rest.

The IRS Statistics of Income division publishes who filed a tax return in one county in one year and
in another in the next. Only flows of enough returns are shown; the others are in rows of *other
flows*, and totals that are too small are replaced by a mark (-1 or d). `read_irs_flows` reads all
layouts of the years since 1990-1991, says of every row what it is, and checks that published flows
and other flows add up to the totals.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.irs.identities import MEASURES, check_identities, identity_table
from bayes_sdc.irs.layouts import Direction, Layout, read_printed
from bayes_sdc.irs.rows import RECORDS, interpret, without_repeats
from bayes_sdc.irs.thresholds import Threshold, threshold_of
from bayes_sdc.results import Fact, Result


@dataclass(frozen=True, eq=False, repr=False)
class IrsFlows(Result):
    """A county-to-county migration file of the IRS; made by `read_irs_flows`.

    Parameters
    ----------
    rows
        Every row that could be read, in the order of the file: ``line`` of the file (or row of the
        sheet), ``record`` (``"detail"``, ``"total"``, ``"other flows"``, ``"non-migrants"`` or
        ``"foreign"``), ``category`` (which total, which other flows, which foreign flow),
        ``county`` (whose flows these are: the destination of inflows, the origin of outflows; five
        digits, ``000`` for its state, ``00000`` for the US), ``partner`` (five digits of the other
        side, or the special code), ``name``, the numbers ``returns``, ``exemptions`` and ``agi``
        (thousands of dollars; missing where suppressed or not in the layout), and ``suppressed``.
    duplicates
        Rows that repeat an earlier row number by number, and are not in ``rows``: ``line``,
        ``first_line``, ``county``, ``partner``.
    broken
        What could not be read: ``line``, ``column``, ``value``, ``reason``, and ``kept``: a row
        whose returns are good is kept in ``rows`` with the broken number missing.
    direction, years, layout
        ``"inflow"`` or ``"outflow"``; the two years, as in ``"2014-2015"``; which layout it was.
    threshold
        The rule of those years on what is shown.
    n_read
        Rows of the file without headings, footnotes and blank lines: the rows, the duplicates, and
        the broken rows that were not kept.
    source, sha256
        Name of the file, and hash of its bytes.
    notes
        What the reader saw and the user should know.
    """

    rows: pd.DataFrame
    duplicates: pd.DataFrame
    broken: pd.DataFrame
    direction: Direction
    years: str
    layout: Layout
    threshold: Threshold
    n_read: int
    source: str
    sha256: str
    notes: tuple[str, ...]

    @property
    def detail(self) -> pd.DataFrame:
        """Flows between two counties, with ``origin``, ``destination`` and their states."""
        found = self.rows[self.rows["record"] == "detail"]
        ends = [found["partner"], found["county"]]
        origin, destination = ends if self.direction == "inflow" else ends[::-1]
        codes = pd.DataFrame(
            {
                "origin": origin,
                "destination": destination,
                "origin_state": origin.str[:2],
                "destination_state": destination.str[:2],
            }
        )
        return codes.join(found[[*MEASURES, "suppressed", "line"]]).reset_index(drop=True)

    @property
    def totals(self) -> pd.DataFrame:
        """Totals of counties, states (``000``) and the US, published or suppressed."""
        return self._of("total")

    @property
    def other_flows(self) -> pd.DataFrame:
        """Sums of the flows that are not shown, within the state, to other states, by region."""
        return self._of("other flows")

    @property
    def non_migrants(self) -> pd.DataFrame:
        """Returns filed in the same county in both years."""
        return self._of("non-migrants")

    @property
    def foreign(self) -> pd.DataFrame:
        """Flows from or to abroad, by kind; ``other flows`` are those that are not shown."""
        return self._of("foreign")

    @property
    def suppressed(self) -> pd.DataFrame:
        """Rows of any class whose numbers are replaced by -1 or d."""
        return self.rows[self.rows["suppressed"]].reset_index(drop=True)

    @property
    def below_threshold(self) -> pd.DataFrame:
        """Detail flows of fewer returns than the threshold of the years."""
        detail = self.detail
        few = (detail["returns"] < self.threshold.returns).fillna(False)
        return detail[few.astype(bool)].reset_index(drop=True)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Identities of published numbers by county and measure.

        See :func:`bayes_sdc.irs.identities.check_identities`.
        """
        return check_identities(self.rows)

    @property
    def gaps(self) -> pd.DataFrame:
        """Identities that do not hold though all their numbers are published."""
        return self.checks[self.checks["status"] == "gap"].reset_index(drop=True)

    @property
    def identities(self) -> pd.DataFrame:
        """How many counties each identity holds in, by measure."""
        return identity_table(self.checks)

    @property
    def counts(self) -> pd.DataFrame:
        """Numbers of rows by class, and how many of them are suppressed."""
        by = self.rows.groupby("record")["suppressed"].agg(["size", "sum"])
        by.columns = pd.Index(["rows", "suppressed"])
        return by.reindex(list(RECORDS), fill_value=0)

    def _of(self, record: str) -> pd.DataFrame:
        return self.rows[self.rows["record"] == record].reset_index(drop=True)

    def flow_frame(self, measure: Literal["returns", "exemptions"] = "returns") -> pd.DataFrame:
        """Return the detail flows as a table for :func:`bayes_sdc.read_flows`.

        Parameters
        ----------
        measure
            What is counted. A detail row whose number is missing is left out; there are as many as
            ``counts`` says are suppressed, or ``broken`` says are kept.

        Returns
        -------
        pandas.DataFrame
            ``origin``, ``destination``, ``origin_state``, ``destination_state`` (text) and
            ``count``, sorted by origin and destination.

        Raises
        ------
        InputError
            If ``measure`` is not one of the two.
        """
        if measure not in MEASURES[:2]:
            raise InputError(f"measure must be 'returns' or 'exemptions', got {measure!r}")
        detail = self.detail
        table = detail.iloc[:, :4].assign(count=detail[measure]).dropna(subset="count")
        table["count"] = table["count"].astype(np.int64)
        return table.sort_values(["origin", "destination"], ignore_index=True)

    def summary(self) -> str:
        """Return a few lines on what was read: classes of rows, threshold, identities, notes."""
        lines = [
            f"{self.source}: county {self.direction} {self.years} ({self.layout}), "
            f"{self.n_read:,} rows read"
        ]
        for record, (number, hidden) in self.counts.iterrows():
            more = f"  of them suppressed: {hidden:,}" if hidden else ""
            lines.append(f"  {record:<24}{number:>10,}{more}")
        aside = int((~self.broken["kept"]).sum())
        lines.append(f"  {'repeated rows':<24}{len(self.duplicates):>10,}")
        lines.append(f"  {'broken rows set aside':<24}{aside:>10,}")
        lines.append(f"threshold: {self.threshold}")
        table = self.identities
        for name, by in table.loc["returns"].iterrows() if "returns" in table.index else ():
            checked = by["holds"] + by["gap"]
            lines.append(f"returns, {name}: adds up in {by['holds']:,} of {checked:,}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _title(self) -> str:
        return f"County {self.direction} {self.years} of {self.source} ({self.layout})"

    def _facts(self) -> list[Fact]:
        counts = self.counts
        return [
            ("rows read", f"{self.n_read:,}", f"threshold: {self.threshold}"),
            *(
                (str(record), f"{row['rows']:,}", f"{row['suppressed']:,} of them suppressed")
                for record, row in counts.iterrows()
            ),
            ("repeated rows", f"{len(self.duplicates):,}", "left out"),
            ("broken rows", f"{int((~self.broken['kept']).sum()):,}", "set aside"),
            ("gaps", f"{len(self.gaps):,}", "identities of published numbers that do not hold"),
        ]


@checked
def read_irs_flows(
    source: str | os.PathLike[str],
    *,
    direction: Direction | None = None,
    years: str | None = None,
) -> IrsFlows:
    """Read a county-to-county migration file of the IRS, in any of its layouts.

    The layouts are the CSV files of the nation (also gzipped), the Excel workbooks of a state
    (``.xls``; needs the extra ``irs``), the records of 91 characters, and the printed tables of
    1990-1992. Codes become text of five digits however they are padded; -1 and d are marks of
    suppressed numbers, except that an AGI of -1 beside a published number of returns is a number.

    Parameters
    ----------
    source
        Path of the file.
    direction
        ``"inflow"`` or ``"outflow"``. Needed where neither content nor name of the file says it,
        and for a workbook that has both.
    years
        Two successive years, as in ``"2014-2015"``. Needed where neither content nor name of the
        file says it; given, it is taken for right.

    Returns
    -------
    IrsFlows
        The rows by class, the threshold, the identities, and what was seen.

    Raises
    ------
    InputError
        If the file cannot be read, is no such file, has two rows that contradict each other, or
        has more broken rows than good ones; if direction or years are unknown.

    See Also
    --------
    bayes_sdc.read_flows, bayes_sdc.hidden_flows, bayes_sdc.hidden_margins

    References
    ----------
    IRS SOI, Migration Data Users Guide 2017-2018, sections D and E.

    Examples
    --------
    >>> from bayes_sdc.irs.simulate import example_irs_path
    >>> flows = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
    >>> flows.threshold.returns, len(flows.gaps)
    (10, 0)
    >>> flows.flow_frame().columns.tolist()
    ['origin', 'destination', 'origin_state', 'destination_state', 'count']
    """
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"expected the path of a file, got {type(source).__name__}")
    if direction not in (None, "inflow", "outflow"):
        raise InputError(f"direction must be 'inflow' or 'outflow', got {direction!r}")
    printed = read_printed(Path(source), direction)
    name = printed.source
    if direction and printed.direction not in (None, direction):
        raise InputError(f"{name}: holds {printed.direction}s, but direction is {direction!r}")
    way = direction or printed.direction
    when = years or printed.years
    if way is None or when is None:
        unknown = "direction" if way is None else "years"
        raise InputError(
            f"{name}: neither the content nor the name of the file tells the {unknown}; "
            f"give {unknown}=" + ("'inflow' or 'outflow'" if way is None else "'2014-2015' or so")
        )
    threshold = threshold_of(when)

    rows, broken, padded = interpret(printed)
    aside = broken[~broken["kept"]]
    if rows.empty or len(aside) > len(rows):
        raise InputError(
            f"{name}: {len(aside):,} of {len(aside) + len(rows):,} rows cannot be read as county "
            f"flows of the IRS: {_listed(aside) or 'there are no rows'}"
        )
    rows, duplicates = without_repeats(rows, name)
    flows = IrsFlows(
        rows=rows,
        duplicates=duplicates,
        broken=broken,
        direction=way,
        years=when,
        layout=printed.layout,
        threshold=threshold,
        n_read=len(printed.rows) + len(printed.unread),
        source=name,
        sha256=printed.sha256,
        notes=(),
    )
    notes = [*printed.notes]
    if years and printed.years not in (None, years):
        notes.append(f"the file speaks of {printed.years}, but years is {years}")
    if padded:
        notes.append(f"codes without their leading zeros in {padded:,} rows, padded")
    return replace(flows, notes=(*notes, *_notes(flows)))


def _notes(flows: IrsFlows) -> Iterable[str]:
    repeated = flows.duplicates
    if len(repeated):
        states = repeated["county"].str[:2].value_counts().sort_index()
        of = flows.rows["county"].str[:2].value_counts().reindex(states.index)
        said = ", ".join(
            f"{state} ({f'all {n:,}' if n == every else f'{n:,} of {every:,}'} rows)"
            for state, n, every in zip(states.index, states, of, strict=True)
        )
        yield f"{len(repeated):,} rows repeat earlier ones and are set aside; by state: {said}"
    broken = flows.broken
    for kept, what in ((False, "rows are broken and set aside"), (True, "numbers are broken")):
        some = broken[broken["kept"] == kept]
        if len(some):
            yield f"{len(some):,} {what}: {_listed(some)}"
    few = flows.below_threshold
    if len(few):
        yield (
            f"{len(few):,} detail flows have fewer returns than the threshold of "
            f"{flows.threshold.returns}; the lowest has {few['returns'].min()}"
        )


def _listed(broken: pd.DataFrame) -> str:
    shown = [
        f"line {line} {column or 'row'} {value[:60]!r} ({reason})"
        for line, column, value, reason in broken.head().to_numpy()[:, :4].tolist()
    ]
    return "; ".join(shown) + ("; and so on" if len(broken) > 5 else "")
