"""The intruder of a release that keeps totals, and who knows these totals.

An intruder who knows all other small counts subtracts them, and there is nothing to measure. The
strongest intruder with something to learn knows all but those of one cycle through the target
(:mod:`bayes_sdc.flows.intruder.totals.cycles`). One who knows no other small count, or a share of
them, fits the released table as if it were the true one: given the rates the true table and the
released one are independent draws with the same totals, so the probability of the release given the
totals cancels, and their probability of a count is that of this fit given the totals.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.propagation import make_system
from bayes_sdc.flows.audit.solve import solve
from bayes_sdc.flows.intruder.probabilities.bayes import (
    FitOfIntruder,
    ReleaseProbabilities,
    likelihood_of_release,
    posterior_of_counts,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.gain import Gain
from bayes_sdc.flows.intruder.probabilities.knowledge import backgrounds, share_known
from bayes_sdc.flows.intruder.probabilities.learning import gains_by_prior
from bayes_sdc.flows.intruder.probabilities.pareto import khat_threshold
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells, shares_of_counts
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.intruder.totals.cycles import (
    leave_out,
    log_weights,
    release_given_cycles,
    tables_along,
)
from bayes_sdc.flows.intruder.totals.given_totals import by_block
from bayes_sdc.flows.intruder.totals.search import Cycles, lone_cells, widest_cycles
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.model.truncated import log_probabilities, log_table
from bayes_sdc.flows.release.totals.bands import Band, band_of
from bayes_sdc.flows.release.totals.chances import chances
from bayes_sdc.flows.release.totals.draws import mixing
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.totals.margins import Margins
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells, thin
from bayes_sdc.flows.table.families import Family
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator

ALL_BUT_CYCLE, WITHIN = "all-but-cycle", "all-others, and totals to a base"
# draws of the posterior, and numbers that are kept from them
MOST_DRAWS, FEWEST_DRAWS, NUMBERS = 200, 20, 3e7
ROUNDS = 20  # known subsets that are tried, so that each cell is unknown in one of them
TIED = {5_000: 400, 1_000_000_000: 100}  # tables drawn of a block, by the number of cells


class OfTotals(NamedTuple):
    """What the intruder finds about all cells once they know the totals."""

    fits: list[FitOfIntruder]
    gains: Mapping[str, Gain]
    knowledge: str


def along_cycles(
    table: FlowTable,
    posterior: xr.DataTree,
    seen: np.ndarray,
    settings: RiskSettings,
    kept: KeptTotals,
    unique: np.ndarray,
) -> OfTotals:
    """Measure the intruder who knows the totals and all small counts but one cycle of them.

    Parameters
    ----------
    table, posterior
        The table and its posterior.
    seen : array of int, shape (dataset, cell)
        Released counts, from 0, all with these totals.
    settings : RiskSettings
        Prior, seed and cores.
    kept : KeptTotals
        What the release keeps.
    unique : array of bool, shape (cell,)
        Cells of R_unq.
    """
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    prepared = kept.mixing(cells.y)
    rng = generator(settings.seed, "cycles of the intruder")
    if prepared.band is None:
        cycles = widest_cycles(rng, prepared.graph, cells.y, cells.upper)
    else:
        cycles = cells_alone(prepared.band, cells.y, cells.upper)
    chains = posterior["posterior"].sizes["chain"]
    draws = draws_by_chain(rates.n_draws, chains, len(cells.y) * (cells.upper + 1), rng)
    with Progress(len(draws), f"tables with these totals for {len(draws)} draws") as progress:
        chance = chances(
            cells, rates, prepared, draws, seed=settings.seed, cores=settings.cores,
            advance=progress.advance,
        )  # fmt: skip
    weights = np.stack([_log_weights(cells, rates, int(at), cycles) for at in draws])
    found = release_given_cycles(weights, chance, cells.y, chains)
    release = ReleaseProbabilities(
        m=found.m,
        prediction=found.before,
        by_chain=np.stack([likelihood_of_release(one, seen) for one in found.by_chain]),
        khat=found.khat,
        ess=found.ess,
        threshold=khat_threshold(len(draws)),
        error=found.error,
        refitted=np.zeros(len(cells.y), dtype=bool),
    )
    priors = _priors_along(table, settings, found.before, cells.y, cycles)
    prior = priors["given" if "given" in priors else str(settings.prior)]
    likelihood = likelihood_of_release(release.m, seen)
    by_chain = np.stack([posterior_of_counts(one, prior) for one in release.by_chain])
    fit = FitOfIntruder(release, prior, posterior_of_counts(likelihood, prior), by_chain)
    gains = gains_by_prior(
        {name: [one] for name, one in priors.items()}, [likelihood], [release.by_chain],
        cells.y, unique=unique, labels=cells.cells,
        unreliable=unreliable_cells(release.khat, release.threshold, release.error), totals=True,
    )  # fmt: skip
    return OfTotals([fit], gains, ALL_BUT_CYCLE if prepared.band is None else WITHIN)


def draws_by_chain(
    available: int, chains: int, numbers: int, rng: np.random.Generator
) -> np.ndarray:
    """Choose draws, equally many of each chain, chain after chain; fewer for larger tables."""
    most = int(np.clip(NUMBERS / numbers, FEWEST_DRAWS, MOST_DRAWS))
    length = available // chains
    each = max(min(most // chains, length), 1)
    start = int(rng.integers(length))
    within = (start + np.arange(each) * length // each) % length
    return np.asarray((np.arange(chains)[:, None] * length + np.sort(within)).ravel())


def cells_alone(band: Band, y: np.ndarray, upper: int) -> Cycles:
    """Each cell by itself, and how far it can change within the bounds of its totals."""
    room = []
    for of, bounds in ((band.graph.left, band.left), (band.graph.right, band.right)):
        sums = np.bincount(of, y, len(bounds)).astype(np.int64)
        room.append((bounds - sums[:, np.newaxis])[of])
    low = np.maximum.reduce([-y, *(one[:, 0] for one in room)])
    high = np.minimum.reduce([upper - y, *(one[:, 1] for one in room)])
    return lone_cells(low, high)


def _log_weights(cells: SmallCells, rates: Rates, draw: int, cycles: Cycles) -> np.ndarray:
    log_rate, rungs = rates.at(cells, draw)
    table = log_table(log_rate, cells.group, rungs)
    return np.asarray(log_weights(table, cells.y, cycles))


def _priors_along(
    table: FlowTable, settings: RiskSettings, model: np.ndarray, y: np.ndarray, cycles: Cycles
) -> dict[str, np.ndarray]:
    """Prior of the tables along the cycle of each cell, by name."""
    width = model.shape[1]
    priors = {
        "uniform": tables_along(np.ones(width), y, cycles),
        "shape": tables_along(shares_of_counts(table), y, cycles),
        "model": model,
    }
    if not isinstance(settings.prior, str):
        given = prior_of_cells(settings.prior, table, None) * (priors["uniform"] > 0.0)
        if (given.sum(axis=1) <= 0.0).any():
            cell = table.cells.index[int(np.argmin(given.sum(axis=1)))]
            raise InputError(
                f"prior: rules out every count of cell {cell!r} that the totals leave; give it "
                "some weight"
            )
        priors["given"] = given / given.sum(axis=1, keepdims=True)
    return priors


def without_others(
    table: FlowTable,
    posterior: xr.DataTree,
    seen: np.ndarray,
    settings: RiskSettings,
    kept: KeptTotals,
    unique: np.ndarray,
) -> OfTotals:
    """Measure the intruder who knows the totals and none or a share of the small counts.

    The evidence of the release about a count is its probability by a fit to the release given the
    totals, relative to that without the released count of the cell itself.

    Parameters
    ----------
    table, posterior, seen, settings, kept, unique
        As for :func:`along_cycles`.
    """
    cells = fitted_cells(table, posterior)
    fits: list[FitOfIntruder] = []
    before: dict[str, list[np.ndarray]] = {}
    likelihoods: list[np.ndarray] = []
    for number, background in enumerate(backgrounds(table, posterior, seen, settings)):
        fitted, counts = background()
        found, told, likelihood = _of_fit(cells, fitted, counts, settings, kept)
        priors = {"model": told}
        for name in ("uniform", "shape"):
            even = prior_of_cells(name, table, None)
            priors[name] = tied(kept, even, cells.y, settings, seed=_seed(settings, name, number))
        asked = str(settings.prior) if isinstance(settings.prior, str) else "given"
        if asked == "given":
            given = prior_of_cells(settings.prior, table, None)
            priors[asked] = tied(
                kept, given, cells.y, settings, seed=_seed(settings, asked, number)
            )
        for name, prior in priors.items():
            before.setdefault(name, []).append(prior)
        by_chain = np.stack([posterior_of_counts(one, priors[asked]) for one in found.by_chain])
        rho = posterior_of_counts(likelihood, priors[asked])
        fits.append(FitOfIntruder(found, priors[asked], rho, by_chain))
        likelihoods.append(likelihood)
    founds = [fit.found for fit in fits]
    bad = np.any([unreliable_cells(f.khat, f.threshold, f.error) for f in founds], axis=0)
    gains = gains_by_prior(
        before, likelihoods, [fit.found.by_chain for fit in fits], cells.y,
        unique=unique, labels=cells.cells, unreliable=bad, totals=True,
    )  # fmt: skip
    share = settings.share
    knowledge = settings.knowledge if share is None else f"share of {share:g}"
    return OfTotals(fits, gains, f"{knowledge}, and the totals that the release keeps")


def _seed(settings: RiskSettings, name: str, number: int) -> int:
    rng = generator(settings.seed, "tied by totals", name, f"{number}")
    return int(rng.integers(2**62))


LEAST = 1e-6  # probability given to counts that were never drawn


def _of_fit(
    cells: SmallCells,
    fitted: xr.DataTree,
    counts: np.ndarray,
    settings: RiskSettings,
    kept: KeptTotals,
) -> tuple[ReleaseProbabilities, np.ndarray, np.ndarray]:
    """One fit: release probabilities, the model's prediction, and the log-likelihood of a count."""
    rates, chains = rates_by_draw(fitted), fitted["posterior"].sizes["chain"]
    rng = generator(settings.seed, "draws of the intruder's fit")
    draws = draws_by_chain(rates.n_draws, chains, len(counts) * (cells.upper + 1), rng)
    chance = _unknown_chances(cells, rates, kept, draws, settings)
    alone = lone_cells(-counts, cells.upper - counts)
    weights = np.stack(
        [_log_weights(cells._replace(y=counts), rates, int(h), alone) for h in draws]
    )
    found = release_given_cycles(weights, chance, counts, chains)
    own = np.stack([_log_own(cells, rates, int(at), counts) for at in draws])
    told, khat = leave_out(own, chance)
    after = np.stack([part.mean(axis=0) for part in np.array_split(chance, chains)])
    by_chain = np.log((after + LEAST) / (told + LEAST))
    release = ReleaseProbabilities(
        m=found.m,
        prediction=told,
        by_chain=by_chain,
        khat=np.tile(khat[:, None], (1, cells.upper + 1)),
        ess=found.ess,
        threshold=khat_threshold(len(draws)),
        error=found.error,
        refitted=np.zeros(len(counts), dtype=bool),
    )
    return release, told, np.log((chance.mean(axis=0) + LEAST) / (told + LEAST))


def _log_own(cells: SmallCells, rates: Rates, draw: int, counts: np.ndarray) -> np.ndarray:
    """Log-probability of the released counts in one draw: (cell,)."""
    log_rate, rungs = rates.at(cells, draw)
    return np.asarray(log_probabilities(counts.astype(float), log_rate, cells.group, rungs))


def _unknown_chances(
    cells: SmallCells, rates: Rates, kept: KeptTotals, draws: np.ndarray, settings: RiskSettings
) -> np.ndarray:
    """Chances of the counts of each cell given the totals and the cells that are known."""
    result = np.zeros((len(draws), len(cells.y), cells.upper + 1), np.float32)
    asked = np.zeros(len(cells.y), dtype=bool)
    margins = kept.margins(cells.y)
    for number, known in enumerate(known_in_turn(len(cells.y), settings)):
        hidden = np.flatnonzero(~known)
        if len(hidden) == 0:
            continue
        ends = [np.unique(of[hidden], return_inverse=True) for of in margins[:2]]
        inside = [of for _, of in ends]
        sums = [np.bincount(of, cells.y[hidden]).astype(np.int64) for of in inside]
        band = None
        if kept.base > 1:  # subtract what is known
            left = [
                (of - whole[:, np.newaxis])[blocks] + part[:, np.newaxis]
                for of, whole, (blocks, _), part in zip(
                    kept.bounds(cells.y), margins[2:], ends, sums, strict=True
                )
            ]
            band = band_of(*inside, *left)
        found = chances(
            thin(cells, ~known), rates, mixing(Margins(*inside, *sums), band), draws,
            seed=_seed(settings, "chances", number), cores=settings.cores,
        )  # fmt: skip
        new = ~asked[hidden]
        result[:, hidden[new]] = found[:, new]
        asked[hidden] = True
    return result


def tied(
    kept: KeptTotals, weight: np.ndarray, y: np.ndarray, settings: RiskSettings, *, seed: int
) -> np.ndarray:
    """Probability of each count of each cell given the totals and the cells that are known.

    A cell is never among the known ones when its own count is asked for: with a share, the known
    ones change until each cell was unknown once.

    Parameters
    ----------
    kept : KeptTotals
        The totals.
    weight : array of float, shape (cell, count)
        Probabilities cell by cell.
    y : array of int, shape (cell,)
        True counts, from 0.
    settings : RiskSettings
        Knowledge and share.
    seed : int
        Of tables that are drawn.

    Returns
    -------
    array of float, shape (cell, count)
        Rows sum to one.
    """
    result, asked = np.zeros(weight.shape), np.zeros(len(y), dtype=bool)
    for number, known in enumerate(known_in_turn(len(y), settings)):
        found = _tied(kept, weight, y, known, seed + number)
        new = ~known & ~asked
        result[new] = found[new]
        asked |= new
    return result


def known_in_turn(n: int, settings: RiskSettings) -> list[np.ndarray]:
    """Several sets of known cells, so that each cell is unknown in one of them: (cell,) of bool."""
    share = settings.share or 0.0
    rounds = int(np.ceil(1.0 / max(1.0 - share, 1e-9) - 1e-9))
    if rounds > ROUNDS:
        raise InputError(
            f"share must be at most {1 - 1 / ROUNDS:g} where totals are kept; it is {share}"
        )
    return [share_known(n, settings, shift=k * (1.0 - share)) for k in range(rounds)]


def _tied(
    kept: KeptTotals, weight: np.ndarray, y: np.ndarray, known: np.ndarray, seed: int
) -> np.ndarray:
    """Tie the cells that are not known."""
    margins = kept.margins(y)
    bounds = kept.bounds(y)
    families = [
        Family(side.name, [""] * len(within), of.astype(np.int64), within[:, 0], within[:, 1])
        for side, of, within in zip(kept.sides, margins[:2], bounds, strict=False)
    ]
    hidden = ~known
    n, upper = int(hidden.sum()), weight.shape[1] - 1
    if n == 0:
        return weight
    system = make_system(y, hidden, np.zeros(n, np.int64), np.full(n, upper, np.int64), families)
    solved = solve(system, y[hidden])
    counts = np.arange(upper + 1)
    inside = (solved.lower[:, None] <= counts) & (counts <= solved.upper[:, None])
    cut = np.where(inside, np.maximum(weight[hidden], 1e-300), 0.0)
    cut /= cut.sum(axis=1, keepdims=True)
    draws = next(number for size, number in TIED.items() if n <= size)
    result = weight.copy()
    result[hidden] = by_block(system, solved, cut, 0, draws, seed)[0]
    return result
