"""Is the default model calibrated on real tables: its predictions of held-out cells, by eye.

    python tests/validation/default_calibration.py DATA [--tables norway gb ...] [--draws 100]

DATA, tables, held-out cells and seed are those of ``default_study.py``. For the default model and
for the Poisson family with the same prior, the randomised probability integral transform of the
held-out tenth is drawn as a histogram (``default_calibration.svg``), beside the range that holds
95 % of the bars of a calibrated model. ``default_calibration.md`` has, of a fit of the default
model to all cells, the error of the expected number of cells with each count, and the smallest
error that any mixture of truncated Poisson distributions could have: the model is such a mixture
but for the shape that the negative binomial gives it, so the difference is that shape's.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import linprog
from scipy.special import gammaln, softmax
from scipy.stats import binom, kstest

from bayes_sdc import fit_flows
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.table.cells import small_cells

sys.path.insert(0, str(Path(__file__).parent))
from default_study import SEED, TABLES, held_out, pit, predict, read

MODELS = {"negative-binomial": "default model", "poisson": "Poisson, pooled"}
BINS = 20
GRID = np.linspace(-12.0, 12.0, 2000)  # log rates of the mixture
HERE = Path(__file__).parent


def least_error(observed: np.ndarray) -> float:
    """Smallest largest relative error of a mixture of truncated Poisson distributions.

    A linear programme over the weights of the rates and the error itself.
    """
    y = np.arange(len(observed))
    relative = softmax(np.outer(GRID, y) - gammaln(y + 1), axis=1) / (observed / observed.sum())
    one = np.ones((len(y), 1))
    found = linprog(
        np.append(np.zeros(len(GRID)), 1.0),
        A_ub=np.block([[relative.T, -one], [-relative.T, -one]]),
        b_ub=np.append(np.ones(len(y)), -np.ones(len(y))),
        A_eq=np.append(np.ones(len(GRID)), 0.0)[None],
        b_eq=[1.0],
    )
    return float(found.fun)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--draws", type=int, default=100)
    arguments = parser.parse_args()
    figure = Figure((3.2 * len(arguments.tables), 5.0), layout="constrained")
    axes = figure.subplots(len(MODELS), len(arguments.tables), sharex=True, squeeze=False)
    rows: list[dict[str, Any]] = []
    for column, name in enumerate(arguments.tables):
        table = read(arguments.data, name)
        cells = small_cells(table)
        tenth = held_out(cells)[0]
        row: dict[str, Any] = {"table": name, "small cells": f"{table.n_small:,}"}
        for ax, (family, label) in zip(axes[:, column], MODELS.items(), strict=True):
            values = pit(predict(cells, tenth, family, "pooled", arguments.draws), cells.y[tenth])
            n = len(values)
            ax.hist(values, BINS, (0.0, 1.0), color="#4c86c6")
            ax.axhspan(*binom.ppf([0.025, 0.975], n, 1.0 / BINS), color="#888888", alpha=0.3)
            p = kstest(values, "uniform").pvalue
            ax.set(title=f"{name}: {label}", xlabel=f"PIT of {n:,} cells, p = {p:.2g}")
            row[f"PIT p, {label}"] = f"{p:.2g}"
        posterior = fit_flows(table, draws=arguments.draws, tune=arguments.draws, seed=SEED)
        counts = diagnostics.predictive_counts(table, posterior, seed=SEED)
        row |= {str(count): f"{error:+.1%}" for count, error in counts["relative_error"].items()}
        row["any mixture"] = f"{least_error(counts['observed'].to_numpy()):.1%}"
        rows.append(row)
    figure.savefig(HERE / "default_calibration.svg", metadata={"Date": None})
    (HERE / "default_calibration.md").write_text(
        "# Calibration of the default model on real tables\n\nMade by `python "
        f"tests/validation/default_calibration.py DATA --draws {arguments.draws}`, seed {SEED}. "
        "Relative error of the\nexpected number of cells with each count, and the smallest error "
        "of any mixture of truncated\nPoisson distributions; PIT as in `default_calibration.svg`."
        "\n\n" + markdown(pd.DataFrame(rows)),
        encoding="utf-8",
    )


def markdown(frame: pd.DataFrame) -> str:
    """A table in Markdown."""
    lines = [frame.columns.tolist(), ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
