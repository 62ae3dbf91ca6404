"""What is spread like a hash is told from what is measured or classed."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.flows.kept_columns.spread import evenly_spread


def even(values: list[object] | np.ndarray) -> bool:
    text = pd.Series([str(value) for value in values])
    return evenly_spread(text, pd.to_numeric(text, errors="coerce").to_numpy(np.float64))


@pytest.mark.parametrize("n", [30, 300, 2_000])
@pytest.mark.parametrize("buckets", [256, 1_000, 2**32])
@pytest.mark.parametrize("written", ["{}", "k{}", "{}.5"])
def test_a_part_of_a_hash_is_even_in_nearly_all_keys(n, buckets, written):
    """A test at 1 % lets one in a hundred go."""
    seen = []
    for key in range(6):
        digests = [hashlib.sha256(f"{key} {i}".encode()).digest()[:8] for i in range(n)]
        hashed = [int.from_bytes(digest) % buckets for digest in digests]
        seen.append(even([written.format(value) for value in hashed]))
    enough = buckets < 1_000 and n == 2_000  # 2,000 whole numbers below 256 may be a measurement
    assert sum(seen) >= (0 if enough else 5)


@pytest.mark.parametrize("n", [200, 3_000])
@pytest.mark.parametrize(
    "kind", ["normal", "income", "count", "share", "class", "name", "month", "constant"]
)
def test_what_is_measured_or_classed_is_not(n, kind):
    rng = np.random.default_rng(n)
    made = {
        "normal": lambda: rng.normal(40, 12, n).round(1),
        "income": lambda: np.exp(rng.normal(10, 0.7, n)).round(),
        "count": lambda: rng.poisson(30, n),
        "share": lambda: rng.beta(2, 5, n).round(3),
        "class": lambda: rng.choice([f"k{i}" for i in range(20)], n),
        "name": lambda: [f"name {i}" for i in np.minimum(rng.zipf(1.4, n), 5_000)],
        "month": lambda: rng.integers(1, 13, n),
        "constant": lambda: np.ones(n),
    }[kind]()
    assert not even(made)
