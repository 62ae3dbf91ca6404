"""Population uniques without structure, with the concentration of the table learned from it.

The published priors fix the concentration c of the Dirichlet-multinomial distribution, at 1 or at
infinity, and the answer depends on it strongly. Here c has a prior of its own and is learned from
how many cells of the sample have each size; see :mod:`bayes_sdc.models.uniques`.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.microdata.posterior.quadrature import LogDensity
from bayes_sdc.microdata.posterior.sampling import (
    Estimate,
    Learned,
    Sampler,
    check_draws,
    check_sampler,
    estimate,
    integrate_posterior,
    learned_from,
    log_rising,
    mean_error,
    pad,
    padded_length,
    sample_posterior,
    thinned_draws,
)
from bayes_sdc.microdata.uniques.unstructured import check_size_indices, unique_probability
from bayes_sdc.models.priors import CONCENTRATION
from bayes_sdc.results import Fact, Result, with_interval
from bayes_sdc.seeds import generator, seed_or_fresh

SCANNED = 6.0  # standard deviations of the prior on each side, among which modes are looked for


@dataclass(frozen=True, eq=False, repr=False)
class LearnedUniques(Result):
    """What the sample says of the concentration, and of the population uniques.

    Made by :func:`bayes_sdc.learn_uniques`.

    Parameters
    ----------
    concentration : Estimate
        c.
    probability : Estimate
        Q, that a sample unique is alone in the population; the interval is over c.
    uniques : Estimate
        Number of sample uniques that are.
    posterior : DataTree
        Of c.
    trusted : bool
        False when the quadrature, or the chains of NUTS, did not converge.
    notes : tuple of str
        What was done otherwise than asked for.
    seed : int, optional
        Everything random followed from it.
    """

    concentration: Estimate
    probability: Estimate
    uniques: Estimate
    posterior: xr.DataTree
    trusted: bool
    notes: tuple[str, ...]
    seed: int | None = None

    def _title(self) -> str:
        return "Population uniques without structure, concentration learned: confidential"

    def _facts(self) -> list[Fact]:
        low, high = self.probability.interval
        return [
            (
                "population uniques",
                with_interval(self.uniques.value, self.uniques.interval),
                "among the sample uniques, 95 % interval",
            ),
            (
                "probability",
                f"{self.probability.value:.4g} [{low:.4g}, {high:.4g}]",
                "that a sample unique is alone in the population",
            ),
            (
                "concentration",
                "{:.4g} [{:.4g}, {:.4g}]".format(
                    self.concentration.value, *self.concentration.interval
                ),
                "c of the cells",
            ),
            ("trusted", "yes" if self.trusted else "NO", "quadrature or chains converged"),
        ]


@checked
def learn_uniques(
    size_indices: pd.Series | Mapping[int, int],
    N: int,
    K: int,
    *,
    draws: int = 1000,
    sampler: Sampler = "quadrature",
    trace: xr.DataTree | None = None,
    seed: int | None = None,
) -> LearnedUniques:
    """Estimate the number of population uniques, learning the concentration from the sample.

    Parameters
    ----------
    size_indices : Series or mapping
        Number of cells by the number of sampled members in them, sizes from 1 as index or keys.
    N : int
        Members of the population.
    K : int
        Cells that can be occupied. Structural zeros, combinations that cannot occur, must not be
        counted: the more empty cells, the rarer every sample unique looks.
    draws : int
        Draws behind the intervals, 200 or more.
    sampler : {"quadrature", "nuts"}
        How c is learned: means are exact by quadrature; NUTS samples the PyMC model, and compiles
        it first.
    trace : DataTree, optional
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.uniques_model`: then the
        concentrations are its draws, and nothing is learned here.
    seed : int, optional
        Everything random follows from it.
        By default a fresh one of 128 bits; ``seed`` of the result.

    Returns
    -------
    LearnedUniques
        Means, intervals and whether to trust them.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.unique_probability, bayes_sdc.mixture_of_priors, bayes_sdc.uniques_model

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    >>> result = learn_uniques(sizes, 1000, 50, seed=1)
    >>> result.trusted, 0 <= result.probability.value <= 1
    (True, True)
    """
    seed = seed_or_fresh(seed)
    sizes, cells, n = check_size_indices(size_indices, K)
    unique_probability(n, N, K)  # refuses sizes that do not go together
    check_draws(draws)
    check_sampler(sampler)
    if trace is not None:
        learned = learned_from(trace, ["concentration"], "learned concentration")
    elif sampler == "nuts":
        learned = _sampled(sizes, cells, K, draws, seed)
    else:
        prior = CONCENTRATION["log_concentration"]
        learned = integrate_posterior(
            concentration_density(sizes, cells, K),
            [(prior["mean"] - SCANNED * prior["sd"], prior["mean"] + SCANNED * prior["sd"])],
            lambda points: {"concentration": np.exp(points[:, 0])},
            "learned concentration",
            draws=draws,
            seed=seed,
        )
    c = thinned_draws(learned.posterior, "concentration", draws)
    q = _probabilities(n, N, K, c)
    s = int(cells[sizes == 1].sum())
    alone = _draw_alone(s, n, N, K, c, generator(seed, "uniques"))
    mean_c, mean_q, error = None, float(q.mean()), mean_error(q)
    if learned.nodes is not None and learned.weights is not None:
        node = learned.nodes["concentration"]
        mean_c = float(learned.weights @ node)
        mean_q, error = float(learned.weights @ _probabilities(n, N, K, node)), 0.0
    return LearnedUniques(
        concentration=estimate(c, mean_c),
        probability=estimate(q, mean_q, error),
        uniques=estimate(alone, s * mean_q, s * error),
        posterior=learned.posterior,
        trusted=learned.trusted,
        notes=learned.notes,
        seed=seed,
    )


def concentration_density(
    sizes: npt.NDArray[np.int64], cells: npt.NDArray[np.int64], K: int
) -> LogDensity:
    """Log posterior density of ``log_concentration`` in ``build_concentration``, by numpy."""
    prior = CONCENTRATION["log_concentration"]
    n = float(cells @ sizes)

    def log_density(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        c = np.exp(points)
        # with n members the powers of c above and those of K c below leave K^n
        value = log_rising(c, sizes) @ cells - log_rising(K * c, n)[:, 0]
        return np.asarray(value - 0.5 * ((points[:, 0] - prior["mean"]) / prior["sd"]) ** 2)

    return log_density


def _probabilities(n: int, N: int, K: int, c: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.array([unique_probability(n, N, K, concentration=value) for value in c])


def _sampled(
    sizes: npt.NDArray[np.int64], cells: npt.NDArray[np.int64], K: int, draws: int, seed: int
) -> Learned:
    """Posterior by NUTS."""
    length = padded_length(len(sizes))
    data = {
        "cells_data": pad(cells, length, 0.0),
        "sizes": pad(sizes, length, 1.0),
        "K": np.float64(K),
    }
    model = _compiled(length).with_data(**data)
    return sample_posterior(
        model, ["concentration"], "learned concentration", draws=draws, seed=seed
    )


@functools.cache
def _compiled(length: int) -> Any:
    import nutpie

    from bayes_sdc.models.uniques import build_concentration

    model = build_concentration(np.ones(length), np.ones(length), 2 * length)
    return nutpie.compile_pymc_model(model, var_names=["concentration"])


def _draw_alone(
    s: int, n: int, N: int, K: int, c: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Number of sample uniques whose cells get none of the others, one draw for each c.

    The cells of no interest are one component of the Dirichlet distribution.
    """
    alone = np.empty(len(c))
    for draw, value in enumerate(c):
        rest = (K - s) * value + n - s
        gamma = rng.gamma(np.concatenate([np.full(s, 1.0 + value), [rest]]))
        theta = gamma / gamma.sum()
        alone[draw] = np.sum(rng.multinomial(N - n, theta)[:s] == 0)
    return alone
