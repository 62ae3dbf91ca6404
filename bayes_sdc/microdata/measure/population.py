"""How many people a file stands for, and what is known of them."""

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import LARGEST_COUNT
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.closed_form import check_numbers
from bayes_sdc.microdata.measure.result import Truth
from bayes_sdc.microdata.special_uniques.dis import check_fraction


def fraction_of(data: Microdata, size: int | None, fraction: float | None) -> float | None:
    """Return the sampling fraction, where that and not the weights gives F."""
    if size is not None and size < data.n:
        raise InputError(f"the population, {size:,}, is smaller than the file, {data.n:,} records")
    if size is not None and size > LARGEST_COUNT:
        raise InputError("the population size is beyond 2^53, more people than there are")
    if fraction is not None:
        check_fraction(fraction)
        if size is not None and data.weights is None:
            raise InputError(
                "population size and sampling fraction are two ways to say the same: leave one "
                f"out. {data.n:,} records of {size:,} people are a fraction of "
                f"{data.n / size:.6g}; given is {fraction!r}"
            )
    elif data.weights is None and size is not None:
        fraction = data.n / size
    people = people_of(data, fraction)
    if not people <= LARGEST_COUNT:
        source = "sampling fraction" if data.weights is None else "sum of the weights"
        raise InputError(
            f"the {source} makes a population of {people:.3g}, beyond 2^53, which is no number of "
            "people"
        )
    return fraction  # beside weights it is refused later


def people_of(data: Microdata, fraction: float | None) -> float:
    """Return how many people the records stand for."""
    if data.weights is not None:
        return float(np.sort(data.weights).sum())
    return data.n if fraction is None else data.n / fraction


def truth_of(data: Microdata, population_counts: npt.ArrayLike) -> Truth:
    """Sum up what a known population says, or refuse counts that cannot be true."""
    counts = check_numbers(population_counts, "population_counts").astype(np.float64)
    if counts.shape != (data.n,):
        raise InputError(f"population_counts must have {data.n:,} values, one per record")
    first = np.empty(len(data.combinations), dtype=np.intp)
    first[data.combination] = np.arange(data.n)
    of_combination = counts[first][data.combination]
    complete = (data.codes >= 0).all(axis=1)
    for wrong, what in (
        (counts != np.floor(counts), "must be whole numbers"),
        (counts < data.f, "must be at least the frequency in the file"),
        (complete & (counts != of_combination), "must be equal for equal key values"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"population_counts {what}; row {row + 1} has {counts[row]:g}")
    unique = data.f == 1
    return Truth(
        expected=float(np.sort(1.0 / counts).sum()),
        tau1=int(np.sum(unique & (counts == 1))),
        tau2=float(np.sort(1.0 / counts[unique]).sum()),
    )
