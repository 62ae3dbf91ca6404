"""What a promise costs: bounds on the steps, on real tables.

    python tests/validation/epsilon_study.py DATA [--tables gb norway ...] [--seeds 1] ...

DATA is a folder with ``flows/`` (public files, not part of the repository). For each table,
epsilon, choice of covariates and seed the study fits all small cells, releases ten data sets of one
draw each, and fits again without a random tenth of the cells. Results are appended to
``epsilon_study.csv`` as they come, so that an interrupted study goes on, and are written as
``epsilon_study.md`` at the end. The centres are the bundled shares without the table itself.

Columns:

origin, destination
    Slope of log count on log total of the area, as ratio to that of the true counts.
shares
    Total variation between the shares of the counts in the release and in the table.
totals
    Sum over areas of the absolute error of the total of the small cells, relative to their sum.
pMSE
    pMSE ratio of count and log totals.
score
    Mean log predictive probability of the held-out cells.
bits
    What the release adds to the strongest intruder who knows all other counts, in bits a cell.
ratio
    Largest log ratio over cells between neighbouring true counts, for one data set: at least, after
    two Monte Carlo errors.
time
    Seconds of processor time of the fit.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc import FlowTable, fit_flows, intruder_risk, log_ratios, read_flows, synthesize
from bayes_sdc.flows.fit.chains import sample_chain
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.use.utility import ground_truth, measure
from bayes_sdc.flows.table.bound import Bound, centres_of
from bayes_sdc.flows.table.cells import small_cells, thin
from bayes_sdc.flows.table.centres import bundled_shares
from bayes_sdc.models import migration

SOURCES = {  # file, and how its source is called among the bundled shares
    "gb": ("gb_lad_migration_2011", "migration between local"),
    "norway": ("norway_municipality_commuting_2017", "commuting between municipalities"),
    "us-commuting": ("us_county_commuting_acs2009_2013", "commuting between counties"),
    "us-migration": (
        "us_county_migration_within_state_acs2009_2013", "migration between counties",
    ),
}  # fmt: skip
EPSILONS = (None, 2.0, 1.0, 0.5, 0.35, 0.25)
DATASETS, CHAINS = 10, 4
MEASURES = (
    "origin", "destination", "shares", "totals", "pMSE", "score", "bits", "ratio", "time"
)  # fmt: skip
HERE = Path(__file__).parent


def read(data: Path, name: str, cells: int) -> tuple[FlowTable, str]:
    """The first states of a table that hold about so many small cells together."""
    file, source = SOURCES[name]
    frame = pd.read_csv(data / "flows" / f"{file}.csv.gz", dtype=str, keep_default_na=False)
    frame["count"] = frame["count"].astype(int)
    states = sorted(set(frame["origin_state"]))
    for number in range(1, len(states) + 1):
        kept = frame["origin_state"].isin(states[:number])
        kept &= frame["destination_state"].isin(states[:number])
        if frame.loc[kept, "count"].between(1, 9).sum() >= cells:
            break
    part = frame[kept].reset_index(drop=True)
    groups = ["origin_state", "destination_state"]
    table = read_flows(
        part, origin="origin", destination="destination", count="count", groups=groups
    )
    return table, source


def slopes(table: FlowTable, released: np.ndarray) -> dict[str, float]:
    """Slopes of log count on log totals of the areas, as ratios to the true ones."""
    truth = ground_truth(table)
    found = {}
    for side in ("origin", "destination"):
        x = np.log(truth.total[side])
        x = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        found[side] = float((np.log(released) @ x).mean() / (np.log(truth.counts) @ x))
    return found


def held_out_score(
    table: FlowTable, covariates: str, bound: Bound | None, draws: int, seed: int
) -> float:
    """Mean log predictive probability of a random tenth of the cells."""
    cells = small_cells(table, covariates=covariates, bound=bound)
    held = np.random.default_rng(seed).random(len(cells.y)) < 0.1
    data, there = engine.prepare(thin(cells, ~held)), thin(cells, held)
    prior = migration.PRIORS["pooled"]
    sampling = Sampling("negative-binomial", prior, draws, draws, CHAINS, seed, 1)
    total = np.zeros((len(there.y), cells.upper + 1))
    for own in np.random.SeedSequence(seed).spawn(CHAINS):
        values = sample_chain(engine.MarkovChain(data, sampling, own), sampling).values
        for s in range(draws):
            log_rate = values["beta"][s].astype(float)[there.origin]
            log_rate += values["gamma"][s][there.destination]
            if there.covariates:
                log_rate += (there.x * values["coefficient"][s][there.group]).sum(axis=1)
            rungs = counts.ladder(1.0 / values["r"][s], cells.upper, bound)
            total += counts.probabilities(log_rate, there.group, rungs)
    at = total[np.arange(len(there.y)), there.y] / (CHAINS * draws)
    return float(np.log(at).mean())


def study(
    table: FlowTable, source: str, epsilon: float | None, covariates: str, draws: int, seed: int
) -> dict[str, Any]:
    """All figures of one fit."""
    shares = bundled_shares(table.low, table.high, without=source).tolist()
    bounded = {} if epsilon is None else {"epsilon": epsilon, "centres": shares}
    bound = None if epsilon is None else Bound(epsilon, centres_of(shares))
    start = time.process_time()
    posterior = fit_flows(
        table, covariates=covariates, draws=draws, tune=draws, chains=CHAINS, seed=seed, **bounded
    )
    seconds = time.process_time() - start
    release = synthesize(table, posterior, datasets=DATASETS, seed=seed)
    released = released_counts(table, release).astype(float) + table.low
    each = [measure(ground_truth(table), one[None]) for one in released]
    true = np.bincount(table.cells["y"], minlength=table.k + 1) / table.n_small
    drawn = np.bincount((released - table.low).astype(int).ravel(), minlength=table.k + 1)
    one = synthesize(table, posterior, seed=seed)
    risk = intruder_risk(table, posterior, one, estimator="integrated", seed=seed)
    return {
        **slopes(table, released),
        "shares": 0.5 * float(np.abs(drawn / drawn.sum() - true).sum()),
        "totals": float(np.mean([found.totals_error for found in each])),
        "pMSE": float(np.mean([found.pmse_ratio for found in each])),
        "score": held_out_score(table, covariates, bound, draws, seed),
        "bits": float(risk.strongest.bits.after - risk.strongest.bits.before),
        "ratio": float(log_ratios(risk).by_cell["neighbours_at_least"].max()),
        "time": seconds,
    }


def markdown(found: pd.DataFrame, command: str) -> str:
    """The table, means over seeds with their standard errors where there are several."""
    lines = ["# What a promise costs", "", f"`{command}`", ""]
    for (table, covariates), part in found.groupby(["table", "covariates"], sort=False):
        cells, seeds = int(part["cells"].iloc[0]), part["seed"].nunique()
        lines += [f"## {table}, covariates {covariates}: {cells:,} cells, {seeds} seeds", ""]
        lines += [f"| epsilon | {' | '.join(MEASURES)} |", "|---" * (len(MEASURES) + 1) + "|"]
        for epsilon, runs in part.groupby("epsilon", sort=False):
            row = []
            for name in MEASURES:
                digits = 1 if name == "time" else 3
                text = f"{runs[name].mean():.{digits}f}"
                if len(runs) > 1:
                    text += f" ({runs[name].std() / np.sqrt(len(runs)):.{digits}f})"
                row.append(text)
            lines.append(f"| {epsilon} | {' | '.join(row)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--covariates", nargs="+", default=["published", "none"])
    parser.add_argument("--epsilons", nargs="+", default=[str(e) for e in EPSILONS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--cells", type=int, default=1500)
    asked = parser.parse_args()
    kept = HERE / "epsilon_study.csv"
    keys = ["table", "covariates", "epsilon", "seed", "draws", "wanted"]
    done = pd.read_csv(kept, dtype={"epsilon": str}, keep_default_na=False) if kept.exists() else (
        pd.DataFrame(columns=keys)
    )  # fmt: skip
    known = {tuple(str(value) for value in row) for row in done[keys].to_numpy()}
    # seeds outside: a study that ends early has every table
    work = itertools.product(
        range(1, asked.seeds + 1), asked.tables, asked.covariates, asked.epsilons
    )
    for seed, name, covariates, epsilon in work:
        key = (name, covariates, epsilon, str(seed), str(asked.draws), str(asked.cells))
        if key in known:
            continue
        table, source = read(asked.data, name, asked.cells)
        number = None if epsilon in ("None", "none") else float(epsilon)
        row = dict(zip(keys, key, strict=True)) | {"cells": table.n_small}
        row |= study(table, source, number, covariates, asked.draws, seed)
        pd.DataFrame([row]).to_csv(kept, mode="a", header=not kept.exists(), index=False)
        print(row, flush=True)
    found = pd.read_csv(kept, dtype={"epsilon": str}, keep_default_na=False)
    found = found.sort_values(["table", "covariates", "seed"], kind="stable")
    command = "python tests/validation/epsilon_study.py DATA " + " ".join(sys.argv[2:])
    (HERE / "epsilon_study.md").write_text(markdown(found, command), encoding="utf-8")


if __name__ == "__main__":
    main()
