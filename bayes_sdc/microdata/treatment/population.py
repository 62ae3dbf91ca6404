r"""How many people share a combination: what the sample's f is of the population's F.

By the model of :mod:`bayes_sdc.microdata.latent_classes.dispersion`, F - f is negative binomial
with size r + f and probability q = (r + n g) / (r + n g w), w being the people a record stands for.
Of f records and F - f others the intruder's target is any one, with equal chances: f / F is the
chance that the target is in the file at all. Its mean is

.. math:: E(f / F) = f q \int_0^1 t^{f - 1} (q + (1 - q) t)^{r - 1} \, dt .
"""

import math

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.combinations import cells_of, rows_of_levels
from bayes_sdc.microdata.latent_classes.dispersion import collect, draw_scatter, posterior_grid
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.latent_classes.prediction import mean_inverse
from bayes_sdc.microdata.latent_classes.sample import PULL
from bayes_sdc.microdata.latent_classes.second_stage import draws_of_unseen
from bayes_sdc.microdata.latent_classes.unseen import NO_RULES, draw_unseen, index_rows
from bayes_sdc.microdata.latent_classes.weights import mean_weights
from bayes_sdc.microdata.treatment.states import Layout, States
from bayes_sdc.seeds import generator

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGE = 400.0  # people that share a combination, from which two moments of F are enough
HYPER_DRAWS = 2  # of R and kappa, for each draw of the base


@compiled
def mean_share(f: int, shape: float, q: float) -> float:
    """Mean of f / F, where F - f is negative binomial of size shape + f and probability q.

    By a recursion in f where its errors shrink, by two moments where F is large, else by summing.
    """
    if q >= 1.0:
        return 1.0
    if f == 1:
        alone: float = mean_inverse(q, shape)
        return alone
    if (f - 1) * q < 0.9 * (1.0 - q) * (shape + f - 1.0):
        integral = mean_inverse(q, shape) / q
        for i in range(2, f + 1):
            integral = (1.0 - (i - 1) * q * integral) / ((1.0 - q) * (shape + i - 1.0))
        share: float = min(max(f * q * integral, 0.0), 1.0)
        return share
    mean = (shape + f) * (1.0 - q) / q
    if f + mean > LARGE:
        whole = f + mean
        return min(f / whole * (1.0 + mean / q / (whole * whole)), 1.0)
    term = math.exp((shape + f) * math.log(q))
    total, mass, k = 0.0, 0.0, 0
    while mass < 1.0 - 1e-13 and k < 100_000:
        total += term * f / (f + k)
        mass += term
        term *= (1.0 - q) * (shape + f + k) / (k + 1.0)
        k += 1
    return min(total, 1.0)


@compiled
def add_shares(
    rng: np.random.Generator, occupied_f: np.ndarray, occupied: np.ndarray, unseen: np.ndarray,
    weight: float, typical: float, pull: float, f: np.ndarray, log_ng: np.ndarray,
    times: np.ndarray, draws: int, into: np.ndarray,
) -> None:  # fmt: skip
    """Draw the scatter given a base, and write the mean share of every combination by draw."""
    terms = collect(occupied_f, occupied, unseen, weight)
    weights, box, slope = posterior_grid(terms, typical, pull)
    for draw in range(draws):
        log_r, kappa = draw_scatter(rng, weights, box, slope)
        for k in range(len(f)):
            shape = math.exp(log_r + kappa * log_ng[k])
            ng = math.exp(log_ng[k])
            q = (shape + ng) / (shape + ng * times[k])
            into[draw, k] = mean_share(f[k], shape, q)


@compiled
def probabilities(rows: np.ndarray, eta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Probability of every row of levels; -1 is summed over."""
    g = np.empty(len(rows))
    product = np.empty(len(eta))
    for i in range(len(rows)):
        for h in range(len(eta)):
            product[h] = eta[h]
        for j in range(rows.shape[1]):
            if rows[i, j] >= 0:
                for h in range(len(eta)):
                    product[h] *= phi[rows[i, j], h]
        g[i] = product.sum()
    return g


def phi_of_cells(data: Microdata, known: Microdata, layout: Layout) -> Integers:
    """Rows of the model's phi for the sampler's rows of a file with some of its keys.

    The sampler has an order of its own, see :func:`.rows_of_levels`.
    """
    starts = layout.start[[data.keys.index(key) for key in known.keys]]
    own = rows_of_levels(known)
    found = np.empty(sum(map(len, own)), dtype=np.int64)
    for first, rows in zip(starts, own, strict=True):
        found[rows] = np.arange(first, first + len(rows))
    return found


def population_share(
    data: Microdata, known: Microdata, states: States, population_size: float | None, *, seed: int
) -> Floats:
    """Estimate, for each record, the share of its combination's people who are in the file.

    Parameters
    ----------
    data : Microdata
        With all variables of the model as keys.
    known : Microdata
        The same records with the keys that the intruder knows.
    states : States
        Draws of the model.
    population_size : float or None
        N; None where the file is the whole population.
    seed : int
        Of the draws of the scatter.

    Returns
    -------
    array of float, shape (draw, record)
        Means of f / F, in (0, 1], by draw of the model.
    """
    if population_size is None or population_size <= data.n:
        return np.ones((1, data.n))
    cells = cells_of(known)
    phi_rows = phi_of_cells(data, known, states.layout)
    times = np.full(len(cells.rows), population_size / data.n)
    frame = known.combinations.iloc[cells.place]
    if data.weights is not None:
        times = mean_weights(cells, frame["weight_sum"] / frame["f"], population_size)
    f = frame["f"].to_numpy(dtype=np.int64)
    complete = np.flatnonzero((cells.rows >= 0).all(axis=1))
    occupied = np.ascontiguousarray(cells.rows[complete])
    table = index_rows(occupied)
    members = cells.records[complete]
    number, n = float(members.sum()), float(cells.records.sum())
    rng = generator(seed, "scatter of the treated file")
    shares = np.empty((len(states.eta), HYPER_DRAWS, len(f)))
    drawn = draws_of_unseen(n)
    for s, (eta, phi) in enumerate(zip(states.eta, states.phi, strict=True)):
        phi = np.ascontiguousarray(phi[phi_rows])
        g = probabilities(cells.rows, eta, phi)
        unseen, _, _ = draw_unseen(rng, drawn, cells.start, occupied, table, eta, phi, NO_RULES)
        log_ng = np.log(n * g)
        unique = log_ng[f == 1]
        typical = float(unique.mean()) if len(unique) else float(log_ng.mean())
        add_shares(
            rng, members, np.log(number * g[complete]), np.log(max(number, 1.0) * unseen),
            number / drawn, typical, PULL, f, log_ng, times, HYPER_DRAWS, shares[s],
        )  # fmt: skip
    row = np.empty(len(cells.place), dtype=np.int64)
    row[cells.place] = np.arange(len(cells.place))
    of_cell = shares.reshape(-1, len(f))
    return np.ascontiguousarray(of_cell[:, row[known.combination]])
