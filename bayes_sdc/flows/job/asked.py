"""What the job is asked for; what cannot be done is refused before the fit."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fitting import Weighting, check_weighting
from bayes_sdc.flows.forecast import forecast_job
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.intruder.comparing.tradeoff import METHODS
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.intruder.totals.keeping import LIMIT
from bayes_sdc.flows.kept_columns.selection import Selection
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea, check_own_area
from bayes_sdc.flows.release.synthetic.synthesis import refuse_column_named_dataset
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.policy import Policy

MOST_DATASETS, COMPARED_DATASETS = 20, 10  # data sets up to which the risk is measured
FEW = 5  # releases over which it is measured


@dataclass(frozen=True)
class Job:
    """What :func:`bayes_sdc.protect_flows` is asked for."""

    sampling: Sampling
    asked: RiskSettings  # the intruder asked for
    datasets: int
    releases: int
    candidates: int
    policy: Policy | None
    columns: Selection
    own_area: OwnArea
    totals_kept: str | Sequence[str] = ()
    totals_base: int = 1
    kept_limit: float = LIMIT
    pinned_allowed: bool = False
    distance: Sequence[float] | None = None
    weighting: Weighting = field(default_factory=Weighting)

    @property
    def worst(self) -> RiskSettings:
        """The same for the intruder who knows all other cells."""
        return replace(self.asked, knowledge="all-others", share=None)

    @property
    def kept(self) -> int:
        """Posterior draws that are kept."""
        return self.sampling.draws * self.sampling.chains

    @property
    def compared(self) -> int:
        """Data sets up to which other protections are compared."""
        return min(COMPARED_DATASETS, self.kept)

    def check(self, table: FlowTable) -> None:
        """Refuse what would fail only after the fit."""
        if self.datasets > 1:
            refuse_column_named_dataset(table)
        if not 1 <= self.datasets <= self.kept:
            raise InputError(
                f"datasets must be from 1 to the number of posterior draws, {self.kept}; it is "
                f"{self.datasets}"
            )
        for name in ("releases", "candidates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; it is {getattr(self, name)}")
        self.asked.check(table)
        check_own_area(self.own_area)
        keeps = self._check_kept()
        if keeps and self.sampling.bound is not None:
            raise InputError(
                "totals_kept: totals contain small counts, and with epsilon the guarantee would "
                "end; leave one of the two out"
            )
        if keeps and self.sampling.impossible:
            raise InputError(
                "impossible: counts are moved by one where totals are kept, and so pass through "
                "those that are excluded; leave one of the two out (--impossible, --totals-kept)"
            )
        if self.totals_kept != "auto" and table.n_small:
            kept_by_name(table, self.totals_kept, base=self.totals_base)
        if keeps and self.candidates > 1:
            raise InputError(
                "candidates are compared by the error of their totals, and where totals are kept "
                "it is 0; draw one release"
            )
        check_weighting(table, self.sampling, self.weighting)
        exactly = self.asked.refits > 0 or self.asked.estimator == "refit"
        if self.weighting.weights is not None and (keeps or exactly):
            raise InputError(
                "weights: the risk given kept totals, and that by refits, is not worked out for "
                "weighted cells; leave one of the two out"
            )
        if self.policy is not None:
            self.policy.for_flows()  # refuses one without limits for flows

    def _check_kept(self) -> bool:
        """Refuse what is said of kept totals where none are kept; return whether some are."""
        if not 0.0 < self.kept_limit <= 1.0:
            raise InputError(f"kept_limit must be above 0 and at most 1; it is {self.kept_limit}")
        if self.totals_base < 1:
            raise InputError(f"totals_base must be 1 or more; it is {self.totals_base}")
        keeps = self.totals_kept not in ((), [], "", "none")
        for name, said in (
            ("totals_base", self.totals_base > 1),
            ("kept_limit", self.kept_limit != LIMIT),
            ("pinned_allowed", self.pinned_allowed),
        ):
            if said and not keeps:
                raise InputError(
                    f"{name} belongs to totals_kept: give both of them, or neither "
                    f"(--{name.replace('_', '-')}, --totals-kept)"
                )
        return keeps

    def forecast(self, table: FlowTable) -> dict[str, float | None]:
        """Seconds of each stage, None where they cannot be forecast."""
        several = self.candidates > 1
        chosen_among = self.candidates * self.datasets * (self.releases + 1)
        return forecast_job(
            small_cells(table, covariates=self.sampling.covariates),
            self.sampling,
            estimator=self.asked.estimator,
            passes=1 + several + self.weighting.by_risk,
            fits=1 + self.weighting.by_risk,
            scenarios=0 if self.asked.knowledge == "all-others" else self.datasets,
            refits=self.asked.refits,
            datasets=self.datasets * self.releases
            + min(MOST_DATASETS, self.kept) * min(self.releases, FEW)
            + several * chosen_among,
            compared=METHODS * self.compared,
        )


def check_needed(
    table: FlowTable,
    *,
    keep: Collection[str],
    already_released: Sequence[object],
    released_epsilon: Sequence[float],
    epsilon: float | None,
) -> None:
    """Refuse what would be taken and forgotten, because it belongs to something else."""
    roles = (table.origin, table.destination, table.count, *table.groups)
    if anyway := [name for name in roles if name in keep]:
        raise InputError(
            f"keep: column {anyway[0]!r} is released anyway, being origin, destination, count or "
            "group; leave it out (--keep)"
        )
    if len(released_epsilon) > len(already_released):
        raise InputError(
            f"released_epsilon: {len(released_epsilon)} numbers for {len(already_released)} "
            "earlier releases; give one for each of already_released"
        )
    if wrong := [one for one in released_epsilon if not (math.isfinite(one) and one > 0.0)]:
        raise InputError(
            f"released_epsilon: an epsilon must be a number above 0; {wrong[0]} is none. Give that "
            "of each earlier release, of all its data sets together (--released-epsilon), and "
            "leave it out where it had none"
        )
    if epsilon is not None and table.n_small == 0:
        raise InputError(
            f"{table.source}: epsilon bounds the model of the small counts between areas, and "
            f"there are none from {table.low} to {table.high}; leave epsilon out (--epsilon): the "
            "rest of the release has no promise"
        )
    if len(released_epsilon) and epsilon is None:
        raise InputError(
            "released_epsilon belongs to epsilon: give both of them, or neither "
            "(--released-epsilon, --epsilon)"
        )
