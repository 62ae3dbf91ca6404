r"""Lancaster's additive model of interactions: risk of sample uniques from pairs of key variables.

With one-way and two-way proportions of the sample, the probability of a cell is

.. math:: p(\lambda) = \prod_a p_a \Big\{ 1 + \lambda \sum_{a < b}
          \Big( \frac{p_{ab}}{p_a p_b} - 1 \Big) \Big\},

and a sample unique is a population unique with probability :math:`(1 - p)^{N - n}`. With
:math:`\lambda = 0` keys are independent; with 1 all two-way proportions are reproduced. Cells can
come out negative: they are set to 0, and all are divided by c, 1 plus what the negative ones add up
to. A sample unique in such a cell has risk 1.

With structural zeros the model loses its simplicity: weights are fitted iteratively on the cells
that are allowed, pair terms compare with the two-way proportions of these weights, and even at
:math:`\lambda = 1` two-way proportions are no longer reproduced exactly.

References
----------
A. Takemura, "Evaluation of per-record identification risk by additive modeling of interaction for
contingency table cell probabilities" (2001), eq. (1) to (5). The leading product in (4) is one of
proportions: the printed n counts once for each key. H. O. Lancaster, "The multiplicative definition
of interaction", Australian Journal of Statistics 13 (1971) 36-44.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.lancaster.cells import Additive, Sums, sample, walk
from bayes_sdc.microdata.lancaster.forecast import FOLDS, WALKED_CELLS, refuse, shrinkages
from bayes_sdc.microdata.lancaster.structural_zeros import (
    StructuralZeros,
    fit_allowed,
    labels_of,
    level_codes,
    pair_term,
    read_rules,
)
from bayes_sdc.results import Fact, Result
from bayes_sdc.seeds import generator, seed_or_fresh

DRAWS = 1 << 20  # cells drawn from a larger table


@dataclass(frozen=True, eq=False, repr=False)
class Lancaster(Result):
    """Risk of each sample unique, and what the model does to the file.

    Made by :func:`bayes_sdc.lancaster`.

    Parameters
    ----------
    risk : DataFrame
        In [0, 1]: index ``record`` (sample uniques, by place in the file), a column a shrinkage.
        Renormalised or not, as was asked for.
    risk_raw, risk_renormalized : DataFrame
        Both forms.
    table : DataFrame
        Index ``shrinkage``. ``negative``: sum of the negative probabilities over all cells, with
        its standard ``negative_error`` (0 when all were walked). ``normalizer``: c.
        ``expected_raw`` and ``expected_renormalized``: expected sample uniques that are population
        uniques. ``clamped``: sample uniques in cells of negative probability, at risk 1.
        ``ruled_out``: records whose cell has probability 0, and ``log_likelihood`` of the others,
        renormalised. ``posterior``, on this grid under equal prior weights: 0 where a record is
        ruled out, and left out with a note where that is so at every shrinkage. The file is used
        twice for it, in the proportions and in the likelihood. By cross-validation also
        ``impossible``, how many of the records that were left out have probability 0, and
        ``held_out``, the log-likelihood of the others.
    shrinkage : float or None
        The one that was chosen or given; None for several.
    cells : int
        Possible combinations of the levels that occur.
    walked : bool
        Whether all cells were added up; otherwise they were sampled.
    notes : tuple of str
        What was assumed.
    seed : int, optional
        Everything random followed from it.
    """

    risk: pd.DataFrame
    risk_raw: pd.DataFrame
    risk_renormalized: pd.DataFrame
    table: pd.DataFrame
    shrinkage: float | None
    cells: int
    walked: bool
    notes: tuple[str, ...]
    seed: int | None = None

    def _title(self) -> str:
        return f"Additive model of {self.cells:,} cells, {len(self.risk):,} sample uniques"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [
            (
                f"shrinkage {shrinkage:g}",
                f"{row['expected_raw']:,.2f}; {row['expected_renormalized']:,.2f}",
                "expected population uniques in the file, raw and renormalised; "
                f"negative probability {row['negative']:.3g}",
            )
            for shrinkage, row in self.table.iterrows()
        ]
        how = "added up" if self.walked else "sampled"
        return [*facts, ("cells", f"{self.cells:,}", f"possible combinations, {how}")]


@checked
def lancaster(
    microdata: Microdata,
    population_size: int,
    *,
    shrinkage: float | Sequence[float] | Literal["cv"] = 1.0,
    renormalize: bool = True,
    structural_zeros: StructuralZeros | None = None,
    seed: int | None = 0,
) -> Lancaster:
    """Estimate the risk of sample uniques by Lancaster's additive model.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`; any number of keys from two. A missing value is a level of its own
        here, whatever it matches elsewhere.
    population_size : int
        People in the population, at least the number of records.
    shrinkage : float, sequence of float, or "cv"
        Factor of the interactions, from 0 (independence) to 1; "cv" chooses one of 0, 0.1, ... 1 by
        cross-validated likelihood. One held-out record in a cell of probability 0 rules a
        shrinkage out.
    renormalize : bool
        Whether ``risk`` is from renormalised probabilities; both forms are always given.
    structural_zeros : data frame or sequence of mappings, optional
        Impossible cells: each rule maps keys to a value or several, and in a data frame an empty
        cell stands for any value.
    seed : int, optional
        Of the parts of the file in cross-validation, and of cells drawn from a table that is too
        large to walk. None: a fresh one of 128 bits; ``seed`` of the result.

    Returns
    -------
    Lancaster
        Risk by record and the table over shrinkages.

    Raises
    ------
    InputError
        If an argument is out of range, a rule makes a record impossible, there is one key only, or
        two keys have so many levels that the table of their pairs needs more than 4 GiB; see
        `lancaster_forecast`.

    See Also
    --------
    bayes_sdc.lancaster_forecast, bayes_sdc.allowed_cells, bayes_sdc.compare_risks

    References
    ----------
    Takemura (2001).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("ffffm"), "job": list("cccdd")})
    >>> found = lancaster(read_microdata(people, keys=["sex", "job"]), 50, shrinkage=[0, 1])
    >>> found.table["expected_renormalized"].round(6).tolist()
    [0.023467, 8.7e-05]
    """
    seed = seed_or_fresh(seed)
    _check_file(microdata, population_size)
    grid = shrinkages(shrinkage)
    refuse(microdata)
    rules, notes = _rules(structural_zeros, microdata)
    codes, sizes = level_codes(microdata), [len(labels) for labels in labels_of(microdata)]
    place, rows = patterns(codes, tuple(sizes))
    number = np.bincount(place)
    model = fit_additive(rows, number, sizes, rules)
    walked = model.cells <= WALKED_CELLS
    if not walked:
        notes = (
            *notes,
            f"{model.cells:,} cells are too many to walk: the negative probability is estimated "
            f"from {DRAWS:,} cells drawn at random",
        )
    sums = _sums(model, grid, rules, seed)
    normalizer = sums.total - sums.negative
    p = _probabilities(model, rows, grid)
    table = pd.DataFrame(
        {
            "negative": sums.negative,
            "negative_error": sums.negative_error,
            "normalizer": normalizer,
        },
        index=pd.Index(grid, name="shrinkage"),
    )
    record = np.flatnonzero(microdata.f == 1)
    at = place[record]
    raw = _risk(p[at], int(population_size) - microdata.n)
    renormalized = _risk(p[at] / normalizer, int(population_size) - microdata.n)
    # sorted: the sums must not depend on the order of the records
    table["expected_raw"], table["expected_renormalized"] = (
        np.sort(risk, axis=0).sum(0) for risk in (raw, renormalized)
    )
    table["clamped"] = (p[at] <= 0).sum(0)
    table["log_likelihood"], table["ruled_out"] = _log_likelihood(p, normalizer, number)
    notes = (*notes, *_add_posterior(table))
    chosen = float(grid[0]) if len(grid) == 1 else None
    if isinstance(shrinkage, str):
        held_out, impossible, unseen = _cross_validate(codes, sizes, grid, rules, seed)
        table["held_out"], table["impossible"] = held_out, impossible
        chosen = float(grid[int(np.argmax(np.where(impossible > 0, -np.inf, held_out)))])
        if unseen:
            notes = (*notes, f"{unseen:,} held-out records have a value that no other record has")
    kept = list(range(len(grid))) if chosen is None else [int(np.flatnonzero(grid == chosen)[0])]
    index, columns = pd.Index(record, name="record"), pd.Index(grid[kept], name="shrinkage")
    both = [pd.DataFrame(risk[:, kept], index, columns) for risk in (raw, renormalized)]
    return Lancaster(
        risk=both[1] if renormalize else both[0],
        risk_raw=both[0],
        risk_renormalized=both[1],
        table=table,
        shrinkage=chosen,
        cells=model.cells,
        walked=walked,
        notes=notes,
        seed=seed,
    )


def _check_file(microdata: Microdata, population_size: int) -> None:
    """Refuse a single key, and a population that is smaller than the file."""
    if len(microdata.keys) < 2:
        raise InputError("lancaster needs two keys or more: it is about pairs of them")
    if population_size < microdata.n:
        raise InputError(
            f"population_size must be a whole number from the {microdata.n:,} records up; it is "
            f"{population_size!r}"
        )


def _rules(
    structural_zeros: StructuralZeros | None, microdata: Microdata
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Impossible cells as rules, if there are any, and notes on them and on missing values."""
    rules: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    if structural_zeros is not None:
        rules, notes = read_rules(structural_zeros, microdata)
        notes = (
            *notes,
            "structural zeros: weights are fitted iteratively on the allowed cells, and two-way "
            "proportions are not reproduced exactly at any shrinkage",
        )
    if (microdata.codes < 0).any():
        notes = (*notes, "a missing value is a level of its own in the proportions")
    return rules, notes


def _add_posterior(table: pd.DataFrame) -> tuple[str, ...]:
    """Add the posterior on the grid under equal prior weights, or give a note why there is none."""
    if (table["ruled_out"] > 0).all():
        return (
            "the posterior is undefined: at every shrinkage some record's cell has probability 0; "
            "remedy: a grid that holds 0",
        )
    possible = np.where(table["ruled_out"] > 0, -np.inf, table["log_likelihood"])
    table["posterior"] = np.exp(possible - logsumexp(possible))
    return ()


def fit_additive(
    rows: np.ndarray, number: np.ndarray, sizes: list[int], rules: np.ndarray | None
) -> Additive:
    """Weights and terms from the one-way and two-way proportions of a file."""
    n = number.sum()
    margins = [
        np.bincount(column, number, size) / n for column, size in zip(rows.T, sizes, strict=True)
    ]
    pairs = {}
    for a, b in combinations(range(len(sizes)), 2):
        joint = rows[:, a].astype(np.int64) * sizes[b] + rows[:, b]
        pairs[a, b] = np.bincount(joint, number, sizes[a] * sizes[b]).reshape(sizes[a], -1) / n
    if rules is not None:
        return fit_allowed(margins, pairs, rules)
    terms = {
        (a, b): pair_term(observed, np.outer(margins[a], margins[b]))
        for (a, b), observed in pairs.items()
    }
    return Additive(margins, terms)


def _sums(model: Additive, grid: np.ndarray, rules: np.ndarray | None, seed: int) -> Sums:
    if model.cells <= WALKED_CELLS:
        return walk(model, grid, rules)
    return sample(model, grid, generator(seed, "cells of the additive table"), DRAWS, rules)


def _probabilities(model: Additive, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Probability of each row's cell by shrinkage, negative ones as 0; shape (row, shrinkage)."""
    weight, term = np.ones(len(rows)), np.zeros(len(rows))
    for key, weights in enumerate(model.weights):
        weight *= weights[rows[:, key]]
    for (a, b), terms in model.terms.items():
        term += terms[rows[:, a], rows[:, b]]
    return np.asarray(weight[:, None] * np.maximum(1.0 + grid * term[:, None], 0.0))


def _risk(p: np.ndarray, unsampled: int) -> np.ndarray:
    """Probability that nobody outside the file is in the cell."""
    if unsampled == 0:
        return np.ones_like(p)
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(unsampled * np.log1p(-np.minimum(p, 1.0))))


def _log_likelihood(
    p: np.ndarray, normalizer: np.ndarray, number: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood of the records whose cell has a probability, and how many have none."""
    ruled_out = p <= 0
    logs = np.log(np.where(ruled_out, 1.0, p)) - np.where(ruled_out, 0.0, np.log(normalizer))
    return number @ logs, number @ ruled_out


def _cross_validate(
    codes: np.ndarray, sizes: list[int], grid: np.ndarray, rules: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Log-likelihood of left-out records, how many are impossible, and how many have a new value.

    Records of which a value occurs nowhere else are left out of the sum: they have probability 0
    under every shrinkage. Records are numbered in the order of their codes before they are dealt
    out, so that the order of the file does not matter.
    """
    ordered = codes[np.lexsort(codes.T)]
    part = generator(seed, "parts of the file").permutation(len(codes)) % FOLDS
    held_out, impossible, unseen = np.zeros(len(grid)), np.zeros(len(grid), np.int64), 0
    for fold in range(min(FOLDS, len(codes)) if len(codes) > 1 else 0):
        place, rows = patterns(ordered[part != fold], tuple(sizes))
        left_place, left = patterns(ordered[part == fold], tuple(sizes))
        number, left_number = np.bincount(place), np.bincount(left_place)
        model = fit_additive(rows, number, sizes, rules)
        sums = _sums(model, grid, rules, seed)
        known = np.ones(len(left), bool)
        for key, weights in enumerate(model.weights):
            known &= weights[left[:, key]] > 0
        p = _probabilities(model, left[known], grid)
        normalizer = sums.total - sums.negative
        logs, without = _log_likelihood(p, normalizer, left_number[known])
        held_out, impossible = held_out + logs, impossible + without
        unseen += int(left_number[~known].sum())
    return held_out, impossible, unseen
