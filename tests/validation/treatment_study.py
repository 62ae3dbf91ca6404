"""Treatments of real files: what is left of the risk, and what is paid for it.

Usage: python tests/validation/treatment_study.py FOLDER [--records N] [--write]

FOLDER holds the public files named below; a file that is not there is left out. Each is treated by
every method at three strengths, with the seed below. The question: does synthesis give more utility
at the same risk than suppression?
"""

import argparse
import time
from pathlib import Path

import pandas as pd

from bayes_sdc import Intruder, compare_treatments, example_persons_path, read_microdata

SEED = 26
FILES = {
    "bundled survey": {
        "file": None, "keys": ["region", "sex", "age", "marital_status", "birth_place"],
        "population": 100_000,
    },
    "Adult": {
        "file": "adult_uci_train_raw_noheader.csv.gz", "keys": [0, 3, 5, 8, 9, 13],
        "population": 10 * 32_561,
    },
    "Massachusetts": {
        "file": "us_acs_pums2019_massachusetts_nist_excerpt.csv.gz",
        "keys": ["PUMA", "AGEP", "SEX", "MSP", "RAC1P"], "population": 690_000,
    },
    "eusilc": {
        "file": "austria_eusilcS_sample.csv.gz",
        "keys": ["db040", "age", "rb090", "pb220a", "pl030"], "population": 58_654,
    },
}  # fmt: skip
COLUMNS = {
    "strength": "{:g}", "expected": "{:,.1f}", "highest": "{:.2f}", "strongest": "{:,.1f}",
    "false_rate": "{:.0%}", "treated": "{:.0%}", "two_way": "{:.1%}", "three_way": "{:.1%}",
    "pmse_ratio": "{:.1f}", "rare_kept": "{:.0%}",
}  # fmt: skip


def read(name: str, folder: Path, records: int | None) -> pd.DataFrame | None:
    """Keys of one file, as text."""
    of = FILES[name]
    path = example_persons_path() if of["file"] is None else folder / str(of["file"])
    if not path.exists():
        return None
    header = None if name == "Adult" else 0
    frame = pd.read_csv(path, dtype=str, header=header, skipinitialspace=True)
    frame = frame[of["keys"]].replace({"?": None})
    frame.columns = [f"column {key}" if isinstance(key, int) else key for key in of["keys"]]
    return frame if records is None else frame.sample(min(records, len(frame)), random_state=1)


def table(name: str, frame: pd.DataFrame, population: int) -> str:
    """Rows of Markdown for one file."""
    begun = time.perf_counter()
    data = read_microdata(frame.reset_index(drop=True), keys=list(frame.columns))
    found = compare_treatments(data, population_size=population, seed=SEED, intruder=Intruder())
    lines = [
        f"## {name}: {data.n:,} records, N {population:,}, {len(data.keys)} keys, "
        f"{time.perf_counter() - begun:.0f} s", "",
        "| treatment | " + " | ".join(name.replace("_", " ") for name in COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]  # fmt: skip
    for _, row in found.iterrows():
        cells = [
            "" if pd.isna(row[column]) else form.format(row[column])
            for column, form in COLUMNS.items()
        ]
        lines.append(f"| {row['method']} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int)
    parser.add_argument("--files", nargs="*", default=list(FILES))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    parts = []
    for name in given.files:
        frame = read(name, given.folder, given.records)
        if frame is None:
            continue
        scale = 1.0 if given.records is None else len(frame) / len(read(name, given.folder, None))
        parts.append(table(name, frame, round(FILES[name]["population"] * scale)))
        print(parts[-1], flush=True)
    if given.write:
        command = f"python tests/validation/treatment_study.py FOLDER --records {given.records}"
        head = [
            "# Treatments of four files",
            "",
            f"Seed {SEED}; `{command}`. Strength: target risk of a record (synthesis), k "
            "(suppression), share of changed values (PRAM). Expected: right matches when every "
            "record is a target whom the intruder does not know to be in the file; strongest: the "
            "same where the treated records are known. Two way, three way: mean total variation of "
            "the tables of so many keys, a suppressed value being a level.",
            "",
        ]
        path = Path(__file__).with_suffix(".md")
        path.write_text("\n".join([*head, *parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
