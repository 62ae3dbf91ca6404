r"""PRAM, the post-randomisation method: values are changed at random, with known probabilities.

The matrix of a key has the probability M[a, b] that the level a is released as b. An invariant one
leaves the expected counts of the levels as they are: with shares t of the levels,
:math:`t^\top M = t^\top`. Here a value stays with probability 1 - c and is else drawn anew from the
shares of the key, M = (1 - c) I + c 1 t', which is invariant and reversible for any shares; with c
so that a value differs from the true one with the probability that is asked for, on average.

An intruder who knows the matrices weighs a record that shows y for a target with values x by

.. math:: w = g(x) \prod_j M_j[x_j, y_j] \Big/ \sum_{x'} g(x') \prod_j M_j[x'_j, y_j] ,

where g is the probability of a combination under the latent classes, of which the denominator is a
mixture again. By the rule "own" a missing value is a level that always stays.

References
----------
J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg and P.-P. de Wolf, "Post randomisation for
statistical disclosure control: theory and implementation", Journal of Official Statistics 1998.
"""

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.treatment.matching import SAME, Matches
from bayes_sdc.microdata.treatment.population import probabilities
from bayes_sdc.microdata.treatment.states import Layout, States
from bayes_sdc.microdata.treatment.synthesis import order_of_content
from bayes_sdc.seeds import generator

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def invariant_matrix(shares: npt.ArrayLike, change: float) -> Floats:
    """Return transition probabilities under which the expected shares of the levels stay.

    Parameters
    ----------
    shares : array_like of float, shape (level,)
        Share of each level, 0 or more, with sum 1.
    change : float
        Mean probability that a value differs from the true one, from 0 to that of a draw from the
        shares.

    Returns
    -------
    array of float, shape (level, level)
        Rows are true levels.

    Raises
    ------
    InputError
        If the change is not possible with these shares.

    Examples
    --------
    >>> invariant_matrix([0.5, 0.5], 0.2).round(3).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    t = np.asarray(shares, dtype=np.float64)
    most = 1.0 - float(t @ t)
    if not 0.0 <= change <= most + 1e-12:
        raise InputError(
            f"PRAM can change at most a share of {most:.3f} of the values of this key and keep its "
            f"shares; asked for is {change!r}"
        )
    c = min(change / most, 1.0) if most > 0.0 else 0.0
    return np.asarray((1.0 - c) * np.eye(len(t)) + c * t)


def matrices_of(data: Microdata, treated: Flags, change: float) -> list[Floats]:
    """Matrices of all keys; the identity for those that are not treated.

    A key that cannot be changed so often is drawn anew from its shares.
    """
    matrices = []
    for j, labels in enumerate(data.labels):
        counts = np.bincount(data.codes[:, j][data.codes[:, j] >= 0], minlength=len(labels))
        shares = counts / max(int(counts.sum()), 1)
        most = 1.0 - float(shares @ shares)
        matrices.append(invariant_matrix(shares, min(change, most) if treated[j] else 0.0))
    return matrices


def randomise(data: Microdata, matrices: list[Floats], *, datasets: int, seed: int) -> Codes:
    """Draw released values; missing ones stay. The order of the records does not matter."""
    released = np.repeat(data.codes[None], datasets, axis=0)
    order = order_of_content(data, np.arange(data.n))
    for d in range(datasets):
        rng = generator(seed, "post-randomisation", str(d))
        for j, matrix in enumerate(matrices):
            u = rng.random(data.n)
            known = order[data.codes[order, j] >= 0]
            rows = np.cumsum(matrix, axis=1)[data.codes[known, j]]
            drawn = (u[: len(known), None] * rows[:, -1:] >= rows).sum(axis=1)
            released[d, known, j] = np.minimum(drawn, len(matrix) - 1)
    return released


@compiled
def weigh_changed(
    targets: np.ndarray, shown: np.ndarray, sizes: np.ndarray, evidence: np.ndarray,
    prior: np.ndarray, start: np.ndarray, chances: np.ndarray, width: np.ndarray,
    best: np.ndarray, tied: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Weigh every shown combination for every target; ``chances`` holds all matrices in a row."""
    for i in range(len(targets)):
        for k in range(len(shown)):
            w = prior[i] / evidence[k]
            for j in range(targets.shape[1]):
                if targets[i, j] >= 0 and shown[k, j] >= 0:
                    w *= chances[start[j] + targets[i, j] * width[j] + shown[k, j]]
                    if w == 0.0:
                        break
            if w == 0.0:
                continue
            total[i] += w * sizes[k]
            if w > best[i] * (1.0 + SAME):
                best[i], tied[i] = w, sizes[k]
            elif w >= best[i] * (1.0 - SAME):
                tied[i] += sizes[k]


def _with_missing(matrix: Floats) -> Floats:
    """Put a first level before the others that stays what it is.

    >>> _with_missing(np.array([[0.5, 0.5], [0.25, 0.75]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]]
    """
    wider = np.eye(len(matrix) + 1)
    wider[1:, 1:] = matrix
    return wider


def _rows(layout: Layout, keys: npt.NDArray[np.intp], places: Codes) -> npt.NDArray[np.int64]:
    """Rows of phi for places among the levels of some keys; -1 for what is to be summed over."""
    rows = np.full((len(places), len(layout.lacking)), -1, dtype=np.int64)
    rows[:, keys] = np.where(places < 0, -1, places + layout.start[keys])
    return rows


def match_changed(
    data: Microdata, known: Flags, states: States, released: Codes, matrices: list[Floats]
) -> Matches:
    """Match every record as a target against a file that was changed at random.

    Parameters
    ----------
    data : Microdata
        The untreated file.
    known : array of bool, shape (key,)
        Keys of the target that the intruder knows.
    states : States
        Draws of the model; the first of them serves, as the one that the intruder believes in.
    released : array of int32, shape (record, key)
        What is shown.
    matrices : list of array
        Known to the intruder.

    Returns
    -------
    Matches
        By record.
    """
    layout, keys = states.layout, np.flatnonzero(known)
    sizes = tuple(np.diff(layout.start)[keys].tolist())
    # by the rule "own" missing is a level: the first, which never changes
    lacking = layout.lacking[keys].astype(np.int32)
    true, seen = (
        np.ascontiguousarray(codes[:, keys] + lacking).astype(np.int32)
        for codes in (data.codes, released)
    )
    target_of, targets = patterns(true, sizes)
    shown_of, shown = patterns(seen, sizes)
    chosen = [_with_missing(matrices[j]) if layout.lacking[j] else matrices[j] for j in keys]
    eta, phi = states.eta[0], states.phi[0]
    prior = probabilities(_rows(layout, keys, targets), eta, phi)
    # the levels of a class after the change are a mixture of those before
    after = phi.copy()
    for j, matrix in zip(keys, chosen, strict=True):
        of = slice(layout.start[j], layout.start[j + 1])
        after[of] = matrix.T @ phi[of]
    evidence = probabilities(_rows(layout, keys, shown), eta, after)
    width = np.array([len(one) for one in chosen])
    start = np.concatenate([[0], np.cumsum(width * width)])[:-1]
    flat = np.concatenate([one.ravel() for one in chosen])
    counts = np.bincount(shown_of, minlength=len(shown)).astype(np.int64)
    best, total = np.zeros(len(targets)), np.zeros(len(targets))
    tied = np.zeros(len(targets), dtype=np.int64)
    weigh_changed(targets, shown, counts, evidence, prior, start, flat, width, best, tied, total)
    own = prior[target_of] / evidence[shown_of]
    for c, matrix in enumerate(chosen):
        both = (true[:, c] >= 0) & (seen[:, c] >= 0)
        at = (np.where(both, codes[:, c], 0) for codes in (true, seen))
        own *= np.where(both, matrix[tuple(at)], 1.0)
    best, total, tied = best[target_of], total[target_of], tied[target_of]
    right = np.where(own >= best * (1.0 - SAME), 1.0 / tied, 0.0)
    return Matches(right, np.clip(own / total, 0.0, 1.0), tied)
