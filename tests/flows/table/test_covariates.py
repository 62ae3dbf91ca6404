"""Covariates: right values for the right cells, and one clear error for what cannot be used."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import FlowTable, InputError, gravity_covariates, read_flows, with_covariates
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.covariates import read_areas, read_neighbours

COLUMNS = {"origin": "from", "destination": "to", "count": "n"}


@pytest.fixture
def table() -> FlowTable:
    frame = pd.DataFrame({"from": list("baab"), "to": list("xyxy"), "n": [3, 1, 2, 70]})
    return read_flows(frame, **COLUMNS)


@pytest.fixture
def areas() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "people": [100.0, 1000.0, 10.0, 1.0],
            "lon": [0.0, 0.0, 90.0, 180.0],
            "lat": [0.0, 60.0, 0.0, 0.0],
            "state": ["s", "t", "s", "u"],
        },
        index=["a", "b", "x", "y"],
    )


def test_gravity_covariates_are_those_of_the_pair(table: FlowTable, areas: pd.DataFrame) -> None:
    """Else a distance belongs to another pair, and the model learns nothing or nonsense."""
    found = gravity_covariates(
        table, areas, population="people", longitude="lon", latitude="lat", state="state",
        neighbours=pd.DataFrame({"i": ["x"], "j": ["b"]}),
    )  # fmt: skip
    assert list(found.index) == ["a>x", "a>y", "b>x"]
    quarter = np.log(6371.0 * np.pi / 2)
    # a to x is a quarter of the equator, a to y half of it; b to x a quarter of a great circle
    np.testing.assert_allclose(
        found["log_distance"], [quarter, quarter + np.log(2.0), quarter], rtol=1e-12
    )
    np.testing.assert_allclose(found["log_population_origin"], np.log([100, 100, 1000]))
    np.testing.assert_allclose(found["log_population_destination"], np.log([10, 1, 10]))
    assert found["same_state"].tolist() == [1.0, 0.0, 0.0]
    assert found["contiguous"].tolist() == [0.0, 0.0, 1.0]


def test_class_of_an_earlier_year(table: FlowTable) -> None:
    earlier = pd.DataFrame({"from": list("ab"), "to": list("xx"), "n": [9, 10]})
    found = gravity_covariates(table, earlier=read_flows(earlier, **COLUMNS))
    assert found["earlier_small"].tolist() == [1.0, 0.0, 0.0]
    assert found["earlier_safe"].tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(InputError, match="1 to 4 there and 1 to 9 here"):
        gravity_covariates(table, earlier=read_flows(earlier, **COLUMNS, high=4))


def test_covariates_are_standardised_and_follow_the_cells(table: FlowTable) -> None:
    given = pd.DataFrame({"z": [1.0, 5.0, 3.0]}, index=["b>x", "a>x", "a>y"])
    with_z = with_covariates(table, given)
    np.testing.assert_allclose(with_z.covariates["z"], np.array([2.0, 0.0, -2.0]) / np.sqrt(8 / 3))
    assert small_cells(with_z).x.shape == (3, 1)
    assert small_cells(with_z).covariates == ["z"]
    assert list(table.covariates.columns) == []  # the table itself is as it was


def test_pair_in_several_groups_has_the_same_covariates(areas: pd.DataFrame) -> None:
    frame = pd.DataFrame({"from": list("aab"), "to": list("xxx"), "n": [1, 2, 3], "g": [1, 2, 1]})
    table = read_flows(frame, **COLUMNS, groups="g")
    found = gravity_covariates(table, areas, population="people")
    assert found["log_population_origin"].tolist() == np.log([100.0, 1000.0, 100.0]).tolist()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"z": [1.0, np.nan, 2.0]}, "'z' is missing or infinite in 1 small cells, first .'a>y'."),
        ({"z": [1.0, np.inf, 2.0]}, "'z' is missing or infinite"),
        ({"z": [2.0, 2.0, 2.0]}, "'z' is the same for every small cell"),
        ({"z": ["near", "far", "far"]}, "'z' is not numeric"),
    ],
)
def test_unusable_covariates_are_named(table: FlowTable, given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_covariates(table, pd.DataFrame(given, index=table.cells.index))


def test_missing_and_repeated_rows_are_refused(table: FlowTable) -> None:
    with pytest.raises(InputError, match=r"1 of 3 small cells have no row, first \['b>x'\]"):
        with_covariates(table, pd.DataFrame({"z": [1.0, 2.0]}, index=["a>x", "a>y"]))
    twice = pd.DataFrame({"z": [1.0, 2.0, 3.0, 4.0]}, index=["a>x", "a>y", "b>x", "b>x"])
    with pytest.raises(InputError, match="'b>x' has more than one row"):
        with_covariates(table, twice)


def test_bad_areas_are_named(table: FlowTable, areas: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"no column 'inhabitants'; there are \['people'"):
        gravity_covariates(table, areas, population="inhabitants")
    with pytest.raises(InputError, match=r"1 areas of small cells have no row, first \['y'\]"):
        gravity_covariates(table, areas.drop(index="y"), population="people")
    with pytest.raises(InputError, match=r"'people' of 'b' is not above 0"):
        gravity_covariates(table, areas.assign(people=[1, 0, 1, 1]), population="people")
    with pytest.raises(InputError, match=r"'people' is missing or not a number for 1 areas.*'x'"):
        gravity_covariates(table, areas.assign(people=[1, 1, "?", 1]), population="people")
    with pytest.raises(InputError, match="both longitude and latitude"):
        gravity_covariates(table, areas, longitude="lon")
    with pytest.raises(InputError, match="'lat' is beyond 90 degrees"):
        gravity_covariates(table, areas.assign(lat=5e5), longitude="lon", latitude="lat")
    with pytest.raises(InputError, match="no column 'people'; there are"):
        gravity_covariates(table, population="people")


def test_files_keep_codes_as_text(tmp_path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text("code;people\n01001;5\n01003;7\n")
    assert list(read_areas(path, area="code").index) == ["01001", "01003"]
    path.write_text("code;people\n01001;5\n01001;7\n")
    with pytest.raises(InputError, match=r"areas.csv: area '01001' has more than one row"):
        read_areas(path, area="code")
    with pytest.raises(InputError, match=r"areas.csv: no column 'area'"):
        read_areas(path, area="area")
    path.write_text("i,j\n01001,01003\n")
    assert read_neighbours(path).iloc[0].tolist() == ["01001", "01003"]


def test_codes_that_match_nothing_are_refused(table: FlowTable, areas: pd.DataFrame) -> None:
    """Else what was asked for is left out in silence, say because zeros were lost."""
    with pytest.raises(InputError, match="neighbours: no code occurs among the small cells"):
        gravity_covariates(table, neighbours=pd.DataFrame({"i": ["0a"], "j": ["0x"]}))
    other = pd.DataFrame({"from": ["0a"], "to": ["0x"], "n": [3]})
    with pytest.raises(InputError, match="earlier: DataFrame has none of the pairs"):
        gravity_covariates(table, earlier=read_flows(other, **COLUMNS))
    for blank in ("", None):
        with pytest.raises(InputError, match=r"'state' is missing for \['b'\]"):
            gravity_covariates(table, areas.assign(state=["s", blank, "s", "u"]), state="state")


def test_repeated_names_are_refused(table: FlowTable, areas: pd.DataFrame) -> None:
    twice = pd.concat([areas["people"], areas["people"]], axis=1)
    with pytest.raises(InputError, match="column 'people' occurs twice"):
        gravity_covariates(table, twice, population="people")
    both = pd.DataFrame([[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]], table.cells.index, ["z", "z"])
    with pytest.raises(InputError, match="two columns are called 'z'"):
        with_covariates(table, both)
    huge = pd.DataFrame({"z": [1e308, -1e308, 1e308]}, table.cells.index)
    with pytest.raises(InputError, match="'z' is too large to standardise"):
        with_covariates(table, huge)
