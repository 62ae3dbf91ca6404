"""An invented country to try things on: flows with the steep shape of real registers.

Nothing here comes from real people. `simulate_flows` draws a table; run as a script
(``python -m bayes_sdc.flows.simulate``), the module rewrites the example file of the package.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc.flows.files import Dialect, encode
from bayes_sdc.runs import write_bytes

EXAMPLE_SEED = 2011

# Gravity: log mean = LEVEL + PULL * (log population of both) - DECAY * log(distance) + ...
LEVEL = -13.0
PULL = 0.85
DECAY = 0.9
SAME_STATE = 0.7
DISPERSION = 0.7  # shape of the gamma noise of a pair: the smaller, the more very small counts
STAY = 0.85  # share of the people who stay in their area
NAMES = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Oak")
KINDS = ("County", "Valley", "Shore", "Heights", "Plain")


def simulate_flows(*, areas: int = 80, states: int = 4, seed: int) -> pd.DataFrame:
    """Draw the flows between the areas of an invented country.

    The data are invented: areas get a place and a log-normal population, and the counts are
    Poisson around a gravity model with gamma noise. Only pairs with people in them become rows;
    the people who stay are own-area rows.

    Parameters
    ----------
    areas
        Number of areas.
    states
        Number of states they are spread over.
    seed
        Seed; the same seed gives the same table.

    Returns
    -------
    pandas.DataFrame
        Columns ``origin``, ``destination``, ``origin_state``, ``destination_state`` (text codes),
        ``origin_name`` and ``count``, sorted by origin and destination.

    Raises
    ------
    ValueError
        Unless there are from 1 to 99 states, each with from one to 499 areas.

    Examples
    --------
    >>> simulate_flows(areas=3, states=1, seed=2)["origin"].unique().tolist()
    ['01001', '01003', '01005']
    """
    if not 1 <= states <= min(99, areas):
        raise ValueError(f"need 1 to 99 states and as many areas, got {states=} and {areas=}")
    share = np.cumsum(np.arange(states) + 2.0)  # states of different size: 2, 3, 4, ... parts
    spread = np.searchsorted(share / share[-1], np.linspace(0, 1, areas - states))
    state = np.sort(np.concatenate([np.arange(states), spread]))
    if (most := np.bincount(state).max()) > 499:
        raise ValueError(f"the largest state gets {most} areas, more than the 499 codes it has")
    rng = np.random.default_rng(seed)
    number = np.arange(areas) - np.searchsorted(state, state)  # within the state
    population = rng.lognormal(mean=10.3, sigma=1.1, size=areas)
    centre = rng.uniform(0, 150 * np.sqrt(states), size=(states, 2))
    place = centre[state] + rng.normal(0, 60, size=(areas, 2))

    distance = np.hypot(*(place[:, None] - place[None, :]).transpose(2, 0, 1))
    attraction = PULL * np.log(population)
    log_mean = LEVEL + attraction[:, None] + attraction[None, :] - DECAY * np.log(distance + 5)
    log_mean += SAME_STATE * (state[:, None] == state[None, :])
    noise = rng.gamma(DISPERSION, 1 / DISPERSION, size=(areas, areas))
    count = rng.poisson(np.exp(log_mean) * noise)
    np.fill_diagonal(count, rng.poisson(STAY * population))

    origin, destination = np.nonzero(count)
    state_code = np.array([f"{s + 1:02d}" for s in range(states)])
    code = np.array([f"{s + 1:02d}{2 * n + 1:03d}" for s, n in zip(state, number, strict=True)])
    name = np.array([f"{NAMES[i % 10]} {KINDS[i // 10 % 5]}" for i in range(areas)])
    return pd.DataFrame(
        {
            "origin": code[origin],
            "destination": code[destination],
            "origin_state": state_code[state[origin]],
            "destination_state": state_code[state[destination]],
            "origin_name": name[origin],
            "count": count[origin, destination],
        }
    )


def example_flows_path() -> Path:
    """Return where the example file of the package is.

    Returns
    -------
    pathlib.Path
        A CSV file written by `simulate_flows` with its default size; the data are invented.

    Examples
    --------
    >>> example_flows_path().name
    'example_flows.csv'
    """
    return Path(__file__).resolve().parent.parent / "data" / "example_flows.csv"


def main() -> None:
    """Rewrite the example file and say where it is."""
    path = example_flows_path()
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, encode(simulate_flows(seed=EXAMPLE_SEED), Dialect()))
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
