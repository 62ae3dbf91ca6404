"""Whether the model should know the published sizes of areas: the study behind ``covariates``.

    python tests/validation/areas_study.py DATA [--tables norway gb ...] [--cells 1500]
        [--draws 100] [--seeds 2] [--known none published ...]
        [--families negative-binomial canonical base ...] [--name areas_study]
        [--true-slopes 1500 5000]

DATA is a folder with ``flows/`` (public files, not part of the repository). Of a table with more
small cells than ``--cells`` only some states are kept, drawn anew with each seed; the flows to and
from the others are left out. Every table is fitted whole, and again without a random tenth of its
cells, a fifth of its groups of 15 cells or fewer, and a tenth of its areas: these lose all their
cells in half of their groups. Results are appended to ``areas_study.csv`` as they come, so that an
interrupted study goes on, and are written as ``areas_study.md``. Chains are short: an effect that
lasts is seen, a hundredth of a standard error is not. Everything random follows from the seed.

With ``--true-slopes`` nothing is fitted: the true slopes of subsets of these sizes, with standard
errors, are written as ``areas_slopes.md``.

Columns of the tables, means over seeds with their standard error where there are several:

log score
    Mean log predictive probability of the held-out cells: of the tenth, of whole small groups, and
    of whole areas.
slopes
    Slope of the log of a small count on the log of its area's total (all its counts), origin and
    destination in one regression: in the release, as ratio to the true table, and in brackets the
    difference in standard errors of the true slope. Mean of the releases. Where the true slope is
    about 0 the ratio says nothing.
pMSE
    Ratio to its null value, mean of the releases; 1 to 2 would be right. It grows with the table,
    so the same for 10,000 cells stands beside: 1 + (ratio - 1) times 10,000 over the cells.
z
    Mean over areas of (mean synthetic total of small counts less the true one) over the standard
    deviation of the releases, by number of the area's small cells: below 10, 10-19, 20-49, 50 up.
worst count
    Largest relative error of the share of a count over all small cells.
tiny groups
    Groups of fewer than ten cells, all together: total variation of the shares of their counts, and
    the difference of their mean count; in brackets the total variation between two releases of one
    posterior, which is what chance alone gives.
gain
    What the release tells an intruder who knows all other counts, in bits a cell: mean log2 of the
    posterior over the prior probability of the true count, under the model's own prior, over 500
    cells (estimator "paper").
seconds
    Of the fit, one chain after the other, in processor time.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc import FlowTable, fit_flows, intruder_risk, read_flows, synthesize, utility
from bayes_sdc.flows.table import published
from bayes_sdc.flows.table.cells import CANONICAL, SmallCells, small_cells
from bayes_sdc.flows.table.simulate import example_flows_path
from bayes_sdc.models.migration import DEFAULT_FAMILY, FAMILIES

sys.path.insert(0, str(Path(__file__).parent))
from default_study import GROUPED, SMALL_GROUP, predict, read_all, score

SEED, CHAINS, RELEASES, INTRUDED = 20261129, 4, 10, 500
TABLES = ("demo", "norway", "gb", "us-migration", "us-commuting")
# which of the published columns the model is given, by the start of their names; groups by "group"
KNOWN = {
    "none": (),
    "flows": ("log_safe",),
    "flows, partners": ("log_safe", "log_partners"),
    "flows, partners, group": ("log_safe", "log_partners", "group"),
    "published": ("log_", "group"),
}
SIZES = (0, 10, 20, 50)
TINY_GROUP = 10
HERE = Path(__file__).parent


def read(data: Path, name: str, cells: int, seed: int) -> FlowTable:
    """One of the tables, with pairs of states as groups; so many states that the cells suffice."""
    if name == "demo":
        frame = pd.read_csv(example_flows_path(), dtype=str).astype({"count": np.int64})
    else:
        frame = read_all(data, name)
    states = np.unique(frame[["origin_state", "destination_state"]])
    chosen = np.random.default_rng(seed).permutation(states)
    for number in range(len(states), 0, -1):
        inside = frame[["origin_state", "destination_state"]].isin(chosen[:number]).all(axis=1)
        if (frame["count"][inside].between(1, 9)).sum() <= cells or number == 1:
            break
    return read_flows(frame[inside], **GROUPED)


def held_out(table: FlowTable, cells: SmallCells, seed: int) -> dict[str, np.ndarray]:
    """Cells to be predicted: a tenth, whole small groups, whole areas in half of their groups."""
    rng = np.random.default_rng(seed)
    tenth = rng.random(len(cells.y)) < 0.1
    size = np.bincount(cells.group, minlength=len(cells.groups))
    in_groups = ((size <= SMALL_GROUP) & (rng.random(len(size)) < 0.2))[cells.group]
    in_areas = np.zeros(len(cells.y), dtype=bool)
    for side, index in (("origin", cells.origin), ("destination", cells.destination)):
        codes = table.cells[side].to_numpy()
        areas = np.unique(codes)
        chosen = areas[rng.random(len(areas)) < 0.05]
        half = rng.random(index.max() + 1) < 0.5  # an effect is an area in a group
        in_areas |= np.isin(codes, chosen) & half[index]
    return {
        "tenth": tenth & ~in_groups & ~in_areas,
        "groups": in_groups,
        "areas": in_areas & ~in_groups,
    }


def slopes(table: FlowTable, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of log count on the log totals of origin and destination, and standard errors."""
    frame = table.frame
    columns = [np.ones(len(n))]
    for side, code in (("origin", table.origin), ("destination", table.destination)):
        totals = frame.groupby(frame[code].astype(str))[table.count].sum()
        columns.append(np.log(totals.loc[table.cells[side].to_numpy()].to_numpy(float)))
    x, log_n = np.column_stack(columns), np.log(n)
    slope = np.linalg.lstsq(x, log_n, rcond=None)[0]
    variance = ((log_n - x @ slope) ** 2).sum() / (len(n) - 3)
    return slope[1:], np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))[1:]


def z_by_size(table: FlowTable, true: np.ndarray, released: np.ndarray) -> list[float]:
    """Mean z of the totals of areas, by their number of small cells."""
    found, sizes = [], []
    for side in ("origin", "destination"):
        area, _ = pd.factorize(table.cells[side])
        totals = np.stack([np.bincount(area, one) for one in released])
        spread = np.maximum(totals.std(axis=0, ddof=1), 0.5)
        found.append((totals.mean(axis=0) - np.bincount(area, true)) / spread)
        sizes.append(np.bincount(area))
    place = np.searchsorted(SIZES, np.concatenate(sizes), side="right") - 1
    z = np.concatenate(found)
    return [
        float(z[place == k].mean()) if (place == k).any() else np.nan for k in range(len(SIZES))
    ]


def tiny_groups(cells: SmallCells, released: np.ndarray) -> dict[str, float]:
    """Shares and mean of the counts in groups under ten cells, and what chance alone gives."""
    tiny = (np.bincount(cells.group) < TINY_GROUP)[cells.group]
    if not tiny.any():
        return {"tiny_cells": 0.0}

    def shares(y: np.ndarray) -> np.ndarray:
        return np.bincount(y[tiny], minlength=cells.upper + 1) / tiny.sum()

    def apart(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.abs(shares(one) - shares(other)).sum() / 2)

    return {
        "tiny_cells": float(tiny.sum()),
        "tiny_tv": float(np.mean([apart(y, cells.y) for y in released])),
        "tiny_chance": float(np.mean([apart(one, other) for one, other in pairwise(released)])),
        "tiny_mean": float(np.mean([y[tiny].mean() for y in released]) - cells.y[tiny].mean()),
    }


@contextmanager
def knowing(choice: str) -> Iterator[str]:
    """Let the model know some of what is published; gives the ``covariates`` of a fit."""
    starts = KNOWN[choice]
    of_cells, of_groups = published._of_cells, published._of_groups
    published._of_cells = lambda *given: (frame := of_cells(*given))[
        [name for name in frame if name.startswith(starts)]
    ]
    published._of_groups = lambda *given: of_groups(*given)[
        ["log_odds_safe_group"] if "group" in starts else []
    ]
    published.published_covariates.cache_clear()
    try:
        yield "published" if starts else "none"
    finally:
        published._of_cells, published._of_groups = of_cells, of_groups
        published.published_covariates.cache_clear()


def worst_count(true: np.ndarray, released: np.ndarray) -> float:
    """Largest relative error of the share of a count over all cells, with its sign."""
    shares = np.bincount(true)[1:]
    error = np.bincount(released.ravel(), minlength=len(shares) + 1)[1:] / len(released) / shares
    return float(max(error - 1.0, key=abs))


def study(table: FlowTable, covariates: str, family: str, draws: int, seed: int) -> dict[str, Any]:
    """All figures of one choice on one table."""
    cells = small_cells(table, covariates=covariates, canonical=family in CANONICAL)
    parts = held_out(table, cells, seed)
    held = np.logical_or.reduce(list(parts.values()))
    predicted = predict(cells, held, family, "pooled", draws, seed)
    result: dict[str, Any] = {
        f"score_{name}": score(predicted[part[held]], cells.y[part])["log_score"]
        if part.any()
        else np.nan
        for name, part in parts.items()
    }
    start = time.process_time()
    posterior = fit_flows(
        table, family=family, covariates=covariates, draws=draws, tune=draws, chains=CHAINS,
        seed=seed, cores=1,
    )  # fmt: skip
    result["seconds"] = time.process_time() - start
    release = synthesize(table, posterior, datasets=RELEASES, seed=seed)
    rows = table.cells["row"].to_numpy()
    by_dataset = [one[table.count].to_numpy() for _, one in release.groupby("dataset")]
    released = np.stack([one[rows] for one in by_dataset]).astype(np.int64)
    true = cells.y + table.low
    slope, error = slopes(table, true)
    found = np.mean([slopes(table, one)[0] for one in released], axis=0)
    result["slope_origin"], result["slope_destination"] = found / slope
    result["off_origin"], result["off_destination"] = (found - slope) / error
    result["pmse"] = utility(table, release).pmse_ratio
    for size, z in zip(SIZES, z_by_size(table, true, released), strict=True):
        result[f"z_{size}"] = z
    result["worst"] = worst_count(true, released)
    result |= tiny_groups(cells, released - table.low)
    one = release[release["dataset"] == 1].drop(columns="dataset")
    risk = intruder_risk(
        table, posterior, one, estimator="paper", prior="model",
        cells=min(INTRUDED, table.n_small), seed=seed, cores=1,
    )  # fmt: skip
    y = table.cells.loc[risk.rho["cell"].to_numpy(), "y"].to_numpy()
    at = np.arange(len(y)), y
    gained = np.log2(risk.rho.to_numpy()[at]) - np.log2(risk.prior_probability.to_numpy()[at])
    return result | {"gain": float(gained.mean())}


def markdown(results: pd.DataFrame) -> str:
    """The tables of the study."""

    def cell(values: pd.Series, form: str) -> str:
        values = values.dropna()
        if values.empty:
            return ""
        error = f" ({values.sem():{form.lstrip('+')}})" if len(values) > 1 else ""
        return f"{values.mean():{form}}{error}"

    lines = [
        "# Whether the model should know the published sizes of areas",
        "",
        f"Made by `python tests/validation/areas_study.py {' '.join(['DATA', *sys.argv[2:]])}`, "
        f"first seed {SEED}, {CHAINS} chains of the Gibbs engine, default prior; "
        "columns as in the script, standard "
        "errors over seeds in brackets.",
    ]
    for name, part in results.groupby("table", sort=False):
        one = part.drop_duplicates("seed")
        lines += [
            "",
            f"## {name}: {one['cells'].mean():,.0f} small cells in {one['groups'].mean():,.0f} "
            f"groups, {one['tiny_cells'].mean():.0f} of them in groups under ten; "
            f"{part['draws'].iloc[0]} draws, {len(one)} seeds",
            "",
            "| covariates | family | log score: tenth | small groups | whole areas | slopes | "
            "pMSE | per 10,000 | z <10 | 10-19 | 20-49 | 50+ | worst count | "
            "tiny: variation (chance) | mean | gain, bits | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for (choice, family), rows in part.groupby(["covariates", "family"], sort=False):
            scaled = 1.0 + (rows["pmse"] - 1.0) * 1e4 / rows["cells"]
            columns = [
                cell(rows["score_tenth"], ".4f"), cell(rows["score_groups"], ".4f"),
                cell(rows["score_areas"], ".4f"),
                ", ".join(
                    f"{rows[f'slope_{side}'].mean():.2f} ({rows[f'off_{side}'].mean():+.1f})"
                    for side in ("origin", "destination")
                ),
                cell(rows["pmse"], ".1f"), cell(scaled, ".2f"),
                *(cell(rows[f"z_{size}"], "+.2f") for size in SIZES),
                cell(rows["worst"], "+.0%"),
                ""
                if rows["tiny_tv"].isna().all()
                else f"{rows['tiny_tv'].mean():.3f} ({rows['tiny_chance'].mean():.3f})",
                cell(rows["tiny_mean"], "+.2f"), cell(rows["gain"], ".4f"),
                f"{rows['seconds'].mean():.0f}",
            ]  # fmt: skip
            lines.append(f"| {choice} | {family} | " + " | ".join(columns) + " |")
    return "\n".join(lines) + "\n"


def true_slopes(data: Path, cells: list[int]) -> str:
    """The true slopes with their standard errors: what a ratio to them can say."""
    lines = [
        "# True slopes of small counts on the totals of their areas",
        "",
        f"Made by `python tests/validation/areas_study.py {' '.join(['DATA', *sys.argv[2:]])}`, "
        f"seed {SEED}: log of a small count on the log totals of both areas, with standard errors. "
        "Where the error is a third of the slope or more, the ratio of a release's slope to it "
        "says little.",
        "",
        "| table | small cells | groups | origin | destination |",
        "|---|---|---|---|---|",
    ]
    for name in TABLES:
        for number in cells:
            table = read(data, name, number, SEED)
            slope, error = slopes(table, table.cells["y"].to_numpy() + table.low)
            lines.append(
                f"| {name} | {table.n_small:,} | {table.cells['group'].nunique()} | "
                f"{slope[0]:.3f} ({error[0]:.3f}) | {slope[1]:.3f} ({error[1]:.3f}) |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--cells", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--known", nargs="+", default=["none", "published"], choices=KNOWN)
    parser.add_argument("--families", nargs="+", default=[DEFAULT_FAMILY], choices=FAMILIES)
    parser.add_argument("--name", default="areas_study")
    parser.add_argument("--true-slopes", nargs="+", type=int, metavar="CELLS")
    asked = parser.parse_args()
    if asked.true_slopes:
        text = true_slopes(asked.data, asked.true_slopes)
        (HERE / "areas_slopes.md").write_text(text, encoding="utf-8")
        return
    kept = HERE / f"{asked.name}.csv"
    results = pd.read_csv(kept) if kept.exists() else pd.DataFrame()
    for seed in range(SEED, SEED + asked.seeds):
        for name in asked.tables:
            table = read(asked.data, name, asked.cells, seed)
            for covariates, family in product(asked.known, asked.families):
                key = {"table": name, "covariates": covariates, "family": family, "seed": seed}
                if len(results) and (results[list(key)] == pd.Series(key)).all(axis=1).any():
                    continue
                row = {
                    **key,
                    "cells": table.n_small,
                    "groups": table.cells["group"].nunique(),
                    "draws": asked.draws,
                }
                with knowing(covariates) as asked_for:
                    row |= study(table, asked_for, family, asked.draws, seed)
                results = pd.concat([results, pd.DataFrame([row])], ignore_index=True)
                results.to_csv(kept, index=False)
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
    order = [TABLES.index(name) for name in results["table"]]
    results = results.iloc[np.argsort(order, kind="stable")]
    (HERE / f"{asked.name}.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
