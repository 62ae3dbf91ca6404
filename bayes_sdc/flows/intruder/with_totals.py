"""What the intruder of a job finds by combining the release with published totals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import covered_cells
from bayes_sdc.flows.intruder.probabilities.knowledge import known_cells
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.totals.given_totals import GivenTotals, given_families
from bayes_sdc.flows.table.families import Family
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.results import Fact, Result, or_undefined

MOST_CELLS = 1000  # small cells up to which a job sums or draws tables: a minute or so


@dataclass(frozen=True, eq=False, repr=False)
class WithTotals(Result):
    """Release and published totals together; made by :func:`bayes_sdc.protect_flows`.

    Confidential.

    Parameters
    ----------
    words
        One sentence for the internal report.
    before, after
        Mean probability of the true count of the cells that the intruder does not know, given the
        release alone, and given the totals too; None where it was not computed.
    given
        The probabilities; None where they were not computed.
    """

    words: str
    before: float | None = None
    after: float | None = None
    given: GivenTotals | None = None

    def _title(self) -> str:
        return "Release and published totals together: confidential"

    def _facts(self) -> list[Fact]:
        return [
            ("before", or_undefined(self.before, ".1%"), "mean probability of the true count"),
            ("after", or_undefined(self.after, ".1%"), "the same given the totals too"),
        ]

    def _remarks(self) -> list[str]:
        return [self.words]


def with_totals(
    table: FlowTable,
    risk: IntruderRisk,
    settings: RiskSettings,
    families: Sequence[Family],
) -> WithTotals:
    """Combine what the intruder of a job knows with the published totals, where that is cheap.

    Parameters
    ----------
    table : FlowTable
        The true table.
    risk : IntruderRisk
        Of the intruder asked for.
    settings : RiskSettings
        What was asked for: knowledge, share and seed.
    families : sequence of Family
        What is published beside, or was kept by an earlier release.
    """
    cells = table.n_small
    if settings.knowledge == "all-others":
        covered = covered_cells(families, table.cells["row"].to_numpy(np.int64))
        return WithTotals(
            "Anyone who knows all other small counts subtracts them from the totals: "
            f"{covered:,} of {cells:,} cells are then known exactly, with or without "
            "the release."
        )
    if cells > MOST_CELLS:
        return WithTotals(
            "What the release and the totals tell together was not computed: of more than "
            f"{MOST_CELLS:,} small cells it takes too long."
        )
    truth = np.arange(table.n_small), table.cells["y"].to_numpy(np.intp)
    known = known_cells(table.n_small, settings)
    probability = risk.rho.copy(data=risk.rho.to_numpy().copy())
    probability.data[known] = 0.0
    probability.data[truth[0][known], truth[1][known]] = 1.0
    try:
        given = given_families(probability, table, families, seed=settings.seed)
    except InputError as error:
        return WithTotals(f"What the release and the totals tell together is undefined: {error}.")
    if known.all():
        return WithTotals("The intruder knows every small count.", given=given)
    before, after = (
        float(each.to_numpy()[truth][~known].mean()) for each in (probability, given.probability)
    )
    how = given.how.to_numpy()[~known]
    kinds = {"exact": "by exact sums", "drawn": "by drawn tables", "bounds": "cut at bounds only"}
    shares = ", ".join(f"{int((how == k).sum()):,} {w}" for k, w in kinds.items() if k in how)
    off = float(given.error.to_numpy()[~known].max())
    return WithTotals(
        f"The true count has probability {before:.1%} on average given the release, and "
        f"{after:.1%} given the totals too ({shares}"
        + (f"; Monte Carlo error of a cell at most {off:.1%}" if off else "")
        + ").",
        before,
        after,
        given,
    )
