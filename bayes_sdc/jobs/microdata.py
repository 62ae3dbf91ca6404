"""A run on microdata from file to folder: reading, measuring, and what is left behind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.compiled import in_cache
from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import refuse_problems
from bayes_sdc.io.form import UNTOLD, FileForm, as_said
from bayes_sdc.jobs.summary import notes_to_act_on
from bayes_sdc.jobs.treatment import (
    TreatedRun,
    load_to_treat,
    recoded_file,
    treat_file,
    what_recoding_did,
)
from bayes_sdc.jobs.writing import (
    WrittenRun,
    csv_writer,
    describe_call,
    text_writer,
    write_run,
)
from bayes_sdc.microdata.comparison import RiskComparison
from bayes_sdc.microdata.file.columns import read_weights
from bayes_sdc.microdata.file.formats import load_columns
from bayes_sdc.microdata.file.keys import VIOLATIONS, Microdata, read_microdata
from bayes_sdc.microdata.individual.record_risk import compare_key_sets
from bayes_sdc.microdata.lancaster.forecast import lancaster_forecast
from bayes_sdc.microdata.latent_classes.gibbs import run_sweeps
from bayes_sdc.microdata.latent_classes.prediction import predict
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure import Measurement, measure_microdata
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.microdata.treatment.setting import Intruder
from bayes_sdc.microdata.treatment.tradeoff import compare_treatments
from bayes_sdc.policy import Policy
from bayes_sdc.progress import say
from bayes_sdc.report.microdata.render import render_microdata
from bayes_sdc.report.page import all_or_nothing
from bayes_sdc.runs import RunFolder, check_out, open_run

SAID_SECONDS = 10  # a longer search is said before it begins
COMPILING = 15.0  # seconds of one core, on an empty cache
PACKAGES = ("bayes-sdc", "pymc", "nutpie", "arviz", "numpy", "pandas")


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
    announce: Callable[[str], None],
    treating: Mapping[str, Any] | None = None,
    comparing: Mapping[str, Any] | None = None,
) -> tuple[WrittenRun, list[str]]:
    """Read a file, measure its risk, treat it where that is asked for, and write the run folder.

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
        Folder for ``release``, or ``held``, and ``confidential``.
    command : str
        What was typed, for the record.
    announce : callable
        Told, in lines of text, what was read.
    treating : mapping, optional
        What :func:`bayes_sdc.jobs.treatment.treat_file` is asked for, and ``given``, the variables
        that inform about treated values; by default the file is only measured.
    comparing : mapping, optional
        What the intruder knows, to compare all treatments; by default they are not compared.

    Returns
    -------
    WrittenRun
        The files written, and whether the release is held.
    list of str
        Lines for the console; confidential.

    Raises
    ------
    InputError
        If something cannot be used or written. What is refused before the measurement has ended
        leaves no folder behind.
    """
    if treating is not None and reading.get("bands"):
        raise InputError(
            "--bands and --treat cannot be combined: what leaves would hold the values and not "
            "their classes; put the classes into the file first"
        )
    check_out(out)
    every = list(
        dict.fromkeys(
            [*reading["keys"], *_given(treating), *(k for s in key_sets.values() for k in s)]
        )
    )
    whole = read_microdata(file, **{**reading, "keys": every})
    done_before: list[str] = []
    if treating is not None:
        read, whole = whole, recoded_file(whole, treating["recode"])
        before, after = (one.select(reading["keys"]) for one in (read, whole))
        done_before = what_recoding_did(before, after, treating["recode"])
    data = whole if every == list(reading["keys"]) else whole.select(reading["keys"])
    announce("\n".join([_what_was_read(data), *notes_to_act_on(data.notes)]))
    counts = None if truth is None else _read_truth(file, truth, reading.get("form"))
    model = whole.select([*reading["keys"], *_given(treating)])
    stored = None if treating is None else load_to_treat(file, model, treating, reading.get("form"))
    if len(data.keys) > 1 and data.sample_uniques:
        expected = lancaster_forecast(data, shrinkage="cv")
        if expected.seconds > SAID_SECONDS:
            say(f"Lancaster's model: {expected}")
    if not in_cache(run_sweeps, predict):
        say(f"this run also compiles, about {COMPILING:.0f} s, once on this machine")
    result = measure_microdata(data, policy=policy, population_counts=counts, **arguments)
    treated = None
    if treating is not None and stored is not None:
        known = {"keys": reading["keys"], **treating["intruder"]}
        treated = treat_file(
            model, stored, asked={**treating, "intruder": known}, policy=policy,
            population_size=arguments.get("population_size") or result.population_size,
            seed=arguments["seed"], notes=done_before,
        )  # fmt: skip
    sets = None
    if key_sets:
        named = {"keys of this run": reading["keys"], **key_sets}
        fraction = result.risk.sampling_fraction
        sets = compare_key_sets(whole, named, sampling_fraction=fraction)
    tried = None
    if comparing is not None:
        tried = compare_treatments(
            model,
            intruder=Intruder(**{"keys": reading["keys"], **comparing}),
            population_size=arguments.get("population_size") or result.population_size,
            seed=arguments["seed"],
        )
    said = _arguments_of_run(reading, arguments, truth, key_sets, policy, treating, comparing)
    call = describe_call(command, seed=arguments["seed"], arguments=said, packages=PACKAGES)
    call["input"] = {"bytes": file.stat().st_size}
    written = write_microdata(
        open_run(out), result, call, key_sets=sets, treated=treated, treatments=tried
    )
    lines = result.summary().splitlines() if treated is None else treated.summary(result)
    return written, lines


def _arguments_of_run(
    reading: Mapping[str, Any],
    arguments: Mapping[str, Any],
    truth: str | None,
    key_sets: Mapping[str, Sequence[str]],
    policy: Policy | None,
    treating: Mapping[str, Any] | None,
    comparing: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Arguments of a run for its record."""
    return {
        **as_said(reading),
        **arguments,
        "truth": truth,
        "key_sets": {name: list(keys) for name, keys in key_sets.items()},
        "policy": None if policy is None else str(policy),
        **({} if treating is None else {"treatment": _plain(treating)}),
        **({} if comparing is None else {"treatments_compared": _plain(comparing)}),
    }


def _given(treating: Mapping[str, Any] | None) -> list[str]:
    return [] if treating is None else list(treating["given"])


def _plain(value: Any) -> Any:
    """Return what JSON can hold of an argument."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return str(value) if isinstance(value, Path) else value


def _read_truth(file: Path, column: str, form: FileForm | None) -> Any:
    loaded = load_columns(file, [column], form)
    counts, problems = read_weights(loaded.frame[column], column, form or UNTOLD)
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
    treated: TreatedRun | None = None,
    treatments: pd.DataFrame | None = None,
) -> WrittenRun:
    """Write the folder of a run; files of an earlier run are deleted first.

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
    treated : TreatedRun, optional
        The treated file. Then the limits are judged by what is left of the risk.
    treatments : DataFrame, optional
        From :func:`bayes_sdc.compare_treatments`.

    Returns
    -------
    WrittenRun
        The files written. What may leave, the external report and the treated file, is held if a
        check failed.

    Raises
    ------
    InputError
        If a file cannot be written; no file is left half-written.
    """
    done = None if treated is None else (treated.treatment, treated.utility)
    if treated is not None:
        result = replace(result, checks=treated.checks_after(result.checks))
    with all_or_nothing():
        internal = render_microdata(
            result, audience="internal", call=call, key_sets=key_sets, treatment=done,
            treatments=treatments,
        )  # fmt: skip
        external = render_microdata(result, audience="external", call=call, treatment=done)
    tables = {"risk_by_record": _records(result), "risk_by_combination": _combinations(result)}
    tables["combinations_by_size"] = result.data.size_indices.reset_index()
    if result.latent_classes is not None:
        tables["risk_of_uniques"] = _uniques(result.latent_classes)
    if result.households is not None:
        tables["risk_by_household"] = result.households
    if key_sets is not None:
        tables["key_sets"] = key_sets.reset_index()
    if treatments is not None:
        tables["treatments"] = treatments
    if result.comparison is not None:
        tables |= _comparison(result.comparison)
    confidential = {f"{name}.csv": csv_writer(frame, index=False) for name, frame in tables.items()}
    record, public = _record(result, call, key_sets), {"report.html": external.encode()}
    if treated is not None:
        confidential |= treated.confidential()
        public[treated.name] = treated.content
        record["treatment"] = treated.record()
    return write_run(
        run,
        confidential={**confidential, "report.html": text_writer(internal)},
        public=public,
        record=record,
        checks=result.checks,
    )


def _uniques(found: LatentClassRisk) -> pd.DataFrame:
    """Risk of every sample unique by latent classes, records counted from 1."""
    frame = found.records.reset_index()
    return frame.assign(record=frame["record"] + 1)


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
        "notes": [*result.notes, *result.model_notes],
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
        "latent_classes": None
        if result.latent_classes is None
        else {
            **{
                name: getattr(result.latent_classes, name)._asdict()
                for name in ("tau1", "tau2", "population_uniques", "kappa", "log_R")
            },
            "trusted": result.latent_classes.trusted,
            "gain": result.latent_classes.gain,
            "diagnostics": result.latent_classes.diagnostics.to_dict("index"),
            "notes": list(result.latent_classes.notes),
        },
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


def _what_was_read(data: Microdata) -> str:
    """What was read, in one line."""
    low = data.k_violations(3)
    homes = "" if data.household is None else f" in {len(np.unique(data.household)):,} households"
    return (
        f"{data.source}: {data.n:,} records{homes}, {len(data.keys)} keys, "
        f"{len(data.combinations):,} combinations, {data.sample_uniques:,} sample uniques, "
        f"{low.records:,} records with f < 3"
    )
