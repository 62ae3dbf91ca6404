"""Learning the few parameters of a file, and how a result is judged."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import gammaln

from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.posterior.quadrature import LogDensity, draw, integrate
from bayes_sdc.nuts import sample_nuts
from bayes_sdc.seeds import generator, seed_sequence

# Two parameters of a Gamma distribution follow a ridge, for which the first way is best; where the
# shape is pushed to its border the ridge bends, and the second way takes longer and follows it.
WAYS: tuple[dict[str, Any], ...] = (
    {"draws": 1000, "tune": 1000, "adaptation": "low_rank", "target_accept": 0.9},
    {"draws": 3000, "tune": 1500, "adaptation": "diag", "target_accept": 0.95},
)
CHAINS = 4
INTEGRATED_DRAWS = 1000  # a chain, at least, where they cost next to nothing
STIRLING_FROM = 1e3  # the first term left out is below 1e-18
ONE_CHAIN = "the trace has one chain, which cannot show whether it converged: sample two or more"
FEWEST_DRAWS = 200  # behind an interval


class Estimate(NamedTuple):
    """A quantity of the file: posterior mean, 95 % interval and Monte Carlo error of the mean.

    Made by :func:`bayes_sdc.superpopulation_risk` and :func:`bayes_sdc.learn_uniques`.

    The error is 0 where the mean is known without draws and only the interval is simulated.

    Parameters
    ----------
    value : float
        Posterior mean.
    interval : tuple of float
        2.5 and 97.5 % quantile.
    monte_carlo_error : float
        Standard error of the mean from the finite number of draws.
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
    """Monte Carlo error of the mean of draws that go from chain to chain, as `thinned_draws` does.

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


Sampler = Literal["quadrature", "nuts"]


def check_sampler(sampler: str) -> None:
    """Refuse an unknown way of computing a posterior."""
    if sampler not in ("quadrature", "nuts"):
        raise InputError(f"sampler {sampler!r} is unknown; choose from ['quadrature', 'nuts']")


class Learned(NamedTuple):
    """A posterior of few parameters, and where it is from.

    Parameters
    ----------
    posterior : DataTree
        Draws of the parameters, chains by draws. Those of quadrature are independent.
    trusted : bool
        Whether the quadrature converged; of NUTS, whether its chains agree.
    notes : tuple of str
        What did not go as it should.
    nodes : mapping from str to array, shape (node,), or None
        Values of the parameters at the nodes; a mean over the posterior is a sum over the nodes by
        ``weights``. None for NUTS.
    weights : array of float, shape (node,), or None
        They add up to 1.
    """

    posterior: xr.DataTree
    trusted: bool
    notes: tuple[str, ...]
    nodes: dict[str, npt.NDArray[np.float64]] | None = None
    weights: npt.NDArray[np.float64] | None = None


def integrate_posterior(
    log_density: LogDensity,
    scan: Sequence[tuple[float, float]],
    parameters: Callable[[npt.NDArray[np.float64]], Mapping[str, npt.NDArray[np.float64]]],
    what: str,
    *,
    draws: int,
    seed: int,
) -> Learned:
    """Integrate a posterior of one or two parameters, and draw from it.

    Parameters
    ----------
    log_density, scan
        As :func:`bayes_sdc.microdata.posterior.quadrature.integrate` takes them.
    parameters : callable
        Gives the named parameters at points of shape (point, parameter).
    what : str
        What is learned, for the note and the stream of random numbers.
    draws : int
        How many are wanted, at least.
    seed : int
        The draws follow from it; nodes and weights do not depend on it.

    Returns
    -------
    Learned
        With nodes and weights.
    """
    found = integrate(log_density, scan)
    length = max(INTEGRATED_DRAWS, -(-draws // CHAINS))
    rng = generator(seed, "quadrature", what)
    named = parameters(draw(found, log_density, CHAINS * length, rng))
    dataset = xr.Dataset(
        {name: (("chain", "draw"), x.reshape(CHAINS, length)) for name, x in named.items()},
        coords={"chain": np.arange(CHAINS), "draw": np.arange(length)},
        attrs={"sampler": "quadrature", "nodes": len(found.weights), "error": found.error},
    )
    notes = () if found.converged else (f"{what}: integrated to {found.error:.1g} only",)
    tree = xr.DataTree.from_dict({"posterior": dataset})
    nodes = dict(parameters(found.points))
    return Learned(tree, found.converged, notes, nodes, found.weights)


def log_rising(
    x: npt.NDArray[np.float64], n: npt.NDArray[np.float64 | np.int64] | float
) -> npt.NDArray[np.float64]:
    """Log of Gamma(x + n) / (Gamma(x) x^n), by Stirling's series where Gamma loses the digits."""
    small, large = np.minimum(x, STIRLING_FROM), np.maximum(x, STIRLING_FROM)
    exact = gammaln(small + n) - gammaln(small) - n * np.log(small)
    end = large + n
    series = (end - 0.5) * np.log1p(n / large) - n
    series += (1.0 / end - 1.0 / large) / 12.0 - (end**-3.0 - large**-3.0) / 360.0
    return np.asarray(np.where(x < STIRLING_FROM, exact, series), dtype=np.float64)


def sample_posterior(
    compiled: Any, names: list[str], what: str, *, draws: int, seed: int
) -> Learned:
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
    Learned
        The posterior, and notes on it.
    """
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
        trusted = agree(posterior, names)
        if trusted:
            break
    return Learned(cast(xr.DataTree, posterior), trusted, notes + divergences(posterior, what))


def drawn_in(trace: xr.DataTree) -> xr.Dataset:
    """Return the draws of a trace that somebody else sampled, or refuse what is no trace."""
    if not isinstance(trace, xr.DataTree) or "posterior" not in trace.children:
        raise InputError("trace must be what pm.sample returns: a DataTree with a posterior")
    return trace["posterior"].to_dataset()


def learned_from(trace: xr.DataTree, names: list[str], what: str) -> Learned:
    """Take over a trace that somebody else sampled, judged like the package's own.

    Parameters
    ----------
    trace : DataTree
        With a group ``posterior`` of dimensions chain and draw.
    names : list of str
        Scalar variables that are needed.
    what : str
        What is learned, for the notes.

    Returns
    -------
    Learned
        The trace itself.

    Raises
    ------
    InputError
        If a variable is missing, has another shape or a value that is no number, or the draws are
        too few for an interval.
    """
    drawn = drawn_in(trace)
    if missing := [name for name in names if name not in drawn]:
        raise InputError(f"the trace holds no {', '.join(missing)}: it is of another model")
    for name in names:
        if set(drawn[name].dims) != {"chain", "draw"}:
            raise InputError(f"{name} of the trace must be one number a draw")
        if not bool(np.isfinite(drawn[name]).all()):
            raise InputError(f"{name} of the trace holds values that are no numbers")
    if drawn[names[0]].size < FEWEST_DRAWS:
        raise InputError(
            f"the trace has {drawn[names[0]].size} draws; intervals need {FEWEST_DRAWS} or more"
        )
    trusted = agree(trace, names)
    notes: tuple[str, ...] = () if trusted else (f"{what}: the chains of the trace do not agree",)
    return Learned(trace, trusted, notes + divergences(trace, what))


def agree(posterior: Any, names: list[str]) -> bool:
    """Tell whether the chains agree about all variables."""
    import arviz_stats

    judged = posterior["posterior"].to_dataset()[names]
    # of what never moves R-hat is missing, and the chains count as not agreed
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat, ess = arviz_stats.rhat(judged), arviz_stats.ess(judged)
    return all(float(rhat[name]) <= RHAT_LIMIT and float(ess[name]) >= ESS_LIMIT for name in names)


def divergences(posterior: Any, what: str) -> tuple[str, ...]:
    """Note how many transitions diverged, if any did."""
    if "sample_stats" not in posterior.children or "diverging" not in posterior["sample_stats"]:
        return ()
    diverging = posterior["sample_stats"]["diverging"]
    if not diverging.any():
        return ()
    return (f"{what}: {int(diverging.sum()):,} of {diverging.size:,} transitions diverged",)


def thinned_draws(posterior: xr.DataTree, name: str, draws: int) -> npt.NDArray[np.float64]:
    """Return draws of a parameter, as far apart as there are enough of them."""
    every = posterior["posterior"][name].to_numpy().ravel()
    chosen = np.linspace(0, len(every) - 1, draws).astype(np.intp)
    return np.asarray(every[chosen], dtype=np.float64)
