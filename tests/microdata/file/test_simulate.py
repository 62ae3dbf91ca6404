"""The invented survey: reproducible, with true population counts, weights that fit the design."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.file.simulate import (
    EXAMPLE_KEYS,
    EXAMPLE_SEED,
    PERSONS,
    draw_survey,
    example_persons_path,
    simulate_persons,
)


@pytest.fixture(scope="module")
def population() -> pd.DataFrame:
    return simulate_persons(seed=EXAMPLE_SEED)


def test_example_file_is_what_the_generator_writes(population):
    survey = draw_survey(population, seed=EXAMPLE_SEED + 1)
    assert example_persons_path().read_bytes() == encode(survey, Dialect())


def test_example_has_the_size_the_documentation_promises(population):
    data = read_microdata(
        example_persons_path(), keys=EXAMPLE_KEYS, weight="weight", household="household"
    )
    assert len(population) == PERSONS
    assert 4500 <= data.n <= 5500
    assert abs(data.weights.sum() / PERSONS - 1) < 0.03
    assert data.raised == 0
    assert not [note for note in data.notes if "missing" in note]


def test_population_counts_are_those_of_the_population(population):
    """Counted here one by one for some records."""
    survey = pd.read_csv(example_persons_path(), dtype=str)
    for i in range(0, len(survey), 500):
        same = np.ones(len(population), dtype=bool)
        for key in EXAMPLE_KEYS:
            same &= (population[key] == survey.at[i, key]).to_numpy()
        assert int(survey.at[i, "population_count"]) == same.sum() > 0


def test_weights_are_unbiased_for_totals_of_groups(population):
    """Over repeated samples the weighted share of a group comes to the true one."""
    truth = (population["region"] == "Islands").sum()
    totals = [
        s["weight"][s["region"] == "Islands"].sum()
        for s in (draw_survey(population, seed=seed) for seed in range(12))
    ]
    error = np.std(totals, ddof=1) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - truth) < 4 * error


def test_households_are_sampled_whole_and_make_sense(population):
    survey = draw_survey(population, seed=3)
    sizes = population.groupby("household").size()
    assert survey.groupby("household").size().equals(sizes[survey["household"].unique()])
    children = population["age"].isin(["00-04", "05-09", "10-14"])
    assert set(population["marital_status"][children]) == {"single"}
    assert set(population["occupation"][children]) == {"child"}


def test_same_seed_same_population_and_another_seed_another():
    one, two, other = (simulate_persons(persons=500, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


def test_arguments_that_cannot_be_used():
    with pytest.raises(InputError, match="persons"):
        simulate_persons(persons=0, seed=1)
    with pytest.raises(InputError, match="fraction"):
        draw_survey(simulate_persons(persons=10, seed=1), fraction=0.5, seed=1)
