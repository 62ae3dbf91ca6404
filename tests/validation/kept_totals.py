"""How many totals a release can keep without a pinned cell, on four real tables.

    python tests/validation/kept_totals.py DATA

DATA is a folder with ``flows/`` (public files, not part of the repository). Totals by area, and by
area and partner state, are merged until they pin no small count (1 to 9); nothing is fitted, so
cells whose true count is only very probable are not looked at. ``kept_totals.md`` is written.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.kept_totals import pinned_cells, without_pinned
from bayes_sdc.flows.release.totals.kept import WITH_ALL, kept_by_name

TABLES = {
    "GB migration 2011": "gb_lad_migration_2011",
    "Norway commuting 2017": "norway_municipality_commuting_2017",
    "US commuting 2009-2013": "us_county_commuting_acs2009_2013",
    "US migration within states 2009-2013": "us_county_migration_within_state_acs2009_2013",
}
MARGINS = {
    "by area": "origin,destination",
    "by area and partner state": "origin-by-group,destination-by-group",
}
HEAD = """\
# Totals that a release can keep

Made by `python tests/validation/kept_totals.py DATA`. Pinned: share of the small counts that are
the same in all tables with these totals. In sum only: totals that must be merged with others so
that no cell is pinned, and must not be published by themselves; beyond the area: those of them that
are merged with totals of other areas. Seconds of processor time are for the merging.

| table | totals | small counts | pinned | all totals | in sum only | beyond the area | seconds |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data / "flows"
    groups = ["origin_state", "destination_state"]
    rows = []
    for name, file in TABLES.items():
        frame = pd.read_csv(
            folder / f"{file}.csv.gz", dtype=dict.fromkeys(["origin", "destination", *groups], str)
        )
        table = read_flows(
            frame, origin="origin", destination="destination", count="count", groups=groups
        )
        y = table.cells["y"].to_numpy(np.int64)
        for words, margins in MARGINS.items():
            kept = kept_by_name(table, margins)
            pinned = pinned_cells(kept.margins(y), y, table.k)
            start = time.process_time()
            found = without_pinned(kept, y, table.k)
            took = time.process_time() - start
            number = sum(len(side.labels) for side in kept.sides)
            beyond = sum(int((side.level == WITH_ALL).sum()) for side in found.sides)
            merged = len(found.merged)
            rows.append(
                f"| {name} | {words} | {table.n_small:,} | {pinned.mean():.2%} | {number:,} | "
                f"{merged:,} ({merged / number:.1%}) | {beyond:,} ({beyond / number:.1%}) | "
                f"{took:.1f} |"
            )
            Path(__file__).with_suffix(".md").write_text(
                HEAD + "\n".join(rows) + "\n", encoding="utf-8"
            )


if __name__ == "__main__":
    main()
