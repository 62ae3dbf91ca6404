"""Whether a column is a function of the areas of one end, or looks like one by accident."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

ACCIDENT = 1e-6  # chance that a meaningless column passes as one of an area


def codes_of(column: pd.Series) -> npt.NDArray[np.intp]:
    """Number the values of a column, a missing one like any other."""
    codes, values = pd.factorize(column.astype(object), use_na_sentinel=False)
    return np.asarray(pd.factorize(np.array([str(value) for value in values]))[0][codes], np.intp)


def depends_on(values: npt.NDArray[np.intp], end: npt.NDArray[np.intp]) -> bool | None:
    """Whether the value is the same in all rows of an area; None when that may be chance.

    Examples
    --------
    >>> area = np.repeat([0, 1, 2, 3, 4, 5], 5)
    >>> depends_on(area % 2, area), depends_on(np.arange(30) % 2, area)
    (True, False)
    >>> depends_on(np.array([0, 1, 2]), np.array([0, 1, 2])) is None
    True
    """
    first = np.full(end.max(initial=0) + 1, -1)
    first[end[::-1]] = values[::-1]
    if (first[end] != values).any():
        return False
    share = np.bincount(values) / len(values)
    # the chance that shuffled rows agree inside every area
    sizes, areas = np.unique(np.bincount(end), return_counts=True)
    sizes, areas = sizes[sizes > 1], areas[sizes > 1]
    log_chance = sum(
        n * logsumexp(size * np.log(share)) for size, n in zip(sizes, areas, strict=True)
    )
    return True if log_chance < np.log(ACCIDENT) else None
