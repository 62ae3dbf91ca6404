"""Which family, prior and covariates fit real tables: the study behind the defaults.

    python tests/validation/default_study.py DATA [--tables norway gb ...] [--draws 300]

DATA is a folder with ``flows/`` and ``area/`` (public files, not part of the repository). For each
table and model the study fits all small cells, and fits again without a random tenth of the cells
and without a fifth of the groups of 15 cells or fewer. Results are appended to
``default_study.csv`` as they come, so that an interrupted study goes on, and are written as
``default_study.md`` at the end. Everything random follows from SEED.

The tables of the United States are without Alaska, Hawaii, the District of Columbia and one county
of South Dakota, for which the area file has no centroid.

Columns of the tables:

log score
    Mean log predictive probability of the held-out cells: of the random tenth, and of whole small
    groups. Differences of 0.01 matter.
PIT p
    Kolmogorov-Smirnov test of uniformity of the randomised probability integral transform of the
    tenth.
cover
    Share of the tenth inside central predictive intervals of 50 and 90 %, randomised at the ends.
counts
    Posterior predictive check of the fit to all cells: largest relative error of the expected
    number of cells with each count.
totals
    Sum over areas of the absolute error of the synthetic total of small cells, relative to the
    sum of true totals; mean of five releases.
R_all, true
    Intruder's success with all other cells known (estimator "paper"), and the mean posterior
    probability of the true count.
groups
    Share of groups with largest R-hat at most 1.05 and smallest ESS at least 100.
"""

import argparse
import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kstest

from bayes_sdc import (
    FlowTable,
    diagnostics,
    fit_flows,
    gravity_covariates,
    intruder_risk,
    read_flows,
    synthesize,
    with_covariates,
)
from bayes_sdc.convergence import ESS_FAIL, RHAT_FAIL
from bayes_sdc.flows.fit.chains import sample_chain
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.table.cells import SmallCells, small_cells, thin
from bayes_sdc.models import migration

SEED = 20261128
TABLES = {
    "norway": "norway_municipality_commuting_2017",
    "gb": "gb_lad_migration_2011",
    "us-commuting": "us_county_commuting_acs2009_2013",
    "us-migration": "us_county_migration_within_state_acs2009_2013",
}
GROUPED: dict[str, Any] = {
    "origin": "origin",
    "destination": "destination",
    "count": "count",
    "groups": ["origin_state", "destination_state"],
}
CHAINS = 4
SMALL_GROUP = 15
# counties that were renamed or merged after the tables were made
FORMER = {"02270": "02158", "46113": "46102", "51515": "51019"}
HERE = Path(__file__).parent


def read_all(data: Path, name: str) -> pd.DataFrame:
    """All rows of one of the files."""
    path = data / "flows" / f"{TABLES[name]}.csv.gz"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.astype({"count": np.int64})


def read(data: Path, name: str) -> FlowTable:
    """One of the tables, with pairs of states as groups."""
    frame = read_all(data, name)
    if name.startswith("us-"):
        known = counties(data)["lon"].notna()
        kept = frame["origin"].map(known) & frame["destination"].map(known)
        frame = frame[kept.astype(bool)]
    return read_flows(frame, **GROUPED)


def counties(data: Path) -> pd.DataFrame:
    """Counties by code; the codes of former ones stand for their successors."""
    areas = pd.read_csv(data / "area" / "us_counties.csv.gz", dtype=str).set_index("county")
    former = areas.loc[list(FORMER.values())].set_axis(list(FORMER))
    return pd.concat([areas, former])


def add_covariates(data: Path, table: FlowTable) -> FlowTable:
    """Population, distance, contiguity and same state for the counties of the United States."""
    neighbours = pd.read_csv(data / "area" / "us_county_adjacency_2010.csv.gz", dtype=str)
    covariates = gravity_covariates(
        table,
        counties(data),
        population="pop2010",
        longitude="lon",
        latitude="lat",
        state="state",
        neighbours=neighbours,
    )
    return with_covariates(table, covariates)


def held_out(cells: SmallCells) -> tuple[np.ndarray, np.ndarray]:
    """A random tenth of the cells, and the cells of a fifth of the small groups."""
    rng = np.random.default_rng(SEED)
    tenth = rng.random(len(cells.y)) < 0.1
    size = np.bincount(cells.group, minlength=len(cells.groups))
    groups = (size <= SMALL_GROUP) & (rng.random(len(size)) < 0.2)
    in_groups = groups[cells.group]
    return tenth & ~in_groups, in_groups


def predict(
    cells: SmallCells, held: np.ndarray, family: str, prior: str, draws: int, seed: int = SEED
) -> np.ndarray:
    """Predictive probabilities of the held-out cells, from a fit to the others."""
    data = engine.prepare(thin(cells, ~held))
    sampling = Sampling(
        family, migration.resolve_prior(prior, family), draws, draws, CHAINS, seed, 2
    )
    seeds = np.random.SeedSequence(seed).spawn(CHAINS)
    with ThreadPoolExecutor(2) as pool:
        chains = list(
            pool.map(
                lambda seed: sample_chain(engine.MarkovChain(data, sampling, seed), sampling), seeds
            )
        )
    there = thin(cells, held)
    total = np.zeros((len(there.y), cells.upper + 1))
    poisson = np.zeros(len(cells.groups))
    for chain in chains:
        values = chain.values
        for s in range(draws):
            log_rate = values["beta"][s].astype(float)[there.origin]
            log_rate += values["gamma"][s][there.destination]
            if there.covariates:
                log_rate += (there.x * values["coefficient"][s][there.group]).sum(axis=1)
            kappa = 1.0 / values["r"][s] if "r" in values else poisson
            base = values["base"][s] if "base" in values else None
            rungs = counts.ladder(kappa, cells.upper, base=base, canonical=cells.canonical)
            total += counts.probabilities(log_rate, there.group, rungs)
    return total / (CHAINS * draws)


def pit(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Randomised probability integral transform of counts, uniform if they are calibrated."""
    at = probabilities[np.arange(len(y)), y]
    below = np.cumsum(probabilities, axis=1)[np.arange(len(y)), y] - at
    return np.asarray(below + at * np.random.default_rng(SEED).random(len(y)))


def score(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Log score and calibration of predictions."""
    values = pit(probabilities, y)
    return {
        "log_score": float(np.log(probabilities[np.arange(len(y)), y]).mean()),
        "pit_p": float(kstest(values, "uniform").pvalue),
        "cover_50": float(((values > 0.25) & (values < 0.75)).mean()),
        "cover_90": float(((values > 0.05) & (values < 0.95)).mean()),
    }


def study(table: FlowTable, family: str, prior: str, draws: int) -> dict[str, Any]:
    """All figures of one model on one table."""
    cells = small_cells(table)
    tenth, in_groups = held_out(cells)
    held = tenth | in_groups
    predicted = predict(cells, held, family, prior, draws)
    result: dict[str, Any] = score(predicted[tenth[held]], cells.y[tenth])
    result["held_out"], result["held_out_in_groups"] = int(tenth.sum()), int(in_groups.sum())
    result["log_score_groups"] = np.nan
    if in_groups.any():
        result["log_score_groups"] = score(predicted[in_groups[held]], cells.y[in_groups])[
            "log_score"
        ]
    start = time.monotonic()
    posterior = fit_flows(
        table, family=family, prior=prior, sampler="gibbs", draws=draws, tune=draws,
        chains=CHAINS, seed=SEED,
    )  # fmt: skip
    result["seconds"] = time.monotonic() - start
    groups = diagnostics.group_diagnostics(posterior)
    result["groups_pass"] = float(
        ((groups["rhat"] <= RHAT_FAIL) & (groups["ess"] >= ESS_FAIL)).mean()
    )
    predictive = diagnostics.predictive_counts(table, posterior, seed=SEED)
    result["counts_error"] = float(predictive["relative_error"].abs().max())
    result["dispersion"] = diagnostics.dispersion(table, posterior, seed=SEED).value
    releases = [synthesize(table, posterior, seed=SEED + i) for i in range(5)]
    result["totals_error"] = float(np.mean([totals_error(table, frame) for frame in releases]))
    risk = intruder_risk(table, posterior, releases[0], estimator="paper")
    result["r_all"] = risk.r_all.value
    result["true_probability"] = float(risk.true_count_probability.mean())
    return result


def totals_error(table: FlowTable, release: pd.DataFrame) -> float:
    """Absolute error of the areas' totals of small cells, relative to all of them."""
    rows = table.cells["row"].to_numpy()
    true, synthetic = table.frame.iloc[rows], release.iloc[rows]
    errors = [
        (synthetic.groupby(side)[table.count].sum() - true.groupby(side)[table.count].sum())
        .abs()
        .sum()
        for side in (table.origin, table.destination)
    ]
    return float(sum(errors) / (2 * true[table.count].sum()))


def models(table: str) -> list[tuple[str, str, str]]:
    """Family, prior and covariates; the paper's prior is out of the race without covariates."""
    variants = ["none", "gravity"] if table.startswith("us-") else ["none"]
    every = itertools.product(
        ["negative-binomial", "poisson"], ["pooled", "weak", "paper"], variants
    )
    return [model for model in every if model[1:] != ("paper", "gravity")]


def markdown(results: pd.DataFrame) -> str:
    """The tables of the study, best log score of each table in bold."""
    lines = [
        "# Which family and prior fit real tables",
        "",
        "Made by `python tests/validation/default_study.py DATA --tables NAME --draws DRAWS` for "
        f"the names and draws below, seed {SEED}, {CHAINS} chains of the Gibbs engine with as many "
        "draws of warm-up; columns as in the script. Seconds are those of the fit on a loaded "
        "machine.",
    ]
    for name, part in results.groupby("table", sort=False):
        first = part.iloc[0]
        lines += [
            "",
            f"## {name}: {first['cells']:,} small cells in {first['groups']:,} groups; held out "
            f"{first['held_out']:,} cells, and {first['held_out_in_groups']:,} in small groups; "
            f"{first['draws']} draws",
            "",
            "| family | prior | covariates | log score | small groups | PIT p | cover 50/90 | "
            "counts | dispersion | totals | R_all | true | groups | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for row in part.itertuples():
            star = "**" if row.log_score == part["log_score"].max() else ""
            groups = "" if np.isnan(row.log_score_groups) else f"{row.log_score_groups:.4f}"
            lines.append(
                f"| {row.family} | {row.prior} | {row.covariates} | {star}{row.log_score:.4f}{star}"
                f" | {groups} | {row.pit_p:.3f} | {row.cover_50:.3f} / {row.cover_90:.3f} | "
                f"{row.counts_error:.1%} | {row.dispersion:.3f} | {row.totals_error:.2%} | "
                f"{row.r_all:.2%} | {row.true_probability:.4f} | {row.groups_pass:.1%} | "
                f"{row.seconds:.0f} |"
            )
        run = set(zip(part["family"], part["prior"], part["covariates"], strict=True))
        missing = [" / ".join(model) for model in models(str(name)) if model not in run]
        if missing:
            lines += ["", f"Not run: {'; '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--draws", type=int, default=300)
    arguments = parser.parse_args()
    kept = HERE / "default_study.csv"
    results = pd.read_csv(kept) if kept.exists() else pd.DataFrame()
    for name in arguments.tables:
        plain = read(arguments.data, name)
        variants = {"none": plain}
        if name.startswith("us-"):
            variants["gravity"] = add_covariates(arguments.data, plain)
        for family, prior, covariates in models(name):
            key = {"table": name, "family": family, "prior": prior, "covariates": covariates}
            if len(results) and (results[list(key)] == pd.Series(key)).all(axis=1).any():
                continue
            table = variants[covariates]
            row = {
                **key,
                "cells": table.n_small,
                "groups": table.cells["group"].nunique(),
                "draws": arguments.draws,
                **study(table, family, prior, arguments.draws),
            }
            results = pd.concat([results, pd.DataFrame([row])], ignore_index=True)
            results.to_csv(kept, index=False)
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    order = [list(TABLES).index(name) for name in results["table"]]
    results = results.iloc[np.argsort(order, kind="stable")]
    (HERE / "default_study.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
