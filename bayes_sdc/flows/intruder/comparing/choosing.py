"""Choosing among several releases: the most useful one within the limits of a policy.

Whoever chooses looks at the true table, so the choice itself says something about it: for an area
with few small cells, close totals mean close counts. The intruder of
:mod:`bayes_sdc.flows.intruder.measure` does not use that, and the risk of the winner alone does not
show the luck of the draw. So the whole procedure, drawing the candidates and choosing, is repeated,
and the risk of its winners is reported. That includes the risk of simply believing them, which
grows with the number of candidates where areas have few small cells.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.agency_limits import FlowLimits
from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.comparing.repeats import check_repeatable
from bayes_sdc.flows.intruder.probabilities.bayes import (
    MEASURES,
    likelihood_of_release,
    measures,
    posterior_of_counts,
)
from bayes_sdc.flows.intruder.probabilities.learning import (
    mean_bits,
    probability_of_truth,
    pushed_over,
)
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.summarize import unique_cells
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea
from bayes_sdc.flows.release.synthetic.synthesis import draw_datasets, release_of
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells, impossible_of, under_rule
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.results import Fact, Result
from bayes_sdc.seeds import generator, seed_or_fresh

GAINS = ("gain_bits", "pushed_over_80")  # limits on what a release adds


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Result):
    """The chosen release, and confidentially the candidates and the risk of the procedure.

    Made by :func:`bayes_sdc.choose_release`.

    Parameters
    ----------
    release : DataFrame
        The chosen one.
    candidates : DataFrame
        One row per candidate: its risk (r_all, r_unq, mean_distance, mean and largest probability
        of the true count, and believes_release: share of cells released as they are), totals_error
        (as in :class:`bayes_sdc.Utility`), what it adds for the strongest intruder (gain_bits and
        pushed_over_80, as in :class:`bayes_sdc.FlowLimits`), within_limits and chosen.
    procedure : DataFrame
        The risk of the winner in independent repetitions of the whole procedure: the same measures.
    """

    release: pd.DataFrame
    candidates: pd.DataFrame
    procedure: pd.DataFrame

    def __str__(self) -> str:
        """Say how choosing changes the estimate of the risk."""
        winner = self.candidates[self.candidates["chosen"]].iloc[0]
        within = int(self.candidates["within_limits"].sum())
        mean = self.procedure["r_all"].mean()
        believed = self.procedure["believes_release"].mean()
        largest = self.procedure["largest_probability"]
        low, high = self.procedure["r_all"].min(), self.procedure["r_all"].max()
        return (
            f"chosen from {len(self.candidates)} candidates, {within} of them within the limits, "
            f"for the smallest error of totals; its R_all is {winner['r_all']:.1%}, and over "
            f"{len(self.procedure)} repetitions of drawing and choosing the winner's R_all is "
            f"{mean:.1%} on average ({low:.1%} to {high:.1%}): judge the procedure by the latter. "
            "The largest probability of the true count of a cell is "
            f"{winner['largest_probability']:.1%}, and {largest.mean():.1%} on average "
            f"({largest.min():.1%} to {largest.max():.1%}). "
            f"The winner's counts are the true ones in {believed:.1%} of the cells on average. "
            "The intruder is assumed not to use that a release with good "
            "totals was selected"
        )

    def _title(self) -> str:
        return "Choice of a release: confidential, but for the release"

    def _facts(self) -> list[Fact]:
        winner = self.candidates[self.candidates["chosen"]].iloc[0]
        again = self.procedure["r_all"]
        spread = f"{again.mean():.1%} ({again.min():.1%} to {again.max():.1%})"
        return [
            (
                "candidates",
                f"{len(self.candidates):,}",
                f"{int(self.candidates['within_limits'].sum()):,} of them within the limits",
            ),
            ("R_all of the chosen one", f"{winner['r_all']:.1%}", "flattered by the choice"),
            ("R_all of the procedure", spread, f"mean and range over {len(again)} repetitions"),
            ("error of totals", f"{winner['totals_error']:.1%}", "of the chosen one, by area"),
        ]

    def _remarks(self) -> list[str]:
        return [
            "judge by the risk of the procedure",
            "the intruder is assumed not to use the choice",
        ]


@checked
def choose_release(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    limits: FlowLimits | None = None,
    *,
    candidates: int,
    datasets: int = 1,
    repetitions: int = 20,
    own_area: OwnArea = "protect",
    seed: int | None = None,
) -> Choice:
    """Draw several releases, drop those beyond the limits, and keep the one with the best totals.

    When every candidate is beyond a limit, the one with the best totals is kept: the limits are
    judged again on what is released.

    Parameters
    ----------
    table, posterior
        The table and its posterior.
    risk : IntruderRisk
        Of any release of this table and posterior, all cells, with knowledge "all-others".
    limits : FlowLimits, optional
        A candidate is dropped when a measure is above (>) its limit; by default none is.
    candidates : int
        Number K of releases to draw.
    datasets : int
        Data sets in each.
    repetitions : int
        Repetitions of the procedure, to measure its risk.
    own_area : {"protect", "withhold", "publish"}
        As for :func:`bayes_sdc.synthesize`.
    seed : int, optional
        Confidential, as for :func:`bayes_sdc.synthesize`. By default a fresh one.

    Returns
    -------
    Choice

    Raises
    ------
    InputError
        If a number is below 1, or ``risk`` is not of this table's cells.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.intruder_risk, bayes_sdc.risk_utility, bayes_sdc.FlowLimits

    References
    ----------
    S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section
    3, for the measures of risk.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import choose_release, fit_flows, intruder_risk, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> choice = choose_release(table, posterior, risk, candidates=4, seed=3)
    >>> best = choice.candidates["totals_error"].min()
    >>> bool(choice.candidates.loc[choice.candidates["chosen"], "totals_error"].item() == best)
    True
    """
    seed = seed_or_fresh(seed)
    numbers = {"candidates": candidates, "repetitions": repetitions, "datasets": datasets}
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1; it is {value}")
    check_repeatable(table, posterior, risk)
    table = under_rule(table, impossible_of(posterior.attrs))
    if risk.kept is not None:
        raise InputError(
            "candidates are compared by the error of their totals, and where totals are kept it is "
            "0; draw one release"
        )
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    released, frame = _round(table, cells, rates, risk, limits, candidates, datasets, seed, 0)
    winners = []
    for number in range(1, repetitions + 1):
        _, other = _round(table, cells, rates, risk, limits, candidates, datasets, seed, number)
        winners.append(other[other["chosen"]].iloc[0])
    measured = [*MEASURES, "largest_probability", "believes_release", *GAINS]
    procedure = pd.DataFrame(winners)[measured]
    procedure = procedure.astype(float)
    return Choice(
        release=release_of(
            table, released[int(np.argmax(frame["chosen"]))], own_area=own_area, seed=seed
        ),
        candidates=frame,
        procedure=procedure.set_index(pd.RangeIndex(1, repetitions + 1, name="repetition")),
    )


def _round(
    table: FlowTable,
    cells: SmallCells,
    rates: Rates,
    risk: IntruderRisk,
    limits: FlowLimits | None,
    candidates: int,
    datasets: int,
    seed: int,
    number: int,
) -> tuple[list[np.ndarray], pd.DataFrame]:
    """Draw the candidates of one repetition, measure them, and mark the winner."""
    rng = generator(seed, "candidate releases", str(number))
    unique = unique_cells(table, risk.unique)
    m, prior = risk.release_probability.to_numpy(), risk.prior_probability.to_numpy()
    earlier = risk.earlier_likelihood
    told = risk.strongest.prior  # by name: their prior does not depend on the release
    expected = prior if told == "given" else prior_of_cells(told, table, risk.prediction.to_numpy())
    areas = [pd.factorize(table.cells[side])[0] for side in ("origin", "destination")]
    released, rows = [], []
    for _ in range(candidates):
        counts = draw_datasets(cells, rates, datasets, rng)
        likelihood = likelihood_of_release(m, counts) + earlier
        rho = posterior_of_counts(likelihood, prior)
        at_truth = probability_of_truth(posterior_of_counts(likelihood, expected), cells.y)
        known = probability_of_truth(expected, cells.y)
        released.append(counts)
        rows.append(
            {
                **measures(rho, cells.y, unique),
                "largest_probability": rho[np.arange(len(rho)), cells.y].max(),
                "believes_release": (counts[0] == cells.y).mean(),
                "totals_error": _totals_error(
                    areas, cells.y + table.low, counts.mean(axis=0) + table.low
                ),
                "gain_bits": mean_bits(known, at_truth),
                "pushed_over_80": pushed_over(known, at_truth, 0.8),
            }
        )
    frame = pd.DataFrame(rows, index=pd.RangeIndex(1, candidates + 1, name="candidate"))
    beyond = np.zeros(candidates, dtype=bool)
    if limits is not None:
        for column, limit in {
            "r_all": limits.r_all,
            "r_unq": limits.r_unq,
            "largest_probability": limits.true_count_probability,
            "gain_bits": limits.gain_bits,
            "pushed_over_80": limits.pushed_over_80,
        }.items():
            if limit is not None:
                beyond |= (frame[column] > limit).to_numpy()
    # candidates within the limits first, then by totals
    rank = frame["totals_error"].to_numpy() + np.where(beyond, 1e6, 0.0)
    frame["within_limits"] = ~beyond
    frame["chosen"] = np.arange(candidates) == int(np.argmin(rank))
    return released, frame


def _totals_error(areas: list[np.ndarray], true: np.ndarray, synthetic: np.ndarray) -> float:
    """Absolute error of the areas' totals in both directions, relative to all of them.

    Like that of :class:`bayes_sdc.Utility`, which measures much more.
    """
    errors = [np.abs(np.bincount(side, synthetic - true)).sum() for side in areas]
    return float(np.mean(errors) / true.sum())
