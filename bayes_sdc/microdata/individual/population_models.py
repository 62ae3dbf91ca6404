"""What each model of the population says of the combinations, and draws of the totals by it.

Each function stands for one model and returns the same: the risk of every combination with its
intervals, and the draws of alpha and beta from which totals over the file are simulated.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.goodness import UNLIKELY, prior_test, shape_test
from bayes_sdc.microdata.individual.inclusion import draw_inclusion, uncertain_risk
from bayes_sdc.microdata.individual.intervals import (
    known_interval,
    shared_interval,
    uncertain_interval,
    uncertain_risk_interval,
)
from bayes_sdc.microdata.individual.shared_rates import expected_alone, shared_risk
from bayes_sdc.microdata.posterior.sampling import Learned, mean_error, thinned_draws

INTEGRATED_DRAWS = 200  # of alpha and beta, for the risk of single combinations
INTERVAL_DRAWS = 32  # of these, for the distribution of F of single combinations
AT_ONCE = 1_000_000  # of combinations times draws, by thread
LEAST = 1e-9  # probability that is written; below it the approximation behind it says nothing
GIVEN = "rates with the prior 1/rate"

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Combinations(NamedTuple):
    """What the models are told of the combinations: arrays of shape (combination,)."""

    f: Integers  # sample frequencies
    p: Floats  # probabilities to be in the sample
    records: Integers  # records that have each of them


class Modelled(NamedTuple):
    """What a model says."""

    risk: Floats  # (combination,)
    risk_interval: Floats  # (combination, 2)
    inverse_interval: Floats  # (combination, 2)
    shape: Floats  # alpha by draw
    rate: Floats  # beta by draw
    tau1: float | None  # expected; None where only draws tell
    errors: tuple[float, float] = (0.0, 0.0)  # Monte Carlo errors of both sums of 1 / F
    spread: Floats | None = None  # relative standard deviation of p
    posterior: xr.DataTree | None = None
    converged: bool = True
    trusted: bool = True
    notes: tuple[str, ...] = ()


def known(cells: Combinations, draws: int) -> Modelled:
    """Prior 1/rate for each combination, p known."""
    risk = individual_risk(cells.f, cells.p)
    doubts = _doubts(GIVEN, cells, prior_test(cells.f))
    return Modelled(
        risk=risk,
        risk_interval=np.column_stack([risk, risk]),
        inverse_interval=known_interval(cells.f, cells.p),
        shape=np.zeros(draws),
        rate=np.zeros(draws),
        tau1=float(cells.p[cells.f == 1].sum()),
        trusted=not doubts,
        notes=doubts,
    )


def uncertain(cells: Combinations, draws: int, spread: Floats) -> Modelled:
    """Prior 1/rate for each combination, p uncertain by its relative standard deviation."""
    if not bool(np.all((spread >= 0) & np.isfinite(spread))):
        raise InputError("spread must be 0 or more")
    doubts = _doubts(GIVEN, cells, prior_test(cells.f))
    return Modelled(
        risk=uncertain_risk(cells.f, cells.p, spread),
        risk_interval=uncertain_risk_interval(cells.f, cells.p, spread),
        inverse_interval=uncertain_interval(cells.f, cells.p, spread),
        shape=np.zeros(draws),
        rate=np.zeros(draws),
        tau1=float(cells.p[cells.f == 1].sum()),
        spread=spread,
        trusted=not doubts,
        notes=doubts,
    )


def shared(cells: Combinations, draws: int, learned: Learned) -> Modelled:
    """Rates that share a Gamma distribution, or its extension, whose parameters were learned."""
    shape = thinned_draws(learned.posterior, "alpha", draws)
    rate = thinned_draws(learned.posterior, "beta", draws)
    nodes, tau1 = None, None
    if learned.nodes is not None and learned.weights is not None:
        nodes = learned.nodes["alpha"], learned.nodes["beta"], learned.weights
        tau1 = expected_alone(cells.p[cells.f == 1], *nodes)
    few = np.linspace(0, draws - 1, INTEGRATED_DRAWS).astype(int)
    risk, risk_interval, integrated = shared_risk(
        cells.f, cells.p, shape[few], rate[few], cells.records, nodes
    )
    expected, tau2 = (mean_error(total) if nodes is None else 0.0 for total in integrated)
    few = np.linspace(0, draws - 1, INTERVAL_DRAWS).astype(int)
    chance = shape_test(cells.f, cells.p, float(shape.mean()), float(rate.mean()))
    doubts = _doubts("shared rates", cells, chance)
    return Modelled(
        risk=risk,
        risk_interval=risk_interval,
        inverse_interval=shared_interval(cells.f, cells.p, shape[few], rate[few]),
        shape=shape,
        rate=rate,
        tau1=tau1,
        errors=(expected, tau2),
        posterior=learned.posterior,
        converged=learned.trusted,
        trusted=learned.trusted and not doubts,
        notes=(*learned.notes, *doubts),
    )


def _doubts(rates: str, cells: Combinations, chance: float) -> tuple[str, ...]:
    """Say why a model is not trusted: too small a sample, or frequencies of another shape."""
    said = []
    n = float(cells.records.sum())
    fraction = n / float((cells.records / cells.p).sum())
    limit = 1.0 / np.log(max(n, 3.0))
    if fraction < limit:
        said.append(
            f"{rates} are not trusted: the sampling fraction by the inclusion probabilities, "
            f"{fraction:.2%}, is below 1 / log n, {limit:.2%}, and they know nothing of the key "
            "variables but how often combinations occur; they can be too low by half or more"
        )
    if chance < UNLIKELY:
        written = f"probability {chance:.1g}" if chance > LEAST else f"probability below {LEAST:g}"
        said.append(
            f"{rates} are not trusted: the frequencies of the file do not have the shape that the "
            f"model gives them ({written}), and rare combinations least of all"
        )
    return tuple(said)


def draw_totals(
    cells: Combinations, found: Modelled, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw the sum of 1 / F over records, population uniques, and 1 / F of sample uniques."""
    draws = len(found.shape)
    step = max(1, AT_ONCE // len(cells.f))
    parts = [slice(start, min(draws, start + step)) for start in range(0, draws, step)]
    with ThreadPoolExecutor(threads(None)) as pool:  # a part has its own random numbers
        sums = list(pool.map(_sums, repeat(cells), repeat(found), parts, rng.spawn(len(parts))))
    expected, tau1, tau2 = np.concatenate(sums, axis=1)
    return expected, tau1, tau2


def _sums(
    cells: Combinations, found: Modelled, part: slice, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return what :func:`draw_totals` does, of a part of the draws."""
    f, p, records = cells
    shape, rate, unique = found.shape[part, None], found.rate[part, None], f == 1
    chance = p if found.spread is None else draw_inclusion(p, found.spread, len(shape), rng)
    success = (rate + chance) / (rate + 1.0)
    unsampled = draw_unsampled(f + shape, success, rng)
    inverse = records / (f + unsampled)
    return (
        inverse.sum(axis=1),
        (unsampled[:, unique] == 0).sum(axis=1).astype(np.float64),
        inverse[:, unique].sum(axis=1),
    )


def draw_unsampled(size: Floats, success: Floats, rng: np.random.Generator) -> Floats:
    """Draw from negative binomial distributions, whose means may be beyond 64 bits.

    Parameters
    ----------
    size, success : array, shapes that go together
        F - f is the number of failures before so many successes, each of this probability.
    rng : numpy.random.Generator
        Changed in place.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> draw_unsampled(np.array([1.0, 2.5, 1.0]), np.array([1.0, 0.1, 0.5]), rng)
    array([0., 6., 0.])
    """
    size, success = np.broadcast_arrays(size, success)
    one = size == 1.0
    found = np.empty(size.shape)
    with np.errstate(divide="ignore"):  # a success that is certain
        found[one] = np.floor(rng.standard_exponential(int(one.sum())) / -np.log1p(-success[one]))
    mean = rng.gamma(size[~one]) * ((1.0 - success[~one]) / success[~one])
    found[~one] = np.where(mean < 1e15, rng.poisson(np.minimum(mean, 1e15)), mean)
    return found
