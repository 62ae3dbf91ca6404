"""How DIS-SUDA scores relate to the true matching probability, where the population is known.

A public file stands for the population and is dealt out into fifty samples of 2 %, stratified by
family composition and age, so that every member is in exactly one. For each record the true
matching probability is 1/F, F being the number of members with its key values. The tables and the
picture beside this script are what it last gave.

Run: python tests/validation/dis_suda_study.py FOLDER, with the folder of the public files.
"""

import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.lancaster.additive import lancaster
from bayes_sdc.microdata.special_uniques.dis import dis
from bayes_sdc.microdata.special_uniques.dis_suda import dis_suda

FILE = "scotland_census2011_teaching_1pct.csv.gz"
SIX = ["sex", "age", "Marital_Status", "Country_Of_Birth", "Ethnic_Group", "religion"]
MORE = ["Economic_Activity", "Occupation", "industry", "Family_Composition", "health", "student"]
KEYS = {"twelve keys": SIX + MORE, "six keys": SIX}
SAMPLES = 50
MEASURES = {
    "elliot-manning, sizes up to 3": {"max_size": 3},
    "elliot-manning, all sizes": {"max_size": 12},
    "sdcmicro, ihsn, all sizes": {"max_size": 12, "method": "sdcmicro", "score": "ihsn"},
}
BANDS = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0 - 1e-9, 1.0]


FINDINGS = """What it shows

- The general form of DIS estimates U over the sum of F over sample uniques without visible bias,
  and its intervals hold the true value about as often as they should.
- That is not the mean of 1/F over sample uniques, which the authors of DIS-SUDA take it for: it is
  the average of 1/F weighted by F, in which common combinations count most, and smaller by Jensen's
  inequality. So DIS-SUDA, which shares out U times DIS, ranks records well and is far too low as
  the matching probability of a record; the picture shows by how much.
- The paper announces scores of 1 that are nearly all population uniques. Here no score reaches 1,
  since U times DIS is too small a total; with twelve keys the highest bands are indeed nearly all
  population uniques.
- Searching all sizes ranks the uniques better than sizes up to 3, which leave uniques of larger
  sets without a score."""


def deal(frame: pd.DataFrame) -> np.ndarray:
    """Sample of each member: of fifty neighbours by family and age, one goes to each."""
    rng = np.random.default_rng(1)
    order = np.lexsort([rng.random(len(frame)), frame["age"], frame["Family_Composition"]])
    sample = np.empty(len(frame), int)
    for start in range(0, len(frame), SAMPLES):
        part = order[start : start + SAMPLES]
        sample[part] = rng.permutation(SAMPLES)[: len(part)]
    return sample


def study(frame: pd.DataFrame, keys: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every record with its scores and the truth, and every sample with its file-level risk."""
    big = frame.groupby(keys)[keys[0]].transform("size").to_numpy()
    dealt = deal(frame)
    records, files = [], []
    for number in range(SAMPLES):
        chosen = np.flatnonzero(dealt == number)
        data = read_microdata(frame.iloc[chosen], keys=keys)
        unique, truth = data.f == 1, big[chosen]
        part = pd.DataFrame({"sample": number, "unique": unique, "F": truth})
        for name, options in MEASURES.items():
            part[name] = dis_suda(data, 1 / SAMPLES, **options).risk
        additive = lancaster(data, len(frame))
        part["Lancaster"] = additive.risk[1.0].reindex(range(data.n), fill_value=0.0)
        records.append(part)
        estimate = dis(data, 1 / SAMPLES)
        files.append(
            {
                "estimate": estimate.value,
                "error": estimate.standard_error,
                "delta low": estimate.delta_interval[0],
                "delta high": estimate.delta_interval[1],
                "beta low": estimate.beta_interval[0],
                "beta high": estimate.beta_interval[1],
                "theta": unique.sum() / truth[unique].sum(),
                "mean 1/F": (1 / truth[unique]).mean(),
                "population uniques": (truth[unique] == 1).mean(),
            }
        )
    return pd.concat(records, ignore_index=True), pd.DataFrame(files)


def by_band(records: pd.DataFrame, measure: str) -> str:
    """Mean matching probability and share of population uniques by band of score."""
    score = records[measure]
    band = np.where(records["unique"], np.searchsorted(BANDS, score, side="left"), -1)
    lines = [
        "| score | records | mean score | mean 1/F | share F = 1 |",
        "|---|---:|---:|---:|---:|",
    ]
    for number in range(-1, len(BANDS)):
        part = records[band == number]
        if len(part) == 0:
            continue
        if number < 0:
            label = "not unique in the sample"
        elif number == 0:
            label = "unique, score 0"
        elif number == len(BANDS) - 1:
            label = "1"
        else:
            label = f"above {BANDS[number - 1]:g}, up to {BANDS[number]:.3g}"
            label = label.replace("up to 1", "below 1")
        means = part[measure].mean(), (1 / part["F"]).mean(), (part["F"] == 1).mean()
        lines.append(f"| {label} | {len(part):,} | " + " | ".join(f"{x:.3f}" for x in means) + " |")
    return "\n".join(lines)


def correlations(records: pd.DataFrame) -> str:
    """Correlation of each measure with 1/F over the fifty samples: mean, least and largest."""
    lines = [
        "| measure | all records | sample uniques | rank, sample uniques |",
        "|---|---:|---:|---:|",
    ]
    for measure in (*MEASURES, "Lancaster"):
        cells = []
        for rank, only_unique in ((False, False), (False, True), (True, True)):
            values = []
            for _, part in records.groupby("sample"):
                chosen = part[part["unique"]] if only_unique else part
                pair = chosen[measure].to_numpy(), 1 / chosen["F"].to_numpy()
                values.append(spearmanr(*pair).statistic if rank else np.corrcoef(*pair)[0, 1])
            cells.append(f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def file_level(files: pd.DataFrame) -> str:
    """How the general form of DIS does against what it estimates."""
    off = files["estimate"] - files["theta"]
    inside = {
        name: ((files[f"{name} low"] <= files["theta"]) & (files["theta"] <= files[f"{name} high"]))
        for name in ("delta", "beta")
    }
    rows = {
        "mean estimate of pr(cm given um)": f"{files['estimate'].mean():.4f}",
        "mean of the true value, U over the sum of F over uniques": f"{files['theta'].mean():.4f}",
        "mean error, and its standard error": f"{off.mean():+.4f}, "
        f"{off.std() / len(off) ** 0.5:.4f}",
        "root mean square of the error": f"{(off**2).mean() ** 0.5:.4f}",
        "root mean square of the standard error": f"{(files['error'] ** 2).mean() ** 0.5:.4f}",
        "delta intervals that hold the true value": f"{inside['delta'].mean():.0%}",
        "beta intervals that hold the true value": f"{inside['beta'].mean():.0%}",
        "mean of 1/F over sample uniques": f"{files['mean 1/F'].mean():.4f}",
        "sample uniques that are population uniques": f"{files['population uniques'].mean():.4f}",
    }
    lines = ["| over fifty samples | |", "|---|---:|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def picture(results: dict[str, pd.DataFrame], path: Path) -> None:
    """Mean 1/F against mean score, by twentieths of the sample uniques."""
    mpl.use("svg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "dis-suda", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(1, len(results), figsize=(9, 4.2), sharey=True)
        for axis, (name, records) in zip(axes, results.items(), strict=True):
            unique = records[records["unique"]]
            axis.plot([0, 1], [0, 1], color="0.6", linewidth=1)
            for measure, marker in zip((*MEASURES, "Lancaster"), "os^x", strict=True):
                group = pd.qcut(unique[measure].rank(method="first"), 20, labels=False)
                mean = (
                    unique.assign(truth=1 / unique["F"]).groupby(group)[[measure, "truth"]].mean()
                )
                axis.plot(
                    mean[measure],
                    mean["truth"],
                    marker=marker,
                    linewidth=1,
                    markersize=4,
                    label="Lancaster, P(F = 1)" if measure == "Lancaster" else measure,
                )
            axis.set_title(name)
            axis.set_xlabel("mean score of a twentieth of the sample uniques")
        axes[0].set_ylabel("mean of 1/F")
        axes[0].legend(frameon=False, fontsize=8)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    start = time.perf_counter()
    frame = pd.read_csv(Path(sys.argv[1]) / FILE, dtype=str)
    here = Path(__file__)
    text = [
        "# DIS-SUDA against the true matching probability",
        "",
        f"Population: {len(frame):,} people; fifty samples of 2 %. `{here.name}` makes this page.",
        "",
        FINDINGS,
    ]
    results = {}
    for name, keys in KEYS.items():
        records, files = study(frame, keys)
        results[name] = records
        text += ["", f"## {name.capitalize()}", "", ", ".join(keys), "", file_level(files), ""]
        text += [correlations(records)]
        for measure in MEASURES:
            text += ["", f"### {measure}", "", by_band(records, measure)]
    picture(results, here.with_suffix(".svg"))
    text += ["", f"![Calibration]({here.with_suffix('.svg').name})", ""]
    here.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")
    sys.stderr.write(f"{time.perf_counter() - start:.0f} s\n")


if __name__ == "__main__":
    main()
