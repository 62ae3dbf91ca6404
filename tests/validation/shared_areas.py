"""What effects of areas that all groups share would add to the default, at most.

    python tests/validation/shared_areas.py DATA [--tables norway gb us-commuting] [--cells 2500]
        [--draws 150]

DATA is a folder with ``flows/`` (public files, not part of the repository); tables, first seed and
left-out areas are those of ``areas_study.py``: a tenth of the areas lose all their cells in half of
their groups. There a model with shared effects would know the area from its other groups, and the
model with an effect in each group alone knows nothing but the prior. So the most that shared
effects can add shows in these cells: each effect without a cell of its own is drawn about

    weight * (mean effect of the same area and side in its other groups, by their numbers of cells)

with its prior standard deviation times ``spread``. Weight and spread are those of a grid that fit
the left-out cells best, chosen with a look at them: what is gained is an upper bound for this way
of borrowing. Weight 0 and spread 1 is the model as it is.

Columns: number of cells concerned; log score a cell as it is; with the best weight and spread; the
two; the standard error of the mean difference; and the correlation of the mean effects of an area
in two groups, over all pairs of groups that both have at least three of its cells.
"""

import argparse
import sys
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.fit.chains import Chain, sample_chain
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.table.cells import SmallCells, small_cells, thin
from bayes_sdc.models import migration

sys.path.insert(0, str(Path(__file__).parent))
from areas_study import SEED, TABLES, held_out, read

HERE, CHAINS, FEW = Path(__file__).parent, 2, 3
WEIGHTS, SPREADS = np.linspace(0.0, 2.0, 9), (0.4, 0.6, 0.8, 1.0)


class Side(NamedTuple):
    """One side of a fit: what is known of the effects of an area in other groups."""

    effect: np.ndarray  # (draw, effect) deviations from the mean of the group
    mean: np.ndarray  # (effect,) over draws
    cells: np.ndarray  # (effect,) number that were fitted
    elsewhere: np.ndarray  # (effect,) mean over the area's other groups; missing without any
    correlation: float


def side_of(draws: np.ndarray, area: np.ndarray, index: np.ndarray) -> Side:
    """Borrow from the other groups of every area."""
    mean, cells = draws.mean(axis=0), np.bincount(index, minlength=draws.shape[1])
    elsewhere, pairs = np.full(len(mean), np.nan), []
    for one in np.unique(area):
        here = np.flatnonzero(area == one)
        for e in here:
            others = here[(here != e) & (cells[here] > 0)]
            if len(others):
                elsewhere[e] = np.average(mean[others], weights=cells[others])
        known = here[cells[here] >= FEW]
        pairs += [(mean[a], mean[b]) for a, b in combinations(known, 2)]
    both = np.array(pairs + [(b, a) for a, b in pairs])
    correlation = np.corrcoef(both.T)[0, 1] if len(pairs) > 10 else np.nan
    return Side(draws, mean, cells, elsewhere, float(correlation))


def sides(cells: SmallCells, fitted: SmallCells, chains: list[Chain]) -> list[Side]:
    """Both sides of a fit."""
    found = []
    for name, labels, group, index in (
        ("beta", cells.origin_effects, cells.group_of_origin, fitted.origin),
        ("gamma", cells.destination_effects, cells.group_of_destination, fitted.destination),
    ):
        draws = np.concatenate([
            chain.values[name].astype(float) - chain.values[f"mu_{name}"][:, group]
            for chain in chains
        ])  # fmt: skip
        area = [label[len(cells.groups[g]) + 1 :] for label, g in zip(labels, group, strict=True)]
        found.append(side_of(draws, np.array(area), index))
    return found


def scores(
    cells: SmallCells, chosen: np.ndarray, both: list[Side], chains: list[Chain], weight: float,
    spread: float,
) -> np.ndarray:  # fmt: skip
    """Log predictive probability of the chosen cells, with what is borrowed."""
    there, p = thin(cells, chosen), 0.0
    names = ["alpha", "r", *(["coefficient"] if cells.covariates else [])]
    values = {name: np.concatenate([chain.values[name] for chain in chains]) for name in names}
    moved = []
    for side in both:
        lost = (side.cells == 0) & np.isfinite(side.elsewhere)
        moved.append(np.where(lost, weight * side.elsewhere + spread * side.effect, side.effect))
    at = np.arange(len(there.y)), there.y
    for s in range(len(values["alpha"])):
        log_rate = values["alpha"][s][there.group]
        log_rate = log_rate + moved[0][s][there.origin] + moved[1][s][there.destination]
        if cells.covariates:
            log_rate += (there.x * values["coefficient"][s][there.group]).sum(axis=1)
        rungs = counts.ladder(1.0 / values["r"][s], cells.upper)
        p = p + counts.probabilities(log_rate, there.group, rungs)[at]
    return np.asarray(np.log(p / len(values["alpha"])))


def study(table_name: str, data: Path, cells_wanted: int, draws: int, covariates: str) -> str:
    """A row of the table."""
    table = read(data, table_name, cells_wanted, SEED)
    cells = small_cells(table, covariates=covariates)
    parts = held_out(table, cells, SEED)
    fitted = thin(cells, ~np.logical_or.reduce(list(parts.values())))
    sampling = Sampling(
        "negative-binomial", migration.PRIORS["pooled"], draws, draws, CHAINS, SEED, 1
    )
    data_of_chain = engine.prepare(fitted)
    chains = [
        sample_chain(engine.MarkovChain(data_of_chain, sampling, seed), sampling)
        for seed in np.random.SeedSequence(SEED).spawn(CHAINS)
    ]
    both = sides(cells, fitted, chains)
    lost = [(side.cells == 0) & np.isfinite(side.elsewhere) for side in both]
    chosen = parts["areas"] & (lost[0][cells.origin] | lost[1][cells.destination])
    correlations = ", ".join(f"{side.correlation:.2f}" for side in both)
    if not chosen.any():
        return f"| {table_name} | {covariates} | 0 | | | | | {correlations} |"
    as_it_is = scores(cells, chosen, both, chains, 0.0, 1.0)
    tried = {
        (weight, spread): scores(cells, chosen, both, chains, weight, spread)
        for weight in WEIGHTS
        for spread in SPREADS
    }
    best = max(tried, key=lambda key: tried[key].mean())
    gained = tried[best] - as_it_is
    error = gained.std() / np.sqrt(len(gained))
    return (
        f"| {table_name} | {covariates} | {len(gained)} | {as_it_is.mean():.4f} | "
        f"{tried[best].mean():.4f} | {gained.mean():+.4f} ({error:.4f}) | {best[0]:.2f}, "
        f"{best[1]:.1f} | {correlations} |"
    )


def main() -> None:
    """The table of all tables, written as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--tables", nargs="+", default=["norway", "gb", "us-commuting"], choices=TABLES
    )
    parser.add_argument("--cells", type=int, default=2500)
    parser.add_argument("--draws", type=int, default=150)
    asked = parser.parse_args()
    lines = [
        "# What effects of areas that all groups share would add, at most",
        "",
        f"Made by `python tests/validation/shared_areas.py {' '.join(['DATA', *sys.argv[2:]])}`, "
        f"seed {SEED}, {CHAINS} chains of {asked.draws} draws; columns as in the script.",
        "",
        "| table | covariates | cells | log score | with the best borrowing | "
        "gain (standard error) | weight, spread | correlation, origins and destinations |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in asked.tables:
        for covariates in ("none", "published"):
            lines.append(study(name, asked.data, asked.cells, asked.draws, covariates))
            (HERE / "shared_areas.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
