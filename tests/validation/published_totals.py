"""Small counts that published totals pin, in the real tables and in a simulated nation.

    python tests/validation/published_totals.py DATA

DATA is a folder with ``flows/`` (public files, not part of the repository). For each table and kind
of totals: cells whose count follows, cells with fewer values left, seconds of processor time, and
the largest memory of the process so far. The figures it last gave are in ``published_totals.md``.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from bayes_sdc import audit_totals, read_flows
from bayes_sdc.flows.table.simulate import simulate_flows

FILES = {
    "GB migration": "gb_lad_migration_2011",
    "Norway commuting": "norway_municipality_commuting_2017",
    "US commuting": "us_county_commuting_acs2009_2013",
    "US migration within states": "us_county_migration_within_state_acs2009_2013",
}
KINDS = ((), ("origin", "destination"), ("origin-by-group", "destination-by-group"))


def main() -> None:
    """Print a row of the table for each file and kind of totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    sources = {name: data / "flows" / f"{file}.csv.gz" for name, file in FILES.items()}
    for name in [*sources, "simulated nation"]:
        source = sources.get(name)
        table = read_flows(
            simulate_flows(areas=3142, states=51, small=515_000, seed=7) if source is None
            else source,
            origin="origin", destination="destination", count="count",
            groups=["origin_state", "destination_state"],
        )  # fmt: skip
        for kinds in KINDS:
            clock = time.process_time()
            found = audit_totals(table, published=kinds)
            seconds = time.process_time() - clock
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            sys.stdout.write(
                f"| {name} | {', '.join(kinds) or 'none'} | {found.cells:,} | {found.pinned:,} "
                f"({found.share_pinned or 0:.2%}) | {found.narrowed:,} | {seconds:.0f} | "
                f"{memory:.2f} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
