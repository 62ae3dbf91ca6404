"""Whether values are spread as evenly as those of a hash, a random number, or numbers of rows."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc, kolmogorov

MANY = 64  # values; fewer are classes, which may be evenly spread by nature
EVEN = 0.01  # chance of as uneven a spread, below which it is not even


def evenly_spread(text: pd.Series, numbers: npt.NDArray[np.float64]) -> bool:
    """Whether values are many and none is more frequent than among random ones.

    Parameters
    ----------
    text : Series of str
        Values.
    numbers : ndarray of float
        The same as numbers, nan where they are none.

    Returns
    -------
    bool
        Numbers must fill their range evenly. Of texts each that occurs must be as frequent as the
        others, up to chance: how many do not occur tells how many there are.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> hashed, measured = rng.integers(0, 1000, 500), rng.normal(40, 12, 500).round()
    >>> [evenly_spread(pd.Series(x).astype(str), x) for x in (hashed, measured)]
    [True, False]
    """
    if np.isfinite(numbers).all():
        low, high = float(numbers.min()), float(numbers.max())
        whole = bool((numbers % 1 == 0).all())
        step = 1.0 if whole else 0.0
        if high - low + step < (MANY if whole else 0) or len(np.unique(numbers)) < len(numbers) / 8:
            return False
        middle = (numbers - low + step / 2) / (high - low + step) if high > low else numbers
        return _chance_of_even(middle) >= EVEN
    frequency = np.unique(text.to_numpy(dtype=object).astype(str), return_counts=True)[1]
    n, seen = int(frequency.sum()), len(frequency)
    if seen < min(MANY, n / 2):
        return False
    # as many values as leave so many unseen
    kinds = _kinds(n, seen)
    expected = n / kinds
    squares = float(((frequency - expected) ** 2).sum() + (kinds - seen) * expected**2) / expected
    return bool(chdtrc(max(kinds - 1.0, 1.0), squares) >= EVEN)


def _chance_of_even(shares: npt.NDArray[np.float64]) -> float:
    """Chance of as uneven a spread over [0, 1], by Kolmogorov's test as Stephens (1970) mends it.

    Examples
    --------
    >>> [round(_chance_of_even(np.linspace(0.0, end, 50)), 3) for end in (1.0, 0.8)]
    [1.0, 0.031]
    """
    n, place = len(shares), np.sort(shares)
    rank = np.arange(n + 1) / n
    distance = max(float((rank[1:] - place).max()), float((place - rank[:-1]).max()))
    return float(kolmogorov((np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n)) * distance))


def _kinds(n: int, seen: int) -> float:
    """Number of equally frequent values of which n draws are expected to show so many."""
    if seen >= n:
        return 1e12
    low, high = float(seen), 1e12
    for _ in range(100):
        middle = np.sqrt(low * high)
        shown = -middle * np.expm1(n * np.log1p(-1.0 / middle)) if middle > 1.0 else 1.0
        low, high = (middle, high) if shown < seen else (low, middle)
    return float(low)
