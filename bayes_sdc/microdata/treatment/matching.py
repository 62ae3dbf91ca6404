r"""What an intruder makes of a treated file: which record they take for their target's.

The intruder knows the true values x of some keys of a target. Of a released record they know what
it shows, which of its values were hidden (suppressed, or replaced by synthetic ones), and the model
they were hidden by. Before they look at x every record is as likely the target's; afterwards with
a probability in proportion to

.. math:: w_j = P(\text{the true values of record } j \text{ are } x \mid \text{what is released}).

A record that shows its values has 1 where they are x and else 0. One with hidden values has, where
the others are those of x, the probability of the hidden ones under the model given all that the
record shows, other variables among them. An intruder who knows the treated keys but not the treated
records takes each for treated with the share that was treated: they cannot tell a synthetic value
from a true one, so a record that looks right has 1 - share more than one that does not; where it
lacks a value that was missing in the file, 1 - share times the chance that this is the target's,
given all that it shows. The drawn values themselves say nothing of the true ones beyond the model,
because they were drawn from it.

References
----------
J. P. Reiter and R. Mitra, "Estimating risks of identification disclosure in partially synthetic
data", Journal of Privacy and Confidentiality 2009, doi:10.29012/jpc.v1i1.567. J. Drechsler and J.
P. Reiter, "Accounting for intruder uncertainty due to sampling when estimating identification
disclosure risks in partially synthetic data", Privacy in Statistical Databases 2008,
doi:10.1007/978-3-540-87471-3_19.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.treatment.states import States

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SAME = 1e-9  # relative difference below which two probabilities are equal


class Matches(NamedTuple):
    """How an intruder would fare with each record as their target, one array a column.

    Parameters
    ----------
    right : array of float, shape (record,)
        Probability that the best match is the target's own record: one over the number of records
        that share the highest probability where its own is among them, else 0.
    believed : array of float, shape (record,)
        Probability that the intruder gives to the target's own record.
    tied : array of int, shape (record,)
        Records that share the highest probability.
    """

    right: Floats
    believed: Floats
    tied: Integers


def best_of(guesses: Sequence[Matches]) -> Matches:
    """Take, for each record, the guess that is most likely to be right.

    Examples
    --------
    >>> a = Matches(np.array([0.0, 0.5]), np.array([0.1, 0.4]), np.array([3, 2]))
    >>> b = Matches(np.array([1.0, 0.1]), np.array([0.2, 0.1]), np.array([1, 9]))
    >>> best_of([a, b]).right.tolist()
    [1.0, 0.5]
    """
    best = np.argmax([one.right for one in guesses], axis=0)
    return Matches(
        *(
            np.choose(best, [one[column] for one in guesses])
            for column in range(len(Matches._fields))
        )
    )


@compiled
def posterior_classes(rows: np.ndarray, eta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Probability of each class given what a row shows, -1 being hidden; (row, draw, class)."""
    found = np.empty((len(rows), eta.shape[0], eta.shape[1]))
    for i in range(len(rows)):
        for s in range(eta.shape[0]):
            total = 0.0
            for h in range(eta.shape[1]):
                part = eta[s, h]
                for j in range(rows.shape[1]):
                    if rows[i, j] >= 0:
                        part *= phi[s, rows[i, j], h]
                found[i, s, h] = part
                total += part
            for h in range(eta.shape[1]):
                found[i, s, h] /= total
    return found


@compiled
def chance(
    row: np.ndarray, keys: np.ndarray, shown: np.ndarray, classes: np.ndarray, phi: np.ndarray
) -> float:
    """Probability that a record has the target's values of those of the keys it does not show."""
    total = 0.0
    for s in range(classes.shape[0]):
        for h in range(classes.shape[1]):
            part = classes[s, h]
            for k in range(len(keys)):
                if shown[keys[k]] < 0:
                    part *= phi[s, row[keys[k]], h]
            total += part
    mean: float = total / classes.shape[0]
    return mean


@compiled
def fits(target: np.ndarray, keys: np.ndarray, shown: np.ndarray) -> bool:
    """Tell whether a record shows nothing but the target's values of the keys."""
    for k in range(len(keys)):
        if shown[keys[k]] >= 0 and shown[keys[k]] != target[keys[k]]:
            return False
    return True


@compiled
def tally(
    t: int, w: float, number: int, best: np.ndarray, tied: np.ndarray, total: np.ndarray
) -> None:
    """Count so many records of one weight for a target."""
    if number == 0 or w == 0.0:
        return
    total[t] += w * number
    if w > best[t] * (1.0 + SAME):
        best[t], tied[t] = w, number
    elif w >= best[t] * (1.0 - SAME):
        tied[t] += number


@compiled
def weigh(
    at: np.ndarray, targets: np.ndarray, rows: np.ndarray, bucket: np.ndarray, first: np.ndarray,
    members: np.ndarray, shown: np.ndarray, sizes: np.ndarray, hidden: np.ndarray,
    classes: np.ndarray, phi: np.ndarray, share: float, looks: np.ndarray, wanted: np.ndarray,
    from_: np.ndarray, lacking: np.ndarray, number: np.ndarray, of_lacking: np.ndarray,
    best: np.ndarray, tied: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Weigh the groups of records that agree with each target in what both show.

    ``members[first[b] : first[b + 1]]`` are the groups of bucket b. ``looks`` has, sorted, group
    times ``wanted.max() + 1`` plus the number of the values its records show for the hidden keys;
    ``wanted`` is the number of the target's values. ``lacking[from_[g] : from_[g + 1]]`` is what
    ``number`` records of group g show that lack a value of these, with classes ``of_lacking``.
    Without hidden keys everybody has weight 1.
    """
    step = 1
    if len(wanted) > 0:
        step = int(wanted.max()) + 1
    for i in range(len(at)):
        t = at[i]
        if bucket[i] < 0:
            continue
        for place in range(first[bucket[i]], first[bucket[i] + 1]):
            g = members[place]
            alike, apart = 0, sizes[g]
            plain = 1.0
            if len(hidden) > 0:
                plain = chance(rows[i], hidden, shown[g], classes[g], phi) * share
                if len(looks) > 0:
                    code = g * step + wanted[i]
                    alike = np.searchsorted(looks, code, side="right")
                    alike -= np.searchsorted(looks, code, side="left")
                    apart = sizes[g] - alike
                for k in range(from_[g], from_[g + 1]):
                    if fits(targets[i], hidden, lacking[k]):
                        # what it shows is the target's, and what it lacks may be
                        may = chance(rows[i], hidden, lacking[k], of_lacking[k], phi)
                        tally(t, plain + (1.0 - share) * may, number[k], best, tied, total)
                        apart -= number[k]
            tally(t, plain, apart, best, tied, total)
            tally(t, plain + 1.0 - share, alike, best, tied, total)


@compiled
def own_chances(
    rows: np.ndarray, group: np.ndarray, hidden: np.ndarray, shown: np.ndarray,
    classes: np.ndarray, phi: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Probability that the hidden keys of each record have its own true values."""
    found = np.empty(len(rows))
    for i in range(len(rows)):
        found[i] = chance(rows[i], hidden, shown[group[i]], classes[group[i]], phi)
    return found


class _Groups(NamedTuple):
    """Records that show the same, by what they hide of the known keys.

    ``of`` is the group of each record, ``shown`` the rows each shows, -1 for hidden; ``sizes`` its
    records and ``mask`` the number of its set of hidden known keys in ``masks``.
    """

    of: Integers
    shown: Codes
    sizes: Integers
    mask: Integers
    masks: Flags


def _group(shown: Codes, known: Flags, sizes: tuple[int, ...]) -> _Groups:
    of, found = patterns(shown, sizes)
    masks, mask = np.unique((found < 0) & known, axis=0, return_inverse=True)
    return _Groups(of, found, np.bincount(of), mask.ravel(), masks)


def match_records(
    truth: Codes,
    hidden: Flags,
    known: Flags,
    states: States,
    *,
    released: Codes | None = None,
    share: float = 1.0,
) -> Matches:
    """Match every record as a target against the whole file.

    Parameters
    ----------
    truth : array of int32, shape (record, key)
        Codes as read, -1 for missing.
    hidden : array of bool, shape (record, key)
        Values that the intruder knows not to be the true ones. Where they do not know which records
        were treated, the treated keys of every record.
    known : array of bool, shape (key,)
        Keys of the target that the intruder knows; others only inform about hidden values.
    states : States
        Draws of the model, over which probabilities are averaged.
    released : array of int32, shape (record, key), optional
        What the file shows, where the intruder cannot tell a drawn value from a true one.
    share : float
        Share of treated records, which they then know.

    Returns
    -------
    Matches
        By record.
    """
    layout = states.layout
    sizes = tuple(np.diff(layout.start).tolist())
    lacks = layout.lacking[None]
    own_level = truth + lacks.astype(np.int32)  # by the rule "own" missing is a level
    seen = own_level if released is None else released + lacks.astype(np.int32)
    groups = _group(np.where(hidden, -1, seen).astype(np.int32), known, sizes)
    target_of, targets = patterns(np.where(known, own_level, -1).astype(np.int32), sizes)
    rows = np.where(targets < 0, -1, targets + layout.start[:-1])
    masks, mask = np.unique((targets < 0) & known, axis=0, return_inverse=True)
    mask = mask.ravel()
    best, total = np.zeros(len(targets)), np.zeros(len(targets))
    tied = np.zeros(len(targets), dtype=np.int64)
    own = np.ones(len(truth))
    for a, missing in enumerate(masks):
        at = np.flatnonzero(mask == a)
        for b, hides in enumerate(groups.masks):
            these = np.flatnonzero(groups.mask == b)
            keys = np.flatnonzero(known & ~missing & hides)
            both = known & ~missing & ~hides
            classes = _classes(groups.shown[these], states) if len(keys) else np.empty((0, 0, 0))
            place = np.full(len(groups.sizes), -1, dtype=np.int64)
            place[these] = np.arange(len(these))
            bucket, first, members = _buckets(targets[at], groups.shown[these], both, sizes)
            looks, wanted = np.empty(0, np.int64), np.empty(0, np.int64)
            lacking = _Lacking.none(len(these), len(sizes))
            if released is not None and len(keys):
                looks, wanted = _looks(targets[at], seen, keys, sizes, place[groups.of])
                lacking = _lacking(seen, keys, sizes, place[groups.of], len(these))
            of_lacking = _classes(lacking.shown, states)
            weigh(
                at, targets[at], rows[at], bucket, first, members, groups.shown[these],
                groups.sizes[these], keys, classes, states.phi, share, looks, wanted,
                *lacking, of_lacking, best, tied, total,
            )  # fmt: skip
            mine = np.flatnonzero((mask[target_of] == a) & (groups.mask[groups.of] == b))
            if released is not None and both.any():
                # a record that was treated in other keys than these does not fit its own target
                fits = (seen[mine][:, both] == targets[target_of[mine]][:, both]).all(axis=1)
                own[mine[~fits]] = 0.0
                mine = mine[fits]
            if len(keys) and len(mine):
                own[mine] = share * own_chances(
                    rows[target_of[mine]], place[groups.of[mine]], keys, groups.shown[these],
                    classes, states.phi,
                )  # fmt: skip
                if released is not None:
                    alike = (seen[mine][:, keys] == targets[target_of[mine]][:, keys]).all(axis=1)
                    # a target never has a value that its own record lacks
                    own[mine] += (1.0 - share) * alike
    best, total, tied = best[target_of], total[target_of], tied[target_of]
    fits = (own > 0.0) & (own >= best * (1.0 - SAME))
    right = np.divide(1.0, tied, out=np.zeros(len(own)), where=fits)
    believed = np.divide(own, total, out=np.zeros(len(own)), where=total > 0.0)
    return Matches(right, np.clip(believed, 0.0, 1.0), tied)


def _classes(shown: Codes, states: States) -> Floats:
    rows = np.where(shown < 0, -1, shown + states.layout.start[:-1])
    return np.asarray(posterior_classes(rows, states.eta, states.phi))


def _buckets(
    targets: Codes, groups: Codes, both: Flags, sizes: tuple[int, ...]
) -> tuple[Integers, Integers, Integers]:
    """Number the values that both show; return those of targets, and groups sorted by them."""
    chosen = np.flatnonzero(both)
    stacked = np.concatenate([targets[:, chosen], groups[:, chosen]])
    of = np.zeros(len(stacked), dtype=np.int64)
    number = 1
    if len(chosen):
        of, found = patterns(np.ascontiguousarray(stacked), tuple(sizes[j] for j in chosen))
        number = len(found)
    of_groups = of[len(targets) :]
    members = np.argsort(of_groups, kind="stable")
    first = np.searchsorted(of_groups[members], np.arange(number + 1))
    return of[: len(targets)].astype(np.int64), first.astype(np.int64), members.astype(np.int64)


def _looks(
    targets: Codes, seen: Codes, keys: Integers, sizes: tuple[int, ...], group: Integers
) -> tuple[Integers, Integers]:
    """Number the values shown for hidden keys; return, sorted, those of groups, and of targets."""
    stacked = np.concatenate([targets[:, keys], seen[:, keys]])
    of, _ = patterns(np.ascontiguousarray(stacked), tuple(sizes[j] for j in keys))
    wanted, shown = of[: len(targets)].astype(np.int64), of[len(targets) :].astype(np.int64)
    here = group >= 0
    step = int(wanted.max(initial=0)) + 1
    fits = here & (shown < step)
    return np.sort(group[fits] * step + shown[fits]), wanted


class _Lacking(NamedTuple):
    """What records show that lack some of the hidden keys, by group: from ``start`` on."""

    start: Integers
    shown: Codes
    number: Integers

    @staticmethod
    def none(groups: int, keys: int) -> "_Lacking":
        """No record of so many groups lacks a key."""
        start = np.zeros(groups + 1, dtype=np.int64)
        return _Lacking(start, np.empty((0, keys), np.int32), np.empty(0, np.int64))


def _lacking(
    seen: Codes, keys: Integers, sizes: tuple[int, ...], group: Integers, groups: int
) -> _Lacking:
    """Count what the records of each group show that lack some of the keys themselves."""
    here = np.flatnonzero((group >= 0) & (seen[:, keys] < 0).any(axis=1))
    if not len(here):
        return _Lacking.none(groups, len(sizes))
    of, found = patterns(np.column_stack([group[here], seen[here]]), (groups, *sizes))
    start = np.searchsorted(found[:, 0], np.arange(groups + 1))
    shown = np.ascontiguousarray(found[:, 1:], dtype=np.int32)
    return _Lacking(start.astype(np.int64), shown, np.bincount(of))
