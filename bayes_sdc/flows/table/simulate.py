"""An invented country for trials: flows with the steep shape of real registers.

Nothing here comes from real people. `simulate_flows` draws a table of any size, with the truth
behind it when asked (``bayes-sdc simulate``); run as a script
(``python -m bayes_sdc.flows.table.simulate``), the module rewrites the example file of the package.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import betainc

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.runs import write_bytes
from bayes_sdc.seeds import seed_sequence

EXAMPLE_SEED = 2011

# Gravity: log mean = LEVEL + PULL * (log population of both) - DECAY * log(distance) + ...
LEVEL = -13.0
PULL = 0.85
DECAY = 0.9
SAME_STATE = 0.7
DISPERSION = 0.7  # shape of the gamma noise of a pair: a smaller one gives more very small counts
STAY = 0.85  # share of the people who stay in their area
KM_A_DEGREE = 111.195  # of a great circle
MOST_AREAS = 10_000  # their pairs take 5 GiB
MOST_STATES = 9999  # more would not fit on a globe
QUANTILES = 20_000  # number of log means that stand for all pairs in the search for the level
NAMES = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Oak")
KINDS = ("County", "Valley", "Shore", "Heights", "Plain")


class _Country(NamedTuple):
    """Areas in the order of their codes."""

    code: np.ndarray  # (area,)
    name: np.ndarray  # (area,)
    state: np.ndarray  # (area,) position among the states
    state_code: np.ndarray  # (state,)
    population: np.ndarray  # (area,)
    place: np.ndarray  # (area, 2) km east and north


def _country(areas: int, states: int, rng: np.random.Generator) -> _Country:
    """Draw the areas; these are the first draws of every table."""
    if not 1 <= states <= min(MOST_STATES, areas):
        raise InputError(
            f"need 1 to {MOST_STATES:,} states and as many areas, got {states=} and {areas=}"
        )
    share = np.cumsum(np.arange(states) + 2.0)  # states of different size: 2, 3, 4, ... parts
    spread = np.searchsorted(share / share[-1], np.linspace(0, 1, areas - states))
    state = np.sort(np.concatenate([np.arange(states), spread]))
    number = np.arange(areas) - np.searchsorted(state, state)  # within the state
    population = rng.lognormal(mean=10.3, sigma=1.1, size=areas)
    centre = rng.uniform(0, 150 * np.sqrt(states), size=(states, 2))
    # odd numbers, as of American counties, of as many digits as the largest needs
    digits, of_state = max(3, len(str(2 * number.max() + 1))), max(2, len(str(states)))
    return _Country(
        code=np.array(
            [
                f"{s + 1:0{of_state}d}{2 * n + 1:0{digits}d}"
                for s, n in zip(state, number, strict=True)
            ]
        ),
        name=np.array([f"{NAMES[i % 10]} {KINDS[i // 10 % 5]}" for i in range(areas)]),
        state=state,
        state_code=np.array([f"{s + 1:0{of_state}d}" for s in range(states)]),
        population=population,
        place=centre[state] + rng.normal(0, 60, size=(areas, 2)),
    )


@checked
def simulate_areas(*, areas: int = 80, states: int = 4, seed: int) -> pd.DataFrame:
    """Areas of the country that :func:`simulate_flows` draws with the same numbers and seed.

    Parameters
    ----------
    areas, states, seed
        As for :func:`simulate_flows`.

    Returns
    -------
    pandas.DataFrame
        Columns ``area`` and ``state`` (text codes), ``name``, ``population`` (people),
        ``longitude`` and ``latitude`` (degrees, about 0). Distances on the globe are those of the
        plane on which the country is drawn, apart from the curvature.

    Raises
    ------
    InputError
        As for :func:`simulate_flows`.

    See Also
    --------
    bayes_sdc.simulate_flows, bayes_sdc.with_covariates

    Examples
    --------
    >>> simulate_areas(areas=3, states=1, seed=2)["area"].tolist()
    ['01001', '01003', '01005']
    """
    seed_sequence(seed)  # refuses an invalid seed
    country = _country(areas, states, np.random.default_rng(seed))
    east, north = (country.place - country.place.mean(axis=0)).T / KM_A_DEGREE
    return pd.DataFrame(
        {
            "area": country.code,
            "state": country.state_code[country.state],
            "name": country.name,
            "population": np.rint(country.population).astype(np.int64),
            "longitude": (east / np.cos(np.radians(north))).round(5),
            "latitude": north.round(5),
        }
    )


@checked
def simulate_flows(
    *, areas: int = 80, states: int = 4, small: int | None = None, truth: bool = False, seed: int
) -> pd.DataFrame:
    """Draw the flows between the areas of an invented country.

    The data are invented: areas get a place and a log-normal population, and the counts are
    Poisson around a gravity model with gamma noise, which is a negative binomial distribution of
    size 0.7. Only pairs with people in them become rows; the people who stay are own-area rows.

    Parameters
    ----------
    areas : int
        Number of areas.
    states : int
        Number of states they are spread over.
    small : int, optional
        Number of counts from 1 to 9 to expect; the level of all flows is set for it. By default
        the level is fixed, and the larger the country the emptier the table.
    truth : bool
        Add the truth behind each count: ``mean``, that of the gravity model, and ``rate``, the mean
        times the noise of the pair.
    seed : int
        Seed; the same seed gives the same table.

    Returns
    -------
    pandas.DataFrame
        Columns ``origin``, ``destination``, ``origin_state``, ``destination_state`` (text codes),
        ``origin_name`` and ``count``, sorted by origin and destination, and those of ``truth``.

    Raises
    ------
    InputError
        Unless there are from 1 to 9,999 states and at least as many areas, up to 10,000, ``small``
        is a number that so many areas can have, and the seed is a whole number, 0 or more.

    See Also
    --------
    bayes_sdc.simulate_areas, bayes_sdc.example_flows_path

    Notes
    -----
    Codes are text: two digits of the state and three of the area within it, or as many as the
    largest needs. All pairs of areas are drawn at once, about 50 bytes each.

    Examples
    --------
    >>> simulate_flows(areas=3, states=1, seed=2)["origin"].unique().tolist()
    ['01001', '01003', '01005']
    """
    seed_sequence(seed)  # refuses an invalid seed
    if areas > MOST_AREAS:
        raise InputError(f"areas must be {MOST_AREAS:,} or fewer for flows; got {areas:,}")
    rng = np.random.default_rng(seed)
    code, name, state, state_code, population, place = _country(areas, states, rng)
    distance = np.hypot(*(place[:, None] - place[None, :]).transpose(2, 0, 1))
    attraction = PULL * np.log(population)
    log_mean = LEVEL + attraction[:, None] + attraction[None, :] - DECAY * np.log(distance + 5)
    log_mean += SAME_STATE * (state[:, None] == state[None, :])
    if small is not None:
        log_mean += _level_for(small, log_mean)
    rate = np.exp(log_mean) * rng.gamma(DISPERSION, 1 / DISPERSION, size=(areas, areas))
    count = rng.poisson(rate)
    np.fill_diagonal(count, rng.poisson(STAY * population))

    origin, destination = np.nonzero(count)
    columns = {
        "origin": code[origin],
        "destination": code[destination],
        "origin_state": state_code[state[origin]],
        "destination_state": state_code[state[destination]],
        "origin_name": name[origin],
        "count": count[origin, destination],
    }
    if truth:
        stay = STAY * population
        for title, values in (("mean", np.exp(log_mean)), ("rate", rate)):
            columns[title] = np.where(
                origin == destination, stay[origin], values[origin, destination]
            )
    return pd.DataFrame(columns)


def _level_for(small: int, log_mean: np.ndarray) -> float:
    """Find the shift of all log means that gives the expected number of counts from 1 to 9."""
    pairs = log_mean[~np.eye(len(log_mean), dtype=bool)]
    # in large tables, means of neighbouring quantiles are as good as all values
    means = np.sort(pairs)
    if len(means) > QUANTILES:
        means = means[(np.arange(QUANTILES) + 0.5).astype(np.int64) * len(means) // QUANTILES]

    def expected(shift: float) -> float:
        success = DISPERSION / (DISPERSION + np.exp(means + shift))
        # the negative binomial's distribution function at 9 and at 0
        inside = betainc(DISPERSION, 10.0, success) - betainc(DISPERSION, 1.0, success)
        return float(np.mean(inside)) * len(pairs)

    # the number first grows with the level, until most flows are beyond 9
    shifts = np.arange(-30.0, 30.0, 0.25)
    numbers = np.array([expected(shift) for shift in shifts])
    top = int(numbers.argmax())
    if not numbers[0] < small < numbers[top]:
        raise InputError(
            f"small must be from 1 to {int(numbers[top])} with {len(log_mean)} areas; it is {small}"
        )
    return float(brentq(lambda shift: expected(shift) - small, shifts[0], shifts[top], xtol=1e-6))


@checked
def example_flows_path() -> Path:
    """Return where the example file of the package is.

    Returns
    -------
    pathlib.Path
        A CSV file written by `simulate_flows` with its default size; the data are invented.

    See Also
    --------
    bayes_sdc.read_flows, bayes_sdc.simulate_flows

    Examples
    --------
    >>> example_flows_path().name
    'example_flows.csv'
    """
    return Path(__file__).resolve().parents[2] / "data" / "example_flows.csv"


def main() -> None:
    """Rewrite the example file and say where it is."""
    path = example_flows_path()
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, encode(simulate_flows(seed=EXAMPLE_SEED), Dialect()))
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
