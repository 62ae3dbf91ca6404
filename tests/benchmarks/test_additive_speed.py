"""Elapsed time of the walk over the 249,704,000 cells of the literature's table.

Run: python -m pytest tests/benchmarks/test_additive_speed.py --benchmark-only -s
Compilation is cached and done in a warm-up round.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.lancaster.additive import lancaster

LEVELS = (14, 2, 91, 5, 14, 7, 2, 5, 2, 10)


@pytest.mark.parametrize(
    ("shrinkage", "goal"), [([1.0], 1.0), ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 3.0)]
)
def test_elapsed_time(shrinkage: list[float], goal: float, benchmark: Any) -> None:
    """Estimates, negative probability, both forms of the risk: the whole call is timed."""
    rng = np.random.default_rng(1)
    n = 9_809
    shared = rng.normal(size=n)
    columns = {}
    for place, levels in enumerate(LEVELS):
        value = np.floor((0.2 * shared + 0.15 * rng.normal(size=n) + 0.4) * levels)
        value = np.clip(value, 0, levels - 1)
        value[:levels] = np.arange(levels)  # every level occurs
        columns[f"key{place}"] = value.astype(int)
    data = read_microdata(pd.DataFrame(columns), keys=list(columns))
    found = benchmark.pedantic(
        lancaster,
        (data, 4_867_000),
        {"shrinkage": shrinkage},
        rounds=5,
        iterations=1,
        warmup_rounds=1,
    )
    assert found.cells == 249_704_000
    assert found.walked
    assert benchmark.stats["median"] < goal
