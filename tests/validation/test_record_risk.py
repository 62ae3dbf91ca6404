"""A small version of the study of record risk: reference numbers of an independent program."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

HERE = Path(__file__).resolve().parent
REFERENCE = pd.read_csv(HERE.parent / "data" / "record_risk.csv")
SAMPLES = 4


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_risk", HERE / "record_risk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("design", range(len(REFERENCE)))
def test_the_estimates_are_those_of_the_reference(
    study: ModuleType, shared_data: Path, design: int
) -> None:
    """Mean ratios of estimate to truth within the Monte Carlo error of both; scores likewise."""
    given = REFERENCE.iloc[design]
    name, keys = study.KEYS[given["keys"]]
    people = study.population(shared_data / "microdata", name)
    rows = []
    for sample in range(SAMPLES):
        drawn = study.draw(people, keys.split(), given["fraction"], [sample, 77])
        _, row = study.ours(drawn, sample)
        rows.append({**row, "ratio1": row["tau1"] / drawn.tau1, "ratio2": row["tau2"] / drawn.tau2})
    found = pd.DataFrame(rows)
    error = np.sqrt(1.0 / SAMPLES + 1.0 / given["samples"])
    for k in (1, 2):
        # a 90 % interval is 3.3 standard deviations wide
        sd = given[f"width{k}/tau{k}"] / 3.3
        assert abs(found[f"ratio{k}"].mean() - given[f"tau{k} ratio"]) < 4.0 * sd * error
    assert abs(found["log"].mean() - given["log score"]) < 4.0 * 0.03 * error
    assert abs(found["AUC"].mean() - given["AUC"]) < 4.0 * 0.02 * error
