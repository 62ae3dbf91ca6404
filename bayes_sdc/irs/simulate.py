"""An invented country's flows as the IRS would publish them: the files of the example.

Nothing here comes from real returns: flows like those of :mod:`bayes_sdc.flows.table.simulate`,
with invented incomes, are put into the CSV layout of the IRS, under its rules of 2005-2006 as far
as they are documented or can be seen in the files. Run as a script (``python -m
bayes_sdc.irs.simulate``), the module rewrites the example files of the package.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.irs.layouts import Direction
from bayes_sdc.runs import write_bytes

EXAMPLE_SEED = 1040
AREAS = 60
STATES = 6
BUSY = 4  # so many times the flows of the smaller country of `simulate_flows`
MEASURES = ["n1", "n2", "agi"]
REGIONS = ("Northeast", "Midwest", "South", "West")
FOREIGN = {"001": "Overseas", "003": "Puerto Rico", "005": "APO/FPO ZIPs", "007": "Virgin Islands"}
ABROAD = (2.0, 0.6, 1.2, 0.1)  # mean returns to each place abroad, of a middling county


@checked
def simulate_irs_flows(*, areas: int = AREAS, states: int = STATES, seed: int) -> pd.DataFrame:
    """Draw the confidential flows of an invented country, with exemptions and income.

    Parameters
    ----------
    areas, states
        How many counties, in how many states.
    seed
        Seed; the same seed gives the same table.

    Returns
    -------
    pandas.DataFrame
        ``origin``, ``destination`` (text codes of five digits; ``57001`` and so on abroad) and
        ``n1`` (returns), ``n2`` (exemptions), ``agi`` (thousands of dollars). All flows are there,
        of one return too; rows from a county to itself are the non-migrants.

    Raises
    ------
    ValueError
        As :func:`bayes_sdc.flows.table.simulate.simulate_flows`.

    See Also
    --------
    bayes_sdc.read_irs_flows, bayes_sdc.example_irs_path

    Examples
    --------
    >>> flows = simulate_irs_flows(areas=4, states=2, seed=1)
    >>> bool((flows["n2"] >= flows["n1"]).all())
    True
    """
    pairs = simulate_flows(areas=areas, states=states, seed=seed)
    rng = np.random.default_rng([seed, 1])
    pairs["count"] = rng.poisson(BUSY * pairs["count"])
    pairs = pairs[pairs["count"] > 0]
    counties = np.sort(pairs["origin"].unique())
    size = rng.lognormal(0.0, 1.0, size=(2, len(counties), 1))
    abroad = rng.poisson(size * np.array(ABROAD))
    codes = np.array([f"57{code}" for code in FOREIGN])
    out, code = np.nonzero(abroad[0])
    into, code_in = np.nonzero(abroad[1])
    flows = pd.DataFrame(
        {
            "origin": [*pairs["origin"], *counties[out], *codes[code_in]],
            "destination": [*pairs["destination"], *codes[code], *counties[into]],
            "n1": [*pairs["count"], *abroad[0][out, code], *abroad[1][into, code_in]],
        }
    )
    returns = flows["n1"].to_numpy()
    flows["n2"] = returns + rng.poisson(1.1 * returns)
    flows["agi"] = np.rint(rng.gamma(0.8 * returns, 50.0)).astype(np.int64)
    return flows


def publish_irs(flows: pd.DataFrame, direction: Direction, *, threshold: int = 10) -> pd.DataFrame:
    """Put flows into the CSV layout of the IRS, without those of too few returns.

    Flows of fewer returns than the threshold are in rows of other flows, within the state and to
    other states. While such a row has too few returns itself, the smallest flow that is left joins
    it. If that is not enough for both rows, neither is shown, and both totals are suppressed by -1.
    A suppressed total of flows abroad is not in the total of US and foreign.

    Parameters
    ----------
    flows
        From `simulate_irs_flows`.
    direction
        ``"inflow"`` or ``"outflow"``.
    threshold
        A flow of fewer returns is not shown.

    Returns
    -------
    pandas.DataFrame
        Text in the columns of the IRS's files ``countyinflow`` or ``countyoutflow``.

    Raises
    ------
    InputError
        If the direction is neither.
    """
    if direction not in ("inflow", "outflow"):
        raise InputError(f"direction must be 'inflow' or 'outflow', got {direction!r}")
    ends = ["destination", "origin"] if direction == "inflow" else ["origin", "destination"]
    of_county: dict[str, list[Flow]] = {}
    of_state: dict[str, list[Flow]] = {}
    stayed: dict[str, list[int]] = {}
    for county, partner, *numbers in flows[[*ends, *MEASURES]].itertuples(index=False):
        if county == partner:
            stayed[county] = numbers
        elif not county.startswith("57"):
            flow = Flow(partner, _scope(county, partner), numbers)
            of_county.setdefault(county, []).append(flow)
            of_state.setdefault(county[:2], []).append(flow)

    rows: list[Row] = []
    for state in sorted(of_state):
        rows += _totals(f"{state}000", "", _sums(of_state[state]), set(), 1)
        for county in sorted(c for c in of_county if c[:2] == state):
            rows += _county_rows(county, of_county[county], stayed.get(county), threshold)
    sides = ("y2", "y1") if direction == "inflow" else ("y1", "y2")
    names = [f"{side}_{what}fips" for side in sides for what in ("state", "county")]
    names += [f"{sides[1]}_state", f"{sides[1]}_countyname", *MEASURES]
    return pd.DataFrame(
        [
            (c[:2], c[2:], p[:2], p[2:], _abbreviation(c, p), name, *map(str, numbers))
            for c, p, name, numbers in rows
        ],
        columns=names,
    )


class Flow(NamedTuple):
    """A flow of a county: other side, where that is, and returns, exemptions, income."""

    partner: str
    scope: str
    numbers: list[int]


Row = tuple[str, str, str, list[int]]  # county, partner, name, numbers
HIDDEN = [-1, -1, -1]


def _scope(county: str, partner: str) -> str:
    if partner.startswith("57"):
        return "foreign"
    return "same" if county[:2] == partner[:2] else "different"


def _add(flows: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip([0, 0, 0], *flows, strict=True)]


def _sums(flows: Iterable[Flow]) -> dict[str, list[int]]:
    every = list(flows)
    return {
        scope: _add(flow.numbers for flow in every if flow.scope == scope)
        for scope in ("same", "different", "foreign")
    }


def _totals(
    code: str, name: str, sums: dict[str, list[int]], hidden: set[str], threshold: int
) -> list[Row]:
    hidden = hidden | ({"foreign"} if sums["foreign"][0] < threshold else set())
    domestic = _add([sums["same"], sums["different"]])
    everything = domestic if "foreign" in hidden else _add([domestic, sums["foreign"]])
    shown = {scope: HIDDEN if scope in hidden else sums[scope] for scope in sums}
    rows = [
        ("96000", "US and Foreign", everything),
        ("97000", "US", domestic),
        ("97001", "Same State", shown["same"]),
        ("97003", "Different State", shown["different"]),
        ("98000", "Foreign", shown["foreign"]),
    ]
    return [(code, p, f"{name} Total Migration-{what}".strip(), n) for p, what, n in rows]


def _county_rows(
    code: str, flows: list[Flow], stayed: list[int] | None, threshold: int
) -> list[Row]:
    name = _name(code)
    hidden = _hidden(flows, threshold)
    other = _sums(hidden)
    neither = min(other["same"][0], other["different"][0]) < threshold
    rows = _totals(code, name, _sums(flows), {"same", "different"} if neither else set(), threshold)
    if stayed:
        rows.append((code, code, f"{name} Non-migrants", stayed))
    shown = [flow for flow in flows if flow not in hidden]
    for flow in sorted(shown, key=lambda flow: (-flow.numbers[0], flow.partner)):
        rows.append((code, flow.partner, _name(flow.partner), flow.numbers))
    if not neither:
        rows.append((code, "58000", "Other flows - Same State", other["same"]))
        rows.append((code, "59000", "Other flows - Different State", other["different"]))
        rows += _regions(code, [flow for flow in hidden if flow.scope == "different"], threshold)
    if other["foreign"][0] >= threshold:
        rows.append((code, "57009", "Foreign - Other flows", other["foreign"]))
    return rows


def _regions(code: str, flows: list[Flow], threshold: int) -> list[Row]:
    """Return the rows of other flows by region; none if one has too few returns."""
    rows: list[Row] = []
    for place, region in enumerate(REGIONS):
        inside = (f.numbers for f in flows if (int(f.partner[:2]) - 1) % len(REGIONS) == place)
        rows.append((code, f"5900{2 * place + 1}", f"Other flows - {region}", _add(inside)))
    return rows if min(numbers[0] for *_, numbers in rows) >= threshold else []


def _hidden(flows: list[Flow], threshold: int) -> list[Flow]:
    """Return the flows of a county that are not shown."""
    hidden = [flow for flow in flows if flow.scope == "foreign" and flow.numbers[0] < threshold]
    for scope in ("same", "different"):
        together = 0
        inside = [flow for flow in flows if flow.scope == scope]
        for flow in sorted(inside, key=lambda flow: (flow.numbers[0], flow.partner)):
            if flow.numbers[0] >= threshold and together >= threshold:
                break
            hidden.append(flow)
            together += flow.numbers[0]
    return hidden


def _name(code: str) -> str:
    if code.startswith("57"):
        return f"Foreign - {FOREIGN[code[2:]]}"
    return f"County {code}"


def _abbreviation(county: str, partner: str) -> str:
    """Return two letters that no state has: ZA, ZB, and so on."""
    special = {"57": "FR", "58": "SS", "59": "DS"}
    state = county[:2] if partner[:2] > "56" else partner[:2]
    return special.get(partner[:2], f"Z{chr(ord('A') + int(state) - 1)}")


@checked
def example_irs_path(direction: Direction) -> Path:
    """Return where an example file of the package is.

    Parameters
    ----------
    direction
        ``"inflow"`` or ``"outflow"``.

    Returns
    -------
    pathlib.Path
        A CSV file in the layout of the IRS, of an invented country, with a threshold of 10 returns.

    Raises
    ------
    InputError
        If the direction is another word.

    See Also
    --------
    bayes_sdc.read_irs_flows, bayes_sdc.simulate_irs_flows

    Examples
    --------
    >>> example_irs_path("inflow").name
    'example_irs_inflow.csv'
    """
    if direction not in get_args(Direction):
        raise InputError(f"direction {direction!r} is unknown; choose inflow or outflow")
    return Path(__file__).resolve().parent.parent / "data" / f"example_irs_{direction}.csv"


def main() -> None:
    """Rewrite the example files and say where they are."""
    flows = simulate_irs_flows(seed=EXAMPLE_SEED)
    directions: tuple[Direction, ...] = ("inflow", "outflow")
    for direction in directions:
        path = example_irs_path(direction)
        write_bytes(path, encode(publish_irs(flows, direction), Dialect()))
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
