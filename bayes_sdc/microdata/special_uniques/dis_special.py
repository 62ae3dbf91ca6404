"""Data intrusion simulation (DIS), special form: matching fragments of the file against itself.

A random fragment B is removed from the file, and each of its records is copied back with
probability f. Then B stands to the rest as an outside file stands to the file: matching B against
the rest shows how many unique matches there are, and how many of them are correct. The general form
knows the expectation of this for an unprotected file; the special form also takes a protected
version of the file to match against, which is what an intruder would have.
"""

import math
from dataclasses import dataclass

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.special_uniques.dis import check_fraction
from bayes_sdc.microdata.special_uniques.fragments import aligned, match_all, match_fragment
from bayes_sdc.results import Fact, Result, or_undefined
from bayes_sdc.seeds import generator, seed_or_fresh

FRAGMENTS_AT_A_TIME = 50
MOST_FRAGMENTS = 20_000
LARGEST_FRAGMENT = 1_000


@dataclass(frozen=True, repr=False)
class DisSimulation(Result):
    """Probability that a unique match is correct, by simulation.

    Made by :func:`bayes_sdc.dis_special`.

    Parameters
    ----------
    value : float or None
        Correct among unique matches, in [0, 1]; None when there was no unique match.
    monte_carlo_error : float or None
        Standard error from the finite number of fragments. It does not hold the sampling error of
        the file; see the general form.
    stable : bool
        Whether the wanted Monte Carlo error was reached.
    unique_matches, correct_matches : int
        Over all fragments.
    fragments : int
        Number of fragments drawn.
    fragment_size : int
        Records in each.
    seed : int, optional
        Everything random followed from it.
    """

    value: float | None
    monte_carlo_error: float | None
    stable: bool
    unique_matches: int
    correct_matches: int
    fragments: int
    fragment_size: int
    seed: int | None = None

    def __str__(self) -> str:
        """Return the estimate in words."""
        if self.value is None:
            return f"undefined (no unique match in {self.fragments:,} fragments)"
        warning = "" if self.stable else "; NOT STABLE: the wanted error was not reached"
        return (
            f"{self.value:.4g} (Monte Carlo error {self.monte_carlo_error:.2g}; "
            f"{self.correct_matches:,} of {self.unique_matches:,} unique matches correct{warning})"
        )

    def _title(self) -> str:
        return "DIS by simulation: probability that a unique match is correct"

    def _facts(self) -> list[Fact]:
        matches = f"{self.correct_matches:,} of {self.unique_matches:,}"
        return [
            ("DIS", or_undefined(self.value, ".4g"), "correct among unique matches"),
            (
                "Monte Carlo error",
                or_undefined(self.monte_carlo_error, ".2g"),
                "as wanted" if self.stable else "NOT STABLE: larger than wanted",
            ),
            ("correct", matches, "unique matches"),
            ("fragments", f"{self.fragments:,}", f"of {self.fragment_size:,} records each"),
        ]


@checked
def dis_special(
    original: Microdata,
    protected: Microdata | None = None,
    *,
    sampling_fraction: float,
    seed: int | None = None,
    error: float = 0.002,
    fragment: int | None = None,
) -> DisSimulation:
    """Simulate an intruder who matches part of the file against the rest.

    Parameters
    ----------
    original : Microdata
        What the intruder knows of the people in it.
    protected : Microdata, optional
        What is released: the same records in the same order, with the same keys. Its rule about
        missing values holds in the matching, so suppressed values can be wildcards.
    sampling_fraction : float
        In (0, 1]: records by people in the population.
    seed : int, optional
        Of the fragments; the same seed gives the same answer for any order of records.
        By default a fresh one of 128 bits; ``seed`` of the result.
    error : float
        Monte Carlo standard error at which to stop, above 0.
    fragment : int, optional
        Records removed at a time; by default one in a hundred, at most 1,000.

    Returns
    -------
    DisSimulation
        Share of correct among unique matches.

    Raises
    ------
    InputError
        If the two files differ in records or keys, or an argument is out of range.

    See Also
    --------
    bayes_sdc.dis, bayes_sdc.dis_suda

    References
    ----------
    Elliot and Manning (2003), special method, steps (i) to (v).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> data = read_microdata(pd.DataFrame({"job": list("aabcd")}), keys=["job"])
    >>> found = dis_special(data, sampling_fraction=0.5, seed=1, error=0.02)
    >>> found.stable, abs(found.value - 0.6) < 0.1
    (True, True)
    """
    seed = seed_or_fresh(seed)
    check_fraction(sampling_fraction)
    if not error > 0:
        raise InputError(f"error must be above 0; it is {error!r}")
    known, released, rule = aligned(original, original if protected is None else protected)
    n = len(known)
    size = min(LARGEST_FRAGMENT, max(1, n // 100)) if fragment is None else fragment
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= n:
        raise InputError(f"fragment must be a whole number from 1 to {n:,}; it is {fragment!r}")
    # fragments are drawn by place, so records take places that do not depend on their order
    order = np.lexsort(np.hstack([known, released]).T)
    known, released = known[order], released[order]
    matches = match_all(known, released, rule)
    rng = generator(seed, "fragments of DIS")
    unique: list[int] = []
    correct: list[int] = []
    value = spread = None
    while len(unique) < MOST_FRAGMENTS:
        for _ in range(FRAGMENTS_AT_A_TIME):
            members = rng.choice(n, size, replace=False, shuffle=False)
            copied = rng.random(size) < sampling_fraction
            u, c = match_fragment(known, released, rule, matches, members, copied)
            unique.append(u)
            correct.append(c)
        value, spread = _ratio(np.array(unique), np.array(correct))
        if spread is not None and spread <= error:
            break
    return DisSimulation(
        value=value,
        monte_carlo_error=spread,
        stable=spread is not None and spread <= error,
        unique_matches=sum(unique),
        correct_matches=sum(correct),
        fragments=len(unique),
        fragment_size=int(size),
        seed=seed,
    )


def _ratio(unique: np.ndarray, correct: np.ndarray) -> tuple[float | None, float | None]:
    """Ratio of the sums and its standard error over fragments.

    With none or all correct so far, the error is that of one more match the other way.
    """
    total = int(unique.sum())
    if total == 0:
        return None, None
    ratio = float(correct.sum() / total)
    residual = float(((correct - ratio * unique) ** 2).sum())
    return ratio, max(math.sqrt(residual), 1.0 if ratio in (0.0, 1.0) else 0.0) / total
