"""Covariates that everybody can compute: against a count by hand, and what they must not know."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import FlowTable, InputError, fit_flows, read_flows, synthesize, with_covariates
from bayes_sdc.flows.table.cells import fitted_cells, small_cells, subset
from bayes_sdc.flows.table.published import published_covariates

COLUMNS = {"origin": "o", "destination": "d", "count": "n"}


def read(frame: pd.DataFrame, low: int = 1) -> FlowTable:
    return read_flows(frame, **COLUMNS, groups="group", low=low, high=9)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Tables with own areas, empty pairs, and an area whose group differs by its partner."""
    areas = "abcdef"
    pairs = [(i, j) for i in areas for j in areas]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=6, max_size=36, unique=True))
    counts = draw(
        st.lists(st.sampled_from([0, 1, 2, 5, 9, 10, 40, 3000]), min_size=36, max_size=36)
    )
    rows = [
        (i, j, n, "near" if (i < "d") == (j < "d") else "far")
        for (i, j), n in zip(chosen, counts, strict=False)
    ]
    return pd.DataFrame(rows, columns=["o", "d", "n", "group"])


def by_hand(frame: pd.DataFrame, origin: str, destination: str) -> dict[str, float]:
    """The eight properties of one cell, row by row."""
    rows = [(o, d, n) for o, d, n in frame[["o", "d", "n"]].to_numpy() if o != d and n >= 1]
    found = {}
    for side, area in (("origin", origin), ("destination", destination)):
        found[f"log_safe_outflow_{side}"] = np.log1p(
            sum(n for o, _, n in rows if o == area and n > 9)
        )
        found[f"log_safe_inflow_{side}"] = np.log1p(
            sum(n for _, d, n in rows if d == area and n > 9)
        )
        own = [n for o, d, n in rows if (o if side == "origin" else d) == area]
        safe = sum(n > 9 for n in own)
        found[f"log_partners_{side}"] = np.log(len(own))
        found[f"log_odds_safe_{side}"] = np.log((safe + 0.5) / (len(own) - safe + 0.5))
    return found


@given(frames())
def test_columns_are_those_counted_by_hand_and_standardised(frame: pd.DataFrame) -> None:
    table = read(frame)
    known = published_covariates(table)
    rows = [by_hand(frame, *pair) for pair in table.cells[["origin", "destination"]].to_numpy()]
    raw = pd.DataFrame(rows, index=table.cells.index)
    assert set(known.cells) | set(known.dropped) >= set(raw)
    assert not set(known.cells) & set(known.dropped)
    for name in known.cells:
        expected = (raw[name] - raw[name].mean()) / raw[name].std(ddof=0)
        np.testing.assert_allclose(known.cells[name], expected, atol=1e-9)
    # what is left spans no dependence, so no coefficient is free
    design = np.column_stack([np.ones(len(raw)), known.cells])
    if len(raw):
        assert np.linalg.matrix_rank(design, tol=1e-6) == design.shape[1]


@given(frames(), st.integers(0, 2**32 - 1))
def test_nothing_depends_on_a_small_count(frame: pd.DataFrame, seed: int) -> None:
    """Else the covariates, and with them the posterior, would tell of what they hide."""
    rng = np.random.default_rng(seed)
    small = (frame["n"] >= 1) & (frame["n"] <= 9)
    other = frame.assign(n=np.where(small, rng.integers(1, 10, len(frame)), frame["n"]))
    one, two = (published_covariates(read(each)) for each in (frame, other))
    pd.testing.assert_frame_equal(one.cells, two.cells)
    pd.testing.assert_frame_equal(one.groups, two.groups)
    assert one.dropped == two.dropped


@given(frames(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(frame: pd.DataFrame, random: object) -> None:
    again = frame.sample(frac=1.0, random_state=random.randrange(2**32))  # type: ignore[attr-defined]
    one, two = (published_covariates(read(each)) for each in (frame, again))
    pd.testing.assert_frame_equal(one.cells, two.cells)


def country() -> pd.DataFrame:
    """Areas of different sizes; the last one has small counts only."""
    rng = np.random.default_rng(8)
    size = np.array([9.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.6])
    rows = [
        (f"a{i}", f"a{j}", int(rng.poisson(size[i] * size[j] / 2.0)) + 1, f"g{i % 3}")
        for i in range(8)
        for j in range(8)
        if i != j
    ]
    frame = pd.DataFrame(rows, columns=["o", "d", "n", "group"])
    frame.loc[(frame["o"] == "a7") | (frame["d"] == "a7"), "n"] = 1
    return frame


def test_area_without_a_safe_count_stands_with_the_smallest() -> None:
    """Its safe sums are 0 and their log(1 + 0) too: finite, the lowest value, no special case."""
    table = read(country())
    known = published_covariates(table)
    for side in ("origin", "destination"):
        own = (table.cells[side] == "a7").to_numpy()
        for what in ("log_safe_outflow", "log_safe_inflow"):
            column = known.cells.get(f"{what}_{side}")
            if column is not None:
                assert np.isfinite(column).all()
                assert column[own].nunique() == 1
                assert column[own].iloc[0] <= column.min() + 1e-12


def test_total_of_an_area_without_a_safe_count_is_not_pulled_to_that_of_the_others() -> None:
    """Else what is not known of its size would be taken for the average one."""
    rng = np.random.default_rng(8)
    size = np.append(rng.lognormal(1.2, 0.5, 13), 0.3)
    areas = [f"{number:02d}" for number in range(14)]
    frame = pd.DataFrame(
        [
            (i, j, rng.poisson(size[int(i)] * size[int(j)]) + 1, "all")
            for i in areas
            for j in areas
            if i != j
        ],
        columns=["o", "d", "n", "group"],
    )
    table = read(frame)
    own = table.cells["origin"] == "13"
    assert own.sum() == 13
    assert (frame["n"][frame["o"] == "13"] <= 9).all()
    posterior = fit_flows(table, draws=100, tune=200, chains=2, seed=1)
    release = synthesize(table, posterior, datasets=20, seed=2)
    rows = table.cells["row"][own].to_numpy()
    totals = [one["n"].to_numpy()[rows].sum() for _, one in release.groupby("dataset")]
    true = frame["n"].to_numpy()[rows].sum()
    assert abs(np.mean(totals) - true) < 2.5 * np.std(totals)
    # the others' cells hold twice as much on average
    assert np.mean(totals) < 0.75 * 13 * (table.cells["y"][~own].mean() + 1)


def test_table_without_safe_counts_has_no_sizes_but_partners() -> None:
    frame = country().assign(n=lambda f: 1 + f.index % 9)
    frame = frame.drop(frame.index[[0, 1, 8, 20, 33]])
    known = published_covariates(read(frame))
    dropped = {name for name, why in known.dropped.items() if why == "the same everywhere"}
    assert {f"log_safe_{flow}_{side}" for flow in ("outflow", "inflow") for side in COLUMNS
            if side != "count"} <= dropped  # fmt: skip
    assert "log_partners_origin" in known.cells


def test_column_that_follows_from_those_of_the_user_is_dropped_and_said() -> None:
    table = read(country())
    own = 2.0 + 3.0 * published_covariates(table).cells[["log_safe_outflow_origin"]]
    own = own.rename(columns={"log_safe_outflow_origin": "jobs"})
    with_own = with_covariates(table, own)
    known = published_covariates(with_own)
    assert known.dropped["log_safe_outflow_origin"] == "follows from the other covariates"
    cells = small_cells(with_own, covariates="published")
    assert cells.covariates[0] == "jobs"
    assert "log_safe_outflow_origin" not in cells.covariates


def test_name_that_the_model_gives_itself_is_refused() -> None:
    table = read(country())
    own = pd.DataFrame({"log_partners_origin": range(table.n_small)}, index=table.cells.index)
    with pytest.raises(InputError, match="log_partners_origin"):
        published_covariates(with_covariates(table, own))


def test_group_property_stays_with_its_group() -> None:
    whole = small_cells(read(country()), covariates="published")
    part = subset(whole, np.array([0, 2]))
    assert part.group_covariates == ["log_odds_safe_group"]
    np.testing.assert_array_equal(part.z, whole.z[[0, 2]])


def test_posterior_says_its_covariates_and_every_later_step_has_them() -> None:
    table = read(country())
    short = {"draws": 6, "tune": 6, "chains": 2, "seed": 1}
    posterior = fit_flows(table, **short)
    assert posterior.attrs["covariates"] == "published"
    cells = fitted_cells(table, posterior)
    np.testing.assert_array_equal(posterior["constant_data"]["x"], cells.x)
    np.testing.assert_array_equal(posterior["constant_data"]["z"], cells.z)
    assert posterior["posterior"]["national_slope"].dims == ("chain", "draw", "group_covariate")
    assert len(synthesize(table, posterior, seed=1)) == len(table.frame)
    plain = fit_flows(table, covariates="none", **short)
    assert "coefficient" not in plain["posterior"]
    assert fitted_cells(table, plain).x.shape[1] == 0
    # a group that stands alone would have to learn each coefficient from its own cells
    assert fit_flows(table, prior="weak", **short).attrs["covariates"] == "none"
    with pytest.raises(InputError, match="choose from"):
        fit_flows(table, covariates="all", **short)


def test_posterior_of_other_sizes_is_refused() -> None:
    """The same small cells beside other safe counts: another table, and its hash may be forged."""
    frame = country()
    table = read(frame)
    posterior = fit_flows(table, draws=4, tune=4, chains=2, seed=1)
    frame.loc[frame["n"] > 9, "n"] *= 3
    other = read(frame)
    posterior.attrs["input_sha256"] = other.sha256
    with pytest.raises(InputError, match="covariates"):
        synthesize(other, posterior, seed=1)
