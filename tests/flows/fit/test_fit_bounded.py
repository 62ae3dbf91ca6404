"""Fits with a bound: what is refused, what is kept, and samplers that agree."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import InputError, fit_flows, read_flows, synthesize
from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.flows.table.bound import bound_of
from bayes_sdc.flows.table.centres import BUNDLED, bundled_shares, resolve_bound
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(7)]
COLUMNS = {"origin": "o", "destination": "d", "count": "n"}
SHORT = {"draws": 20, "tune": 20, "chains": 2, "seed": 1}


def frame_of(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = np.minimum(1 + rng.poisson(rng.gamma(1.0, 3.0, len(frame))), 20)
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The table, and that of another year."""
    folder = tmp_path_factory.mktemp("tables")
    for seed, name in ((1, "now.csv"), (2, "then.csv")):
        frame_of(seed).to_csv(folder / name, index=False)
    return folder / "now.csv", folder / "then.csv"


@pytest.fixture(scope="module")
def table(files: tuple[Path, Path]) -> FlowTable:
    return read_flows(files[0], **COLUMNS)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf, 1e6])
def test_epsilon_must_bound_something(table: FlowTable, epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        fit_flows(table, epsilon=epsilon, **SHORT)


def test_centres_from_the_table_are_refused(
    table: FlowTable, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """By its path, by its bytes under another name, and by its counts in another form."""
    link, copy, other = tmp_path / "link.csv", tmp_path / "copy.csv", tmp_path / "other.csv"
    link.symlink_to(files[0])
    shutil.copy(files[0], copy)
    frame_of(1).sample(frac=1.0, random_state=3)[["n", "d", "o"]].to_csv(
        other, index=False, sep=";"
    )
    for path in (files[0], link, copy, other):
        with pytest.raises(InputError, match="the table that is protected"):
            resolve_bound(table, 1.0, path)
    assert resolve_bound(table, 1.0, files[1])[0] is not None


def test_bundled_shares_are_refused_for_their_own_tables() -> None:
    """A table that is among the sources would be protected about itself."""
    counts = next(iter(BUNDLED.values()))
    y = np.repeat(np.arange(1, 10), counts)
    number = np.arange(len(y))
    frame = pd.DataFrame({"o": number // 400, "d": number % 400 + 1000, "n": y})
    own = read_flows(frame.astype({"o": str, "d": str}), **COLUMNS)
    with pytest.raises(InputError, match="come in part from this table"):
        resolve_bound(own, 1.0, "bundled")


def test_centres_without_a_bound_are_refused(table: FlowTable) -> None:
    """Who gives them thinks that something is bounded."""
    with pytest.raises(InputError, match="belong to epsilon"):
        fit_flows(table, centres=[1.0] * 9, **SHORT)


def test_parts_and_near_copies_of_the_table_are_no_centres(
    table: FlowTable, tmp_path: Path
) -> None:
    """A part, a corrected copy, a table that contains it, and one with other codes."""
    frame = frame_of(1)
    corrected = frame.copy()
    corrected.loc[0, "n"] = 1 if corrected.loc[0, "n"] != 1 else 2
    more = pd.DataFrame({"o": ["98", "99"], "d": ["99", "98"], "n": [3, 4]})
    files = {
        "part": frame[frame["o"].isin(["00", "01"])],
        "corrected": corrected,
        "containing": pd.concat([frame, more]),
        "other codes": frame.assign(o="x" + frame["o"], d="x" + frame["d"]),
    }
    for name, each in files.items():
        path = tmp_path / f"{name}.csv"
        each.to_csv(path, index=False)
        with pytest.raises(InputError, match="the table that is protected"):
            resolve_bound(table, 1.0, path)


@pytest.mark.parametrize("digits", [2, 3, 6])
@pytest.mark.parametrize("more", [0.0, 0.5])
def test_shares_of_the_table_itself_are_no_centres(digits: int, more: float) -> None:
    """Counted by hand and rounded, they tell of its counts as its file does."""
    frame = pd.DataFrame({"o": np.arange(90) // 9, "d": 100 + np.arange(90) % 9})
    frame["n"] = 1 + np.arange(90) ** 2 % 9
    frame.loc[:8, "n"] = np.arange(1, 10)  # every count occurs
    table = read_flows(frame.astype({"o": str, "d": str}), **COLUMNS)
    numbers = np.bincount(table.cells["y"], minlength=9) + more
    shares = (numbers / numbers.sum()).round(digits).tolist()
    for given in (shares, numbers.tolist(), (100 * np.array(shares)).round(digits).tolist()):
        with pytest.raises(InputError, match="the table that is protected"):
            resolve_bound(table, 1.0, given)
    assert resolve_bound(table, 1.0, bundled_shares().tolist())[0] is not None


@pytest.mark.parametrize("shares", [[1.0] * 8, [1.0] * 10, [*[1.0] * 8, 0.0], [*[1.0] * 8, -1.0]])
def test_shares_must_be_one_a_count(table: FlowTable, shares: list[float]) -> None:
    with pytest.raises(InputError, match="centres"):
        resolve_bound(table, 1.0, shares)


def test_bundled_shares_are_of_the_counts_that_are_small() -> None:
    """Another threshold has other small counts, and beyond nine there is no share."""
    frame = frame_of(1)
    few = read_flows(frame, **COLUMNS, low=2, high=6)
    bound = resolve_bound(few, 1.0, "bundled")[0]
    assert bound is not None
    shares = bundled_shares(2, 6)
    assert bound.centres == pytest.approx(np.diff(np.log(shares)))
    with pytest.raises(InputError, match="1 to 9"):
        resolve_bound(read_flows(frame, **COLUMNS, high=15), 1.0, "bundled")


def test_the_bound_is_kept_with_the_posterior(table: FlowTable, tmp_path: Path) -> None:
    """What is released from a file must be what was promised."""
    posterior = fit_flows(table, epsilon=0.5, **SHORT)
    write_posterior(posterior, tmp_path / "posterior.nc")
    with xr.open_datatree(tmp_path / "posterior.nc") as again:
        assert bound_of(again.attrs) == bound_of(posterior.attrs)
        pd.testing.assert_frame_equal(
            synthesize(table, again, seed=2), synthesize(table, posterior, seed=2)
        )
    free = posterior.copy()
    for name in ("epsilon", "centres"):
        del free.attrs[name]
    assert not synthesize(table, free, seed=2).equals(synthesize(table, posterior, seed=2))
    half = posterior.copy()
    del half.attrs["centres"]
    with pytest.raises(InputError, match="other half"):
        synthesize(table, half, seed=2)


def test_another_epsilon_is_another_run(table: FlowTable, tmp_path: Path) -> None:
    """Draws of one bound must not be taken for those of another."""
    fit_flows(table, epsilon=0.5, resume=tmp_path / "kept", **SHORT)
    with pytest.raises(InputError, match="epsilon"):
        fit_flows(table, epsilon=0.6, resume=tmp_path / "kept", **SHORT)


def test_order_of_rows_does_not_matter(table: FlowTable) -> None:
    shuffled = read_flows(frame_of(1).sample(frac=1.0, random_state=1), **COLUMNS)
    one, other = (
        fit_flows(each, epsilon=0.5, **SHORT)["posterior"]["beta"].to_numpy()
        for each in (table, shuffled)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["negative-binomial", "poisson"])
def test_samplers_agree(table: FlowTable, family: str) -> None:
    """NUTS on the PyMC model, the engine and the reference sampler draw from one posterior."""
    long = {"epsilon": 1.0, "prior": "weak", "family": family, "seed": 5, "chains": 4}
    fits = {
        "gibbs": fit_flows(table, sampler="gibbs", draws=3000, tune=1000, **long),
        "nuts": fit_flows(table, sampler="nuts", draws=1500, tune=1000, **long),
        "reference": fit_flows(table, sampler="reference", draws=4000, tune=1000, **long),
    }
    names = ["alpha", "phi_beta", "phi_gamma"] + (["r"] if family != "poisson" else [])
    for name in names:
        means, errors = [], []
        for posterior in fits.values():
            draws = posterior["posterior"][name].to_numpy()[..., 0]
            draws = draws if name == "alpha" else np.log(draws)
            parts = draws.reshape(-1, draws.shape[1] // 10).mean(axis=1)  # forty batches
            means.append(parts.mean())
            errors.append(parts.std(ddof=1) / np.sqrt(len(parts)))
        for k in (1, 2):
            assert abs(means[0] - means[k]) < 4.5 * np.hypot(errors[0], errors[k]), name
