"""A whole nation on one machine: time, memory and convergence of the fit, against a plain loop.

    python tests/benchmarks/nation.py [--small 515000] [--family poisson] [--against 20]

Simulates the country (the seed is fixed), fits all its pairs of states at once, and prints the wall
time of the fit, the peak memory of the process, and the share of small cells whose log rate has an
R-hat of at most 1.01 and a bulk effective size of at least 400. With ``--against N`` it also times
what one would write by hand, a fresh ``pm.sample`` of 1,000 + 1,000 draws for each group, on N
groups that are spread over the sizes, and extrapolates by straight line in their number.
"""

import argparse
import resource
import sys
import time

import numpy as np
import xarray as xr

from bayes_sdc import FlowTable, fit_flows, read_flows
from bayes_sdc.convergence import convergence
from bayes_sdc.flows.table.cells import SmallCells, small_cells
from bayes_sdc.flows.table.simulate import simulate_flows

SEED = 7
CELLS_AT_A_TIME = 5000


def country(areas: int, states: int, small: int) -> FlowTable:
    """All counts from 1 to 9 of an invented country, with pairs of states as groups."""
    return read_flows(
        simulate_flows(areas=areas, states=states, small=small, seed=SEED),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


def share_converged(posterior: xr.DataTree, cells: SmallCells) -> dict[str, float]:
    """Shares of the cells by convergence of their log rates."""
    draws = posterior["posterior"].to_dataset()
    beta, gamma = draws["beta"].to_numpy(), draws["gamma"].to_numpy()
    rhat, bulk = np.empty(len(cells.y)), np.empty(len(cells.y))
    for start in range(0, len(cells.y), CELLS_AT_A_TIME):
        part = slice(start, start + CELLS_AT_A_TIME)
        log_rate = beta[..., cells.origin[part]] + gamma[..., cells.destination[part]]
        rhat[part], bulk[part], _ = convergence(log_rate)
    return {
        "R-hat <= 1.01": float((rhat <= 1.01).mean()),
        "bulk ESS >= 400": float((bulk >= 400).mean()),
        "both": float(((rhat <= 1.01) & (bulk >= 400)).mean()),
        "largest R-hat": float(rhat.max()),
        "smallest bulk ESS": float(bulk.min()),
    }


def plain_loop(cells: SmallCells, number: int, family: str, prior: str) -> float:
    """Seconds that a fresh pm.sample for each group would take, from some of them."""
    # it stands beside this script, where pytest, which collects doctests here, does not look
    from test_fit_speed import fresh_pm_sample

    order = np.argsort(np.bincount(cells.group), kind="stable")
    chosen = order[((np.arange(number) + 0.5) * len(order) / number).astype(np.int64)]
    start = time.perf_counter()
    fresh_pm_sample(cells, np.sort(chosen), family=family, prior=prior)
    return (time.perf_counter() - start) / number * len(cells.groups)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--areas", type=int, default=3142)
    parser.add_argument("--states", type=int, default=51)
    parser.add_argument("--small", type=int, default=515_000)
    parser.add_argument("--family", default="default")
    parser.add_argument("--prior", default="default")
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--tune", type=int, default=60)
    parser.add_argument("--against", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    table = country(asked.areas, asked.states, asked.small)
    cells = small_cells(table)
    write = sys.stdout.write
    write(f"{len(cells.y):,} small cells, {len(cells.groups):,} groups\n")
    start = time.perf_counter()
    posterior = fit_flows(
        table, family=asked.family, prior=asked.prior, draws=asked.draws, tune=asked.tune, seed=SEED
    )
    seconds = time.perf_counter() - start
    write(f"fit: {seconds:.0f} s\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    write(f"peak memory: {peak:.2f} GiB\n")
    for name, value in share_converged(posterior, cells).items():
        write(f"{name}: {value:.4f}\n")
    if asked.against:
        loop = plain_loop(cells, asked.against, asked.family, asked.prior)
        write(f"fresh pm.sample of every group, from {asked.against}: {loop:.0f} s, ")
        write(f"{loop / seconds:.0f} times as long\n")


if __name__ == "__main__":
    main()
