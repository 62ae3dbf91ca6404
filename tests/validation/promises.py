"""Risk and utility by epsilon, on two real tables: the bounded model beside other mechanisms.

    python tests/validation/promises.py DATA [--tables gb us] [--cells 600]

DATA is a folder with ``flows/`` (public files, not part of the repository). Groups are taken as in
``ru_map.py``, up to fewer cells. All mechanisms take what they need to know beforehand from the
bundled shares without the table itself. ``promises.md`` and ``promises.svg`` are written at the
end, ``promises.csv`` after each table. Everything random follows from SEED.
"""

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from ru_map import SEED, TABLES, subset

from bayes_sdc import compare_promises, plot_promises
from bayes_sdc.flows.table.centres import bundled_shares

SOURCES = {"gb": "migration between local", "us": "commuting between counties"}
CHAINS = {"draws": 200, "tune": 300, "chains": 4}
HEAD = """\
# Risk and utility by epsilon

Made by `python tests/validation/promises.py DATA{arguments}`, seed {seed}: {chains} chains of
{draws} draws after {tune}, one data set, no totals published. The intruder knows all other small
counts and finds all counts equally probable (11.1 % before). Log ratio: largest of one cell's
release between neighbouring counts, in this table; of the model at least so much. After: mean
probability of the true count. Totals: error by area, relative to the sum of their small counts.
pMSE: ratio, with log count, smallest and largest. Shares: cells to be moved for the true shares of
the counts. The Dirichlet-multinomial synthesis exceeds its epsilon with probability delta 1e-06.

![Curves by epsilon](promises.svg)
"""
COLUMNS = {
    "log_ratio": ("log ratio", ".3f"), "after": ("after", ".1%"), "r_all": ("R_all", ".1%"),
    "bits": ("bits", "+.3f"), "totals_error": ("totals", ".1%"),
    "pmse_ratio": ("pMSE ratio", ".1f"),
    "shares": ("shares", ".1%"), "unchanged": ("unchanged", ".1%"),
}  # fmt: skip
HERE = Path(__file__).parent


def lines(name: str, found: pd.DataFrame) -> list[str]:
    """Section of one table."""
    head = ["method", "epsilon", *(title for title, _ in COLUMNS.values())]
    rows = [
        f"| {row['method']} | {row['epsilon']:g} | "
        + " | ".join(f"{row[column]:{form}}" for column, (_, form) in COLUMNS.items())
        + " |"
        for _, row in found.iterrows()
    ]
    first = found.iloc[0]
    return [
        f"\n## {name}: {first['cells']:,} small cells in {first['groups']} groups\n",
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *rows,
        f"\n{first['seconds']:.0f} seconds of processor time.",
    ]


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--cells", type=int, default=600)
    asked = parser.parse_args()
    parts = []
    for name in asked.tables:
        table = subset(asked.data / "flows" / f"{TABLES[name]}.csv.gz", asked.cells)
        start = time.process_time()
        shares = bundled_shares(table.low, table.high, without=SOURCES[name]).tolist()
        found = compare_promises(table, centres=shares, seed=SEED, **CHAINS)
        parts.append(
            found.assign(
                table=name,
                cells=table.n_small,
                groups=table.cells["group"].nunique(),
                seconds=time.process_time() - start,
            )
        )
        pd.concat(parts).to_csv(HERE / "promises.csv", index=False)
    figure, panels = plt.subplots(1, len(parts), figsize=(6 * len(parts), 5), squeeze=False)
    text = [HEAD.format(seed=SEED, arguments=f" --cells {asked.cells}", **CHAINS)]
    for axes, found in zip(panels[0], parts, strict=True):
        name = str(found["table"].iloc[0])
        plot_promises(found, ax=axes).set_title(name)
        text += lines(name, found)
    figure.savefig(HERE / "promises.svg", bbox_inches="tight")
    (HERE / "promises.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
