"""What a release adds to what an intruder knew, by prior, on four real tables.

    python tests/validation/gain_by_prior.py DATA [--tables gb norway] [--cells 1500]

DATA is a folder with ``flows/`` (public files, not part of the repository). The tables are taken
whole, or, with --cells, whole groups in an order drawn at random until they hold so many small
cells; the default model is fitted with short chains, one data set is released, and the gain is
measured for every prior by name. ``gain_by_prior.md`` is written after each table.
Everything random follows from SEED.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc import fit_flows, intruder_risk, log_ratios, read_flows, synthesize
from bayes_sdc.flows.table.read import FlowTable

SEED = 20261129
TABLES = {
    "gb": "gb_lad_migration_2011",
    "norway": "norway_municipality_commuting_2017",
    "us commuting": "us_county_commuting_acs2009_2013",
    "us within state": "us_county_migration_within_state_acs2009_2013",
}
CHAINS = {"draws": 400, "tune": 400, "chains": 4}
HEAD = """\
# What a release adds, by the intruder's prior

Made by `python tests/validation/gain_by_prior.py DATA`, seed {seed}: {cells},
default family and prior, {chains} chains of {draws} draws after {tune}, one data set released, the
intruder knows all other cells. Found: share of cells whose most probable count is the true one, a
guess at random among ties. Bits: mean log2 probability of the true count. Pushed: cells whose true
count passes 50, 80, 95 % after the release and not before.

{columns}
"""
COLUMNS = (
    "table", "prior", "found before", "after", "gain, 95 % interval", "Monte Carlo error", "R_unq",
    "bits before", "after", "gain, 95 % interval", "pushed past 50, 80, 95 %", "largest ratio",
)  # fmt: skip


def subset(path: Path, wanted: int | None) -> FlowTable:
    """Whole groups in random order until they hold so many small cells; by default all."""
    groups = ["origin_state", "destination_state"]
    frame = pd.read_csv(path, dtype=dict.fromkeys(["origin", "destination", *groups], str))
    small = frame["count"].between(1, 9) & (frame["origin"] != frame["destination"])
    size = small.groupby([frame[name] for name in groups]).sum()
    order = np.random.default_rng(SEED).permutation(len(size))
    enough = np.cumsum(size.to_numpy()[order]) >= (size.sum() if wanted is None else wanted)
    kept = order[: int(np.argmax(enough)) + 1]
    chosen = size.index[kept]
    part = frame[pd.MultiIndex.from_frame(frame[groups]).isin(chosen)].reset_index(drop=True)
    return read_flows(
        part, origin="origin", destination="destination", count="count", groups=groups
    )


def rows(name: str, table: FlowTable) -> list[str]:
    """Rows of the table by prior, and what else is said of this table."""
    start = time.process_time()
    posterior = fit_flows(table, seed=SEED, **CHAINS)
    risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=SEED))
    lines = []
    for gain in risk.gains.values():
        found, bits = gain.guessed, gain.bits
        low, high = (100 * end for end in found.interval)
        lines.append(
            f"| {name} | {gain.prior}{', strongest' if gain is risk.strongest else ''} | "
            f"{found.before:.1%} | {found.after:.1%} | {100 * found.gain:+.1f} ({low:+.1f} to "
            f"{high:+.1f}) | {100 * found.monte_carlo_error:.1f} | {gain.unique.before:.0%} → "
            f"{gain.unique.after:.0%} | {bits.before:.3f} | {bits.after:.3f} | {bits.gain:+.4f} "
            f"({bits.interval[0]:+.4f} to {bits.interval[1]:+.4f}) | "
            f"{', '.join(map(str, gain.pushed.values()))} | {gain.largest_ratio:.2f} |"
        )
    ratios = log_ratios(risk).distribution
    middle, most = ratios.loc["median"], ratios.loc["largest"]
    note = (
        f"{name}: {table.n_small:,} small cells in {table.cells['group'].nunique():,} groups, "
        f"{risk.unreliable_cells:,} of them not to be relied on; log ratio between neighbouring "
        f"counts {middle['neighbours']:.3f} in the median (at least "
        f"{middle['neighbours_at_least']:.3f}), {most['neighbours']:.3f} at most (at least "
        f"{most['neighbours_at_least']:.3f}); {time.process_time() - start:.0f} s of processor."
    )
    return ["\n".join(lines), note]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--cells", type=int, help="by default all")
    arguments = parser.parse_args()
    told: list[list[str]] = []
    for name in arguments.tables:
        path = arguments.data / "flows" / f"{TABLES[name]}.csv.gz"
        told.append(rows(name, subset(path, arguments.cells)))
        text = HEAD.format(
            seed=SEED,
            cells="whole tables"
            if arguments.cells is None
            else f"whole groups in random order until they hold {arguments.cells:,} small cells",
            columns=f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|",
            **CHAINS,
        )
        text += "\n".join(lines for lines, _ in told) + "\n\n"
        text += "\n\n".join(note for _, note in told) + "\n"
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
