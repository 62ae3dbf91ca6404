"""Releases that keep totals, of whole tables by the command, and of a nation by the sampler alone.

    python tests/validation/kept_releases.py DATA --tables norway gb us us-within [--work FOLDER]
    python tests/validation/kept_releases.py DATA --auto norway gb us [--work FOLDER]
    python tests/validation/kept_releases.py DATA --nation

DATA is a folder with ``flows/`` (public files, not part of the repository). For each table the
command writes a run with ``--totals-kept``; the error of the totals is taken from the file it
released, and a release without totals is drawn from the posterior that the run left. With
``--auto`` as many totals by area and partner state as tell no count are chosen with that posterior,
and a release is drawn that keeps them. The nation
is simulated, and its rates are those that it was simulated with: what is timed is the sampler.
``kept_releases.md`` gets one row per run; rows of other runs stay. Everything random follows from
SEED.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc import flow_uses, intruder_risk, keep_totals, read_flows, synthesize, utility
from bayes_sdc.flows.audit.kept_totals import pinned_cells, without_pinned
from bayes_sdc.flows.model import truncated
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.draws import with_totals
from bayes_sdc.flows.release.totals.kept import WITH_ALL, KeptTotals, kept_by_name
from bayes_sdc.flows.release.use.distinguishing import told_apart
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.simulate import DISPERSION, simulate_flows

SEED = 11
GROUPS = ["origin_state", "destination_state"]
READING = {"origin": "origin", "destination": "destination", "count": "count", "groups": GROUPS}
TABLES = {
    "norway": "norway_municipality_commuting_2017",
    "gb": "gb_lad_migration_2011",
    "us": "us_county_commuting_acs2009_2013",
    "us-within": "us_county_migration_within_state_acs2009_2013",
}
KEPT, BY_GROUP = "origin,destination", "origin-by-group,destination-by-group"
GRAVITY = "gravity model: effect of one state"
OPTIONS = ["--draws", "100", "--tune", "150", "--releases", "2", "--seed", str(SEED)]
NATION = {"areas": 3142, "states": 51, "small": 515_000, "seed": 7}
HEAD = """\
# Releases that keep totals by area

Made by `python tests/validation/kept_releases.py DATA` with `--tables`, `--auto`, `--nation`; what
was not run has no section here.

## Whole tables, by the command

`bayes-sdc flows FILE --groups origin_state,destination_state --totals-kept {kept}
{options}`, two cores. A cell that the totals pin is released as it is, and the run is then held:
the table says how many. Error of totals: by area, relative to the sum of their small counts, of the
file that the run released; totals wrong: of all kept, in that file. Without and with: a release of
the same posterior that keeps no totals, and the one that does. pMSE ratio: with log count,
smallest, largest; the range is that of the right model with these totals, by simulation. Gravity:
overlap of the intervals of the effect of one state. Intruder: mean log2 gain of the strongest, who
knows all other small counts, or with totals all but those of one cycle. Unchanged: small counts
that are the true ones, in the release and after four times as many steps. Seconds of processor
time are for the whole run, diagnostics, risk and reports included.

{runs}

## Totals by area and partner state, as many as tell no count

`keep_totals(table, posterior, seed={seed})` with the posterior of the runs above. Merged: totals
that must not be published, of all; beyond the area: those merged with totals of other areas. Pinned
before and after the choice. Seconds of processor time are for the choice.

{auto}

## A nation, by the sampler alone

{nation_words}

{nation}
"""
NATION_WORDS = """\
`simulate_flows(areas=3142, states=51, small=515000, seed=7)`, rates and dispersion those of the
simulation, no fit. Time of one data set on two cores, the flow repair that each starts
with included; unchanged after so many sweeps, from the repaired draw and, which no release may do,
from the truth: the two meet where the chain is mixed."""
RUN = (
    "table", "small counts", "pinned", "totals wrong", "error without", "error with",
    "pMSE ratio without", "with", "right model", "gravity without", "with", "bits without", "with",
    "unchanged", "4 times the steps", "processor s", "wall s",
)  # fmt: skip
OF_AUTO = (
    "table", "small counts", "pinned before", "after", "totals in all", "merged",
    "beyond the area", "processor s", "totals wrong", "pMSE ratio", "gravity", "bits",
)  # fmt: skip
SWEPT = (0, 5, 10, 20, 40)  # sweeps
OF_NATION = (
    "totals", "small counts", "pinned", "seconds", "processor s", "totals wrong",
    *(f"unchanged after {sweeps}" for sweeps in SWEPT),
    *(f"from the truth, after {sweeps}" for sweeps in SWEPT),
)  # fmt: skip


def read(source: Path | pd.DataFrame) -> FlowTable:
    """A table of the study."""
    return read_flows(source, **READING)


def by_command(name: str, data: Path, work: Path) -> list[str]:
    """Run the command on a whole table, and measure what it left."""
    source, out = work / f"{name}.csv", work / name
    source.write_bytes(gzip.decompress((data / "flows" / f"{TABLES[name]}.csv.gz").read_bytes()))
    command = [
        str(Path(sys.executable).parent / "bayes-sdc"), "flows", str(source),
        "--origin", "origin", "--destination", "destination", "--count", "count",
        "--groups", ",".join(GROUPS), "--totals-kept", KEPT, *OPTIONS, "--out", str(out),
    ]  # fmt: skip
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: the command ended with {done.returncode}")
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    table, posterior = read(source), xr.load_datatree(out / "confidential" / "posterior.nc")
    (file,) = [*out.glob("release/*.csv"), *out.glob("held/*.csv")]
    return [*measured(name, table, posterior, file, out), f"{cpu:.0f}", f"{wall:.0f}"]


def measured(
    name: str, table: FlowTable, posterior: xr.DataTree, file: Path, out: Path
) -> list[str]:
    """A row of the table: the release of the run beside one that keeps no totals."""
    written = read(file).frame  # what was released, from the file itself
    with_kept = table.frame.assign(count=written[table.count].to_numpy())
    free = synthesize(table, posterior, seed=SEED)
    kept, none = kept_by_name(table, KEPT), KeptTotals((), ())
    y = table.cells["y"].to_numpy(np.int64)
    pinned = pinned_cells(kept.margins(y), y, table.k)
    wrong = sum(
        int((with_kept.groupby(side)["count"].sum() != table.frame.groupby(side)["count"].sum())
            .sum())
        for side in ("origin", "destination")
    )  # fmt: skip
    of = [
        (free, none, intruder_risk(table, posterior, free, seed=SEED)),
        (with_kept, kept, intruder_risk(table, posterior, with_kept, totals=kept, seed=SEED)),
    ]
    told = [told_apart(table, posterior, one, plan, seed=SEED) for one, plan, _ in of]
    uses = [flow_uses(table, one).table.set_index("use")["value"] for one, _, _ in of]
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    reason = next(c["reason"] for c in record["checks"] if c["key"] == "mixing_given_totals")
    shares = [word for word in reason.split() if word.endswith("%")]
    null = "" if told[1].null is None else "{:.1f} to {:.1f}".format(*told[1].null)
    return [
        name, f"{table.n_small:,}", f"{pinned.mean():.2%}", f"{wrong:,}",
        *(f"{utility(table, one).totals_error:.1%}" for one, _, _ in of),
        *(f"{one.every.ratio:.1f}" for one in told), null,
        *(f"{one[GRAVITY]:.2f}" if GRAVITY in one else "" for one in uses),
        *(f"{risk.strongest.bits.gain:+.4f}" for _, _, risk in of),
        *shares[:2],
    ]  # fmt: skip


def of_auto(name: str, data: Path, work: Path) -> list[str]:
    """Choose totals by area and partner state with the posterior of a run, and draw a release."""
    table = read(data / "flows" / f"{TABLES[name]}.csv.gz")
    posterior = xr.load_datatree(work / name / "confidential" / "posterior.nc")
    y = table.cells["y"].to_numpy(np.int64)
    every = kept_by_name(table, BY_GROUP)
    before = pinned_cells(every.margins(y), y, table.k)
    start = time.process_time()
    kept = keep_totals(table, posterior, seed=SEED)
    took = time.process_time() - start
    after = pinned_cells(kept.margins(y), y, table.k)
    release = synthesize(table, posterior, totals=kept, seed=SEED)
    (drawn,) = released_counts(table, release)
    wrong = sum(
        int((got != wanted).sum())
        for got, wanted in zip(kept.margins(drawn)[2:], kept.margins(y)[2:], strict=True)
    )
    told = told_apart(table, posterior, release, kept, seed=SEED)
    uses = flow_uses(table, release).table.set_index("use")["value"]
    risk = intruder_risk(table, posterior, release, totals=kept, seed=SEED)
    number = sum(len(side.labels) for side in kept.sides)
    beyond = sum(int((side.level == WITH_ALL).sum()) for side in kept.sides)
    return [
        name, f"{table.n_small:,}", f"{before.mean():.2%}", f"{after.mean():.2%}", f"{number:,}",
        f"{len(kept.merged):,} ({len(kept.merged) / number:.1%})",
        f"{beyond:,} ({beyond / number:.1%})", f"{took:.0f}", f"{wrong:,}",
        f"{told.every.ratio:.1f}", f"{uses.get(GRAVITY, np.nan):.2f}",
        f"{risk.strongest.bits.gain:+.4f}",
    ]  # fmt: skip


def of_nation(totals: str, table: FlowTable, mean: np.ndarray) -> list[str]:
    """Time and mixing of the sampler on a nation, with the rates of the simulation."""
    y = table.cells["y"].to_numpy(np.int64)
    kept = kept_by_name(table, totals)
    pinned = pinned_cells(kept.margins(y), y, table.k)
    if pinned.any():
        kept = without_pinned(kept, y, table.k)
    prepared = kept.mixing(y)
    rungs = truncated.ladder(np.array([1.0 / DISPERSION]), table.k)
    group, rng = np.zeros(len(y), np.int64), np.random.default_rng(SEED)
    free = truncated.draw(np.log(mean), group, rungs, rng.random(len(y)))
    weight = truncated.log_table(np.log(mean), group, rungs)
    with_totals(prepared, free, weight, seed=SEED, dataset=0, sweeps=0)  # compiles
    start, cpu = time.perf_counter(), time.process_time()
    found = with_totals(prepared, free, weight, seed=SEED, dataset=1)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    wrong = sum(
        int((got != wanted).sum())
        for got, wanted in zip(kept.margins(found)[2:], kept.margins(y)[2:], strict=True)
    )
    shares = []
    for counts in (free, y):
        for number, (since, until) in enumerate(pairwise((0, *SWEPT))):
            counts = with_totals(  # goes on where it was: a table with these totals stays as it is
                prepared, counts, weight, seed=SEED, dataset=2 + number, sweeps=until - since
            )
            shares.append(f"{(counts == y).mean():.2%}")
    return [
        totals,
        f"{len(y):,}",
        f"{pinned.mean():.2%}",
        f"{seconds:.1f}",
        f"{cpu:.1f}",
        f"{wrong}",
        *shares,
    ]


def written(rows: dict[str, dict[str, list[str]]]) -> str:
    """The report."""

    def table(columns: tuple[str, ...], of: dict[str, list[str]]) -> str:
        head = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        return "\n".join([*head, *("| " + " | ".join(row) + " |" for row in of.values())])

    text = HEAD.format(
        kept=KEPT, options=" ".join(OPTIONS), seed=SEED, runs=table(RUN, rows["runs"]),
        auto=table(OF_AUTO, rows["auto"]),
        nation_words=NATION_WORDS, nation=table(OF_NATION, rows["nation"]),
    )  # fmt: skip
    head, *sections = text.split("\n## ")
    run = [part for part, of in zip(sections, rows.values(), strict=True) if of]
    return "\n## ".join([head, *run])


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[])
    parser.add_argument("--auto", nargs="+", choices=TABLES, default=[])
    parser.add_argument("--nation", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("kept-releases"))
    asked = parser.parse_args()
    report = Path(__file__).with_suffix(".md")
    rows = rows_of(report.read_text(encoding="utf-8") if report.exists() else "")
    for name in asked.tables:
        asked.work.mkdir(parents=True, exist_ok=True)
        rows["runs"][name] = by_command(name, asked.data, asked.work)
        report.write_text(written(rows), encoding="utf-8")
    for name in asked.auto:
        rows["auto"][name] = of_auto(name, asked.data, asked.work)
        report.write_text(written(rows), encoding="utf-8")
    if asked.nation:
        frame = simulate_flows(**NATION, truth=True)
        table = read(frame.drop(columns=["mean", "rate"]))
        mean = frame["mean"].to_numpy()[table.cells["row"].to_numpy()]
        for totals in (KEPT, BY_GROUP):
            rows["nation"][totals] = of_nation(totals, table, mean)
            report.write_text(written(rows), encoding="utf-8")


def rows_of(text: str) -> dict[str, dict[str, list[str]]]:
    """Rows of an earlier report, by the first cell."""
    rows: dict[str, dict[str, list[str]]] = {"runs": {}, "auto": {}, "nation": {}}
    sections = dict(zip(("##", "## T", "## A"), rows, strict=True))
    part = "runs"
    for line in text.splitlines():
        part = next((p for head, p in reversed(sections.items()) if line.startswith(head)), part)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("table", "totals"):
            rows[part][cells[0]] = cells
    return rows


if __name__ == "__main__":
    main()
