"""Population uniques without structure, with the concentration of the table learned from it.

The published priors fix the concentration c of the Dirichlet-multinomial distribution, at 1 or at
infinity, and the answer depends on it strongly. Here c has a prior of its own and is learned from
how many cells of the sample have each size; see :mod:`bayes_sdc.models.uniques`.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayes_sdc.microdata.sampling import (
    Estimate,
    check_draws,
    estimate,
    mean_error,
    pad,
    padded_length,
    sample_posterior,
    spread_draws,
)
from bayes_sdc.microdata.uniques.unstructured import check_size_indices, unique_probability
from bayes_sdc.seeds import generator


@dataclass(frozen=True, eq=False)
class LearnedUniques:
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
        False when the chains did not converge.
    notes : tuple of str
        What was done otherwise than asked for.
    """

    concentration: Estimate
    probability: Estimate
    uniques: Estimate
    posterior: xr.DataTree = field(repr=False)
    trusted: bool
    notes: tuple[str, ...]


def learn_uniques(
    size_indices: pd.Series | Mapping[int, int], N: int, K: int, *, draws: int = 1000, seed: int
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
    seed : int
        Everything random follows from it.

    Returns
    -------
    LearnedUniques
        Means, intervals and whether to trust them.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    >>> result = learn_uniques(sizes, 1000, 50, seed=1)
    >>> result.trusted, 0 <= result.probability.value <= 1
    (True, True)
    """
    sizes, cells, n = check_size_indices(size_indices, K)
    unique_probability(n, N, K)  # refuses sizes that do not go together
    check_draws(draws)
    length = padded_length(len(sizes))
    data = {
        "cells_data": pad(cells, length, 0.0),
        "sizes": pad(sizes, length, 1.0),
        "K": np.float64(K),
    }
    model = _compiled(length).with_data(**data)
    posterior, trusted, notes = sample_posterior(
        model, ["concentration"], "learned concentration", draws=draws, seed=seed
    )
    c = spread_draws(posterior, "concentration", draws)
    q = np.array([unique_probability(n, N, K, concentration=value) for value in c])
    s = int(cells[sizes == 1].sum())
    alone = _draw_alone(s, n, N, K, c, generator(seed, "uniques"))
    return LearnedUniques(
        concentration=estimate(c),
        probability=estimate(q),
        uniques=estimate(alone, float(s * q.mean()), s * mean_error(q)),
        posterior=posterior,
        trusted=trusted,
        notes=notes,
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
