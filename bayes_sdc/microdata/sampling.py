"""Sampling the few parameters that are learned from a file, and what is said of a result."""

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.errors import InputError
from bayes_sdc.nuts import sample_nuts
from bayes_sdc.seeds import seed_sequence

# Two parameters of a Gamma distribution follow a ridge, for which the first way is best; where the
# shape is pushed to its border the ridge bends, and the second way takes longer and gets round it.
WAYS: tuple[dict[str, Any], ...] = (
    {"draws": 1000, "tune": 1000, "adaptation": "low_rank", "target_accept": 0.9},
    {"draws": 3000, "tune": 1500, "adaptation": "diag", "target_accept": 0.95},
)
CHAINS = 4
FEWEST_DRAWS = 200  # behind an interval


class Estimate(NamedTuple):
    """A quantity of the file: posterior mean, 95 % interval and Monte Carlo error of the mean.

    The error is 0 where the mean is known without draws and only the interval is simulated.
    """

    value: float
    interval: tuple[float, float]
    monte_carlo_error: float


def estimate(
    draws: npt.NDArray[np.float64], mean: float | None = None, error: float = 0.0
) -> Estimate:
    """Sum up draws along the chains; ``mean`` and its error are given where it is known better."""
    low, high = np.quantile(draws, [0.025, 0.975])
    interval = float(low), float(high)
    if mean is not None:
        return Estimate(mean, interval, error)
    return Estimate(float(draws.mean()), interval, mean_error(draws))


def mean_error(draws: npt.NDArray[np.float64]) -> float:
    """Monte Carlo error of the mean of draws that go from chain to chain, as `spread_draws` does.

    By the effective sample size of Vehtari and others 2021. An estimate of it can exceed the number
    of draws, more so of few; the error is not made smaller for that.
    """
    import arviz_stats

    length = len(draws) // CHAINS
    by_chain = draws[: CHAINS * length].reshape(CHAINS, length)
    effective = min(float(arviz_stats.ess(by_chain, method="mean")), len(draws))
    return float(draws.std(ddof=1) / np.sqrt(effective))


def check_draws(draws: int) -> int:
    """Return the number of draws behind intervals, or refuse it."""
    whole = isinstance(draws, int | np.integer) and not isinstance(draws, bool)
    if not whole or draws < FEWEST_DRAWS:
        raise InputError(f"draws must be a whole number from {FEWEST_DRAWS}; it is {draws!r}")
    return int(draws)


def padded_length(length: int) -> int:
    """Return the next power of four, at least 256: models of equal length are compiled once."""
    padded = 256
    while padded < length:
        padded *= 4
    return padded


def pad(values: npt.ArrayLike, length: int, fill: float) -> npt.NDArray[np.float64]:
    """Extend values to a length, with a value that makes the additional entries idle."""
    given = np.asarray(values, dtype=np.float64)
    return np.concatenate([given, np.full(length - len(given), fill)])


class Sampled(NamedTuple):
    """A posterior, whether its chains agree, and its source."""

    posterior: xr.DataTree
    trusted: bool
    notes: tuple[str, ...]


def sample_posterior(
    compiled: Any, names: list[str], what: str, *, draws: int, seed: int
) -> Sampled:
    """Sample a model of one or two parameters by NUTS, and say whether the chains agree.

    Where they do not, it is tried once more in another way, which is noted.

    Parameters
    ----------
    compiled : nutpie model
        With its data.
    names : list of str
        Variables that are judged.
    what : str
        What is learned, for the note.
    draws : int
        How many are wanted of all chains, at least.
    seed : int
        Everything random follows from it.

    Returns
    -------
    Sampled
        The posterior, and notes on it.
    """
    import arviz_stats

    notes: tuple[str, ...] = ()
    for way in WAYS:
        if way is not WAYS[0]:
            notes = (
                f"{what}: the chains did not agree (R-hat above {RHAT_LIMIT:g} or effective size "
                f"below {ESS_LIMIT:g}), and it was sampled once more, by "
                f"{CHAINS * way['draws']:,} draws with other settings",
            )
        posterior = sample_nuts(
            compiled,
            chains=CHAINS,
            cores=1,
            seed=int(seed_sequence(seed, "nuts").generate_state(1)[0]),
            **{**way, "draws": max(way["draws"], -(-draws // CHAINS))},
        )
        judged = posterior["posterior"].to_dataset()[names]
        rhat, ess = arviz_stats.rhat(judged), arviz_stats.ess(judged)
        trusted = all(
            float(rhat[name]) <= RHAT_LIMIT and float(ess[name]) >= ESS_LIMIT for name in names
        )
        if trusted:
            break
    diverging = posterior["sample_stats"]["diverging"]
    if diverging.any():
        notes += (f"{what}: {int(diverging.sum()):,} of {diverging.size:,} transitions diverged",)
    return Sampled(cast(xr.DataTree, posterior), trusted, notes)


def spread_draws(posterior: xr.DataTree, name: str, draws: int) -> npt.NDArray[np.float64]:
    """Return draws of a parameter, as far apart as there are enough of them."""
    every = posterior["posterior"][name].to_numpy().ravel()
    chosen = np.linspace(0, len(every) - 1, draws).astype(np.intp)
    return np.asarray(every[chosen], dtype=np.float64)
