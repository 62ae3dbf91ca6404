"""What the chains need to know of a file."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros
from bayes_sdc.microdata.latent_classes.clusters import households_with
from bayes_sdc.microdata.latent_classes.combinations import Cells, cells_of
from bayes_sdc.microdata.latent_classes.households import NOBODY, Companions, companions_of
from bayes_sdc.microdata.latent_classes.unseen import EQUAL_WEIGHTS, NO_RULES
from bayes_sdc.microdata.latent_classes.weights import log_weights, weights_of_rows
from bayes_sdc.microdata.latent_classes.zeros import rules_for

#: Of the prior towards no scatter: log density minus this times the standard deviation of e at a
#: typical sample unique. Samples of 100 to 300 tell nothing of the scatter, and a flat prior reads
#: too low there. Chosen on samples of the populations marked "tuned" in tests/validation, by the
#: ratio of estimate and truth in samples of 100 to 300.
PULL = 3.0

Floats = npt.NDArray[np.float64]


class Sample(NamedTuple):
    """What the chains need to know of the file.

    Parameters
    ----------
    cells : Cells
        Its combinations.
    unique : array of int, shape (sample unique,)
        Their rows in ``cells``.
    times : array, shape (sample unique,)
        Members of the population for each record with its key values; N / n without weights.
    population : float
        N / n.
    pull : float
        See :func:`bayes_sdc.microdata.latent_classes.dispersion.log_prior`.
    rules : array of bool, shape (rule, row)
        See :func:`bayes_sdc.microdata.latent_classes.zeros.rules_for`.
    effects : array, shape (row + 1,)
        See :func:`bayes_sdc.microdata.latent_classes.weights.log_weights`; empty without weights.
    companions : Companions
        Rest of the household of each sample unique.
    apart : array of int, shape (combination,)
        Households with each combination; its records where there are none.
    """

    cells: Cells
    unique: npt.NDArray[np.int64]
    times: Floats
    population: float
    pull: float
    rules: npt.NDArray[np.bool_] = NO_RULES
    effects: Floats = EQUAL_WEIGHTS
    companions: Companions = NOBODY
    apart: npt.NDArray[np.int64] | None = None


class OfFile(NamedTuple):
    """What the chains need to know of a file, and the places of its sample uniques."""

    sample: Sample
    record: npt.NDArray[np.int64]


def sample_of(
    microdata: Microdata,
    size: float,
    weights: Floats | None = None,
    structural_zeros: StructuralZeros | None = None,
) -> OfFile:
    """Read off a file what the chains need.

    Parameters
    ----------
    microdata : Microdata
        The file.
    size : float
        N.
    weights : array of float, shape (combination,), optional
        Whom the records of each combination of the file stand for, on average.
    structural_zeros : data frame or sequence of mappings, optional
        As for :func:`bayes_sdc.latent_class_risk`.
    """
    rules = rules_for(microdata, structural_zeros)
    cells = cells_of(microdata)
    record = np.flatnonzero(microdata.f == 1)
    row = np.empty(len(cells.place), dtype=np.int64)
    row[cells.place] = np.arange(len(cells.place))
    unique = row[microdata.combination[record]]
    # sorted by combination: the order of the records must not decide which draw is whose
    order = np.argsort(unique, kind="stable")
    times, effects = np.full(len(cells.rows), size / microdata.n), EQUAL_WEIGHTS
    if weights is not None:
        effects = log_weights(cells, weights[cells.place], size)
        times = weights_of_rows(cells.rows, effects)
    sample = Sample(
        cells, unique[order], times[unique[order]], size / microdata.n, PULL, rules, effects,
        companions_of(microdata, row, record[order]),
        households_with(microdata, row, cells.records),
    )  # fmt: skip
    return OfFile(sample, record[order])
