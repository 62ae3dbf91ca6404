"""Each conditional against the joint distribution, and broken copies that must be found out."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from bayes_sdc.convergence import effective_size
from bayes_sdc.microdata.latent_classes import conditionals as c
from bayes_sdc.microdata.latent_classes import resolutions as r
from bayes_sdc.microdata.latent_classes.draws import log_gamma_draw, normalise, pick
from bayes_sdc.microdata.latent_classes.state import State

START = np.array([0, 2, 5])
ROWS = np.array([[a, b] for a in (0, 1) for b in (2, 3, 4)], dtype=np.int32)
SHARED = np.array([0, 1, 1, 0, 1, 1])
H, N = 3, 7
STEPS = {
    "alpha": c.draw_alpha,
    "eta": c.draw_eta,
    "strength": lambda rng, state: c.draw_strength(rng, START, state),
    "resolution": lambda rng, state: r.draw_resolution(rng, START, state),
    "base": lambda rng, state: r.draw_base(rng, START, state),
    "phi": lambda rng, state: c.draw_phi(rng, START, state),
}
Step = Callable[[np.random.Generator, State], None]


def prior_state(rng: np.random.Generator) -> State:
    """Draw everything from the prior; the counts are those of a first sample."""
    shares = np.full((2, 3), 0.5)
    shares[0, :2], shares[1] = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(3))
    state = State(
        alpha=np.array([max(rng.gamma(c.ALPHA_SHAPE) / c.ALPHA_RATE, 1e-300)]),
        eta=np.empty(H),
        strength=np.exp(rng.normal(c.STRENGTH_MEAN, c.STRENGTH_SD, 2)),
        base=np.concatenate([rng.dirichlet(np.full(k, r.BASE)) for k in (2, 3)]),
        phi=np.empty((5, H)),
        resolution=np.stack([rng.choice(k, H, p=shares[k - 2, :k]) for k in (2, 3)]),
        shares=shares,
        size=np.zeros(H, dtype=np.int64),
        counts=np.zeros((5, H), dtype=np.int64),
        g=np.empty(len(ROWS)),
    )
    c.draw_eta(rng, state)
    c.draw_phi(rng, START, state)
    state.size[:] = rng.multinomial(N, state.eta)
    return state


def draw_data(rng: np.random.Generator, state: State) -> np.ndarray:
    """Draw the levels of the records given their classes; return the records by combination."""
    records = np.zeros((2, 3), dtype=np.int64)
    state.counts[:] = 0
    for h, size in enumerate(state.size):
        if size > 0:
            chances = np.outer(state.phi[:2, h], state.phi[2:, h]).ravel()
            of_class = rng.multinomial(size, chances).reshape(2, 3)
            records += of_class
            state.counts[:2, h] = of_class.sum(axis=1)
            state.counts[2:, h] = of_class.sum(axis=0)
    return records.ravel()


def look(state: State) -> list[float]:
    """Quantities that do not depend on the labels of the classes, with thin tails."""
    alpha, b = state.alpha[0], np.log(state.strength)
    return [
        1.0 / (1.0 + alpha),
        1.0 / (1.0 + 100.0 * alpha),
        *b,
        *b**2,
        *state.base[[0, 2, 3]],
        *state.base[[0, 2]] ** 2,
        (state.eta**2).sum(),
        (state.size**2).sum() / N**2,
        (state.size > 0).sum(),
        (state.eta[None] * state.phi**2).sum(),
        state.eta @ state.phi[0],
        (state.counts**2).sum() / N**2,
        b[1] * state.base[2],
        b[0] * (state.phi[:2] ** 2).mean(),
        *state.shares[[0, 1, 1], [0, 0, 1]],
        *state.shares[[0, 1], [0, 1]] ** 2,
        *state.shares[:, 0] * (state.resolution == 0).mean(axis=1),
        ((state.resolution[1] == 0) * (state.counts[2:] ** 2).sum(axis=0)).sum() / N**2,
        state.base[0] * state.counts[0].sum() / N,
        state.base[2] * state.counts[2].sum() / N,
        *(state.resolution == 0).mean(axis=1),
        (state.resolution[1] == 1).mean(),
        ((state.resolution[1] == 0) * (state.size > 0)).mean(),
        ((state.resolution[1] == 1) * (state.phi[2] - state.base[2]) ** 2).mean(),
        ((state.resolution[1] == 1) * state.phi[3] * state.base[4]).mean(),
        ((state.resolution[1] == 2) * b[1] * state.phi[4] ** 2).mean(),
    ]


def from_prior(draws: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(draws):
        state = prior_state(rng)
        draw_data(rng, state)
        found.append(look(state))
    return np.array(found)


def from_chain(draws: int, steps: dict[str, Step], classes: Step | None = None) -> np.ndarray:
    """Draw the data anew, then everything given them, and so on."""
    rng = np.random.default_rng(2)
    state = prior_state(rng)
    found = []
    for _ in range(draws):
        records = draw_data(rng, state)
        for step in steps.values():
            step(rng, state)
        # g and the labels are those of the present parameters
        if classes is None:
            c.draw_classes(rng, ROWS, SHARED, records, state)
        else:
            broken = State(*[x if x is not state.eta else np.full(H, 1.0 / H) for x in state])
            c.draw_classes(rng, ROWS, SHARED, records, broken)
        found.append(look(state))
    return np.array(found)


def z_scores(prior: np.ndarray, chain: np.ndarray) -> np.ndarray:
    """Differences of the means in their standard errors."""
    size = effective_size(np.ascontiguousarray(chain.T).reshape(chain.shape[1], 2, -1))
    error = prior.var(axis=0) / len(prior) + chain.var(axis=0) / np.minimum(size, len(chain))
    return (prior.mean(axis=0) - chain.mean(axis=0)) / np.sqrt(error)


@pytest.fixture(scope="module")
def prior() -> np.ndarray:
    return from_prior(12_000)


def test_the_sweep_leaves_the_joint_distribution_as_it_is(prior: np.ndarray) -> None:
    """A wrong conditional would move parameters away from their prior (Geweke 2004)."""
    z = z_scores(prior, from_chain(30_000, STEPS))
    assert np.abs(z).max() < 4.5, z.round(1)


def flat_alpha(rng: np.random.Generator, state: State) -> None:
    """Forget the Jacobian of the log."""
    now = math.log(state.alpha[0])
    proposed = now + c.ALPHA_STEP * rng.standard_normal()
    ratio = c.log_alpha_density(proposed, state.size) - c.log_alpha_density(now, state.size)
    if math.log(1.0 - rng.random()) < ratio - (proposed - now):
        state.alpha[0] = math.exp(max(proposed, -200.0))


def whole_alpha(rng: np.random.Generator, state: State) -> None:
    """Give every class alpha instead of alpha / H."""
    for h in range(H):
        state.eta[h] = log_gamma_draw(rng, state.alpha[0] + state.size[h])
    normalise(state.eta)


def strength_without_prior(rng: np.random.Generator, state: State) -> None:
    for j in range(2):
        part = slice(START[j], START[j + 1])
        args = state.base[part], state.counts[part], state.resolution[j]
        now = math.log(state.strength[j])
        proposed = now + c.STRENGTH_STEP * rng.standard_normal()
        ratio = c.log_strength_density(proposed, *args) - c.log_strength_density(now, *args)
        ratio += 0.5 * ((proposed - c.STRENGTH_MEAN) / c.STRENGTH_SD) ** 2
        ratio -= 0.5 * ((now - c.STRENGTH_MEAN) / c.STRENGTH_SD) ** 2
        if math.log(1.0 - rng.random()) < ratio and abs(proposed) < 8.0:
            state.strength[j] = math.exp(proposed)


def base_of_the_prior(rng: np.random.Generator, state: State) -> None:
    """Forget what the classes say of everybody's levels."""
    for j in range(2):
        part = slice(START[j], START[j + 1])
        state.base[part] = rng.dirichlet(np.full(j + 2, r.BASE))


def base_by_records(rng: np.random.Generator, state: State) -> None:
    """Count records where tables belong."""
    for j in range(2):
        part = slice(START[j], START[j + 1])
        state.base[part] = rng.dirichlet(r.BASE + state.counts[part].sum(axis=1))


def phi_without_base(rng: np.random.Generator, state: State) -> None:
    for j in range(2):
        part = slice(START[j], START[j + 1])
        for h in range(H):
            state.phi[part, h] = rng.dirichlet(1.0 + state.counts[part, h])


def resolution_by_likelihood(rng: np.random.Generator, state: State) -> None:
    """Forget how frequent each resolution is."""
    for j in range(2):
        part, kinds = slice(START[j], START[j + 1]), j + 2
        for h in range(H):
            chance = np.empty(kinds)
            means = r.means_of_bands(state.base[part])
            r.log_of_resolutions(state.strength[j], *means, state.counts[part, h], chance)
            normalise(chance)
            state.resolution[j, h] = pick(rng, chance, 1.0)
        found = np.bincount(state.resolution[j], minlength=kinds)
        state.shares[j, :kinds] = rng.dirichlet(r.SHARE + found)


def tables_below_the_bands(rng: np.random.Generator, state: State) -> None:
    """Count tables where, inside a band, records say how everybody's levels are divided."""
    finest = State(*state)._replace(resolution=np.array([[1] * H, [2] * H]))
    r.draw_base(rng, START, finest)


@pytest.mark.parametrize(
    ("name", "broken", "draws"),
    [
        ("alpha", flat_alpha, 10_000),
        pytest.param("eta", whole_alpha, 30_000, marks=pytest.mark.slow),
        pytest.param("strength", strength_without_prior, 10_000, marks=pytest.mark.slow),
        pytest.param("base", base_of_the_prior, 10_000, marks=pytest.mark.slow),
        pytest.param("base", base_by_records, 30_000, marks=pytest.mark.slow),
        pytest.param("resolution", resolution_by_likelihood, 10_000, marks=pytest.mark.slow),
        pytest.param("base", tables_below_the_bands, 30_000, marks=pytest.mark.slow),
        pytest.param("phi", phi_without_base, 10_000, marks=pytest.mark.slow),
    ],
)
def test_a_broken_conditional_is_found_out(
    prior: np.ndarray, name: str, broken: Step, draws: int
) -> None:
    z = z_scores(prior, from_chain(draws, {**STEPS, name: broken}))
    assert np.abs(z).max() > 8.0, z.round(1)


@pytest.mark.slow
def test_broken_classes_are_found_out(prior: np.ndarray) -> None:
    """Classes drawn without their weights."""
    z = z_scores(prior, from_chain(10_000, STEPS, classes=c.draw_eta))
    assert np.abs(z).max() > 8.0, z.round(1)


def test_products_are_those_of_every_row_alone() -> None:
    """Sharing the beginning of the products must not change a probability, nor a missing value."""
    rng = np.random.default_rng(3)
    eta, phi = rng.dirichlet(np.ones(H)), rng.random((5, H))
    rows = np.array([[0, -1], [0, 2], [0, 4], [1, -1], [1, 3]], dtype=np.int32)
    products = np.empty((3, H))
    products[0] = eta
    for row, shared in zip(rows, [0, 1, 1, 0, 1], strict=True):
        found = c.extend_products(row, shared, phi, products)
        factors = np.prod([phi[k] for k in row if k >= 0], axis=0)
        assert found == pytest.approx(eta @ factors, rel=1e-14)
