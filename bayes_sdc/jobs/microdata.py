"""A run on microdata from file to folder: reading, measuring, and what is left behind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayes_sdc.compiled import in_cache
from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import refuse_problems
from bayes_sdc.io.form import UNTOLD, FileForm, as_said
from bayes_sdc.jobs.microdata_folder import write_microdata
from bayes_sdc.jobs.recoding import recoded_file, what_recoding_did
from bayes_sdc.jobs.summary import notes_to_act_on
from bayes_sdc.jobs.treatment import load_to_treat, treat_file
from bayes_sdc.jobs.writing import WrittenRun, describe_call
from bayes_sdc.microdata.file.columns import read_weights
from bayes_sdc.microdata.file.formats import load_columns
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.record_risk import compare_key_sets
from bayes_sdc.microdata.lancaster.forecast import lancaster_forecast
from bayes_sdc.microdata.latent_classes.gibbs import run_sweeps
from bayes_sdc.microdata.latent_classes.prediction import predict
from bayes_sdc.microdata.measure.measure import measure_microdata
from bayes_sdc.microdata.treatment.setting import Intruder
from bayes_sdc.microdata.treatment.tradeoff import compare_treatments
from bayes_sdc.policy import Policy
from bayes_sdc.progress import say
from bayes_sdc.runs import check_out, open_run

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
    read = None
    if treating is not None and treating["recode"]:
        read, whole = whole, recoded_file(whole, treating["recode"])
        before, after = (one.select(reading["keys"]) for one in (read, whole))
        alone = treating["method"] == "recoding"
        done_before = what_recoding_did(before, after, treating["recode"], alone=alone)
    data = whole if every == list(reading["keys"]) else whole.select(reading["keys"])
    announce("\n".join([_what_was_read(data), *notes_to_act_on(data.notes)]))
    counts = None if truth is None else _read_truth(file, truth, reading.get("form"))
    model = whole.select([*reading["keys"], *_given(treating)])
    who = None if comparing is None else Intruder(**{"keys": reading["keys"], **comparing})
    if who is not None:
        model.select(who.keys or model.keys)  # a wrong name is refused before the measurement
    stored = None if treating is None else load_to_treat(file, model, treating, reading.get("form"))
    _say_what_takes_long(data)
    result = measure_microdata(data, policy=policy, population_counts=counts, **arguments)
    treated = None
    if treating is not None and stored is not None:
        known = {"keys": reading["keys"], **treating["intruder"]}
        treated = treat_file(
            model, stored, asked={**treating, "intruder": known}, policy=policy,
            population_size=arguments.get("population_size") or result.population_size,
            seed=arguments["seed"], notes=done_before, as_it_came=read,
        )  # fmt: skip
    sets = None
    if key_sets:
        named = {"keys of this run": reading["keys"], **key_sets}
        fraction = result.risk.sampling_fraction
        sets = compare_key_sets(whole, named, sampling_fraction=fraction)
    tried = None
    if who is not None:
        tried = compare_treatments(
            model,
            intruder=who,
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
    lines += [] if tried is None else [f"note: {one}" for one in tried.attrs["left_out"]]
    return written, lines


def _say_what_takes_long(data: Microdata) -> None:
    if len(data.keys) > 1 and data.sample_uniques:
        expected = lancaster_forecast(data, shrinkage="cv")
        if expected.seconds > SAID_SECONDS:
            say(f"Lancaster's model: {expected}")
    if not in_cache(run_sweeps, predict):
        say(f"this run also compiles, about {COMPILING:.0f} s, once on this machine")


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
    if not problems and (broken := np.flatnonzero(np.asarray(counts) % 1)).size:
        raise InputError(
            f"{loaded.source}: row {int(broken[0]) + 1}, column {column!r}: {counts[broken[0]]} is "
            "no number of people; the column of --truth holds whole numbers"
        )
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


def _what_was_read(data: Microdata) -> str:
    """What was read, in one line."""
    low = data.k_violations(3)
    homes = "" if data.household is None else f" in {len(np.unique(data.household)):,} households"
    return (
        f"{data.source}: {data.n:,} records{homes}, {len(data.keys)} keys, "
        f"{len(data.combinations):,} combinations, {data.sample_uniques:,} sample uniques, "
        f"{low.records:,} records with f < 3"
    )
