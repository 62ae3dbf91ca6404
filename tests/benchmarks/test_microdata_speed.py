"""Speed of reading keys and of risks, against the goals set for them.

Run: python -m pytest tests/benchmarks/test_microdata_speed.py --benchmark-only -m "not slow" -s
Everything is compiled before the clock starts. The goals are for two idle cores; the best of the
rounds counts.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.record_risk import record_risk

LEVELS = (5, 8, 12, 2, 30, 6, 4, 10)
KEYS = [f"key{i}" for i in range(len(LEVELS))]


def frame_of(records: int, missing: float, shape: str) -> pd.DataFrame:
    """Eight keys as text, uniform or with levels that fall steeply, some values missing."""
    rng = np.random.default_rng(17)
    columns: dict[str, Any] = {}
    for name, levels in zip(KEYS, LEVELS, strict=True):
        weight = 1.0 / np.arange(1, levels + 1) ** (0.0 if shape == "flat" else 2.0)
        place = rng.choice(levels, records, p=weight / weight.sum())
        texts = pd.Series(np.char.mod("%02d", np.arange(levels)), dtype=str)
        column = texts.take(place).reset_index(drop=True)
        columns[name] = column.mask(rng.random(records) < missing)
    columns["weight"] = rng.uniform(1, 40, records)
    return pd.DataFrame(columns)


def measure(frame: pd.DataFrame) -> Any:
    return record_risk(read_microdata(frame, keys=KEYS, weight="weight"))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    measure(frame_of(1000, 0.05, "flat"))


@pytest.mark.parametrize("shape", ["flat", "steep"])
@pytest.mark.parametrize(
    ("records", "missing", "goal"),
    [(1_000_000, 0.0, 1.5), (100_000, 0.01, 3.0), (100_000, 0.05, 10.0)],
)
def test_frame_to_exact_risks(
    records: int, missing: float, goal: float, shape: str, benchmark: Any
) -> None:
    frame = frame_of(records, missing, shape)
    result = benchmark.pedantic(measure, (frame,), rounds=3, iterations=1)
    benchmark.extra_info["combinations"] = len(result.combinations)
    assert benchmark.stats["min"] < goal


def test_a_million_individual_risks(benchmark: Any) -> None:
    rng = np.random.default_rng(1)
    f, p = rng.integers(1, 60, 1_000_000), rng.uniform(1e-6, 1, 1_000_000) ** 3
    benchmark.pedantic(individual_risk, (f, p), rounds=5, iterations=1)
    assert benchmark.stats["min"] < 0.5
