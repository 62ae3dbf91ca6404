"""Every estimator of the risk of sample uniques against populations that are known.

Six public files stand for populations, and four invented ones: a log-linear one with all pairs of
keys, one of nearly independent keys, a hierarchy of districts, ages and jobs, and the persons of
the package's example, none of them made by latent classes. Samples are drawn from them, each
estimator sees the sample alone, and what it says is compared with what the population says. Results
are added to a file as they come, so that the same command goes on after an interruption, and
several may run at a time; the table beside this script is what a reduced run gave.

The resolutions of the classes, the pull of the prior, the misfit factor and the limit of what is
trusted were chosen on the populations marked "tuned", by samples other than these.

Run: python tests/validation/record_risk.py FOLDER, with the folder of the public files. All of it
takes about two hours on two cores with --samples 2; --reduced takes 4 minutes a sample.
With --minutes it stops in time, and the page says how far it came.
"""

import argparse
import fcntl
import sys
import time
import zlib
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).parent))
from record_risk_populations import SIMULATED

from bayes_sdc.microdata.comparison.compare import compare_risks
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.file.simulate import draw_survey
from bayes_sdc.microdata.individual.superpopulation import superpopulation_risk
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk, latent_class_risk

ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "educationnum",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "native",
    "income",
]
FILES = {
    "Scotland": "scotland_census2011_teaching_1pct.csv.gz",
    "Fulton": "us_pums5_2000_fulton_ga.csv.gz",
    "New York": "us_pums_newyork_20000_npbayesimputecat.csv.gz",
    "Adult": "adult_uci_train_raw_noheader.csv.gz",
    "eusilcP": "austria_eusilcP_population.csv.gz",
    "Massachusetts": "us_acs_pums2019_massachusetts_nist_excerpt.csv.gz",
}
TUNED = ("Fulton", "Adult", "eusilcP", "pairs", "independent")
MOST_OF_A_SURVEY = 0.1  # of the population, by the generator
SURVEY = "D5 survey"  # of whole households, with unequal weights, as the example file
KEYS = {
    "S10": (
        "Scotland",
        "sex age Marital_Status Country_Of_Birth Ethnic_Group religion Economic_Activity "
        "Occupation industry Family_Composition",
    ),
    "S7": ("Scotland", "sex age Marital_Status Ethnic_Group religion Occupation industry"),
    "S8": (
        "Scotland",
        "sex age Marital_Status Country_Of_Birth Ethnic_Group religion health Family_Composition",
    ),
    "F9": ("Fulton", "puma sex age educ latino black asian married children"),
    "F12": (
        "Fulton",
        "puma sex educ latino black asian married divorced uscitizen children disability employed",
    ),
    "F5": ("Fulton", "puma sex age educ married"),
    "N10": (
        "New York",
        "OWNERSHP MORTGAGE AGE SEX MARST RACESING EDUC EMPSTAT DISABWRK VETSTAT",
    ),
    "N6": ("New York", "AGE SEX MARST RACESING EDUC EMPSTAT"),
    "A8": ("Adult", "age workclass educationnum marital occupation race sex native"),
    "A4": ("Adult", "age educationnum marital race"),
    "E6": ("eusilcP", "region hsize age gender ecoStat citizenship"),
    "E5": ("eusilcP", "hsize age gender ecoStat citizenship"),
    "M7": ("Massachusetts", "PUMA AGEP SEX MSP HISP RAC1P EDU"),
    "M5": ("Massachusetts", "AGEP SEX MSP RAC1P EDU"),
    "P8": ("pairs", "k0 k1 k2 k3 k4 k5 k6 k7"),
    "P5": ("pairs", "k3 k4 k5 k6 k7"),
    "I6": ("independent", "k0 k1 k2 k3 k4 k5"),
    "I5": ("independent", "k1 k2 k3 k4 k5"),
    "G8": ("geography", "k0 k1 k2 k3 k4 k5 k6 k7"),
    "G5": ("geography", "k1 k2 k3 k5 k6"),
    "D5": ("demo", "region sex age marital_status birth_place"),
    SURVEY: ("demo", "region sex age marital_status birth_place"),
}
FRACTIONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
SMALLEST = 100  # records
MOST_OF_A_SMALL = 320
REDUCED = (
    ("S10", 0.02), ("S7", 0.05), ("N10", 0.02), ("N6", 0.1), ("M7", 0.05), ("M5", 0.2),
    ("F9", 0.01), ("F12", 0.05), ("A8", 0.02), ("A4", 0.1), ("E6", 0.02), ("E5", 0.1),
    ("P8", 0.01), ("P8", 0.05), ("P5", 0.02), ("G8", 0.01), ("G8", 0.05), ("G5", 0.02),
    ("D5", 0.02), (SURVEY, 0.05), ("I6", 0.02), ("I5", 0.02), ("E6", 0.01), ("E6", 0.05),
)  # fmt: skip
# samples of 100 to 320: a risk that is too low is the worse error; latent classes alone
SMALL = (
    ("S10", 0.005), ("N10", 0.01), ("M7", 0.02), ("F9", 0.005), ("A8", 0.005), ("E6", 0.005),
    ("P8", 0.005), ("P5", 0.002), ("I5", 0.005), ("G8", 0.005), ("G5", 0.002), ("D5", 0.002),
)  # fmt: skip
# with every other estimator
COMPARED = (
    ("S10", 0.02), ("N6", 0.1), ("F9", 0.01), ("A8", 0.02), ("E6", 0.02), ("P8", 0.05),
    ("G8", 0.05), ("D5", 0.02), ("I6", 0.02),
)  # fmt: skip
# up to 20,000 records: the first sample alone
LARGE = (("P8", 0.2), ("S10", 0.2), ("D5", 0.2))
BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of P(F = 1)
OURS = "latent classes"
THIRD = 1.0 / 3.0


Row = dict[str, float | str]


class Drawn(NamedTuple):
    """A sample with what the population says of its uniques."""

    data: Microdata
    N: int
    F: np.ndarray

    @property
    def tau1(self) -> int:
        return int((self.F == 1).sum())

    @property
    def tau2(self) -> float:
        return float((1.0 / self.F).sum())


def population(folder: Path, name: str) -> pd.DataFrame:
    """One of the public files, all of it text, or an invented population."""
    if name in SIMULATED:
        return SIMULATED[name]()
    if name == "Adult":
        return pd.read_csv(
            folder / FILES[name], header=None, names=ADULT, dtype=str, skipinitialspace=True
        )
    return pd.read_csv(folder / FILES[name], dtype=str, keep_default_na=False)


def draw(people: pd.DataFrame, keys: list[str], fraction: float, seed: list[int]) -> Drawn:
    """A simple random sample without replacement."""
    cells = people.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    size = np.bincount(cells)
    rows = np.random.default_rng(seed).choice(len(people), round(fraction * len(people)), False)
    data = read_microdata(people.iloc[rows].reset_index(drop=True), keys=keys, missing="own")
    return Drawn(data, len(people), size[cells[rows]][data.f == 1])


def draw_households(people: pd.DataFrame, keys: list[str], fraction: float, seed: int) -> Drawn:
    """The survey of the package's example: households, regions at different rates, weights."""
    survey = draw_survey(people, fraction=fraction, seed=seed)
    data = read_microdata(survey, keys=keys, weight="weight", household="household")
    return Drawn(data, len(people), survey["population_count"].to_numpy()[data.f == 1])


def calibration(drawn: Drawn, p: np.ndarray) -> Row:
    """How many sample uniques have P(F = 1) in each bin, the sum of it, and how many are alone."""
    place = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
    row: Row = {}
    for name, weights in (("number", np.ones(len(p))), ("said", p), ("alone", drawn.F == 1)):
        found = np.bincount(place, weights=weights, minlength=len(BINS) - 1)
        row |= {f"{name} {k}": float(value) for k, value in enumerate(found)}
    return row


def scores(drawn: Drawn, p: np.ndarray) -> dict[str, float]:
    """Mean log score of P(F = 1), and the area under the curve of it against F = 1."""
    alone, area = drawn.F == 1, np.nan
    if 0 < alone.sum() < len(alone):
        ranks = rankdata(p)[alone]
        area = (ranks.mean() - (alone.sum() + 1) / 2) / (~alone).sum()
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    return {"AUC": area, "log": float(np.where(alone, np.log(q), np.log1p(-q)).mean())}


def shared_out(drawn: Drawn, tau1: float) -> np.ndarray:
    """P(F = 1) of a method that knows sizes alone: the same for every sample unique."""
    return np.full(len(drawn.F), min(tau1 / len(drawn.F), 1.0))


def ours(drawn: Drawn, seed: int) -> tuple[LatentClassRisk, Row]:
    started = time.process_time()
    risk = latent_class_risk(drawn.data, population_size=drawn.N, seed=seed)
    p = risk.records["P_unique"].to_numpy()
    row = {
        "method": OURS,
        "tau1": risk.tau1.value, "low1": risk.tau1.interval[0], "high1": risk.tau1.interval[1],
        "tau2": risk.tau2.value, "low2": risk.tau2.interval[0], "high2": risk.tau2.interval[1],
        "trusted": float(risk.trusted), **scores(drawn, p),
        "seconds": time.process_time() - started, **calibration(drawn, p),
    }  # fmt: skip
    return risk, row


def others(drawn: Drawn, risk: LatentClassRisk, seed: int) -> Iterator[Row]:
    """The other estimators of the package; their own intervals are of 95 %."""
    data = drawn.data
    f, n = data.combinations["f"].to_numpy(), data.n
    p = np.full(len(f), n / drawn.N)
    for model in ("known", "gamma", "extended"):
        started = time.process_time()
        found = superpopulation_risk(f, p, model=model, seed=seed)
        yield {
            "method": f"model {model}",
            "tau1": found.tau1.value, "low1": found.tau1.interval[0],
            "high1": found.tau1.interval[1], "tau2": found.tau2.value,
            "low2": found.tau2.interval[0], "high2": found.tau2.interval[1],
            "trusted": float(found.trusted), **scores(drawn, shared_out(drawn, found.tau1.value)),
            "seconds": time.process_time() - started,
        }  # fmt: skip
    started = time.process_time()
    table = compare_risks(data, drawn.N, latent_classes=risk, seed=seed)
    seconds = time.process_time() - started
    for name, line in table.methods.iterrows():
        if str(name).startswith("latent classes") or "population uniques" not in line["about"]:
            continue
        row = {
            "method": str(name), "tau1": line["expected"], "low1": line["low"],
            "high1": line["high"], "trusted": np.nan, "seconds": seconds,
        }  # fmt: skip
        column = str(name).removesuffix(", uniques")
        known = column in table.records
        values = table.records[column].to_numpy() if known else shared_out(drawn, row["tau1"])
        yield {**row, **scores(drawn, values)}


def designs(reduced: bool, sample: int) -> Iterator[tuple[str, float]]:
    if reduced:
        for small, large in zip_longest(SMALL, REDUCED):
            yield from (one for one in (small, large) if one is not None)
        if sample == 0:
            yield from LARGE
        return
    for keys in KEYS:
        for fraction in FRACTIONS:
            if keys != SURVEY or fraction <= MOST_OF_A_SURVEY:
                yield keys, fraction


def drawn_for(people: pd.DataFrame, key_set: str, fraction: float, sample: int) -> Drawn:
    """Sample number ``sample`` of a design."""
    keys = KEYS[key_set][1].split()
    if key_set == SURVEY:
        return draw_households(people, keys, fraction, 2012 + sample)
    stream = [sample, round(fraction * 1000), zlib.crc32(key_set.encode())]
    return draw(people, keys, fraction, stream)


def finished(results: Path) -> set[tuple[str, int]]:
    """Designs and samples that are done."""
    if not results.exists():
        return set()
    done = pd.read_csv(results, usecols=["design", "sample"])
    return set(zip(done["design"], done["sample"], strict=True))


def study(folder: Path, results: Path, options: argparse.Namespace) -> pd.DataFrame:
    """Go through the designs, sample by sample; what is in ``results`` is not done again."""
    files: dict[str, pd.DataFrame] = {}
    started = time.monotonic()
    for sample in range(options.samples):
        for key_set, fraction in designs(options.reduced, sample):
            if options.only not in ("", key_set):
                continue
            if time.monotonic() - started > 60.0 * options.minutes:
                return pd.read_csv(results)
            name, design = KEYS[key_set][0], f"{key_set} {fraction:.1%}"
            people = files.setdefault(name, population(folder, name))
            if (design, sample) in finished(results) or fraction * len(people) < SMALLEST:
                continue
            with results.with_name(f"{results.stem} {design} {sample}.lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # somebody else is at it
                drawn = drawn_for(people, key_set, fraction, sample)
                risk, row = ours(drawn, sample)
                rows = [row]
                if sample < options.others and (key_set, fraction) in COMPARED:
                    rows += others(drawn, risk, sample)
                frame = pd.DataFrame(rows).assign(
                    design=design, population=name, fraction=fraction, sample=sample,
                    true1=drawn.tau1, true2=drawn.tau2, n=drawn.data.n, uniques=len(drawn.F),
                )  # fmt: skip
                frame.reindex(columns=ALL_COLUMNS).to_csv(
                    results, mode="a", header=not results.exists(), index=False
                )
                sys.stderr.write(
                    f"{design} {sample}: {drawn.tau1} {risk!r} {row['seconds']:.0f} s\n"
                )
    return pd.read_csv(results)


COLUMNS = [
    "design",
    "sample",
    "population",
    "fraction",
    "n",
    "uniques",
    "method",
    "true1",
    "true2",
    "tau1",
    "low1",
    "high1",
    "tau2",
    "low2",
    "high2",
    "trusted",
    "log",
    "AUC",
    "seconds",
]
PARTS = ("number", "said", "alone")
ALL_COLUMNS = [
    *COLUMNS,
    *(f"{what} {k}" for what in PARTS for k in range(len(BINS) - 1)),
]


def _number(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)


def summed_up(frame: pd.DataFrame, by: list[str]) -> list[str]:
    """Lines of a Markdown table: a line for each group of designs and method."""
    lines = [
        f"| {' | '.join(by)} | fits | tau1 | ratio of tau1 (5 %, 95 %) | ratio of tau2 | held tau1 "
        "| held tau2 | width / tau1 | log score | AUC | trusted | seconds |",
        "|" + "---|" * len(by) + "--:|" * 11,
    ]
    for group, part in frame.groupby(by, sort=False):
        one, two = part["tau1"] / part["true1"], part["tau2"] / part["true2"]
        held = [
            ((part[f"low{k}"] <= part[f"true{k}"]) & (part[f"true{k}"] <= part[f"high{k}"])).where(
                part[f"low{k}"].notna()
            )
            for k in (1, 2)
        ]
        width = (part["high1"] - part["low1"]) / part["true1"]
        low, middle, high = one.quantile([0.05, 0.5, 0.95])
        cells = [
            *map(str, group), f"{len(part)}", f"{part['true1'].median():,.0f}",
            f"{middle:.2f} ({low:.2f}, {high:.2f})", _number(two.median(), ".2f"),
            *(_number(pd.to_numeric(h).mean(), ".2f") for h in held),
            _number(width.median(), ".2f"), _number(part["log"].mean(), ".3f"),
            _number(part["AUC"].mean(), ".3f"), _number(part["trusted"].mean(), ".2f"),
            f"{part['seconds'].median():.1f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def calibrated(mine: pd.DataFrame) -> list[str]:
    """Lines of a table: what was said to be alone in each bin of P(F = 1), and what was."""
    lines = ["| half | P(F = 1) | sample uniques | said | alone |", "|---|---|--:|--:|--:|"]
    for half, part in mine.groupby("half", sort=False):
        for k, (low, high) in enumerate(pairwise(BINS)):
            number, said, alone = (
                part[f"{what} {k}"].sum() for what in ("number", "said", "alone")
            )
            if number:
                lines.append(
                    f"| {half} | {low:g} to {high:g} | {number:,.0f} | {said / number:.3f} "
                    f"| {alone / number:.3f} |"
                )
    return lines


HEAD = """# Risk of sample uniques against known populations

Made by `{command}` on {date}; sample s of a design has seed [s, 1000 x fraction, crc32 of the key
set], its estimators seed s.{reduced} tau1: true number, median. Ratio: estimate over truth, median.
Held: how often the interval held the truth, the one of 90 % for latent classes and each method's
own, of 95 %, for the others. Log score: of P(F = 1), a mean over sample uniques. Seconds: of CPU;
those of the methods of size, of Lancaster and of log-linear models are of all of these together.

The model, its pull, its misfit factor and the limit of what is trusted were chosen on samples of
Fulton, Adult, eusilcP, "pairs" and "independent" ("tuned") other than these; the rest is as it
came. "pairs", "independent", "geography" and "demo" are invented, see `record_risk_populations.py`;
"D5 survey" is drawn as the example file of the package is, by households and with unequal weights.

Members of a household who are alike count once for how common they are since the samples of "D5
survey" were drawn: of six drawn anew (1, 2 and 5 %, two each) the ratios are 0.83 to 1.02, mean
0.95, where they were 0.78 to 0.96, mean 0.89. Where the members of households share three keys or
more, tau1 is still 0.6 to 0.8 of the truth (a check says so, and such estimates are not trusted).

Populations in clumps that the keys do not show are read too high: the households of eusilcP were
made by resampling, and a small sample tells such clumps from chance too late. Such estimates
should be among those that are not trusted.
"""
ONLY_REDUCED = (
    " **This is a reduced run**: {fits} samples of {designs} designs, the other estimators on "
    "{others} of them; the shares of intervals that held are of so few samples."
)


def found_out(mine: pd.DataFrame) -> list[str]:
    """What the samples show of latent classes, in lines of each half."""
    ratio = mine["tau1"] / mine["true1"]
    mine = mine.assign(
        ratio=ratio, held=(mine["low1"] <= mine["true1"]) & (mine["true1"] <= mine["high1"]),
        third=(ratio - 1.0).abs() > THIRD,
    )  # fmt: skip
    lines = []
    for half, part in mine.groupby("half", sort=False):
        trusted = part[part["trusted"] == 1.0]
        lines.append(
            f"- {half}: {part['held'].sum():.0f} of {len(part)} intervals held tau1, of the "
            f"{len(trusted)} trusted ones {trusted['held'].sum():.0f}; median ratio "
            f"{part['ratio'].median():.2f}; {part['third'].sum():.0f} estimates missed by a third, "
            f"of them trusted: {trusted['third'].sum():.0f}."
        )
    return lines


def report(frame: pd.DataFrame, options: argparse.Namespace, command: str) -> str:
    """The page as Markdown."""
    said = ""
    if options.reduced:
        said = ONLY_REDUCED.format(
            fits=int((frame["method"] == OURS).sum()),
            designs=frame["design"].nunique(),
            others=int((frame["method"] == "model known").sum()),
        )
    frame = frame.assign(
        half=np.where(frame["population"].isin(TUNED), "tuned", "as it came"),
        fraction=frame["fraction"].map("{:.1%}".format),
    )
    mine = frame[frame["method"] == OURS]
    # samples on which the others were tried too
    both = frame.groupby(["design", "sample"])["method"].transform("nunique") > 1
    compared = frame[both]
    date = time.strftime("%Y-%m-%d")
    parts = [
        HEAD.format(command=command, date=date, reduced=said),
        *found_out(mine),
        "\n## Latent classes, all designs of a half\n",
        *summed_up(mine, ["half"]),
        "\n## Latent classes, small samples (100 to 320 records)\n",
        *summed_up(mine[mine["n"] <= MOST_OF_A_SMALL], ["half"]),
        "\n## Latent classes, by population\n",
        *summed_up(mine, ["half", "population"]),
        "\n## Calibration of P(F = 1)\n",
        *calibrated(mine),
        "\n## Latent classes, by design\n",
        *summed_up(mine, ["half", "population", "design"]),
        "\n## All methods, on the same samples\n",
        *summed_up(compared, ["half", "method"]),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=2, help="of each design")
    parser.add_argument("--others", type=int, default=1, help="samples with all other estimators")
    parser.add_argument("--reduced", action="store_true", help="thirty designs")
    parser.add_argument("--only", default="", help="one key set alone")
    parser.add_argument("--results", type=Path, default=Path("record_risk_results.csv"))
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many")
    chosen = parser.parse_args()
    flags = " --reduced" * chosen.reduced + f" --samples {chosen.samples} --others {chosen.others}"
    page = Path(__file__).with_suffix(".md")
    page.write_text(
        report(
            study(chosen.folder, chosen.results, chosen), chosen,
            f"python tests/validation/record_risk.py FOLDER{flags}",
        ),
        encoding="utf-8",
    )  # fmt: skip
