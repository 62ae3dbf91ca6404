"""``bayes-sdc microdata``: which records of a file of persons are at risk."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayes_sdc.commands.options import INPUT, MODEL, RISK, Out, PolicyFile, columns, option, pairs
from bayes_sdc.commands.terminal import end_of_run, interruptible, say, the_command


@interruptible("the same command starts anew")
def microdata(
    file: Annotated[
        Path, typer.Argument(help="CSV (also .gz), Parquet, Stata, SPSS or SAS; a row a person.")
    ],
    *,
    keys: Annotated[str, option("Key variables, comma between.", INPUT)],
    weight: Annotated[str | None, option("Column of sampling weights.", INPUT)] = None,
    household: Annotated[str | None, option("Column of the household's id.", INPUT)] = None,
    missing: Annotated[
        str,
        option(
            "A missing value: wildcard, own or conservative.",
            INPUT,
            choices=["wildcard", "own", "conservative"],
        ),
    ] = "wildcard",
    missing_code: Annotated[
        list[str] | None,
        option("COLUMN=CODE: code that means missing, of a key or household; repeatable.", INPUT),
    ] = None,
    population_size: Annotated[int | None, option("People in the population.", MODEL)] = None,
    sampling_fraction: Annotated[
        float | None, option("Records over population, for a file without weights.", MODEL)
    ] = None,
    cells: Annotated[
        int | None, option("Combinations that can occur, without structural zeros.", MODEL)
    ] = None,
    draws: Annotated[int, option("Draws behind the intervals.", MODEL)] = 1000,
    seed: Annotated[int, option("Repeats a run.", MODEL)] = 1,
    out: Out,
    policy: PolicyFile = None,
    key_set: Annotated[
        list[str] | None,
        option("NAME=KEY,KEY: another set to compare; may be repeated.", RISK),
    ] = None,
    truth: Annotated[
        str | None, option("Column of the known population frequency, for studies.", RISK)
    ] = None,
) -> None:
    """Measure the re-identification risk of the records of a file of persons."""
    codes: dict[str, list[str]] = {}
    for name, code in pairs(missing_code, "--missing-code"):
        codes.setdefault(name, []).append(code)
    sets = {name: columns(listed) for name, listed in pairs(key_set, "--key-set")}
    run_and_tell(
        file,
        reading={
            "keys": columns(keys),
            "weight": weight,
            "household": household,
            "missing": missing,
            "missing_codes": codes or None,
        },
        policy=policy,
        arguments={
            "population_size": population_size,
            "sampling_fraction": sampling_fraction,
            "cells": cells,
            "draws": draws,
            "seed": seed,
        },
        truth=truth,
        key_sets=sets,
        out=out,
    )


def run_and_tell(
    file: Path,
    *,
    reading: dict[str, Any],
    policy: Path | None,
    arguments: dict[str, Any],
    truth: str | None,
    key_sets: dict[str, list[str]],
    out: Path,
) -> None:
    """Run the job and print its summary."""
    # imported here: PyMC takes seconds, and --help should not
    from bayes_sdc.jobs.microdata import run_microdata
    from bayes_sdc.policy import read_policy

    written, lines = run_microdata(
        file,
        reading=reading,
        policy=None if policy is None else read_policy(policy),
        arguments=arguments,
        truth=truth,
        key_sets=key_sets,
        out=out,
        command=the_command(),
        announce=say,
    )
    end_of_run(written, lines)
