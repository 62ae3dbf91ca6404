"""Attribute disclosure: what a file tells of a sensitive variable of somebody whose keys are known.

A file tells something of everybody, whether they are in it or not: that old people are often
retired is no disclosure of a single one. What counts is what it tells of a target beyond what it
would tell without the target's own record: the difference of the predictive probabilities of the
true value, with the record and without it. The latter is found without a new fit, by importance
weights that divide the probability of the record out of the posterior; k-hat tells whether these
can be relied on.

l-diversity and t-closeness look at the records that share key values, without any model.

References
----------
A. Vehtari, A. Gelman and J. Gabry, "Practical Bayesian model evaluation using leave-one-out
cross-validation and WAIC", Statistics and Computing 2017, doi:10.1007/s11222-016-9696-4. A.
Machanavajjhala et al., "l-diversity", TKDD 2007, doi:10.1145/1217299.1217302. N. Li, T. Li and S.
Venkatasubramanian, "t-closeness", ICDE 2007, doi:10.1109/ICDE.2007.367856.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.treatment.population import probabilities
from bayes_sdc.microdata.treatment.states import States, draw_states
from bayes_sdc.results import Fact, Result
from bayes_sdc.seeds import generator, seed_or_fresh

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

DRAWS = 400
HIGH = 0.1  # gain of a target that is counted
KHAT = 0.7  # above which a weight cannot be relied on
MOST = 2_000  # targets of different values
EQUAL = 1e-9  # spread of log ratios below which there is nothing to smooth


@dataclass(frozen=True, eq=False, repr=False)
class AttributeRisk(Result):
    """What a file tells of a sensitive variable of its records; made by `attribute_risk`.

    Made by :func:`bayes_sdc.attribute_risk`. Confidential.

    Parameters
    ----------
    records : DataFrame
        By target, index ``record`` from 0: ``with_record`` and ``without_record``, predictive
        probability of the true value given the keys, in [0, 1]; ``gain``, their difference, which
        can be negative; ``khat`` of the weights, minus infinity where they are all equal.
    sensitive : str
        The variable.
    keys : tuple of str
        What is known of a target.
    smallest_l, smallest_entropy_l : float
        l-diversity: the smallest number of different values among records that share key values,
        and the smallest exponential of their entropy.
    largest_t : float
        t-closeness: the largest total variation between the values of records that share key values
        and those of the file, in [0, 1].
    seed : int
        Everything random follows from it.
    notes : tuple of str
        What was left out.
    """

    records: pd.DataFrame
    sensitive: str
    keys: tuple[str, ...]
    smallest_l: int
    smallest_entropy_l: float
    largest_t: float
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def unreliable(self) -> int:
        """Targets whose weights cannot be relied on."""
        return int((self.records["khat"] > KHAT).sum())

    def __str__(self) -> str:
        """Return the risk in one line."""
        gain, high = self.records["gain"], int((self.records["gain"] > HIGH).sum())
        return (
            f"what {', '.join(self.keys)} tell of {self.sensitive} by a record in the file: mean "
            f"gain of the true value's probability {gain.mean():+.4f}, largest {gain.max():+.3f}, "
            f"above {HIGH:g} for {high:,} of {len(gain):,} targets; not reliable for "
            f"{self.unreliable:,}"
        )

    def _title(self) -> str:
        return f"What {', '.join(self.keys)} tell of {self.sensitive}: confidential"

    def rows(self) -> list[Fact]:
        """Return name, value and meaning of each number."""
        return self._facts()

    def _facts(self) -> list[Fact]:
        gain = self.records["gain"]
        return [
            ("mean gain", f"{gain.mean():+.4f}", "of the true value's probability, by its record"),
            ("largest gain", f"{gain.max():+.3f}", "of a target"),
            (f"gain > {HIGH:g}", f"{int((gain > HIGH).sum()):,}", f"of {len(gain):,} targets"),
            ("not reliable", f"{self.unreliable:,}", f"targets with k-hat above {KHAT:g}"),
            ("l-diversity", f"{self.smallest_l}", "fewest values among equal key values"),
            ("entropy l", f"{self.smallest_entropy_l:.2f}", "smallest exponential of the entropy"),
            ("t-closeness", f"{self.largest_t:.3f}", "largest total variation from the file"),
        ]


@checked
def attribute_risk(
    microdata: Microdata,
    *,
    sensitive: str,
    draws: int = DRAWS,
    seed: int | None = None,
    cores: int | None = None,
) -> AttributeRisk:
    """Measure what a file tells of a sensitive variable of a target, beyond what it tells anyway.

    Parameters
    ----------
    microdata : Microdata
        The keys that are known of a target, and the sensitive variable as one of its keys. For a
        treated file give the released values.
    sensitive : str
        That variable. Records without a value of it are no targets.
    draws : int
        Of the latent classes, 100 or more.
    seed : int, optional
        Everything random follows from it; by default a fresh one.
    cores : int, optional
        Threads; the answer is the same for any number.

    Returns
    -------
    AttributeRisk
        By target, with l-diversity and t-closeness.

    Raises
    ------
    InputError
        If the variable is no key, the only one, or nobody has a value.

    See Also
    --------
    bayes_sdc.treat, bayes_sdc.latent_class_risk

    References
    ----------
    A. Vehtari, A. Gelman and J. Gabry 2017, doi:10.1007/s11222-016-9696-4.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": list("123") * 20, "ill": list("yn") * 30})
    >>> found = attribute_risk(
    ...     read_microdata(people, keys=["age", "ill"]), sensitive="ill", draws=100, seed=1
    ... )
    >>> found.smallest_l, bool((found.records["gain"].abs() < 0.1).all())
    (2, True)
    """
    if sensitive not in microdata.keys or len(microdata.keys) < 2:
        raise InputError(
            f"sensitive must be one of several keys of the file; it is {sensitive!r}, and they are "
            f"{list(microdata.keys)}"
        )
    if draws < 100:
        raise InputError(f"draws must be 100 or more, for the weights; it is {draws!r}")
    cores = threads(cores)
    j = microdata.keys.index(sensitive)
    has = np.flatnonzero(microdata.codes[:, j] >= 0)
    if not len(has):
        raise InputError(f"no record has a value of {sensitive!r}")
    microdata, seed = _levels_that_occur(microdata), seed_or_fresh(seed)
    keys = tuple(key for key in microdata.keys if key != sensitive)
    diverse = diversity(microdata, sensitive)
    states = draw_states(microdata, draws=draws, seed=seed, cores=cores)
    of, first = np.unique(microdata.combination[has], return_index=True)
    targets, notes = has[first], []
    if len(of) > MOST:
        targets = np.sort(generator(seed, "targets").choice(targets, MOST, replace=False))
        notes.append(f"{MOST:,} of {len(of):,} different targets, at random")
    records = _gains(states, microdata.codes[targets], j)
    records.index = pd.Index(targets, name="record")
    return AttributeRisk(records, sensitive, keys, *diverse, seed, tuple(notes))


def _levels_that_occur(data: Microdata) -> Microdata:
    """Leave out levels that nobody has, as after a suppression: the model has no row for them."""
    labels, columns = [], []
    for names, codes in zip(data.labels, data.codes.T, strict=True):
        kept, place = np.unique(codes[codes >= 0], return_inverse=True)
        fresh = np.full(len(codes), -1, dtype=np.int32)
        fresh[codes >= 0] = place
        labels.append(tuple(names[one] for one in kept))
        columns.append(fresh)
    return replace(data, labels=tuple(labels)).with_codes(np.stack(columns, axis=1))


def _gains(states: States, codes: Codes, j: int) -> pd.DataFrame:
    """Predictive probabilities of the true value of each target, with and without its record."""
    without = codes.copy()
    without[:, j] = -1
    whole_rows = states.layout.rows(codes)
    known_rows = whole_rows.copy()
    known_rows[:, j] = -1
    whole, known = (
        np.stack([probabilities(rows, e, p) for e, p in zip(states.eta, states.phi, strict=True)])
        for rows in (whole_rows, known_rows)
    )
    rows = []
    for i in range(len(codes)):
        weights, khat = without_record(np.log(whole[:, i]))
        with_it = whole[:, i].mean() / known[:, i].mean()
        left = float(weights @ whole[:, i] / (weights @ known[:, i]))
        rows.append((min(with_it, 1.0), min(left, 1.0), with_it - left, khat))
    return pd.DataFrame(rows, columns=["with_record", "without_record", "gain", "khat"])


def without_record(log_likelihood: Floats) -> tuple[Floats, float]:
    """Weights of draws that take a record out of a posterior, and k-hat of their tail.

    Examples
    --------
    >>> weights, khat = without_record(np.zeros(100))
    >>> round(float(weights.sum()), 6), khat
    (1.0, -inf)
    """
    from arviz_stats.base.array import array_stats

    if np.ptp(log_likelihood) < EQUAL:
        return np.full(len(log_likelihood), 1.0 / len(log_likelihood)), -np.inf
    log_weights, khat = array_stats.psislw(log_likelihood, r_eff=1.0)
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum(), float(khat)


def diversity(data: Microdata, sensitive: str) -> tuple[int, float, float]:
    """Return the smallest l, the smallest entropy l and the largest t of groups of equal keys.

    A missing value of the sensitive variable is a value; one of a key is a level.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": list("1122"), "ill": list("ynnn")})
    >>> diversity(read_microdata(people, keys=["age", "ill"]), "ill")
    (1, 1.0, 0.25)
    """
    j = data.keys.index(sensitive)
    others: Sequence[int] = [k for k in range(len(data.keys)) if k != j]
    sizes = tuple(len(data.labels[k]) for k in others)
    group, found = patterns(np.ascontiguousarray(data.codes[:, others]), sizes)
    table = np.zeros((len(found), len(data.labels[j]) + 1))
    np.add.at(table, (group, data.codes[:, j] + 1), 1.0)
    share = table / table.sum(axis=1, keepdims=True)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy = np.exp(-(share * logs).sum(axis=1))
    distance = np.abs(share - table.sum(axis=0) / data.n).sum(axis=1) / 2.0
    return int((table > 0).sum(axis=1).min()), float(entropy.min()), float(distance.max())
