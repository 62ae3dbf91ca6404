"""The simulated country: reproducible, shaped like a register, usable by the reader."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.covariates import gravity_covariates, read_areas
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.flows.table.simulate import (
    DECAY,
    EXAMPLE_SEED,
    PULL,
    SAME_STATE,
    example_flows_path,
    simulate_areas,
    simulate_flows,
)
from bayes_sdc.io.tables import Dialect, encode

NAMES = {
    "origin": "origin",
    "destination": "destination",
    "count": "count",
    "groups": ("origin_state", "destination_state"),
}


def test_example_file_is_what_the_generator_writes():
    # else the file was edited by hand, or the generator changed without the file
    assert example_flows_path().read_bytes() == encode(simulate_flows(seed=EXAMPLE_SEED), Dialect())


def test_example_has_the_size_and_shape_the_documentation_promises():
    table = read_flows(example_flows_path(), **NAMES)
    per_group = table.cells.groupby("group").size()
    assert 2000 <= table.n_read <= 4500
    assert table.n_small > table.n_read / 2
    assert len(per_group) == 16
    assert per_group.min() >= 50
    assert per_group.max() <= 400
    assert table.n_set_aside == 80
    assert table.notes == ()


def test_small_counts_fall_steeply_as_in_a_register():
    # a flat shape, as of weighted estimates, would not test the model
    table = read_flows(example_flows_path(), **NAMES)
    sizes = table.cells["y"].value_counts().sort_index().to_numpy()
    assert len(sizes) == 9
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[0] > 6 * sizes[-1]


def test_same_seed_same_frame_and_another_seed_another():
    pd.testing.assert_frame_equal(simulate_flows(seed=5), simulate_flows(seed=5))
    assert not simulate_flows(seed=5).equals(simulate_flows(seed=6))


def test_pairs_are_unique_codes_are_text_and_zeros_are_no_rows():
    flows = simulate_flows(areas=120, states=7, seed=3)
    assert not flows.duplicated(["origin", "destination"]).any()
    assert flows["count"].min() >= 1
    assert flows["origin"].str.fullmatch(r"0[1-7][0-9]{3}").all()
    assert (flows["origin"].str[:2] == flows["origin_state"]).all()
    assert (flows["destination"].str[:2] == flows["destination_state"]).all()
    assert flows["origin"].nunique() == 120


def test_near_areas_exchange_more_than_far_ones():
    # without the geography the groups would differ by size only
    flows = simulate_flows(seed=EXAMPLE_SEED)
    pairs = flows[flows["origin"] != flows["destination"]]
    same = pairs["origin_state"] == pairs["destination_state"]
    assert pairs.loc[same, "count"].mean() > pairs.loc[~same, "count"].mean()


@pytest.mark.parametrize(("areas", "states"), [(3, 4), (10, 0), (20_000, 10_000)], ids=str)
def test_countries_that_cannot_be_are_refused(areas, states):
    with pytest.raises(ValueError, match="states"):
        simulate_areas(areas=areas, states=states, seed=1)


@pytest.mark.parametrize(
    ("areas", "states", "length", "last"),
    [(200, 100, 6, "100"), (1200, 2, 6, "02"), (99, 99, 5, "99"), (12_000, 1, 7, "01")],
    ids=str,
)
def test_codes_have_the_digits_that_they_need(areas, states, length, last):
    # else a large country cannot be simulated, or two areas have one code
    codes = simulate_areas(areas=areas, states=states, seed=1)
    assert codes["area"].is_unique
    assert codes["area"].is_monotonic_increasing
    assert set(codes["area"].str.len()) == {length}
    assert codes["state"].iloc[-1] == last
    assert all(
        area.startswith(state) for area, state in zip(codes["area"], codes["state"], strict=True)
    )


def test_areas_are_those_of_the_flows_and_give_their_gravity():
    # covariates of another country would be noise, and a study with them worthless
    drawn = {"areas": 60, "states": 5, "seed": 9}
    flows = simulate_flows(**drawn, small=1500, truth=True)
    table = read_flows(flows, **NAMES)
    areas = read_areas(simulate_areas(**drawn), area="area")
    assert set(flows["origin"]) <= set(areas.index)
    made = gravity_covariates(
        table, areas, population="population", longitude="longitude", latitude="latitude",
        state="state",
    )  # fmt: skip
    mean = flows["mean"].to_numpy()[table.cells["row"].to_numpy()]
    gravity = np.column_stack(
        [
            np.ones(len(made)),
            made["log_population_origin"],
            made["log_population_destination"],
            np.log(np.exp(made["log_distance"]) + 5.0),
            made["same_state"],
        ]
    )
    found = np.linalg.lstsq(gravity, np.log(mean), rcond=None)[0]
    np.testing.assert_allclose(found[1:], [PULL, PULL, -DECAY, SAME_STATE], atol=0.01)


def test_one_area_for_each_state_is_enough():
    flows = simulate_flows(areas=4, states=4, seed=1)
    assert sorted(set(flows["origin"])) == ["01001", "02001", "03001", "04001"]


def test_truth_is_behind_the_counts():
    # a study that takes another truth for the true one proves nothing
    flows = simulate_flows(areas=300, states=4, small=20_000, truth=True, seed=2)
    moved = flows[flows["origin"] != flows["destination"]]
    small = int(moved["count"].between(1, 9).sum())
    assert abs(small - 20_000) < 4 * 20_000**0.5
    # with the noise of the pair known, counts of many are Poisson
    many = moved[moved["rate"] > 30]
    z = (many["count"] - many["rate"]) / many["rate"] ** 0.5
    assert abs(z.mean()) < 4 / len(z) ** 0.5
    assert abs(z.std() - 1.0) < 4 / (2 * len(z)) ** 0.5
    plain = simulate_flows(areas=300, states=4, small=20_000, seed=2)
    pd.testing.assert_frame_equal(flows.drop(columns=["mean", "rate"]), plain)


def test_number_that_no_country_of_that_size_has_is_refused():
    with pytest.raises(ValueError, match="small must be from 1 to"):
        simulate_flows(areas=20, states=2, small=5000, seed=1)


@pytest.mark.parametrize(
    "wrong", [{"seed": -1}, {"seed": 1, "areas": 4_000_000, "states": 5}, {"seed": 1, "areas": 0}]
)
def test_sizes_and_seeds_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        simulate_flows(**wrong)
