"""Risk and utility of the model beside other protections, on two real tables.

    python tests/validation/ru_map.py DATA [--tables gb us] [--cells 1500]

DATA is a folder with ``flows/`` (public files, not part of the repository). Of each table whole
groups are taken in an order drawn at random until they hold so many small cells (3,000 at most);
the default model is fitted with short chains, and all protections meet the same intruder.
``ru_map.md`` is written after each table. Everything random follows from SEED.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc import compare_protections, fit_flows, read_flows
from bayes_sdc.flows.table.read import FlowTable

SEED = 20261129
TABLES = {"gb": "gb_lad_migration_2011", "us": "us_county_commuting_acs2009_2013"}
CHAINS = {"draws": 200, "tune": 300, "chains": 4}
HEAD = """\
# Risk and utility of protections, with and without totals

Made by `python tests/validation/ru_map.py DATA`, seed {seed}: whole groups in random order until
they hold {cells:,} small cells (1 to 9), default model, {chains} chains of {draws} draws after
{tune}, one data set. The intruder knows all small counts but those of one cycle of totals through
the target, finds all counts equally probable, and knows the totals by area where they are
published. Before and after: mean probability of the true count. Error of totals: by area, relative
to the sum of their small counts. pMSE: ratio, with log count, smallest and largest. Shares: cells
to be moved for the true shares of the counts.
"""
COLUMNS = (
    "method", "totals", "before", "after", "R_all", "bits", "error of totals", "pMSE ratio",
    "shares", "unchanged",
)  # fmt: skip


def subset(path: Path, wanted: int) -> FlowTable:
    """Whole groups in random order until they hold so many small cells."""
    groups = ["origin_state", "destination_state"]
    frame = pd.read_csv(path, dtype=dict.fromkeys(["origin", "destination", *groups], str))
    small = frame["count"].between(1, 9) & (frame["origin"] != frame["destination"])
    size = small.groupby([frame[name] for name in groups]).sum()
    size = size[size <= 3000 - wanted]  # so that the last one does not go beyond 3,000
    order = np.random.default_rng(SEED).permutation(len(size))
    kept = order[: int(np.searchsorted(np.cumsum(size.to_numpy()[order]), wanted)) + 1]
    part = frame[pd.MultiIndex.from_frame(frame[groups]).isin(size.index[kept])]
    return read_flows(
        part.reset_index(drop=True), origin="origin", destination="destination", count="count",
        groups=groups,
    )  # fmt: skip


def lines(name: str, table: FlowTable) -> list[str]:
    """Section of one table."""
    start = time.process_time()
    posterior = fit_flows(table, seed=SEED, **CHAINS)
    compared = compare_protections(table, posterior, seed=SEED)
    rows = [
        f"| {row['method']} | {row['totals']} | {row['before']:.1%} | {row['after']:.1%} | "
        f"{row['r_all']:.1%} | {row['bits']:+.3f} | {row['totals_error']:.1%} | "
        f"{row['pmse_ratio']:.1f} | {row['shares']:.1%} | {row['unchanged']:.1%} |"
        for _, row in compared.iterrows()
    ]
    return [
        f"\n## {name}: {table.n_small:,} small cells in {table.cells['group'].nunique()} groups\n",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
        *rows,
        f"\n{time.process_time() - start:.0f} seconds of processor time.",
    ]


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--cells", type=int, default=1500)
    arguments = parser.parse_args()
    text = [HEAD.format(seed=SEED, cells=arguments.cells, **CHAINS)]
    for name in arguments.tables:
        path = arguments.data / "flows" / f"{TABLES[name]}.csv.gz"
        text += lines(name, subset(path, arguments.cells))
        Path(__file__).with_suffix(".md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
