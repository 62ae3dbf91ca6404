r"""PRAM, the post-randomisation method: values are changed at random, with known probabilities.

The matrix of a key has the probability M[a, b] that the level a is released as b. An invariant one
leaves the expected counts of the levels as they are: with shares t of the levels,
:math:`t^\top M = t^\top`. Here a value stays with probability 1 - c and is else drawn anew from the
shares of the key, M = (1 - c) I + c 1 t', which is invariant and reversible for any shares; with c
so that a value differs from the true one with the probability that is asked for, on average.

An intruder who knows the matrices weighs a record that shows y for a target of whom they know the
values x of some keys K by

.. math:: w = P(x_K \mid y) = \sum_{x' : x'_K = x_K} g(x') \prod_j M_j[x'_j, y_j] \Big/ \sum_{x'}
    g(x') \prod_j M_j[x'_j, y_j] ,

where g is the probability of a combination under the latent classes, of which both sums are
mixtures again. A key that the target lacks, or that the intruder does not know of them, is summed
over above as it is below, and a value that the record lacks says nothing. By the rule "own" a
missing value is a level that always stays. w is a mean over draws of the model.

Several data sets side by side count as linked, because columns or an order that stay link them: a
record then shows a y in each of them, and :math:`M_j[x_j, y_j]` is the product over the data sets.

References
----------
J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg and P.-P. de Wolf, "Post randomisation for
statistical disclosure control: theory and implementation", Journal of Official Statistics 1998.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.treatment.matching import SAME, Matches
from bayes_sdc.microdata.treatment.states import States
from bayes_sdc.microdata.treatment.synthesis import order_of_content
from bayes_sdc.seeds import generator

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
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
def likelihood(target: np.ndarray, shown: np.ndarray, likely: np.ndarray) -> float:
    """Chance of what a record shows of the keys that are known of a target, but for its scale."""
    chance = 1.0
    for j in range(len(target)):
        if target[j] >= 0:
            chance *= likely[shown[j], target[j]]
            if chance == 0.0:
                break
    return chance


@compiled
def fits(joint: np.ndarray, rest: np.ndarray, into: np.ndarray) -> None:
    """Chance, by draw, of a target's values together with what a record shows of other keys."""
    for s in range(joint.shape[0]):
        into[s] = 0.0
        for h in range(joint.shape[1]):
            into[s] += joint[s, h] * rest[s, h]


@compiled
def weigh_changed(
    at: np.ndarray, targets: np.ndarray, joint: np.ndarray, shown: np.ndarray, sizes: np.ndarray,
    likely: np.ndarray, rest: np.ndarray, rest_of: np.ndarray, scale: np.ndarray,
    best: np.ndarray, tied: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Weigh every shown combination for every target of ``at``, which lack the same keys.

    ``rest`` has, by draw and class, the chances of what is shown of the keys that these targets
    lack, ``rest_of`` the place of each shown combination in it, and ``scale`` by draw one over the
    probability of all that it shows.
    """
    draws = scale.shape[1]
    for i in range(len(at)):
        t = at[i]
        part = np.full((len(rest), draws), -1.0)
        for k in range(len(shown)):
            chance = likelihood(targets[t], shown[k], likely)
            if chance == 0.0:
                continue
            if part[rest_of[k], 0] < 0.0:
                fits(joint[i], rest[rest_of[k]], part[rest_of[k]])
            w = chance * mean_fit(part[rest_of[k]], scale[k])
            if w == 0.0:
                continue
            total[t] += w * sizes[k]
            if w > best[t] * (1.0 + SAME):
                best[t], tied[t] = w, sizes[k]
            elif w >= best[t] * (1.0 - SAME):
                tied[t] += sizes[k]


@compiled
def mean_fit(part: np.ndarray, scale: np.ndarray) -> float:
    """Mean over draws of a chance given what is shown, but for the scale of the likelihood."""
    mean = 0.0
    for s in range(len(part)):
        mean += part[s] * scale[s] / len(part)
    return mean


@compiled
def weigh_own(
    targets: np.ndarray, joint: np.ndarray, place: np.ndarray, shown: np.ndarray,
    likely: np.ndarray, rest: np.ndarray, rest_of: np.ndarray, scale: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Weigh what each record shows for itself as the target; ``joint`` is that of ``place``."""
    own = np.zeros(len(targets))
    part = np.empty(scale.shape[1])
    for i in range(len(targets)):
        fits(joint[place[i]], rest[rest_of[i]], part)
        own[i] = likelihood(targets[i], shown[i], likely) * mean_fit(part, scale[i])
    return own


def _with_missing(matrix: Floats) -> Floats:
    """Put a first level before the others that stays what it is.

    >>> _with_missing(np.array([[0.5, 0.5], [0.25, 0.75]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]]
    """
    wider = np.eye(len(matrix) + 1)
    wider[1:, 1:] = matrix
    return wider


def looks_of(shown: Codes, matrix: Floats) -> tuple[Codes, Floats]:
    """Number what records show of a key, and find how likely each true level makes it.

    Parameters
    ----------
    shown : array of int32, shape (dataset, record)
        Released levels, -1 for missing.
    matrix : array of float, shape (level, level)
        Rows are true levels.

    Returns
    -------
    look : array of int32, shape (record,)
        The same for records that show the same levels, in whichever of the data sets.
    likely : array of float, shape (look, level)
        In proportion to the probability of a look, the largest being 1; ones where nothing is
        shown.

    Examples
    --------
    >>> twice = np.array([[0, 1, -1], [1, 0, -1]], dtype=np.int32)
    >>> look, likely = looks_of(twice, np.array([[0.75, 0.25], [0.5, 0.5]]))
    >>> look.tolist(), likely.round(2).tolist()
    ([1, 1, 0], [[1.0, 1.0], [0.75, 1.0]])
    """
    found, look = np.unique(np.sort(shown.T, axis=1), axis=0, return_inverse=True)
    likely = np.ones((len(found), len(matrix)))
    for column in found.T:
        seen = column >= 0
        likely[seen] *= matrix[:, column[seen]].T
        # many data sets would otherwise underflow; the scale is the same for all true levels
        likely /= likely.max(axis=1, keepdims=True)
    return look.ravel().astype(np.int32), likely


class _Shown(NamedTuple):
    """What the records show, and the model's chance of it.

    ``of`` is the group of each record, ``looks`` the looks of each group by key, numbered over all
    keys, and ``likely`` the chance of each by true level, ``chances`` by draw and class. ``scale``,
    by group and draw, is one over the chance of all that a group shows.
    """

    of: npt.NDArray[np.intp]
    looks: Integers
    likely: Floats
    chances: Floats
    scale: Floats


def _shown(released: Codes, states: States, matrices: list[Floats]) -> _Shown:
    layout = states.layout
    looks, tables, chances = [], [], []
    for j, matrix in enumerate(matrices):
        # by the rule "own" missing is a level: the first, which never changes
        of = slice(layout.start[j], layout.start[j + 1])
        whole = _with_missing(matrix) if layout.lacking[j] else matrix
        look, likely = looks_of(released[:, :, j] + np.int32(layout.lacking[j]), whole)
        looks.append(look)
        tables.append(likely)
        chances.append(np.einsum("lx,sxh->lsh", likely, states.phi[:, of]))
    numbers = [len(one) for one in tables]
    shown_of, groups = patterns(np.stack(looks, axis=1), tuple(numbers))
    groups = groups + np.concatenate([[0], np.cumsum(numbers)])[:-1]
    padded = np.zeros((sum(numbers), max(one.shape[1] for one in tables)))
    for first, one in zip(np.cumsum([0, *numbers]), tables, strict=False):
        padded[first : first + len(one), : one.shape[1]] = one
    every = np.concatenate(chances)
    evidence = (_product(groups, every, states.eta) * states.eta).sum(axis=2)
    return _Shown(shown_of, groups.astype(np.int64), padded, every, 1.0 / evidence)


def _product(looks: Integers, chances: Floats, eta: Floats) -> Floats:
    """Chance of some looks in each draw and class, shape (group, draw, class)."""
    found = np.ones((len(looks), *eta.shape))
    for column in looks.T:
        found *= chances[column]
    return found


def match_changed(
    data: Microdata, known: Flags, states: States, released: Codes, matrices: list[Floats]
) -> Matches:
    """Match every record as a target against a file that was changed at random.

    Parameters
    ----------
    data : Microdata
        The untreated file.
    known : array of bool, shape (key,)
        Keys of the target that the intruder knows; others inform about them.
    states : States
        Draws of the model, over which probabilities are averaged.
    released : array of int32, shape (dataset, record, key)
        What is shown; the intruder combines what all data sets show of a record.
    matrices : list of array
        Known to the intruder.

    Returns
    -------
    Matches
        By record.
    """
    layout = states.layout
    sizes = tuple(np.diff(layout.start).tolist())
    true = np.where(known, data.codes + layout.lacking, -1).astype(np.int32)
    target_of, targets = patterns(true, sizes)
    shown = _shown(released, states, matrices)
    counts = np.bincount(shown.of, minlength=len(shown.looks)).astype(np.int64)
    masks, mask = np.unique(targets < 0, axis=0, return_inverse=True)
    mask = mask.ravel()
    best, total, own = np.zeros(len(targets)), np.zeros(len(targets)), np.zeros(data.n)
    tied = np.zeros(len(targets), dtype=np.int64)
    for a, absent in enumerate(masks):
        at = np.flatnonzero(mask == a)
        apart, rest_of = np.unique(shown.looks[:, absent], axis=0, return_inverse=True)
        rest, rest_of = _product(apart, shown.chances, states.eta), rest_of.ravel()
        rows = targets[at] + layout.start[:-1]
        joint = np.repeat(states.eta[None], len(at), axis=0)
        for j in np.flatnonzero(~absent):
            joint *= states.phi[:, rows[:, j]].transpose(1, 0, 2)
        weigh_changed(
            at, targets, joint, shown.looks, counts, shown.likely, rest, rest_of, shown.scale,
            best, tied, total,
        )  # fmt: skip
        mine = np.flatnonzero(mask[target_of] == a)
        of, by = target_of[mine], shown.of[mine]
        own[mine] = weigh_own(
            targets[of], joint, np.searchsorted(at, of), shown.looks[by], shown.likely,
            rest, rest_of[by], shown.scale[by],
        )  # fmt: skip
    best, total, tied = best[target_of], total[target_of], tied[target_of]
    hits = (own > 0.0) & (own >= best * (1.0 - SAME))
    right = np.divide(1.0, tied, out=np.zeros(data.n), where=hits)
    believed = np.divide(own, total, out=np.zeros(data.n), where=total > 0.0)
    return Matches(right, np.clip(believed, 0.0, 1.0), tied)
