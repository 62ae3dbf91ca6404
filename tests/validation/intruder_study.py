"""How far the intruder-risk estimators are from exact refits on real tables.

    python tests/validation/intruder_study.py DATA [--tables gb norway] [--cells 100]

DATA is a folder with ``flows/`` (public files, not part of the repository). Cells are drawn evenly
over classes of true count and group size. For each the release probabilities M and the intruder's
rho at one released value are computed by "integrated", "paper" and by refitting with every
candidate count. Rows are appended to ``intruder_study.csv`` as they come, and cells that have one
are not done again; ``intruder_study.md`` is written at the end. Everything random follows from
SEED.

An error is beyond the refit's Monte Carlo error by what is left of it after two standard errors of
the same entry; standard errors are from independent starts, those of rho by the jackknife. Where
the two most probable counts of a cell are within two standard errors of each other, the refit is
repeated with other seeds, so that R_all is not decided by its noise.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc import fit_flows, read_flows, synthesize
from bayes_sdc.flows.intruder.estimators import importance, integrated
from bayes_sdc.flows.intruder.estimators.refit import refit
from bayes_sdc.flows.intruder.probabilities.bayes import (
    best_guess,
    likelihood_of_release,
    posterior_of_counts,
)
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.table.cells import SmallCells, small_cells

SEED = 20261128
TABLES = {
    "gb": ("gb_lad_migration_2011", 300),
    "norway": ("norway_municipality_commuting_2017", 500),
}
REPEATS = 8  # refits of a cell at most
SIZES = (10, 50, 200, 1000)  # classes of group size end here
CSV = Path(__file__).with_suffix(".csv")


def chosen_cells(cells: SmallCells, wanted: int) -> np.ndarray:
    """Cells drawn in turn from every class of true count and group size."""
    rng = np.random.default_rng(SEED)
    size = np.bincount(cells.group)[cells.group]
    stratum = np.searchsorted(SIZES, size) * (cells.upper + 1) + cells.y
    order = rng.permutation(len(cells.y))
    turn = pd.Series(stratum[order]).groupby(stratum[order]).cumcount().to_numpy()
    return np.sort(order[np.argsort(turn, kind="stable")][:wanted])


def rho_of(m: np.ndarray, released: np.ndarray) -> np.ndarray:
    uniform = np.full(m.shape[1], 1.0 / m.shape[1])
    return posterior_of_counts(likelihood_of_release(m, released[None]), uniform)


class Exact(NamedTuple):
    """What refits say of a cell."""

    m: np.ndarray  # (candidate, released)
    error: np.ndarray  # its Monte Carlo standard error
    rho: np.ndarray  # (candidate,)
    spread: np.ndarray  # its standard error
    refits: int
    decided: bool  # the most probable count stands out from the noise


def refit_cell(
    posterior: xr.DataTree, cells: SmallCells, target: int, released: np.ndarray
) -> Exact:
    """Refit until the most probable count is certain, or :data:`REPEATS` times."""
    starts: list[np.ndarray] = []
    for number in range(REPEATS):
        again = refit(posterior, cells, np.array([target]), seed=SEED + number)
        starts.extend(again.by_start[:, 0])
        n, m = len(starts), np.mean(starts, axis=0)
        rho = rho_of(m[None], released)[0]
        one_less = [rho_of((m * n - start)[None] / (n - 1), released)[0] for start in starts]
        second, first = np.argsort(rho, kind="stable")[-2:]
        gaps = [rho[first] - rho[second] for rho in one_less]
        decided = rho[first] - rho[second] > 2.0 * np.std(gaps) * np.sqrt(n - 1)
        if decided:
            break
    return Exact(
        m=m,
        error=np.std(starts, axis=0, ddof=1) / np.sqrt(n),
        rho=rho,
        spread=np.std(one_less, axis=0) * np.sqrt(n - 1),
        refits=number + 1,
        decided=bool(decided),
    )


def study(data: Path, name: str, wanted: int) -> None:
    """Append the errors of the chosen cells of one table to the CSV."""
    file, draws = TABLES[name]
    frame = pd.read_csv(data / "flows" / f"{file}.csv.gz", dtype=str, keep_default_na=False)
    table = read_flows(
        frame.astype({"count": np.int64}),
        origin="origin", destination="destination", count="count",
        groups=["origin_state", "destination_state"],
    )  # fmt: skip
    posterior = fit_flows(table, draws=draws, tune=draws, seed=SEED)
    cells = small_cells(table)
    released = released_counts(table, synthesize(table, posterior, seed=SEED))
    start = time.monotonic()
    estimates = {"integrated": integrated.release_probabilities(posterior, cells, released)}
    seconds = time.monotonic() - start
    estimates["paper"] = importance.release_probabilities(
        rates_by_draw(posterior), cells, 4, released
    )
    done = pd.read_csv(CSV).query("table == @name")["cell"] if CSV.exists() else []
    start = time.monotonic()
    for t in np.setdiff1d(chosen_cells(cells, wanted), done):
        k = released[0, t : t + 1]
        exact = refit_cell(posterior, cells, t, k)
        row = {
            "table": name,
            "cell": int(t),
            "y": int(cells.y[t]),
            "group_size": int((cells.group == cells.group[t]).sum()),
            "origin_cells": int((cells.origin == cells.origin[t]).sum()),
            "destination_cells": int((cells.destination == cells.destination[t]).sum()),
            "refit_error": float(exact.error.max()),
            "right_refit": bool(best_guess(exact.rho[None])[0] == cells.y[t]),
            "refits": exact.refits,
            "decided": exact.decided,
            "seconds_refit": time.monotonic() - start,
            "seconds_integrated": seconds,
        }
        for estimator, estimate in estimates.items():
            of_m = np.abs(estimate.m[t] - exact.m)
            mine = rho_of(estimate.m[t : t + 1], k)[0]
            of_rho = np.abs(mine - exact.rho)
            row |= {
                f"m_{estimator}": float(of_m.max()),
                f"m_beyond_{estimator}": float((of_m - 2.0 * exact.error).max()),
                f"rho_{estimator}": float(of_rho.max()),
                f"rho_beyond_{estimator}": float((of_rho - 2.0 * exact.spread).max()),
                f"right_{estimator}": bool(best_guess(mine[None])[0] == cells.y[t]),
                f"khat_{estimator}": float(estimate.khat[t].max()),
                f"flagged_{estimator}": bool(estimate.khat[t].max() > estimate.threshold),
            }
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
        pd.DataFrame([row]).to_csv(CSV, mode="a", index=False, header=not CSV.exists())


def markdown(results: pd.DataFrame) -> str:
    lines = [
        "# Intruder-risk estimators against exact refits",
        "",
        f"Made by `python tests/validation/intruder_study.py DATA`, seed {SEED}, on "
        + " and ".join(
            f"{len(part)} cells of {name}" for name, part in results.groupby("table", sort=False)
        )
        + ", drawn evenly over true counts and group sizes. Default family and prior. Errors are "
        "the largest over a cell's entries; those beyond are what is left after two standard "
        "errors of the refit.",
        "",
        "| table | estimator | M: 99 % of cells below | largest | beyond: 99 % | share <= 0.01 | "
        "rho: 99 % | largest | beyond: share <= 0.02 | largest | R_all, refit | flagged |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, part in [*results.groupby("table", sort=False), ("both", results)]:
        for estimator in ("integrated", "paper"):
            m, rho = part[f"m_{estimator}"], part[f"rho_{estimator}"]
            m_beyond, rho_beyond = part[f"m_beyond_{estimator}"], part[f"rho_beyond_{estimator}"]
            lines.append(
                f"| {name} | {estimator} | {m.quantile(0.99):.4f} | {m.max():.4f} | "
                f"{max(m_beyond.quantile(0.99), 0):.4f} | {(m_beyond <= 0.01).mean():.1%} | "
                f"{rho.quantile(0.99):.4f} | {rho.max():.4f} | {(rho_beyond <= 0.02).mean():.1%} | "
                f"{max(rho_beyond.max(), 0):.4f} | {part[f'right_{estimator}'].mean():.1%}, "
                f"{part['right_refit'].mean():.1%} | {part[f'flagged_{estimator}'].mean():.1%} |"
            )
    decided = results[results["decided"]]
    right = {of: f"{decided[f'right_{of}'].mean():.1%}" for of in ("integrated", "paper", "refit")}
    differ = (decided["right_integrated"] != decided["right_refit"]).sum()
    seconds = results.groupby("table", sort=False)["seconds_integrated"].max()
    lines += [
        "",
        "Largest Monte Carlo standard error of an entry of the refits: "
        f"{results['refit_error'].max():.4f}, "
        f"median over cells {results['refit_error'].median():.4f}. Cells refitted more than once: "
        f"{(results['refits'] > 1).sum()}; with two counts as probable as each other after all: "
        f"{len(results) - len(decided)}. R_all of the {len(decided)} others: integrated "
        f"{right['integrated']}, paper {right['paper']}, refit {right['refit']}; integrated and "
        f"refit differ in {differ} of them.",
        "",
        "All small cells by integrated, on two cores that had other work: "
        + ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
        + ".",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--cells", type=int, default=100)
    arguments = parser.parse_args()
    for name in arguments.tables:
        study(arguments.data, name, arguments.cells)
    CSV.with_suffix(".md").write_text(markdown(pd.read_csv(CSV)), encoding="utf-8")


if __name__ == "__main__":
    main()
