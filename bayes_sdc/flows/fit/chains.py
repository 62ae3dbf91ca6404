"""Chains of the two Gibbs samplers: from the small cells of some groups to posterior draws."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs import reference as gibbs
from bayes_sdc.flows.gibbs.sampling import MarkovChain, Sampling
from bayes_sdc.flows.model.hyperpriors import CV
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.seeds import seed_sequence

LARGEST = 1e37  # of an effect; two of them add up to a number of single precision


class Chain(NamedTuple):
    """The kept draws of one chain, and the acceptance rates after the warm-up."""

    values: dict[str, np.ndarray]  # by name as in the posterior, with a leading draw axis
    acceptance: dict[str, np.ndarray]  # by name


def start_chain(cells: SmallCells, sampling: Sampling, number: int) -> MarkovChain:
    """Start a chain of some groups; its random numbers depend on them, the seed and its number."""
    seed = seed_sequence(sampling.seed, "gibbs", cells.groups[0]).spawn(sampling.chains)[number]
    if sampling.sampler == "gibbs":
        return engine.MarkovChain(engine.prepare(cells), sampling, seed)
    return gibbs.MarkovChain(gibbs.prepare(cells, sampling.family), sampling, seed)


def sample_chain(
    chain: MarkovChain,
    sampling: Sampling,
    *,
    values: dict[str, np.ndarray] | None = None,
    after_draw: Callable[[dict[str, np.ndarray]], None] = lambda values: None,
) -> Chain:
    """Run a chain to its end.

    Parameters
    ----------
    chain : MarkovChain
        The chain, at its start or where it was restored.
    sampling : Sampling
        How many draws to make.
    values : dict of array, optional
        Of a restored chain: the draws up to there, in arrays as long as the whole chain.
    after_draw : callable
        Called with the values after every draw and warm-up draw; may raise to stop.
    """
    values = {} if values is None else values
    while chain.done < sampling.tune + sampling.draws:
        chain.draw()
        kept = chain.done - sampling.tune
        if kept > 0:
            for name, value in _posterior_values(chain.record(), sampling).items():
                if name not in values:
                    values[name] = np.empty((sampling.draws, *value.shape), value.dtype)
                values[name][kept - 1] = value
        after_draw(values)
    return Chain(values, chain.acceptance())


def place_of(chain: MarkovChain) -> dict[str, np.ndarray]:
    """State of a chain: what it needs to continue, its number of draws, and acceptance rates."""
    return {**chain.arrays(), **chain.acceptance(), "done": np.array(chain.done)}


def chain_at(values: dict[str, np.ndarray], place: Mapping[str, np.ndarray]) -> Chain:
    """Make the chain that stopped in this state; see :func:`place_of`."""
    return Chain(values, {name: place[name] for name in place if name.startswith("acceptance_")})


def _posterior_values(
    record: Mapping[str, np.ndarray], sampling: Sampling
) -> dict[str, np.ndarray]:
    """Turn a record into the variables of the posterior.

    Effects, of which a nation has hundreds of thousands, are kept in single precision: an error of
    at most 5e-7 in a log rate of 8. Under the paper's prior those of a tiny group may run beyond
    its range, and are held at :data:`LARGEST`.
    """

    def single(values: np.ndarray) -> np.ndarray:
        held: np.ndarray = np.clip(values, -LARGEST, LARGEST)
        return held.astype(np.float32)

    values = {
        "alpha": record["mu_beta"] + record["mu_gamma"],
        "delta": record["mu_beta"] - record["mu_gamma"],
        "mu_beta": record["mu_beta"],
        "mu_gamma": record["mu_gamma"],
        "phi_beta": np.exp(record["log_phi_beta"]),
        "phi_gamma": np.exp(record["log_phi_gamma"]),
        "beta": single(record["beta"]),
        "gamma": single(record["gamma"]),
    }
    poisson = sampling.family == "poisson"
    if not poisson:
        values["r"] = np.exp(-2.0 * record["log_cv"])
    if "base" in record:
        values["base"] = np.delete(record["base"], sampling.impossible)
        values["base_sd"] = record["base_sd"][0]
    if record["coefficient"].shape[1]:
        values["coefficient"] = record["coefficient"]
    if "national_mean" in record:
        # without log cv, which the Poisson family does not have
        kept = [k for k in range(len(record["national_mean"])) if k != CV or not poisson]
        values["national_mean"] = record["national_mean"][kept]
        values["national_sd"] = record["national_sd"][kept]
        if len(record["national_slope"]):
            values["national_slope"] = record["national_slope"]
    return values
