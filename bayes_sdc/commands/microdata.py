"""``bayes-sdc microdata``: which records of a file of persons are at risk, and their treatment."""

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from bayes_sdc.commands.options import (
    INPUT,
    MODEL,
    RELEASE,
    RISK,
    TREATMENTS,
    Decimal,
    HeaderLine,
    Layout,
    Out,
    PolicyFile,
    Query,
    SkipRows,
    Thousands,
    columns,
    form_of,
    named_once,
    option,
    pairs,
    some_columns,
)
from bayes_sdc.commands.terminal import (
    end_of_run,
    interruptible,
    refuse_small_memory,
    say,
    the_command,
)
from bayes_sdc.errors import InputError

WITHOUT_TREAT = (
    "the options on targets, keys to treat, suppression, PRAM, recoding, kept columns, data sets, "
    "regressions and sensitive variables belong to --treat; add --treat with one of "
    f"{', '.join(TREATMENTS)}"
)

WITHOUT_INTRUDER = (
    "--known-keys, --knowledge and --knows say what an intruder knows of a treated file; add "
    "--treat or --compare-treatments"
)


@interruptible("the same command starts from the beginning")
def microdata(
    file: Annotated[
        Path,
        typer.Argument(help="CSV (also .gz), Parquet, Stata, SPSS or SAS; one row per person."),
    ],
    *,
    keys: Annotated[str, option("Key variables, separated by commas.", INPUT)],
    weight: Annotated[str | None, option("Column of sampling weights.", INPUT)] = None,
    household: Annotated[
        str | None, option("Columns that identify a household, separated by commas.", INPUT)
    ] = None,
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
    bands: Annotated[
        list[str] | None,
        option(
            "KEY=5, KEY=q10 or KEY=year: classes of a key that is nearly unique; repeatable.", INPUT
        ),
    ] = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    header_line: HeaderLine = None,
    skip_rows: SkipRows = 0,
    layout: Layout = None,
    query: Query = None,
    population_size: Annotated[int | None, option("People in the population.", MODEL)] = None,
    sampling_fraction: Annotated[
        float | None, option("Records over population, for a file without weights.", MODEL)
    ] = None,
    cells: Annotated[
        int | None, option("Combinations that can occur, without structural zeros.", MODEL)
    ] = None,
    draws: Annotated[int, option("Draws behind the intervals.", MODEL)] = 1000,
    seed: Annotated[
        int | None,
        option("Repeats a run. By default 1; a fresh, confidential one with --treat.", MODEL),
    ] = None,
    out: Out,
    treat: Annotated[
        str | None,
        option(f"Release a treated file: {', '.join(TREATMENTS)}.", RELEASE, choices=TREATMENTS),
    ] = None,
    target_risk: Annotated[
        float | None,
        option("Treat records with a higher risk, and judge by it afterwards.", RELEASE),
    ] = None,
    treat_share: Annotated[
        float | None, option("Treat this share of records, the riskiest.", RELEASE)
    ] = None,
    treat_keys: Annotated[
        str | None,
        option("Keys to treat, separated by commas; by default as few as are needed.", RELEASE),
    ] = None,
    suppress_to_k: Annotated[
        int | None, option("Suppression: smallest frequency that every record must reach.", RELEASE)
    ] = None,
    suppress_special: Annotated[
        int | None,
        option("Suppression: no record may be unique on this many keys or fewer.", RELEASE),
    ] = None,
    suppress_cost: Annotated[
        list[str] | None,
        option("KEY=COST of a suppressed value, 1 by default; repeatable.", RELEASE),
    ] = None,
    pram_change: Annotated[
        float | None, option("PRAM: share of values to change.", RELEASE)
    ] = None,
    recode: Annotated[
        list[str] | None,
        option(
            "KEY=band:5, top:80, bottom:15 or FILE.csv:1 (ARX): coarser levels; repeatable.",
            RELEASE,
        ),
    ] = None,
    propose_recodings: Annotated[
        bool,
        option("Rank recodings by risk and detail lost.", RELEASE, "--propose-recodings"),
    ] = False,
    ordered: Annotated[
        str | None,
        option("Keys whose levels are in order, for proposals, separated by commas.", RELEASE),
    ] = None,
    regression: Annotated[
        list[str] | None,
        option("'income ~ age + sex': a regression the file should support; repeatable.", RELEASE),
    ] = None,
    sensitive: Annotated[
        str | None,
        option("Key or --given column: how much the release reveals about it.", RISK),
    ] = None,
    given: Annotated[
        str | None,
        option("Categorical columns that inform about treated values; released too.", RELEASE),
    ] = None,
    structural_zeros: Annotated[
        Path | None,
        option("File of impossible combinations, a row each, empty for any value.", RELEASE),
    ] = None,
    datasets: Annotated[int, option("Treated data sets in the release.", RELEASE)] = 1,
    keep: Annotated[
        str | None, option("Further columns to release, separated by commas.", RELEASE)
    ] = None,
    keep_order: Annotated[
        bool, option("Keep the records in their order.", RELEASE, "--keep-order")
    ] = False,
    known_keys: Annotated[
        str | None,
        option("Keys an intruder knows of a target, separated by commas; by default all.", RISK),
    ] = None,
    knowledge: Annotated[
        str,
        option(
            "Whether they know that the target is in the file (sample) or not (population).",
            RISK,
            choices=["population", "sample"],
        ),
    ] = "population",
    knows: Annotated[
        str,
        option(
            "What they know of the treatment: the treated keys, or the treated records too.",
            RISK,
            choices=["keys", "records"],
        ),
    ] = "keys",
    compare_treatments: Annotated[
        bool,
        option(
            "Try every treatment at several strengths: risk left and tables lost, as a picture.",
            RISK,
            "--compare-treatments",
        ),
    ] = False,
    policy: PolicyFile = None,
    force: Annotated[
        bool,
        option(
            "Run the models even if a key is nearly unique, and methods that take minutes.",
            RISK,
            "--force",
        ),
    ] = False,
    key_set: Annotated[
        list[str] | None,
        option("NAME=KEY,KEY: another set to compare; may be repeated.", RISK),
    ] = None,
    truth: Annotated[
        str | None, option("Column of the known population frequency, for studies.", RISK)
    ] = None,
) -> None:
    """Measure the re-identification risk of the records of a file of persons, and treat it."""
    asked = {
        "target_risk": target_risk,
        "share": treat_share,
        "keys": some_columns(treat_keys, "--treat-keys"),
        "k": suppress_to_k,
        "special": suppress_special,
        "costs": _costs(suppress_cost),
        "change": pram_change,
        "recode": recode or [],
        "propose": propose_recodings,
        "ordered": some_columns(ordered, "--ordered"),
        "regressions": regression or [],
        "sensitive": sensitive,
        "given": some_columns(given, "--given"),
        "structural_zeros": structural_zeros,
        "keep": some_columns(keep, "--keep"),
        "keep_order": keep_order,
    }
    if treat is None:
        told = known_keys is not None or knowledge != "population" or knows != "keys"
        _refuse_without_treat([*asked.values(), datasets != 1], told and not compare_treatments)
    known = some_columns(known_keys, "--known-keys") or columns(keys)
    intruder = {"keys": known, "knowledge": knowledge, "knows": knows}
    treating = {"method": treat, "datasets": datasets, "intruder": intruder, **asked}
    codes: dict[str, list[str]] = {}
    for name, code in pairs(missing_code, "--missing-code"):
        codes.setdefault(name, []).append(code)
    sets = {name: columns(listed) for name, listed in named_once(key_set, "--key-set").items()}
    run_and_tell(
        file,
        reading={
            "keys": columns(keys),
            "weight": weight,
            "household": some_columns(household, "--household") or None,
            "missing": missing,
            "missing_codes": codes or None,
            **({"bands": named_once(bands, "--bands")} if bands else {}),
            **form_of(decimal, thousands, header_line, skip_rows, layout, query),
        },
        policy=policy,
        arguments={
            "population_size": population_size,
            "sampling_fraction": sampling_fraction,
            "cells": cells,
            "draws": draws,
            **({"force": True} if force else {}),
            "seed": _seed(seed, treat is not None),
        },
        truth=truth,
        key_sets=sets,
        out=out,
        treating=None if treat is None else treating,
        comparing=intruder if compare_treatments else None,
    )


def _refuse_without_treat(given: list[Any], told: bool) -> None:
    """Refuse what says how to treat a file, or what an intruder knows, and has nothing to do."""
    # 0 is a target that was given
    if any(one is not None and one is not False and one != [] for one in given):
        raise InputError(WITHOUT_TREAT)
    if told:
        raise InputError(WITHOUT_INTRUDER)


def _costs(listed: list[str] | None) -> dict[str, float] | None:
    costs = {}
    for key, text in named_once(listed, "--suppress-cost").items():
        try:
            costs[key] = float(text)
        except ValueError:
            raise InputError(
                f"--suppress-cost of {key!r} must be a number; it is {text!r}"
            ) from None
    return costs or None


def _seed(seed: int | None, treated: bool) -> int:
    """Return a seed; anyone who knows that of a treated file can draw its values again."""
    if seed is None:
        return secrets.randbits(128) if treated else 1
    return seed


def run_and_tell(
    file: Path,
    *,
    reading: dict[str, Any],
    policy: Path | None,
    arguments: dict[str, Any],
    truth: str | None,
    key_sets: dict[str, list[str]],
    out: Path,
    treating: dict[str, Any] | None = None,
    comparing: dict[str, Any] | None = None,
) -> None:
    """Run the job and print its summary."""
    refuse_small_memory()
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
        treating=treating,
        comparing=comparing,
    )
    end_of_run(written, lines)
