"""A run on microdata from file to folder: reading, measuring, and what is left behind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.io.columns import refuse_problems
from bayes_sdc.microdata.comparison import RiskComparison
from bayes_sdc.microdata.file.columns import read_weights
from bayes_sdc.microdata.file.formats import load_columns
from bayes_sdc.microdata.file.keys import VIOLATIONS, read_microdata
from bayes_sdc.microdata.individual.record_risk import compare_key_sets
from bayes_sdc.microdata.lancaster.forecast import lancaster_forecast
from bayes_sdc.microdata.measure import Measurement, measure_microdata
from bayes_sdc.microdata.sampling import Estimate
from bayes_sdc.policy import Policy
from bayes_sdc.progress import say
from bayes_sdc.report.microdata import model_notes, render_microdata
from bayes_sdc.report.page import all_or_nothing
from bayes_sdc.runs import (
    RunFolder,
    check_out,
    open_run,
    results_of_earlier_run,
    write_bytes,
    write_json,
    write_text,
)

SAID_SECONDS = 10  # a longer walk is said before it begins
SOFTWARE = ("bayes-sdc", "pymc", "nutpie", "arviz", "numpy", "pandas")


class Written(NamedTuple):
    """What a run did: the measurement, its files, and lines for the console."""

    result: Measurement
    release: Path
    confidential: Path
    lines: tuple[str, ...]


def run_microdata(
    file: Path,
    *,
    reading: Mapping[str, Any],
    policy: Policy | None,
    arguments: Mapping[str, Any],
    truth: str | None,
    key_sets: Mapping[str, Sequence[str]],
    out: Path,
    command: str,
) -> Written:
    """Read a file, measure its risk and write the run folder.

    Parameters
    ----------
    file : Path
        The microdata.
    reading : mapping
        Arguments of :func:`bayes_sdc.read_microdata`.
    policy : Policy or None
        Limits.
    arguments : mapping
        Further arguments of :func:`bayes_sdc.measure_microdata`, ``seed`` included.
    truth : str or None
        Column that tells how many members of the population share each record's key values.
    key_sets : mapping from name to key variables
        Sets to compare; empty for none.
    out : Path
        Folder for ``release`` and ``confidential``.
    command : str
        What was typed, for the record.

    Returns
    -------
    Written
        What was done.

    Raises
    ------
    InputError
        If something cannot be used or written. What is refused before the measurement has ended
        leaves no folder behind.
    """
    check_out(out)
    every = list(
        dict.fromkeys([*reading["keys"], *(k for keys in key_sets.values() for k in keys)])
    )
    whole = read_microdata(file, **{**reading, "keys": every})
    data = whole if every == list(reading["keys"]) else whole.select(reading["keys"])
    counts = None if truth is None else _read_truth(file, truth)
    if len(data.keys) > 1 and data.sample_uniques:
        expected = lancaster_forecast(data, shrinkage="cv")
        if expected.seconds > SAID_SECONDS:
            say(f"Lancaster's model: {expected}")
    result = measure_microdata(data, policy=policy, population_counts=counts, **arguments)
    sets = None
    if key_sets:
        named = {"keys of this run": reading["keys"], **key_sets}
        fraction = result.risk.sampling_fraction
        sets = compare_key_sets(whole, named, sampling_fraction=fraction)
    call = {
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": arguments["seed"],
        "input": {"bytes": file.stat().st_size},
        "arguments": {
            **reading,
            **arguments,
            "truth": truth,
            "key_sets": {name: list(keys) for name, keys in key_sets.items()},
            "policy": None if policy is None else str(policy),
        },
        "versions": {name: version(name) for name in SOFTWARE},
    }
    run = open_run(out)
    report = write_microdata(run, result, call, key_sets=sets)
    return Written(result, report, run.confidential, tuple(summary(result)))


def _read_truth(file: Path, column: str) -> Any:
    loaded = load_columns(file, [column])
    counts, problems = read_weights(loaded.frame[column], column)
    remedy = (
        "the column of --truth tells how many people of the population have the record's key "
        "values, itself included: 1 or more"
    )
    refuse_problems(
        loaded.source,
        [
            replace(wrong, what=wrong.what.replace("weight", "population frequency"), remedy=remedy)
            for wrong in problems
        ],
    )
    return counts


def write_microdata(
    run: RunFolder,
    result: Measurement,
    call: Mapping[str, Any],
    *,
    key_sets: pd.DataFrame | None = None,
) -> Path:
    """Write release/ and confidential/ of a run; files of an earlier run are deleted first.

    Parameters
    ----------
    run : RunFolder
        Where to.
    result : Measurement
        What was measured.
    call : mapping
        Command, arguments, seed, date, versions and size of the file, for the record.
    key_sets : DataFrame, optional
        From :func:`bayes_sdc.compare_key_sets`.

    Returns
    -------
    Path
        The external report, the only file that may leave.

    Raises
    ------
    InputError
        If a file cannot be written; no file is left half-written.
    """
    with all_or_nothing():
        internal = render_microdata(result, audience="internal", call=call, key_sets=key_sets)
        external = render_microdata(result, audience="external", call=call)
    tables = {"risk_by_record": _records(result), "risk_by_combination": _combinations(result)}
    if result.households is not None:
        tables["risk_by_household"] = result.households
    if key_sets is not None:
        tables["key_sets"] = key_sets.reset_index()
    if result.comparison is not None:
        tables |= _comparison(result.comparison)
    names = [f"{name}.csv" for name in tables] + ["report.html", "run.json"]
    report = run.release / "report.html"
    written = [*(run.confidential / name for name in names), report]
    ours = [str(path.relative_to(run.root)) for path in written]
    earlier = results_of_earlier_run(run)
    # first of all, so that after a crash the folder still knows whose files these are
    old = [str(path.relative_to(run.root)) for path in earlier]
    write_json(run.confidential / "run.json", {"written": [*ours, *old]}, private=True)
    for path in earlier:
        if path.name != "run.json":
            path.unlink()
    for name, frame in tables.items():
        content = frame.to_csv(index=False, lineterminator="\n").encode()
        write_bytes(run.confidential / f"{name}.csv", content, private=True)
    write_text(run.confidential / "report.html", internal, private=True)
    record = {**_record(result, call, key_sets), "written": ours}
    write_json(run.confidential / "run.json", record, private=True)
    write_text(report, external)
    return report


def _comparison(found: RiskComparison) -> dict[str, pd.DataFrame]:
    """Tables of the comparison of all measures."""
    records = found.records.rename_axis("record").reset_index()
    records["record"] += 1  # as in risk_by_record.csv
    disagreements = found.disagreements.rename_axis("record").reset_index()
    disagreements.columns = pd.Index(
        [": ".join(part for part in name if part) for name in disagreements.columns]
    )
    disagreements["record"] += 1
    return {
        "comparison_of_methods": found.methods.reset_index(),
        "comparison_of_records": records,
        "comparison_of_rankings": found.agreement.rename_axis("method").reset_index(),
        "disagreements": disagreements,
    }


def _by_model(result: Measurement) -> dict[str, np.ndarray]:
    """Risk and intervals of each combination by every model, as columns.

    ``risk`` is E[1 / F], ``low`` and ``high`` its interval over the parameters; ``inverse_F`` is
    the interval of 1 / F itself.
    """
    columns: dict[str, np.ndarray] = {}
    for name, model in result.models.items():
        columns[f"risk_{name}"] = model.risk
        columns[f"risk_{name}_low"], columns[f"risk_{name}_high"] = model.risk_interval.T
        columns[f"inverse_F_{name}_low"], columns[f"inverse_F_{name}_high"] = (
            model.inverse_interval.T
        )
    return columns


def _records(result: Measurement) -> pd.DataFrame:
    place = result.data.combination
    columns = {name: values[place] for name, values in _by_model(result).items()}
    return result.risk.records().assign(**columns)


def _combinations(result: Measurement) -> pd.DataFrame:
    frame = result.risk.combinations
    keys = frame.index.to_frame(index=False)
    numbers = frame.reset_index(drop=True).assign(**_by_model(result))
    # a key may be called f; its column then says that it is a key
    keys.columns = pd.Index(
        [
            f"key {name}" if name in numbers.columns or name == "combination" else name
            for name in keys
        ]
    )
    place = pd.Series(np.arange(1, len(frame) + 1), name="combination")
    return pd.concat([place, keys, numbers], axis=1)


def _record(
    result: Measurement, call: Mapping[str, Any], key_sets: pd.DataFrame | None
) -> dict[str, Any]:
    """What repeats the run, and its main numbers."""
    data, risk = result.data, result.risk

    def numbers(estimate: Estimate) -> dict[str, Any]:
        return estimate._asdict()

    return {
        **call,
        "input": {
            **call.get("input", {}),
            "source": data.source,
            "sha256": data.sha256,
            "records": data.n,
            "population_size": result.population_size,
            "combinations": len(data.combinations),
            "keys": list(data.keys),
            "missing": data.missing,
            "notes": list(data.notes),
        },
        "notes": [*result.notes, *model_notes(result)],
        "key_sets": None if key_sets is None else key_sets.to_dict("index"),
        "violations": {f"f < {k}": data.k_violations(k)._asdict() for k in VIOLATIONS},
        "risk": {
            "expected": risk.expected,
            "global_risk": risk.global_risk,
            "tau1": risk.tau1,
            "tau2": risk.tau2,
            "expected_by_household": risk.expected_by_household,
            "expected_households": risk.expected_households,
        },
        "households": None if result.households is None else len(result.households),
        "models": {
            name: {
                **{q: numbers(getattr(model, q)) for q in ("expected", "tau1", "tau2")},
                "expected_households": result.expected_households.get(name),
                "draws": model.draws,
                "notes": list(model.notes),
            }
            for name, model in result.models.items()
        },
        "unstructured": None
        if result.unstructured is None
        else {
            "cells": result.unstructured.cells,
            "uniform": result.unstructured.uniform,
            "uniform_deviation": result.unstructured.uniform_deviation,
            "learned": numbers(result.unstructured.learned.uniques),
            "concentration": numbers(result.unstructured.learned.concentration),
        },
        "truth": None if result.truth is None else result.truth._asdict(),
        "checks": [vars(check) for check in result.checks],
        "seconds": result.seconds,
    }


def summary(result: Measurement) -> list[str]:
    """Return the last lines of a run, for the console; confidential."""
    marks = {"pass": "pass", "look": "LOOK", "fail": "FAIL"}
    n = result.data.n
    lines = [f"{marks[check.verdict]}  {check.name}: {check.reason}" for check in result.checks]
    for name, model in result.models.items():
        value, (low, high), _ = model.expected
        lines.append(
            f"expected re-identifications, model {name}: {value:,.1f} ({low:,.1f} to {high:,.1f}), "
            f"{value / n:.2%} of the records; tau1 {model.tau1.value:,.1f}"
        )
    if result.unstructured is not None:
        learned = result.unstructured.learned.uniques
        lines.append(
            f"population uniques among sample uniques, without structure of "
            f"{result.unstructured.cells:,} cells: {result.unstructured.uniform:,.1f} with c = 1, "
            f"{learned.value:,.1f} ({learned.interval[0]:,.0f} to {learned.interval[1]:,.0f}) with "
            "c learned"
        )
    if result.households is not None:
        by_model = (f"{name} {value:,.1f}" for name, value in result.expected_households.items())
        lines.append(
            f"expected re-identified households: {result.risk.expected_households:,.1f} of "
            f"{len(result.households):,} by the closed form; by model {', '.join(by_model)}"
        )
    if result.truth is not None:
        lines.append(
            f"truth: {result.truth.expected:,.1f} re-identifications, tau1 {result.truth.tau1:,}"
        )
    if result.comparison is not None:
        lines += str(result.comparison).splitlines()
    lines += [f"note: {note}" for note in (*result.notes, *model_notes(result))]
    lines.append("time: " + ", ".join(f"{stage} {s:.1f} s" for stage, s in result.seconds.items()))
    return lines
