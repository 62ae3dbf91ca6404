"""An invented population of persons in households, and a survey sample of it with weights.

Nothing here comes from real people. `simulate_persons` draws the population, `draw_survey` a sample
of households; run as a script (``python -m bayes_sdc.microdata.file.simulate``), the module
rewrites the example file of the package. The example tells how many persons of the population share
each record's key values, so that estimates can be shown beside the truth.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.runs import write_bytes

EXAMPLE_SEED = 2011
PERSONS = 100_000
SAMPLED = 0.05
EXAMPLE_KEYS = ("region", "sex", "age", "marital_status", "birth_place")

REGIONS = np.array(["North", "East", "South", "West", "Islands", "Capital", "Lakes", "Hills"])
REGION_SHARE = np.array([0.22, 0.18, 0.16, 0.14, 0.02, 0.18, 0.06, 0.04])
OVERSAMPLING = np.array([1.0, 1.0, 1.0, 1.0, 4.0, 0.7, 1.5, 2.0])
BIRTH_PLACES = np.array([f"country {place:02d}" for place in range(1, 41)])
HOUSEHOLD_SIZE = np.array([0.36, 0.30, 0.15, 0.12, 0.05, 0.02])
OLDEST_GROUP, CHILD_GROUPS, OCCUPATIONS = 17, 3, 30


@checked
def simulate_persons(*, persons: int = PERSONS, seed: int) -> pd.DataFrame:
    """Draw an invented population of persons in households.

    Members of a household share region and mostly the place of birth; partners are near in age,
    children a generation younger. Places of birth and occupations follow power laws, so that there
    are many rare combinations.

    Parameters
    ----------
    persons : int
        Size of the population, 1 or more.
    seed : int
        The same seed gives the same population.

    Returns
    -------
    DataFrame
        One row per person, in households one after another: ``household``, ``region``, ``sex``,
        ``age`` (groups of five years), ``marital_status``, ``birth_place``, ``occupation``; text.

    Raises
    ------
    InputError
        If persons is below 1.

    See Also
    --------
    bayes_sdc.read_microdata, bayes_sdc.example_persons_path

    Examples
    --------
    >>> people = simulate_persons(persons=1000, seed=1)
    >>> len(people), people["household"].is_monotonic_increasing
    (1000, True)
    """
    if persons < 1:
        raise InputError(f"persons must be 1 or more; it is {persons!r}")
    if seed < 0:
        raise InputError(f"seed must be a whole number, 0 or more; it is {seed!r}")
    rng = np.random.default_rng(seed)
    size = 1 + rng.choice(6, persons, p=HOUSEHOLD_SIZE)  # more than enough households
    home = np.repeat(np.arange(persons), size)[:persons]
    homes = int(home[-1]) + 1
    member = np.arange(persons) - np.searchsorted(home, home)

    region = rng.choice(len(REGIONS), homes, p=REGION_SHARE)
    head_age = 4 + np.minimum(rng.binomial(14, rng.beta(1.6, 2.0, homes)), OLDEST_GROUP - 4)
    lone_parent = rng.random(homes) < 0.2
    child = member >= np.where(lone_parent[home], 1, 2)
    young = np.maximum(head_age[home] - 5 - rng.poisson(0.7, persons), 0)
    partner = np.clip(head_age[home] + rng.integers(-1, 2, persons), 3, OLDEST_GROUP)
    age = np.where(child, np.minimum(young, 5), np.where(member == 0, head_age[home], partner))
    head_sex = rng.integers(0, 2, homes)
    same_sex = rng.random(homes) < 0.02
    second = np.where(same_sex, head_sex, 1 - head_sex)
    sex = np.where(
        child, rng.integers(0, 2, persons), np.where(member == 0, head_sex[home], second[home])
    )

    minor = age < CHILD_GROUPS
    couple = (~child) & (~lone_parent[home]) & (size[home] > 1)
    married = rng.random(homes) < 0.75
    single = rng.choice(4, persons, p=[0.0, 0.62, 0.2, 0.18])
    single = np.where((age < 9) & (single == 3) & (rng.random(persons) < 0.9), 1, single)
    marital = np.where(couple, np.where(married[home], 0, 1), single)
    marital = np.where(child | minor, 1, marital)

    country = _power_law(len(BIRTH_PLACES), 1.6)
    head_country = rng.choice(len(BIRTH_PLACES), homes, p=country)
    own_country = rng.choice(len(BIRTH_PLACES), persons, p=country)
    country_of = np.where(rng.random(persons) < 0.85, head_country[home], own_country)
    country_of = np.where(minor & (rng.random(persons) < 0.8), 0, country_of)

    liking = rng.permuted(np.tile(np.arange(OCCUPATIONS), (2, 1)), axis=1)  # by sex
    job = liking[sex, rng.choice(OCCUPATIONS, persons, p=_power_law(OCCUPATIONS, 1.0))]
    occupation = np.array([f"{job:02d}" for job in range(1, OCCUPATIONS + 1)])[job]
    working = (~minor) & (age < 13) & (rng.random(persons) < 0.75)
    status = np.where(age >= 13, "retired", np.where(minor, "child", "not working"))
    ages = np.array([f"{5 * g:02d}-{5 * g + 4:02d}" for g in range(OLDEST_GROUP)] + ["85+"])
    frame = {
        "household": np.char.mod("H%06d", home + 1),
        "region": REGIONS[region[home]],
        "sex": np.array(["female", "male"])[sex],
        "age": ages[age],
        "marital_status": np.array(["married", "single", "divorced", "widowed"])[marital],
        "birth_place": BIRTH_PLACES[country_of],
        "occupation": np.where(working, occupation, status),
    }
    return pd.DataFrame({name: pd.Series(values, dtype=str) for name, values in frame.items()})


def _power_law(levels: int, exponent: float) -> np.ndarray:
    share = np.arange(1.0, levels + 1.0) ** -exponent
    return np.asarray(share / share.sum())


def draw_survey(population: pd.DataFrame, *, fraction: float = SAMPLED, seed: int) -> pd.DataFrame:
    """Draw a sample of whole households, with weights that are the inverse of their chances.

    Small regions are sampled at higher rates, and single persons less often than large households,
    so that weights differ between and within combinations.

    Parameters
    ----------
    population : DataFrame
        From `simulate_persons`.
    fraction : float
        Expected share of persons in the sample, in (0, 0.1].
    seed : int
        The same seed gives the same sample.

    Returns
    -------
    DataFrame
        Columns of the population, ``weight``, and ``population_count``: how many persons of the
        population have the same values of :data:`EXAMPLE_KEYS`.

    Raises
    ------
    InputError
        If fraction is out of range.

    Examples
    --------
    >>> people = simulate_persons(persons=2000, seed=1)
    >>> survey = draw_survey(people, seed=2)
    >>> bool((survey["weight"] > 1).all())
    True
    """
    if not 0 < fraction <= 0.1:
        raise InputError(f"fraction must be above 0 and at most 0.1; it is {fraction!r}")
    rng = np.random.default_rng(seed)
    home, first, size = np.unique(
        population["household"].to_numpy(dtype=object), return_index=True, return_counts=True
    )
    order = dict(zip(REGIONS, OVERSAMPLING, strict=True))
    rate = population["region"].iloc[first].map(order).to_numpy(dtype=float)
    rate = rate * (0.7 + 0.15 * size)
    rate *= fraction * len(population) / (rate @ size)
    taken = rng.random(len(home)) < rate
    chosen = population["household"].isin(home[taken]).to_numpy()
    weight = pd.Series(np.round(1.0 / rate, 4), index=home)
    keys = list(EXAMPLE_KEYS)
    count = population.groupby(keys)[keys[0]].transform("size")
    survey = population.assign(weight=population["household"].map(weight), population_count=count)
    return survey[chosen].reset_index(drop=True)


@checked
def example_persons_path() -> Path:
    """Return where the example file of the package is.

    Returns
    -------
    pathlib.Path
        A CSV file of a survey of an invented population of 100,000 persons.

    See Also
    --------
    bayes_sdc.read_microdata, bayes_sdc.simulate_persons

    Examples
    --------
    >>> example_persons_path().name
    'example_persons.csv'
    """
    return Path(__file__).resolve().parents[2] / "data" / "example_persons.csv"


def main() -> None:
    """Rewrite the example file and say where it is."""
    path = example_persons_path()
    survey = draw_survey(simulate_persons(seed=EXAMPLE_SEED), seed=EXAMPLE_SEED + 1)
    write_bytes(path, encode(survey, Dialect()))
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
