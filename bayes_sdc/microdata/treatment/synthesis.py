r"""Partial synthesis: new values of chosen keys of chosen records, given what stays.

With the class weights eta and the levels phi of a draw of the latent classes, the class of a record
whose keys U stay is drawn with probability in proportion to

.. math:: \eta_h \prod_{j \in U} \varphi_{jh}(x_j),

and its other keys from the levels of that class. A combination that a structural zero forbids is
drawn again, so what is drawn has the distribution of the model given that nothing impossible
occurs. Members of a household get one new value of a key that nearly all households share: drawn
from the model in which the members are independent given it. So do those of the few households that
differ in it: values drawn one by one would together tell more of the true ones than is counted.

References
----------
R. J. A. Little, "Statistical analysis of masked data", Journal of Official Statistics 1993.
J. P. Reiter, "Inference for partially synthetic, public use microdata sets", Survey Methodology
2003. D. Manrique-Vallier and J. P. Reiter, "Bayesian estimation of discrete multivariate latent
structure models with structural zeros", JCGS 2014, doi:10.1080/10618600.2013.844700.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.draws import compiled, pick
from bayes_sdc.microdata.latent_classes.unseen import place_in
from bayes_sdc.microdata.treatment.households import shared_keys
from bayes_sdc.microdata.treatment.states import States
from bayes_sdc.seeds import generator

TRIES = 100_000  # draws of one record, or household, before its rules are called too narrow
MOST_SHARED = 20_000  # combinations of the keys that a household shares

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@compiled
def forbidden(rows: np.ndarray, rules: np.ndarray, start: np.ndarray) -> bool:
    """Tell whether some rule holds for a record; ``rules`` has a flag a row of phi.

    A rule does not hold where a key that it names is missing. One that it does not name, whose
    levels all have a flag, may be missing.
    """
    for r in range(len(rules)):
        holds = True
        for j in range(len(rows)):
            if rows[j] >= 0:
                holds = rules[r, rows[j]]
            else:
                for level in range(start[j], start[j + 1]):
                    holds = holds and rules[r, level]
            if not holds:
                break
        if holds:
            return True
    return False


@compiled
def class_weights(
    rows: np.ndarray, stays: np.ndarray, eta: np.ndarray, phi: np.ndarray, into: np.ndarray
) -> float:
    """Weight of each class given the keys that stay, and their sum; missing ones say nothing."""
    total = 0.0
    for h in range(len(eta)):
        into[h] = eta[h]
    for j in range(len(rows)):
        if stays[j] and rows[j] >= 0:
            for h in range(len(eta)):
                into[h] *= phi[rows[j], h]
    for h in range(len(eta)):
        total += into[h]
    return total


@compiled
def cumulate(start: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Cumulative levels of every key in every class, shape (class, row)."""
    cumulative = np.empty((phi.shape[1], phi.shape[0]))
    for h in range(phi.shape[1]):
        for j in range(len(start) - 1):
            total = 0.0
            for row in range(start[j], start[j + 1]):
                total += phi[row, h]
                cumulative[h, row] = total
    return cumulative


@compiled
def draw_keys(
    rng: np.random.Generator, row: np.ndarray, treated: np.ndarray, weights: np.ndarray,
    total: float, start: np.ndarray, cumulative: np.ndarray, into: np.ndarray,
) -> None:  # fmt: skip
    """Draw the treated keys of one record once; what is missing stays missing."""
    h = pick(rng, weights, total)
    for j in range(len(row)):
        into[j] = row[j]
        if treated[j] and row[j] >= 0:
            levels = cumulative[h, start[j] : start[j + 1]]
            into[j] = start[j] + place_in(levels, rng.random() * levels[-1])


@compiled
def synthesise_records(
    rng: np.random.Generator, rows: np.ndarray, treated: np.ndarray, start: np.ndarray,
    eta: np.ndarray, phi: np.ndarray, rules: np.ndarray, tries: int, into: np.ndarray,
) -> int:  # fmt: skip
    """Draw the treated keys of every row; return the first that found none, or -1."""
    cumulative = cumulate(start, phi)
    weights = np.empty(len(eta))
    for i in range(len(rows)):
        total = class_weights(rows[i], ~treated[i], eta, phi, weights)
        found = False
        for _ in range(tries):
            draw_keys(rng, rows[i], treated[i], weights, total, start, cumulative, into[i])
            if not forbidden(into[i], rules, start):
                found = True
                break
        if not found:
            return i
    return -1


@compiled
def synthesise_household(
    rng: np.random.Generator, rows: np.ndarray, treated: np.ndarray, shared: np.ndarray,
    options: np.ndarray, start: np.ndarray, eta: np.ndarray, phi: np.ndarray,
    cumulative: np.ndarray, rules: np.ndarray, tries: int, into: np.ndarray,
) -> bool:  # fmt: skip
    """Draw the shared treated keys of a household, and then the other treated keys of its members.

    ``options`` has the rows of every combination of the treated shared keys.
    """
    members, classes = len(rows), len(eta)
    logs = np.zeros(len(options))
    weights = np.empty((members, classes))
    places = np.flatnonzero(shared)
    for i in range(members):
        class_weights(rows[i], ~treated[i], eta, phi, weights[i])
    for k in range(len(options)):
        prior = 0.0
        for h in range(classes):
            part = eta[h]
            for s in range(len(places)):
                part *= phi[options[k, s], h]
            prior += part
        logs[k] = (1.0 - members) * np.log(prior)
        for i in range(members):
            joint = 0.0
            for h in range(classes):
                part = weights[i, h]
                for s in range(len(places)):
                    part *= phi[options[k, s], h]
                joint += part
            logs[k] += np.log(joint)
    logs -= logs.max()
    shares = np.exp(logs)
    total_share = shares.sum()
    of_member = np.empty(classes)
    for _ in range(tries):
        k = pick(rng, shares, total_share)
        possible = True
        for i in range(members):
            total = 0.0
            row = rows[i].copy()
            for s in range(len(places)):
                row[places[s]] = options[k, s]
            for h in range(classes):
                of_member[h] = weights[i, h]
                for s in range(len(places)):
                    of_member[h] *= phi[options[k, s], h]
                total += of_member[h]
            others = treated[i] & ~shared
            draw_keys(rng, row, others, of_member, total, start, cumulative, into[i])
            if forbidden(into[i], rules, start):
                possible = False
                break
        if possible:
            return True
    return False


def order_of_content(data: Microdata, records: Integers) -> Integers:
    """Sort records by what they hold, so that draws do not depend on the order of the file."""
    return np.asarray(records[np.lexsort([part[records] for part in content(data)])])


def content(data: Microdata) -> list[npt.NDArray[Any]]:
    """What a treatment knows of each record: weight, combination and household, in that order."""
    parts: list[npt.NDArray[Any]] = [data.combination]
    if data.weights is not None:
        parts.insert(0, data.weights)
    if data.household is not None:
        # the numbers of persons without an id follow the order of the file
        parts.append(np.minimum(data.household, len(data.household_ids)))
    return parts


def synthesise(
    data: Microdata, states: States, *, hidden: Flags, rules: Flags, datasets: int, seed: int
) -> Codes:
    """Draw data sets in which hidden values are new.

    Parameters
    ----------
    data : Microdata
        All variables of the model as keys.
    states : States
        At least as many draws as data sets; each data set has its own.
    hidden : array of bool, shape (record, key)
        Values to draw; from :func:`.spread_over_households`.
    rules : array of bool, shape (rule, row)
        Structural zeros: a combination is impossible where all its rows are flagged.
    datasets : int
        m.
    seed : int
        The draws do not depend on the order of the records.

    Returns
    -------
    array of int32, shape (dataset, record, key)
        Codes as in ``data``.

    Raises
    ------
    InputError
        If the rules leave some record hardly a possible value, or the treated keys that a household
        shares have too many combinations.
    """
    layout = states.layout
    rows = layout.rows(data.codes)
    shared = shared_keys(data)
    homes, alone = _by_household(data, hidden, shared)
    alone = order_of_content(data, alone)
    options: dict[tuple[int, ...], Integers] = {}
    for members in homes:
        row = _shared_hidden(hidden[members].any(axis=0) & shared)
        if row not in options:
            options[row] = _options(rows, row)
    released = np.repeat(data.codes[None], datasets, axis=0)
    picked = np.linspace(0, len(states.eta) - 1, datasets).astype(int)
    for d in range(datasets):
        rng = generator(seed, "partial synthesis", str(d))
        eta, phi = states.eta[picked[d]], states.phi[picked[d]]
        into = rows[alone]
        stuck = synthesise_records(
            rng, rows[alone], hidden[alone], layout.start, eta, phi, rules, TRIES, into
        )
        if stuck >= 0:
            raise _too_narrow(int(alone[stuck]))
        released[d, alone] = _codes(layout.start, layout.lacking, into)
        cumulative = cumulate(layout.start, phi)
        for members in homes:
            here = hidden[members].any(axis=0) & shared
            into = rows[members]
            if not synthesise_household(
                rng, rows[members], hidden[members], here,
                options[_shared_hidden(here)], layout.start,
                eta, phi, cumulative, rules, TRIES, into,
            ):  # fmt: skip
                raise _too_narrow(int(members[0]))
            into[rows[members] < 0] = -1  # a member whose value is missing gets none
            released[d, members] = _codes(layout.start, layout.lacking, into)
    return released


def _codes(start: Integers, lacking: Flags, rows: Integers) -> Codes:
    return np.where(rows < 0, -1, rows - start[:-1] - lacking).astype(np.int32)


def _too_narrow(record: int) -> InputError:
    return InputError(
        f"record {record + 1}: {TRIES:,} draws of its treated keys were all impossible by the "
        "structural zeros; treat more keys, or correct the rules"
    )


def _by_household(data: Microdata, hidden: Flags, shared: Flags) -> tuple[list[Integers], Integers]:
    """Members of each larger household with a hidden shared key; records that are drawn alone."""
    treated = hidden.any(axis=1)
    if data.household is None or not hidden[:, shared].any():
        return [], np.flatnonzero(treated)
    together = np.bincount(data.household)[data.household] > 1
    touched = np.isin(data.household, data.household[hidden[:, shared].any(axis=1) & together])
    order = order_of_content(data, np.flatnonzero(touched))
    cuts = np.flatnonzero(np.diff(data.household[order])) + 1
    return list(np.split(order, cuts)) if len(order) else [], np.flatnonzero(treated & ~touched)


def _shared_hidden(here: Flags) -> tuple[int, ...]:
    """Keys that are drawn for a household as a whole."""
    return tuple(np.flatnonzero(here).tolist())


def _options(rows: Integers, keys: tuple[int, ...]) -> Integers:
    """Rows of every combination of levels of these keys that occur in the file."""
    levels = [np.unique(rows[rows[:, j] >= 0, j]) for j in keys]
    number = float(np.prod([len(one) for one in levels], dtype=np.float64))
    if number > MOST_SHARED:
        raise InputError(
            f"the treated keys that households share have {number:,.0f} combinations, and at most "
            f"{MOST_SHARED:,} can be drawn from; treat fewer of them"
        )
    return np.stack([one.ravel() for one in np.meshgrid(*levels, indexing="ij")], axis=1)
