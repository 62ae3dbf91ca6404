"""Risk of a whole file: records, combinations, households, key sets, and real files."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.record_risk import bulk_limit, compare_key_sets, record_risk

PEOPLE = pd.DataFrame(
    {
        "a": list("xxxyyz"),
        "b": list("112223"),
        "w": [10.0, 30.0, 5.0, 0.4, 0.9, 1.0],
        "h": ["1", "1", "2", "2", None, "3"],
    }
)


def read(frame=PEOPLE, **changed):
    return read_microdata(frame, **{"keys": ["a", "b"], "weight": "w", **changed})


def test_risk_by_hand():
    """f = 2, F = 40; f = 1, F = 5; f = 2, F = 1.3 raised to 2; f = 1 = F."""
    result = record_risk(read(household="h"))
    p, q = 0.05, 0.95
    pair = p / q**2 * (p * np.log(p) + q)
    single = 0.2 / 0.8 * np.log(5)
    expected = [pair, pair, single, 0.5, 0.5, 1.0]
    np.testing.assert_allclose(result.risk, expected, rtol=1e-12)
    assert result.expected == pytest.approx(sum(expected))
    assert result.global_risk == pytest.approx(sum(expected) / 6)
    assert result.tau1 == pytest.approx(0.2 + 1)
    assert result.tau2 == pytest.approx(single + 1)
    home = [1 - (1 - pair) ** 2] * 2 + [1 - (1 - single) * 0.5] * 2 + [0.5, 1.0]
    np.testing.assert_allclose(result.household, home, rtol=1e-12)
    assert result.expected_by_household == pytest.approx(sum(home))
    # the person without an id is the last household
    table = result.households()
    assert table["household"].tolist() == [1, 2, 3, 4]
    assert table["first_record"].tolist() == [1, 3, 6, 5]
    assert table["persons"].tolist() == [2, 2, 1, 1]
    np.testing.assert_allclose(table["risk"], [home[0], home[2], 1.0, 0.5], rtol=1e-12)
    assert result.expected_households == pytest.approx(home[0] + home[2] + 1 + 0.5)
    assert result.above(0.5) == (1, 1)
    assert result.above(0.4) == (4, 3)
    records = result.records()
    assert records["household_risk"].tolist() == result.household.tolist()
    # by its number a record finds its household in the table
    assert records["household"].tolist() == [1, 1, 2, 2, 4, 3]


def test_a_file_without_households_has_no_household_risk():
    """A table of households of one would look as if nobody lived together."""
    result = record_risk(read())
    assert result.households() is None
    assert result.expected_households is None
    assert "household" not in result.records()


def test_expected_households_count_each_household_once():
    """Summed over records, a household of four would count four times."""
    frame = pd.DataFrame({"a": list("wxyz"), "b": "1", "w": 1.0, "h": "7"})
    result = record_risk(read(frame, household="h"))
    assert result.expected_households == 1.0
    assert result.expected_by_household == 4.0


def test_sampling_fraction_stands_for_weights():
    result = record_risk(read(weight=None), sampling_fraction=0.1)
    assert result.combinations["F"].tolist() == [20, 10, 20, 10]
    assert result.tau1 == pytest.approx(0.2)
    whole = record_risk(read(weight=None))
    assert whole.risk.tolist() == [0.5, 0.5, 1, 0.5, 0.5, 1]


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, float("nan")])
def test_sampling_fraction_out_of_range(fraction):
    with pytest.raises(InputError, match=r"sampling.fraction"):
        record_risk(read(weight=None), sampling_fraction=fraction)


def test_a_fraction_beside_weights_is_refused():
    with pytest.raises(InputError, match="contradict"):
        record_risk(read(), sampling_fraction=0.1)


def test_bulk_limit_by_hand():
    risks = [0.1, 0.2, 0.2, 0.3, 0.9]
    assert bulk_limit(risks) == pytest.approx(0.2 + 2 * 1.4826 * 0.1)
    result = record_risk(read())
    assert result.above_bulk() == result.above(result.bulk_limit)


weights = st.lists(
    st.one_of(st.floats(0.001, 3), st.just(1.0), st.just(1 + 1e-9), st.floats(1, 1e12)),
    min_size=10,
    max_size=10,
)


@given(weights, st.sampled_from(["wildcard", "own", "conservative"]))
def test_risks_stay_in_range_for_any_weights(weights, rule):
    """Groups of 1, 2, 3 and more, gaps, weights near 1 and weight sums below f."""
    frame = pd.DataFrame(
        {"a": [*list("uvvwwwwx"), None, "u"], "b": ["1"] * 9 + [None], "w": weights}
    )
    result = record_risk(read(frame, missing=rule))
    assert np.all((result.risk >= 0) & (result.risk <= 1))
    assert 0 <= result.tau1 <= result.tau2 <= result.expected <= 10


def test_key_sets_equal_separate_readings():
    data = read()
    table = compare_key_sets(data, {"one": ["b"], "both": ["b", "a"]})
    for name, keys in (("one", ["b"]), ("both", ["a", "b"])):
        alone = record_risk(read(keys=keys))
        row = table.loc[name]
        assert row["expected"] == pytest.approx(alone.expected)
        assert tuple(row[["records_below_3", "combinations_below_3"]]) == (
            alone.data.k_violations(3)
        )
        assert row["combinations"] == len(alone.combinations)
    with pytest.raises(InputError):
        compare_key_sets(data, {})


REAL = {
    "scotland_census2011_teaching_1pct": (
        "sex age Marital_Status Country_Of_Birth Ethnic_Group religion Economic_Activity "
        "Occupation industry Family_Composition",
        {},
    ),
    "us_pums5_2000_fulton_ga": ("puma sex age educ latino black asian married children", {}),
    "us_acs_pums2019_massachusetts_nist_excerpt": (
        "PUMA AGEP SEX MSP HISP RAC1P EDU",
        {"weight": "PWGTP"},
    ),
    "us_pums_newyork_20000_npbayesimputecat": (
        "OWNERSHP MORTGAGE AGE SEX MARST RACESING EDUC EMPSTAT DISABWRK VETSTAT",
        {},
    ),
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_size_indices_counted_elsewhere(name, shared_data):
    keys, more = REAL[name]
    folder = shared_data / "microdata"
    data = read_microdata(folder / f"{name}.csv.gz", keys=keys.split(), **more)
    listed = pd.read_csv(folder / "SIZE_INDICES.csv")
    row = listed[(listed["file"] == name) & (listed["key"] == keys)].iloc[0]
    sizes = data.size_indices
    assert data.n == row["records"]
    assert len(data.combinations) == row["nonempty"]
    assert [sizes[1], sizes[2], sizes[3]] == [row["F1"], row["F2"], row["F3"]]
    assert sizes[(sizes.index >= 4) & (sizes.index <= 9)].sum() == row["F4_9"]
    assert sizes[sizes.index >= 10].sum() == row["F10plus"]
    result = record_risk(data)
    assert np.all((result.risk > 0) & (result.risk <= 1))


@pytest.mark.shared_data
def test_austrian_sample_with_weights_and_households(shared_data):
    """Against pandas: frequencies, weight sums, and household risks by product."""
    path = shared_data / "microdata" / "austria_eusilcS_sample.csv.gz"
    keys = ["db040", "hsize", "age", "rb090", "pl030", "pb220a"]
    data = read_microdata(path, keys=keys, weight="rb050", household="db030", missing="own")
    raw = pd.read_csv(path, dtype=str, keep_default_na=False)
    groups = raw.assign(w=raw["rb050"].astype(float)).groupby(keys)["w"]
    assert data.f.tolist() == groups.transform("size").tolist()
    np.testing.assert_allclose(data.F, groups.transform("sum"), rtol=1e-12)
    result = record_risk(data)
    home = pd.Series(1 - result.risk).groupby(raw["db030"]).transform("prod")
    np.testing.assert_allclose(result.household, 1 - home, rtol=1e-9)
    wild = read_microdata(path, keys=keys, weight="rb050", household="db030")
    assert np.all(wild.f >= data.f)
