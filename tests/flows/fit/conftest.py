"""What the slow tests of several families compare samplers by."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import xarray as xr

BATCHES = 40  # ten of each of four chains


def distances(fits: Sequence[xr.Dataset], name: str, *, log: bool) -> list[np.ndarray]:
    """Means of every later fit less those of the first, in their standard errors."""
    means, errors = [], []
    for posterior in fits:
        draws = posterior[name].to_numpy()
        draws = np.log(draws) if log else draws
        draws = draws.reshape(*draws.shape[:2], -1)
        parts = draws.reshape(BATCHES, -1, draws.shape[2]).mean(axis=1)
        means.append(parts.mean(axis=0))
        errors.append(parts.std(axis=0, ddof=1) / np.sqrt(BATCHES))
    return [
        np.abs(means[0] - means[k]) / np.hypot(errors[0], errors[k]) for k in range(1, len(fits))
    ]


@pytest.fixture(scope="session")
def standard_errors_apart() -> Callable[..., list[np.ndarray]]:
    """Distances of the means of several fits from those of the first."""
    return distances
