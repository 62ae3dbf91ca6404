"""How far the estimators of record-level risk are from the truth, where the population is known.

Two public files stand for populations; samples are drawn from them, each estimator sees the sample
alone, and its estimate is compared with what the population says. The table beside this script is
what it last gave.

Run: python tests/validation/record_risk_accuracy.py FOLDER, with the folder of the public files.
"""

import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.inclusion import weight_spread
from bayes_sdc.microdata.individual.superpopulation import superpopulation_risk
from bayes_sdc.microdata.uniques.learned import learn_uniques
from bayes_sdc.microdata.uniques.unstructured import expected_uniques, uniques_deviation

SAMPLES = 50
POPULATIONS = {
    "Scotland": (
        "scotland_census2011_teaching_1pct.csv.gz",
        "sex age Marital_Status Country_Of_Birth Ethnic_Group religion Economic_Activity "
        "Occupation industry Family_Composition",
    ),
    "eusilcP": (
        "austria_eusilcP_population.csv.gz",
        "region hsize age gender ecoStat citizenship",
    ),
}
DESIGNS = (
    ("Scotland", 0.02, "equal"),
    ("Scotland", 0.05, "equal"),
    ("eusilcP", 0.02, "equal"),
    ("eusilcP", 0.05, "equal"),
    ("eusilcP", 0.02, "unequal"),
    ("eusilcP", 0.05, "unequal"),
)

Row = dict[str, float]


def draw(frame: pd.DataFrame, fraction: float, design: str, seed: int) -> pd.DataFrame:
    """A sample with its weights, in ``w``.

    ``equal``: simple random sampling. ``unequal``: five income classes, which are no key, are
    sampled at rates of 1 to 5, so that weights vary within combinations.
    """
    rng = np.random.default_rng(seed)
    size = round(fraction * len(frame))
    if design == "equal":
        chosen = rng.choice(len(frame), size, replace=False)
        return frame.iloc[chosen].assign(w=len(frame) / size)
    classes = pd.qcut(frame["eqIncome"].rank(method="first"), 5, labels=False).to_numpy()
    rate = (1.0 + classes) * size / (1.0 + classes).sum()
    taken = rng.random(len(frame)) < rate
    return frame[taken].assign(w=1.0 / rate[taken])


def estimates(data: Microdata, N: int, full_K: int, occupied_K: int, seed: int) -> dict[str, Row]:
    """All estimators on one sample; what an estimator does not give is left out."""
    frame = data.combinations
    f, F = frame["f"].to_numpy(), frame["F"].to_numpy()
    p = np.minimum(1.0, f / F)
    unique = f == 1
    found: dict[str, Row] = {}
    for method in ("order-1", "order-2"):
        risk = individual_risk(f, p, method=method)
        found[f"closed form, {method}"] = {"expected": float(risk @ f), "risk": risk}
    spread = weight_spread(data.weights, data.combination, f)
    for model, more in (
        ("known", {}),
        ("uncertain", {"spread": spread}),
        ("gamma", {}),
        ("gamma, empty cells known", {"empty": occupied_K - len(f)}),
        ("extended", {}),
    ):
        result = superpopulation_risk(f, p, model=model.split(",")[0], seed=seed, **more)
        name = "known p (closed form, exact)" if model == "known" else model
        found[name] = {
            "expected": result.expected.value,
            "expected low": result.expected.interval[0],
            "expected high": result.expected.interval[1],
            "tau1": result.tau1.value,
            "tau1 low": result.tau1.interval[0],
            "tau1 high": result.tau1.interval[1],
            "risk": result.risk,
            "trusted": float(result.trusted),
        }
    s, n = int(unique.sum()), data.n
    for label, K in (("all combinations of levels", full_K), ("occupied cells", occupied_K)):
        for prior, c in (("uniform", 1.0), ("multinomial", float("inf"))):
            mean = expected_uniques(s, n, N, K, concentration=c)
            sd = uniques_deviation(s, n, N, K, concentration=c)
            found[f"{prior} prior, K = {label}"] = {
                "tau1": mean,
                "tau1 low": mean - 1.96 * sd,
                "tau1 high": mean + 1.96 * sd,
            }
        learned = learn_uniques(data.size_indices, N, K, seed=seed)
        found[f"learned c, K = {label}"] = {
            "tau1": learned.uniques.value,
            "tau1 low": learned.uniques.interval[0],
            "tau1 high": learned.uniques.interval[1],
            "trusted": float(learned.trusted),
        }
    return found


def study(folder: Path, report: Path) -> None:
    """Draw the samples, and write the tables as Markdown, each when it is done."""
    report.write_text(HEAD, encoding="utf-8")
    for name, fraction, design in DESIGNS:
        started = time.monotonic()
        file, named = POPULATIONS[name]
        keys = named.split()
        population = pd.read_csv(folder / file, dtype=dict.fromkeys(keys, str))
        whole = read_microdata(population, keys=keys, missing="own")
        full = dict(zip(whole.combinations.index, whole.combinations["f"], strict=True))
        full_K = int(np.prod([len(level) for level in whole.labels], dtype=np.int64))
        errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        truths: dict[str, list[float]] = defaultdict(list)
        for number in range(SAMPLES):
            sample = draw(population, fraction, design, seed=number)
            data = read_microdata(sample, keys=keys, weight="w", missing="own")
            f = data.combinations["f"].to_numpy()
            F = np.array([full[key] for key in data.combinations.index])
            truth = {
                "tau1": float(np.sum((f == 1) & (F == 1))),
                "expected": float(f @ (1 / F)),
            }
            for quantity, value in truth.items():
                truths[quantity].append(value)
            truths["uniques"].append(float(np.sum(f == 1)))
            for estimator, row in estimates(
                data, len(population), full_K, len(full), number
            ).items():
                found = errors[estimator]
                for quantity, value in truth.items():
                    if quantity in row:
                        found[quantity].append(row[quantity] - value)
                    if f"{quantity} low" in row:
                        inside = row[f"{quantity} low"] <= value <= row[f"{quantity} high"]
                        found[f"{quantity} covered"].append(inside)
                if "risk" in row:
                    pairs = np.repeat(row["risk"], f), np.repeat(1 / F, f)
                    found["correlation"].append(float(np.corrcoef(*pairs)[0, 1]))
                found["trusted"].append(row.get("trusted", 1.0))
        part = table(name, fraction, design, len(population), len(full), errors, truths)
        with report.open("a", encoding="utf-8") as file_of_tables:
            file_of_tables.write("\n" + part)
        sys.stderr.write(f"{name} {fraction} {design}: {time.monotonic() - started:.0f} s\n")


def table(
    name: str,
    fraction: float,
    design: str,
    N: int,
    cells: int,
    errors: dict[str, dict[str, list[float]]],
    truths: dict[str, list[float]],
) -> str:
    """One design as a Markdown table."""
    mean = {quantity: float(np.mean(values)) for quantity, values in truths.items()}
    lines = [
        f"## {name}, {fraction:.0%}, {design} probabilities\n",
        f"{N:,} persons in {cells:,} combinations; {SAMPLES} samples with on average "
        f"{mean['uniques']:.1f} uniques. Truth on average: tau1 {mean['tau1']:.2f}, expected "
        f"re-identifications {mean['expected']:.2f}.\n",
        "| estimator | tau1 bias | RMSE | coverage | expected bias | RMSE | coverage | "
        "correlation with 1/F | not converged |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for estimator, found in errors.items():
        cellsof = [estimator]
        for quantity in ("tau1", "expected"):
            error = np.array(found.get(quantity, []))
            covered = found.get(f"{quantity} covered", [])
            cellsof += (
                [f"{error.mean():+.2f}", f"{np.sqrt(np.mean(error**2)):.2f}"]
                if error.size
                else ["", ""]
            )
            cellsof.append(f"{np.mean(covered):.0%}" if covered else "")
        correlation = found.get("correlation", [])
        cellsof.append(f"{np.mean(correlation):.3f}" if correlation else "")
        cellsof.append(str(int(SAMPLES - np.sum(found["trusted"]))))
        lines.append("| " + " | ".join(cellsof) + " |")
    return "\n".join(lines) + "\n"


HEAD = """# Accuracy of record-level risk where the population is known

tau1: sample uniques that are population uniques. Expected: the sum over records of 1/F. Bias and
root mean square error are of the estimate against the truth of the same sample; coverage is how
often the 95 % interval held that truth. Correlation: of record risk with 1/F, over records, mean of
the samples. An empty entry: the estimator does not give it. "Occupied cells" and "empty cells
known" use the number of combinations that occur in the population, which nobody knows in practice.
"unequal": weights vary five to one within combinations.
"""

if __name__ == "__main__":
    study(Path(sys.argv[1]), Path(__file__).with_suffix(".md"))
