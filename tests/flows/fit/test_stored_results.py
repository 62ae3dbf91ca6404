"""Results after the fit on disk: the same numbers, found by those they belong to alone."""

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import FlowTable, InputError, fit_flows, intruder_risk, read_flows, synthesize
from bayes_sdc.flows.fit.stored_results import fingerprint, kept_by_cell, kept_frame
from bayes_sdc.flows.intruder.estimators import estimate as estimators
from bayes_sdc.flows.table.simulate import simulate_flows

TARGETS = np.array([1, 4, 6, 7, 12, 20, 21])


def squares(part: np.ndarray) -> dict[str, np.ndarray]:
    return {"square": part**2, "both": np.stack([part, -part], axis=1) / 2.0}


def forbidden(part: np.ndarray) -> dict[str, np.ndarray]:
    raise AssertionError(f"{part} are made again")


def test_only_lots_that_are_missing_are_made_again(tmp_path: Path) -> None:
    whole = squares(TARGETS)
    made, told = [], []

    def make(part: np.ndarray) -> dict[str, np.ndarray]:
        made.append(part.tolist())
        return squares(part)

    for lost in ("nothing yet", "cells-00000007.npz"):
        (tmp_path / lost).unlink(missing_ok=True)
        found = kept_by_cell(tmp_path, TARGETS, 3, make, advance_earlier=told.append)
        for name in whole:
            np.testing.assert_array_equal(found[name], whole[name])
            assert found[name].dtype == whole[name].dtype
    assert made == [[1, 4, 6], [7, 12, 20], [21], [7, 12, 20]]
    assert told == [3, 1]
    # fewer cells are among them
    fewer = kept_by_cell(tmp_path, TARGETS[1:3], 3, forbidden)
    np.testing.assert_array_equal(fewer["square"], TARGETS[1:3] ** 2)


def test_kept_numbers_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    # they tell true counts
    kept_by_cell(tmp_path / "risk", TARGETS, 3, squares)
    kept_frame(tmp_path, "table", "ab", lambda: pd.DataFrame({"a": [1.0]}))
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path.name


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "r": [0.1 + 0.2, np.nan],
            "n": [1, 2],
            "worst": ["alpha", "beta"],
            "by_prior": [True, False],
        },
        index=pd.Index(["01>02", "nation"], name="group"),
    )
    first = kept_frame(tmp_path, "groups", "ab", lambda: frame)
    later = kept_frame(tmp_path, "groups", "ab", lambda: frame * 2)
    pd.testing.assert_frame_equal(first, frame, check_exact=True)
    pd.testing.assert_frame_equal(later, frame, check_exact=True)
    other = kept_frame(tmp_path, "groups", "cd", lambda: frame.iloc[:1])
    assert len(other) == 1  # of another call


@pytest.mark.parametrize("name", ["cells-00000001.npz", "table-ab.parquet"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"half")
    read = {
        ".npz": lambda: kept_by_cell(tmp_path, TARGETS, 3, squares),
        ".parquet": lambda: kept_frame(tmp_path, "table", "ab", pd.DataFrame),
    }[Path(name).suffix]
    with pytest.raises(InputError, match="is not what was saved"):
        read()


def test_what_differs_has_another_fingerprint() -> None:
    # else a resumed run takes the risk of another release for its own
    values = np.arange(6)
    others = [values + 1, values.astype(np.int32), values.reshape(2, 3), values[:5]]
    marks = {fingerprint(one) for one in [values, *others]}
    marks |= {fingerprint(values, 1), fingerprint(values, "1"), fingerprint(1, values)}
    assert len(marks) == 8
    assert fingerprint(values[::-1]) == fingerprint(values[::-1].copy())


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(
        simulate_flows(areas=14, states=2, seed=3),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


@pytest.mark.parametrize(
    "asked",
    [{}, {"estimator": "paper", "refits": 1, "cells": 12}, {"knowledge": "none"}],
    ids=["integrated", "paper with a refit", "knowing none"],
)
def test_risk_that_is_gone_on_with_is_the_risk(
    table: FlowTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object]
) -> None:
    """Whatever was there when the run was killed, and in whatever lots."""
    # as good as any here
    monkeypatch.setattr("bayes_sdc.flows.intruder.estimators.refit.LONGEST", 1)
    monkeypatch.setattr("bayes_sdc.flows.intruder.estimators.refit.STARTS", 4)
    posterior = fit_flows(table, draws=30, tune=30, chains=2, seed=1)
    release = synthesize(table, posterior, seed=2)
    whole = intruder_risk(table, posterior, release, **asked, seed=3)
    lots = {"integrated": 5, "paper": 5, "refit": 1}
    monkeypatch.setattr(estimators, "AT_ONCE", lots)
    intruder_risk(table, posterior, release, **asked, seed=3, resume=tmp_path)
    files = sorted(tmp_path.rglob("cells-*.npz"))
    assert len(files) > 2
    for path in files[::2]:
        path.unlink()
    lots["integrated"] = lots["paper"] = 3
    later = intruder_risk(table, posterior, release, **asked, seed=3, resume=tmp_path)
    for name in ("rho", "release_probability", "prediction", "khat", "ess", "refitted"):
        assert getattr(later, name).identical(getattr(whole, name)), name
    assert (later.r_all, later.r_unq) == (whole.r_all, whole.r_unq)
    # another release finds nothing of this one
    before = len(list(tmp_path.iterdir()))
    other = synthesize(table, posterior, seed=4)
    intruder_risk(table, posterior, other, **asked, seed=3, resume=tmp_path)
    assert len(list(tmp_path.iterdir())) > before
