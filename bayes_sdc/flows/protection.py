"""What protecting a table gives: the release, and all that was measured about it."""

from dataclasses import dataclass, field

import pandas as pd
import xarray as xr

from bayes_sdc.checks import Check
from bayes_sdc.flows.audit.audit import Audit
from bayes_sdc.flows.diagnostics import Dispersion
from bayes_sdc.flows.intruder.choosing import Choice
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.kept_columns.selection import Selection
from bayes_sdc.flows.release.combining import CombinedTotals
from bayes_sdc.flows.release.utility import Utility
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.html import facts_table


@dataclass(frozen=True, eq=False)
class Measured:
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
        :func:`bayes_sdc.flows.release.predictive.predictive_counts_by_size`.
    dispersion : Dispersion
        :func:`bayes_sdc.flows.diagnostics.dispersion`.
    margins : DataFrame
        :func:`bayes_sdc.flows.release.utility.margins`.
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
    """

    posterior: xr.DataTree = field(repr=False)
    groups: pd.DataFrame = field(repr=False)
    predictive: pd.DataFrame = field(repr=False)
    predictive_by_size: pd.DataFrame = field(repr=False)
    dispersion: Dispersion
    margins: pd.DataFrame = field(repr=False)
    utility: Utility
    risk: IntruderRisk
    worst: IntruderRisk
    repeats: pd.DataFrame = field(repr=False)
    by_datasets: pd.DataFrame = field(repr=False)
    classes: dict[str, pd.DataFrame] = field(repr=False)
    tradeoff: pd.DataFrame = field(repr=False)
    combined: CombinedTotals | None = None
    choice: Choice | None = None


@dataclass(frozen=True, eq=False)
class Protection:
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
        What the totals that are published tell; None if none is.
    """

    table: FlowTable
    release: pd.DataFrame = field(repr=False)
    measured: Measured | None
    checks: list[Check]
    seconds: dict[str, float]
    columns: Selection
    audit: Audit | None = None

    def _repr_html_(self) -> str:
        """Show risk, utility and verdicts in a notebook."""
        facts: list[tuple[str, object, str]] = [
            ("small cells", f"{self.table.n_small:,}", "synthetic in the release")
        ]
        if self.measured is not None:
            risk, utility = self.measured.risk, self.measured.utility
            facts += [
                ("R_all", risk.r_all, risk.r_all.definition),
                ("R_unq", risk.r_unq, risk.r_unq.definition),
                (
                    "error of totals",
                    f"{utility.totals_error:.1%}",
                    "by area, relative to the sum of their small counts",
                ),
            ]
        facts += [(check.name, check.verdict, check.reason) for check in self.checks]
        return facts_table(
            f"Protection of {self.table.source}: confidential, but for the release", facts
        )
