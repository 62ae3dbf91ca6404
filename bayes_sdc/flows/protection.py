"""The result of protecting a table: the release, and all that was measured about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import xarray as xr

from bayes_sdc.checks import Check
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.diagnostics import Dispersion
from bayes_sdc.flows.guarantee import CHECK, ENDING, Guarantee
from bayes_sdc.flows.intruder.comparing.choosing import Choice
from bayes_sdc.flows.intruder.probabilities.gain import gain_lines
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.totals.keeping import pinned_by
from bayes_sdc.flows.intruder.with_totals import WithTotals
from bayes_sdc.flows.kept_columns.selection import Selection
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea, own_area_rows
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.use.combining import CombinedTotals
from bayes_sdc.flows.release.use.distinguishing import Distinguished
from bayes_sdc.flows.release.use.uses import FlowUses
from bayes_sdc.flows.release.use.utility import Utility
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.results import Fact, Result, or_undefined, summary_lines

NONE_KEPT = "no totals are kept, because they would tell small counts: see the check"


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Result):
    """All that was measured about a release with small cells; confidential.

    Made by :func:`bayes_sdc.protect_flows`.

    Parameters
    ----------
    posterior : DataTree
        :func:`bayes_sdc.fit_flows`.
    groups : DataFrame
        :func:`bayes_sdc.flows.diagnostics.group_diagnostics`.
    predictive : DataFrame
        :func:`bayes_sdc.flows.diagnostics.predictive_counts`.
    predictive_by_size : DataFrame
        :func:`bayes_sdc.flows.release.synthetic.predictive.predictive_counts_by_size`.
    dispersion : Dispersion
        :func:`bayes_sdc.flows.diagnostics.dispersion`.
    margins : DataFrame
        :func:`bayes_sdc.flows.release.use.utility.margins`.
    utility : Utility
        :func:`bayes_sdc.utility`.
    risk : IntruderRisk
        Of this release, for the intruder asked for.
    worst : IntruderRisk
        Of this release, for the intruder who knows all other cells: the same object as ``risk``
        unless another was asked for.
    repeats : DataFrame
        :func:`bayes_sdc.repeat_risk` of ``worst``: the spread over releases.
    by_datasets : DataFrame
        :func:`bayes_sdc.risk_by_datasets` of ``worst``.
    classes : dict of DataFrame
        :func:`bayes_sdc.risk_by` of ``risk``, by name of the classes.
    tradeoff : DataFrame
        :func:`bayes_sdc.risk_utility` of ``worst``: other protections beside.
    combined : CombinedTotals, optional
        :func:`bayes_sdc.combined_totals`; None for a single data set.
    choice : Choice, optional
        How the release was chosen, if it was.
    kept : KeptTotals, optional
        Totals that the release has exactly as the table; None where none were asked for.
    uses : FlowUses
        :func:`bayes_sdc.flow_uses`.
    distinguished : Distinguished
        :func:`bayes_sdc.flows.release.use.distinguishing.distinguished`.
    base_gain : float
        :func:`bayes_sdc.flows.release.use.base_gain.base_gain`: what family "base" would add.
    """

    posterior: xr.DataTree
    groups: pd.DataFrame
    predictive: pd.DataFrame
    predictive_by_size: pd.DataFrame
    dispersion: Dispersion
    margins: pd.DataFrame
    utility: Utility
    risk: IntruderRisk
    worst: IntruderRisk
    repeats: pd.DataFrame
    by_datasets: pd.DataFrame
    classes: dict[str, pd.DataFrame]
    tradeoff: pd.DataFrame
    combined: CombinedTotals | None = None
    choice: Choice | None = None
    kept: KeptTotals | None = None
    uses: FlowUses | None = None
    distinguished: Distinguished | None = None
    base_gain: float = 0.0

    @property
    def keeps_totals(self) -> bool:
        """Whether totals of the release are exactly those of the table, because they were kept."""
        return self.kept is not None and bool(self.kept.sides) and self.kept.base == 1

    @property
    def none_kept(self) -> bool:
        """Whether as many totals as possible were to be kept, and none could be."""
        return self.kept is not None and not self.kept.sides

    @property
    def scenarios(self) -> list[IntruderRisk]:
        """The intruder asked for and, where it is another one, the worst case."""
        known = {self.risk.knowledge, self.worst.knowledge}
        return [self.risk] if len(known) == 1 else [self.risk, self.worst]

    def _title(self) -> str:
        return "What was measured about the release: confidential"

    def _facts(self) -> list[Fact]:
        risk = self.risk
        return [
            ("R_all", risk.r_all, risk.r_all.definition),
            ("R_unq", risk.r_unq, risk.r_unq.definition),
            (
                "error of totals",
                f"{self.utility.totals_error:.1%}",
                "by area, relative to the sum of their small counts",
            ),
        ]

    def lines(self) -> list[str]:
        """Return the main numbers of a run, one per line, for the console; confidential."""
        risk, worst = self.risk, self.worst
        unique = f"R_unq ({risk.unique})"
        others = {name: self._other_releases(name) for name in ("r_all", "r_unq")}
        if len(self.scenarios) == 1:
            shares = [
                f"R_all: {risk.r_all}; {others['r_all']}",
                f"{unique}: {risk.r_unq}; {others['r_unq']}",
            ]
        else:  # the spread is that of the worst case
            shares = [
                f"R_all: {risk.r_all}",
                f"{unique}: {risk.r_unq}",
                f"R_all in the worst case: {worst.r_all}; {others['r_all']}",
                f"R_unq in the worst case: {worst.r_unq}; {others['r_unq']}",
            ]
        intruder = f"intruder: estimator {risk.estimator}, prior {risk.prior}, knows {risk.knows}"
        none = [NONE_KEPT] * self.none_kept
        more = [str(one) for one in (self.combined, self.choice) if one is not None]
        return [*gain_lines(worst.gains), intruder, *shares, str(self.utility), *more, *none]

    def _other_releases(self, measure: str) -> str:
        values = self.repeats[measure].dropna()
        spread = "undefined" if values.empty else f"{values.min():.1%} to {values.max():.1%}"
        return f"{len(self.repeats)} other releases: {spread}"


@dataclass(frozen=True, eq=False, repr=False)
class Protection(Result):
    """A release with all that was measured about it. Only ``release`` may leave the agency.

    Made by :func:`bayes_sdc.protect_flows`.

    Parameters
    ----------
    table : FlowTable
        The input.
    release : DataFrame
        The synthetic table: rows in the order of the input, and the columns of ``columns``.
    measured : Measured or None
        Posterior, diagnostics, risk and utility; None when the table has no small cells.
    checks : list of Check
        Verdicts.
    seconds : dict
        Wall time of each stage.
    columns : Selection
        The columns that are released, and those left out with the reason.
    audit : Audit or None
        What published totals reveal; None where none are published.
    with_totals : WithTotals or None
        What the intruder finds by combining the release with these totals; None without them.
    guarantee : Guarantee or None
        What is promised to everybody in a small cell; None without epsilon.
    own_area : {"protect", "withhold", "publish"}
        How the small counts of people who stayed were treated.
    """

    table: FlowTable
    release: pd.DataFrame
    measured: Measured | None
    checks: list[Check]
    seconds: dict[str, float]
    columns: Selection
    audit: Audit | None = None
    with_totals: WithTotals | None = None
    guarantee: Guarantee | None = None
    own_area: OwnArea = "protect"

    @property
    def stayed(self) -> int:
        """Small counts of people who stayed that are drawn or left blank: none where published.

        The request decides, not whether a drawn count is the true one; otherwise reports would tell
        that it is.
        """
        return 0 if self.own_area == "publish" else len(own_area_rows(self.table))

    @property
    def besides(self) -> int:
        """Rows that are not small cells and are not released as they are.

        Small counts of people who stayed, unless they are published, and those of too few people.
        """
        return self.stayed + len(self.table.withheld)

    @property
    def pinned(self) -> int:
        """Small cells with one possible count given the totals that the release keeps.

        They are released as they are, because no other table has these totals.
        """
        kept = None if self.measured is None else self.measured.kept
        return 0 if kept is None else int(pinned_by(self.table, kept).sum())

    @property
    def totals_merged(self) -> bool:
        """Whether some totals are kept in sum only."""
        kept = None if self.measured is None else self.measured.kept
        return kept is not None and len(kept.merged) > 0

    def _title(self) -> str:
        return f"Protection of {self.table.source}: confidential, but for the release"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [("small cells", f"{self.table.n_small:,}", "synthetic in the release")]
        if self.measured is not None:
            facts += self.measured._facts()
        return [*facts, *((check.name, check.verdict, check.reason) for check in self.checks)]

    def __repr__(self) -> str:
        found = ["no small cells"]
        if (measured := self.measured) is not None:
            r_all = or_undefined(measured.risk.r_all.value, ".1%")
            found = [f"R_all {r_all}", f"error of totals {measured.utility.totals_error:.1%}"]
        failed = [check.name for check in self.checks if check.verdict == "fail"]
        verdict = f"FAILED: {', '.join(failed)}" if failed else "no check failed"
        small = f"{self.table.n_small:,} small cells"
        return f"<Protection: {'; '.join([small, *found, verdict])}>"

    def summary(self) -> str:
        """Return what the command prints at the end of a run: verdicts, main numbers, time.

        Returns
        -------
        str
            Text for the console; confidential.
        """
        table, measured = self.table, self.measured
        besides, pinned = self.besides, self.pinned
        others = f"{besides:,} others, of people who stayed or too few, are synthetic or left blank"
        if measured is None:
            what = others if besides else "every count is released as it is"
            headline = f"{table.source}: no small cells; {what}"
            return "\n".join(summary_lines(headline, self.checks, [], self.seconds))
        headline = (
            f"{table.n_small - pinned:,} small cells in {table.cells['group'].nunique():,} groups "
            f"are synthetic; {table.n_read - table.n_small - besides:,} rows are as they were"
            + (f"; {pinned:,} small cells that kept totals pin are as they were too" * bool(pinned))
            + (f"; {others}" if besides else "")
        )
        lines = measured.lines()
        if self.guarantee is not None and self.guarantee.holds:  # otherwise the check says it
            lines = [f"guarantee: {self.guarantee.line()}", *lines]
        return "\n".join(summary_lines(headline, self.checks, lines, self.seconds))


def with_checks(protection: Protection, checks: Sequence[Check]) -> Protection:
    """Add checks, and what they say of the guarantee."""
    every = [check for check in protection.checks if check.key != CHECK] + list(checks)
    if protection.guarantee is None:
        return replace(protection, checks=every)
    found = protection.guarantee.ending(
        *(
            ENDING[check.key][1]
            for check in checks
            if check.key in ENDING and check.verdict in ENDING[check.key][0]
        ),
    )
    return replace(protection, guarantee=found, checks=[*every, found.check()])
