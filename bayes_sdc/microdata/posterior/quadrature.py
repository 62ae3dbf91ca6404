r"""Posterior of one or two parameters by the trapezoidal rule: no chains, and nothing to compile.

For a smooth density with both tails the rule converges faster than any power of its step
(Trefethen and Weideman 2014). Nodes stand on a lattice whose axes and unit are those of the normal
distribution at the mode. They are spread from the mode, neighbour by neighbour, for as long as the
density counts, so that a bent ridge has its nodes along the bend. The step is halved until moments
of the parameters no longer change.

Draws are exact and independent. A proposal comes from the density interpolated between the nodes,
which is a node chosen by its weight and the difference of two uniform numbers in each direction,
and is accepted by the ratio of the density to the interpolated one.

References
----------
L. N. Trefethen, J. A. C. Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56
(2014) 385-458, https://doi.org/10.1137/130932132.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LogDensity = Callable[[Floats], Floats]  # of points, shape (point, parameter)

FIRST_STEP = 0.8  # in standard deviations at the mode; enough for a normal density
HALVINGS = 5
TOLERANCE = 1e-8  # of moments, between a step and its half
NEGLIGIBLE = 40.0  # below the largest log density, from where on a node does not count
DROPPED = 1e-10  # of any mean, that of the smallest nodes together, is left out of the result
SCANNED = 33  # points a parameter, among which modes are looked for
MODES = 3  # followed up to the top
MOST_NODES = 1_000_000
HALF = 1 << 30  # makes two lattice indices one code
BOUND = 1.25  # of the density relative to the interpolated one


class Lattice(NamedTuple):
    """Evaluated nodes ``centre + step * basis @ index``, in the order of their codes."""

    centre: Floats
    basis: Floats
    step: float
    code: Integers
    log_density: Floats

    def points(self, index: npt.NDArray[np.int64 | np.float64]) -> Floats:
        """Return where lattice indices are, which may have fractions."""
        return np.asarray(self.centre + self.step * index @ self.basis.T, dtype=np.float64)


class Quadrature(NamedTuple):
    """Nodes that stand for a distribution.

    Parameters
    ----------
    points : array of float, shape (node, parameter)
        Values of the parameters.
    weights : array of float, shape (node,)
        They add up to 1: a mean over the distribution is a weighted sum over the nodes.
    error : float
        Largest relative change of a moment when the step is halved.
    converged : bool
        Whether that is within 1e-8.
    fine : Lattice
        That of the halved step, from which draws are made.
    """

    points: Floats
    weights: Floats
    error: float
    converged: bool
    fine: Lattice


def integrate(log_density: LogDensity, scan: Sequence[tuple[float, float]]) -> Quadrature:
    """Find nodes and weights of a posterior.

    Parameters
    ----------
    log_density : callable
        Log of a density up to a constant at points of shape (point, parameter), one or two
        parameters. It must have tails on both sides, so light that the exponentials of the
        parameters and of their negatives have means: logs with normal priors.
    scan : sequence of pairs
        For each parameter an interval that holds the modes.

    Returns
    -------
    Quadrature
        With the error of moments of the parameters and of their exponentials.

    Examples
    --------
    >>> normal = integrate(lambda x: -0.5 * ((x[:, 0] - 3.0) / 2.0) ** 2, [(-9.0, 9.0)])
    >>> round(float(normal.weights @ normal.points[:, 0]), 9), normal.converged
    (3.0, True)
    """
    modes = _modes(log_density, scan)
    centre = modes[0]
    basis = _basis(log_density, centre, scan)
    starts = np.rint((modes - centre) @ np.linalg.inv(basis).T / FIRST_STEP).astype(np.int64)
    coarse = _flood(log_density, Lattice(centre, basis, FIRST_STEP, *_nothing()), starts)
    top = coarse.log_density.max()
    before = _moments(coarse, top)
    for _ in range(HALVINGS):
        fine = _halved(log_density, coarse)
        after = _moments(fine, top)
        error = float(np.max(np.abs(after - before) / _scale(after)))
        if error <= TOLERANCE or len(fine.code) > MOST_NODES:
            break
        coarse, before = fine, after
    weights = np.exp(coarse.log_density - top)
    points = coarse.points(_index(coarse.code, len(centre)))
    share = _shares(points - centre, weights)
    order = np.argsort(share, kind="stable")
    kept = np.sort(order[np.cumsum(share[order]) > DROPPED])
    return Quadrature(
        points[kept],
        weights[kept] / weights[kept].sum(),
        error,
        error <= TOLERANCE,
        fine,
    )


def draw(
    found: Quadrature, log_density: LogDensity, number: int, rng: np.random.Generator
) -> Floats:
    """Draw independent values of the parameters, shape (draw, parameter)."""
    fine = found.fine
    dimension = len(fine.centre)
    top = fine.log_density.max()
    weights = np.exp(fine.log_density - top)
    index = _index(fine.code, dimension)
    cumulated = np.cumsum(weights)
    bound = BOUND
    while True:
        accepted: list[Floats] = []
        while sum(map(len, accepted)) < number:
            many = int(1.2 * bound * number) + 16
            chosen = np.searchsorted(cumulated, rng.random(many) * cumulated[-1], side="right")
            shift = rng.random((many, dimension)) - rng.random((many, dimension))
            proposal = index[np.minimum(chosen, len(index) - 1)] + shift
            points = fine.points(proposal)
            ratio = np.exp(log_density(points) - top) / _interpolated(fine, weights, proposal)
            keep = rng.random(many) * bound < ratio
            if ratio.max() > bound:
                break
            accepted.append(points[keep])
        else:
            return np.concatenate(accepted)[:number]
        bound = 2.0 * float(ratio.max())


def _modes(log_density: LogDensity, scan: Sequence[tuple[float, float]]) -> Floats:
    """Tops of the density, the highest first; those that do not count beside it are left out."""
    axes = [np.linspace(low, high, SCANNED) for low, high in scan]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = log_density(grid.reshape(-1, len(scan))).reshape(grid.shape[:-1])
    padded = np.pad(values, 1, constant_values=-np.inf)
    around = [
        padded[tuple(slice(1 + k, 1 + k + SCANNED) for k in offset)]
        for offset in _offsets(len(scan))
    ]
    top = values >= np.max(around, axis=0)
    starts = grid[top][np.argsort(-values[top], kind="stable")[:MODES]]

    def loss(x: Floats) -> float:
        return -float(log_density(x[None])[0])

    found = [
        minimize(
            loss,
            np.asarray(start, dtype=np.float64),
            method="Nelder-Mead",
            options={"xatol": 1e-6, "fatol": 1e-6, "maxiter": 400},
        )
        for start in starts
    ]
    found.sort(key=lambda result: float(result.fun))
    return np.array([result.x for result in found if result.fun < found[0].fun + NEGLIGIBLE])


def _basis(log_density: LogDensity, mode: Floats, scan: Sequence[tuple[float, float]]) -> Floats:
    """Axes of the normal distribution at the mode, each a standard deviation long.

    A direction in which the density does not curve gets an eighth of what was scanned.
    """
    dimension, width = len(mode), 1e-3
    offsets = np.array(list(itertools.product((-1, 0, 1), repeat=dimension)))
    values = log_density(mode + width * offsets).reshape((3,) * dimension)
    curvature = np.empty((dimension, dimension))
    if dimension == 1:
        curvature[0, 0] = values[0] - 2.0 * values[1] + values[2]
    else:
        curvature[0, 0] = values[0, 1] - 2.0 * values[1, 1] + values[2, 1]
        curvature[1, 1] = values[1, 0] - 2.0 * values[1, 1] + values[1, 2]
        cross = values[0, 0] - values[0, 2] - values[2, 0] + values[2, 2]
        curvature[0, 1] = curvature[1, 0] = 0.25 * cross
    eigenvalues, axes = np.linalg.eigh(-curvature / width**2)
    longest = max(high - low for low, high in scan) / 8.0
    return np.asarray(axes / np.sqrt(np.maximum(eigenvalues, longest**-2.0)))


def _offsets(dimension: int) -> Integers:
    every = itertools.product((-1, 0, 1), repeat=dimension)
    return np.array([offset for offset in every if any(offset)])


def _nothing() -> tuple[Integers, Floats]:
    return np.empty(0, np.int64), np.empty(0)


def _code(index: Integers) -> Integers:
    code = index[:, 0] + HALF
    return code if index.shape[1] == 1 else code * (2 * HALF) + index[:, 1] + HALF


def _index(code: Integers, dimension: int) -> Integers:
    if dimension == 1:
        return code[:, None] - HALF
    return np.column_stack([code // (2 * HALF), code % (2 * HALF)]) - HALF


def _with(lattice: Lattice, code: Integers, log_density: Floats) -> Lattice:
    every = np.concatenate([lattice.code, code])
    order = np.argsort(every)
    values = np.concatenate([lattice.log_density, log_density])
    return lattice._replace(code=every[order], log_density=values[order])


def _flood(log_density: LogDensity, lattice: Lattice, starts: Integers) -> Lattice:
    """Evaluate the nodes that count, from the starts outward, and those about them."""
    offsets = _offsets(len(lattice.centre))
    frontier = np.unique(_code(starts))
    while len(frontier) and len(lattice.code) <= MOST_NODES:
        index = _index(frontier, len(lattice.centre))
        values = log_density(lattice.points(index))
        lattice = _with(lattice, frontier, values)
        live = index[values > lattice.log_density.max() - NEGLIGIBLE]
        about = (live[:, None] + offsets).reshape(-1, len(lattice.centre))
        frontier = np.setdiff1d(_code(about), lattice.code)
    return lattice


def _halved(log_density: LogDensity, lattice: Lattice) -> Lattice:
    """Evaluate the nodes between those that count."""
    dimension = len(lattice.centre)
    index = 2 * _index(lattice.code, dimension)
    fine = lattice._replace(step=0.5 * lattice.step, code=_code(index))
    live = index[lattice.log_density > lattice.log_density.max() - NEGLIGIBLE]
    about = (live[:, None] + _offsets(dimension)).reshape(-1, dimension)
    new = np.setdiff1d(_code(about), fine.code)
    return _with(fine, new, log_density(fine.points(_index(new, dimension))))


def _moments(lattice: Lattice, top: float) -> Floats:
    """Integral, means and mean products in units of the basis, and means of the exponentials."""
    dimension = len(lattice.centre)
    index = _index(lattice.code, dimension)
    weights = np.exp(lattice.log_density - top) * lattice.step**dimension
    total = weights.sum()
    z = lattice.step * index
    exponentials = np.exp(lattice.points(index) - lattice.centre)
    products = [
        z[:, i] * z[:, j] for i, j in itertools.combinations_with_replacement(range(dimension), 2)
    ]
    every = np.column_stack([z, *products, exponentials, 1.0 / exponentials])
    return np.concatenate([[total], weights @ every / total])


def _shares(shift: Floats, weights: Floats) -> Floats:
    """Largest share of each node in the integral and the means of the exponentials.

    A node far out may have next to no weight, and yet much of the mean of an exponential.
    """
    every = weights[:, None] * np.column_stack([np.ones(len(shift)), np.exp(shift), np.exp(-shift)])
    return np.asarray((every / every.sum(axis=0)).max(axis=1), dtype=np.float64)


def _scale(moments: Floats) -> Floats:
    """What a change of each moment is relative to: its size, or 1 for one that may be 0."""
    return np.maximum(np.abs(moments), 1.0)


def _interpolated(lattice: Lattice, weights: Floats, position: Floats) -> Floats:
    """Density between the nodes, linear in each direction; nodes that were left out have none."""
    corner = np.floor(position)
    part = position - corner
    total = np.zeros(len(position))
    for offset in itertools.product((0, 1), repeat=position.shape[1]):
        share = np.prod(np.where(offset, part, 1.0 - part), axis=1)
        code = _code(corner.astype(np.int64) + np.array(offset))
        place = np.minimum(np.searchsorted(lattice.code, code), len(lattice.code) - 1)
        total += share * np.where(lattice.code[place] == code, weights[place], 0.0)
    return total
