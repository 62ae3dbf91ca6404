"""Elapsed time and memory of the search for minimal sample uniques, on two kinds of file.

Run: python -m pytest tests/benchmarks/test_suda_speed.py --benchmark-only -s
Compilation is cached and done in a warm-up round. Sizes of sets are not limited.
"""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.special_uniques.suda import suda

# records, keys and the seconds that two cores should need
CASES = {
    "independent, 8 keys": ("independent", 100_000, 8, 0.5),
    "independent, 10 keys": ("independent", 100_000, 10, 1.5),
    "survey, 8 keys": ("survey", 1_000_000, 8, 2.0),
    "survey, 10 keys": ("survey", 1_000_000, 10, 3.0),
    "small survey": ("survey", 4_580, 8, 0.05),
    "independent, 8 keys, 2 % missing": ("lacking", 100_000, 8, 5.0),
}
LEVELS = (2, 9, 5, 6, 4, 7, 3, 10, 5, 4)


def independent(records: int, keys: int, seed: int) -> pd.DataFrame:
    """Independent uniform keys of ten levels: nearly every record is unique."""
    codes = np.random.default_rng(seed).integers(0, 10, (records, keys))
    return pd.DataFrame({f"key{k}": column for k, column in enumerate(codes.T)})


def survey(records: int, keys: int, seed: int) -> pd.DataFrame:
    """Skewed, dependent keys: thirty kinds of person, each with its usual values."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(30, records, p=rng.dirichlet(np.full(30, 2.0)))
    columns = {}
    for k, levels in enumerate(LEVELS[:keys]):
        usual = np.cumsum(rng.dirichlet(np.full(levels, 0.15), 30), axis=1)
        value = (rng.random(records)[:, None] > usual[kinds]).sum(axis=1)
        columns[f"key{k}"] = np.minimum(value, levels - 1)
    return pd.DataFrame(columns)


def lacking(records: int, keys: int, seed: int) -> pd.DataFrame:
    """As independent, with two values in a hundred missing: each matches every value."""
    frame = independent(records, keys, seed).astype(str)
    return frame.mask(np.random.default_rng(seed + 1).random(frame.shape) < 0.02)


KINDS = {"independent": independent, "survey": survey, "lacking": lacking}


def read(kind: str, records: int, keys: int) -> Microdata:
    frame = KINDS[kind](records, keys, seed=1)
    return read_microdata(frame, keys=list(frame.columns))


@pytest.mark.parametrize("case", CASES)
def test_elapsed_time(case: str, benchmark: Any) -> None:
    kind, records, keys, goal = CASES[case]
    data = read(kind, records, keys)
    found = benchmark.pedantic(
        suda, (data,), {"max_size": keys}, rounds=5, iterations=1, warmup_rounds=1
    )
    benchmark.extra_info["records unique on all keys"] = data.sample_uniques
    benchmark.extra_info["minimal sample uniques"] = int(found.sizes.to_numpy().sum())
    assert benchmark.stats["median"] < goal


def test_peak_memory_for_a_million_records(benchmark: Any) -> None:
    """The whole process: Python, libraries, the file, its codes and the search."""
    code = (
        "import resource, runpy; "
        f"part = runpy.run_path({__file__!r}); "
        "part['suda'](part['read']('survey', 1_000_000, 10), max_size=10); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def run() -> float:
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return int(run.stdout) / 1024

    peak = benchmark.pedantic(run, rounds=1, iterations=1)
    benchmark.extra_info["peak MiB"] = round(peak)
    assert peak < 700
