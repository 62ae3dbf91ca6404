"""The command ``bayes-sdc``: it parses, hands over to a job, and prints."""

import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayes_sdc.errors import InputError
from bayes_sdc.options import (
    INPUT,
    MACHINE,
    MODEL,
    RELEASE,
    RISK,
    Cores,
    Out,
    PolicyFile,
    Sampler,
    columns,
    joined_lists,
    option,
    pairs,
)

if TYPE_CHECKING:
    from bayes_sdc.flows.audit.audit import Audit
    from bayes_sdc.jobs.writing import WrittenRun

app = typer.Typer(
    help="Bayesian statistical disclosure control. `bayes-sdc COMMAND --help` has all options and "
    "an example; begin with `bayes-sdc demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

EXIT_FAILED, EXIT_INPUT, EXIT_DEFECT, EXIT_INTERRUPTED = 1, 2, 70, 130


PUBLISHED = (
    "Totals that are published beside, by word (origin, destination, group, origin-by-group, "
    "destination-by-group, national) or as a file; repeatable."
)


@contextmanager
def _interruptible(remedy: str) -> Iterator[None]:
    """End with one line and an exit code of its own after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted; {remedy}\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None


@app.command(
    epilog="Example: bayes-sdc flows moves.csv --origin from --destination to --count n "
    "--groups from_state,to_state --policy policy.toml --out moves-run"
)
@_interruptible("the same command with --resume continues from here")
def flows(
    file: Annotated[
        Path, typer.Argument(help="CSV (also .gz) or Parquet, one row a pair of areas.")
    ],
    *,
    origin: Annotated[str, option("Column of the origin's code.", INPUT)],
    destination: Annotated[str, option("Column of the destination's code.", INPUT)],
    count: Annotated[str, option("Column of the count.", INPUT)],
    groups: Annotated[
        str | None, option("Columns, comma between: one model for each combination.", INPUT)
    ] = None,
    low: Annotated[int, option("Smallest count to protect.", INPUT)] = 1,
    high: Annotated[int, option("Largest count to protect.", INPUT)] = 9,
    threshold_column: Annotated[
        str | None,
        option("Column of people behind a weighted count: few make it unsafe.", INPUT),
    ] = None,
    totals: Annotated[
        str | None,
        option(
            "Totals inside the table: drop, or publish as they are.",
            INPUT,
            choices=["drop", "publish"],
        ),
    ] = None,
    family: Annotated[
        str,
        option(
            "default (negative-binomial), or poisson: the paper's.",
            MODEL,
            choices=["default", "negative-binomial", "poisson"],
        ),
    ] = "default",
    prior: Annotated[
        str,
        option(
            "default (pooled), weak or paper.",
            MODEL,
            choices=["default", "pooled", "weak", "paper"],
        ),
    ] = "default",
    covariates: Annotated[
        str,
        option(
            "Sizes of the areas from what is published anyway: default (published where the prior "
            "is pooled), published or none.",
            MODEL,
            choices=["default", "published", "none"],
        ),
    ] = "default",
    sampler: Sampler = "gibbs",
    draws: Annotated[int, option("Draws kept of each chain.", MODEL)] = 1000,
    tune: Annotated[
        int | None,
        option("Warm-up draws of each chain; by default 1000, 500 for nuts.", MODEL),
    ] = None,
    chains: Annotated[int, option("Chains.", MODEL)] = 4,
    areas: Annotated[
        Path | None, option("File of areas, for covariates of the model.", MODEL)
    ] = None,
    area: Annotated[str, option("Column of --areas with the code.", MODEL)] = "area",
    population: Annotated[
        str | None, option("Column of --areas: populations as covariates.", MODEL)
    ] = None,
    longitude: Annotated[
        str | None, option("Column of --areas, degrees: distance as covariate.", MODEL)
    ] = None,
    latitude: Annotated[str | None, option("Column of --areas, degrees.", MODEL)] = None,
    state: Annotated[
        str | None, option("Column of --areas: same state as covariate.", MODEL)
    ] = None,
    neighbours: Annotated[
        Path | None, option("File of pairs of areas that touch, two columns.", MODEL)
    ] = None,
    earlier: Annotated[
        Path | None, option("Table of an earlier year: class of its counts.", MODEL)
    ] = None,
    out: Out,
    keep: Annotated[
        str | None,
        option("Further columns to release, comma between, if they give nothing away.", RELEASE),
    ] = None,
    own_area: Annotated[
        str,
        option(
            "Small counts of own areas: protect, withhold or publish.",
            RELEASE,
            choices=["protect", "withhold", "publish"],
        ),
    ] = "protect",
    datasets: Annotated[int, option("Synthetic data sets in the release.", RELEASE)] = 1,
    choose: Annotated[
        int,
        option("Draw this many releases and choose the best within the policy.", RELEASE),
    ] = 1,
    seed: Annotated[
        int | None,
        option("Repeats a run; confidential. By default a fresh one.", RELEASE),
    ] = None,
    shapes: Annotated[
        Path | None,
        option("GeoJSON or TopoJSON of the areas: maps in the internal report.", RELEASE),
    ] = None,
    shape_key: Annotated[
        str | None,
        option("Property of --shapes with the code; id is known too.", RELEASE),
    ] = None,
    policy: PolicyFile = None,
    published: Annotated[list[str] | None, option(PUBLISHED, RISK)] = None,
    published_base: Annotated[
        int, option("What the published totals are rounded to a multiple of.", RISK)
    ] = 1,
    releases: Annotated[int, option("Releases over which the risk is repeated.", RISK)] = 20,
    unique: Annotated[
        str,
        option(
            "The cells of R_unq: single-mover or isolated.",
            RISK,
            choices=["single-mover", "isolated"],
        ),
    ] = "single-mover",
    estimator: Annotated[
        str,
        option(
            "Of the intruder's risk: integrated, paper, or refit: exact, slow.",
            RISK,
            choices=["integrated", "paper", "refit"],
        ),
    ] = "integrated",
    intruder_prior: Annotated[
        str,
        option(
            "What the intruder of R_all expects: uniform, shape or model.",
            RISK,
            choices=["uniform", "shape", "model"],
        ),
    ] = "uniform",
    knowledge: Annotated[
        str,
        option(
            "Other small counts the intruder knows: all-others, none or share.",
            RISK,
            choices=["all-others", "none", "share"],
        ),
    ] = "all-others",
    share: Annotated[
        float | None, option("With --knowledge share: the share of them, 0 to 1.", RISK)
    ] = None,
    already_released: Annotated[
        str | None, option("Earlier releases of the same table: files, comma between.", RISK)
    ] = None,
    refits: Annotated[
        int, option("Refit this many of the cells whose risk is not reliable.", RISK)
    ] = 0,
    cores: Cores = None,
    scheduler: Annotated[
        str | None,
        option("Run the chains on a dask cluster: address of its scheduler.", MACHINE),
    ] = None,
    resume: Annotated[
        bool, option("Resume an interrupted run in --out.", MACHINE, "--resume")
    ] = False,
) -> None:
    """Replace the small counts of an origin-destination table and measure what is left to learn."""
    _flows(
        file,
        reading={
            "origin": origin,
            "destination": destination,
            "count": count,
            "groups": columns(groups or "") or None,
            "low": low,
            "high": high,
        },
        gravity={
            "areas": areas,
            "area": area,
            "population": population,
            "longitude": longitude,
            "latitude": latitude,
            "state": state,
            "neighbours": neighbours,
            "earlier": earlier,
        },
        shapes={"shapes": shapes, "shape_key": shape_key},
        policy=policy,
        out=out,
        seed=seed,
        resume=resume,
        totals=totals,
        arguments={
            "family": family,
            "prior": prior,
            "covariates": covariates,
            "sampler": sampler,
            "draws": draws,
            "tune": tune,
            "chains": chains,
            "datasets": datasets,
            "releases": releases,
            "unique": unique,
            "estimator": estimator,
            "intruder_prior": intruder_prior,
            "knowledge": knowledge,
            "share": share,
            "already_released": columns(already_released or ""),
            "refits": refits,
            "candidates": choose,
            "keep": columns(keep or ""),
            "own_area": own_area,
            "published": tuple(published or ()),
            "published_base": published_base,
            "cores": cores,
            "scheduler": scheduler,
        },
    )


@app.command(
    epilog="Example: bayes-sdc microdata survey.csv --keys region,sex,age --weight w "
    "--population-size 5000000 --policy policy.toml --out survey-run"
)
@_interruptible("the same command starts anew")
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
    _microdata(
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


def _microdata(
    file: Path,
    *,
    reading: dict[str, Any],
    policy: Path | None,
    arguments: dict[str, Any],
    truth: str | None,
    key_sets: dict[str, list[str]],
    out: Path,
) -> None:
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
        command=_command(),
        announce=_say,
    )
    _end(written, lines)


@app.command(epilog="Example: bayes-sdc simulate country.csv.gz --areas 300 --states 10")
@_interruptible("the same command starts anew")
def simulate(
    file: Annotated[Path, typer.Argument(help="CSV file to write (also .csv.gz) or Parquet.")],
    areas: Annotated[int, typer.Option(help="Number of areas.")] = 80,
    states: Annotated[int, typer.Option(help="Number of states they are spread over.")] = 4,
    small: Annotated[
        int | None, typer.Option(help="Number of counts from 1 to 9 to expect.")
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Add columns with the rates behind the counts.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 1,
    areas_file: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write too: area, state, population, place."),
    ] = None,
) -> None:
    """Write a table of flows of an invented country: to try things on, of any size."""
    from bayes_sdc.jobs.simulation import run_simulation

    made = run_simulation(
        file,
        areas=areas,
        states=states,
        small=small,
        truth=truth,
        seed=seed,
        areas_file=areas_file,
    )
    _say("\n".join(made))


@app.command(epilog="Example: bayes-sdc demo --out try-it")
@_interruptible("the same command continues")
def demo(
    out: Out = Path("bayes-sdc-demo"),
    seed: Annotated[int, option("The same seed gives the same results.", RELEASE)] = 1,
    sampler: Sampler = "gibbs",
    cores: Cores = None,
) -> None:
    """Run both jobs on the bundled files of an invented country."""
    from bayes_sdc.flows.fit.fit import sampling_of
    from bayes_sdc.flows.table.simulate import example_flows_path
    from bayes_sdc.jobs.compiling import start_compiling
    from bayes_sdc.microdata.file.simulate import EXAMPLE_KEYS, PERSONS, example_persons_path
    from bayes_sdc.runs import discard_finished, is_interrupted

    # what is refused must be so before an earlier demo is deleted, which can be made again
    sampling_of(
        family="default", prior="default", sampler=sampler, draws=1, tune=None, chains=1,
        seed=seed, cores=cores, scheduler=None,
    )  # fmt: skip
    discard_finished(out, example_flows_path())
    discard_finished(out / "microdata", example_persons_path())
    if sampler == "gibbs":
        start_compiling()
    _microdata(
        example_persons_path(),
        reading={"keys": list(EXAMPLE_KEYS), "weight": "weight", "household": "household"},
        policy=None,
        arguments={"population_size": PERSONS, "seed": seed},
        truth="population_count",
        key_sets={},
        out=out / "microdata",
    )
    _flows(
        example_flows_path(),
        reading={
            "origin": "origin",
            "destination": "destination",
            "count": "count",
            "groups": ["origin_state", "destination_state"],
        },
        gravity={},
        shapes={},
        policy=None,
        out=out,
        seed=seed,  # the data are invented, so nobody is protected by a secret one
        resume=is_interrupted(out),
        arguments={"sampler": sampler, "cores": cores},
    )


@app.command(
    epilog="Examples: bayes-sdc audit moves.csv --origin from --destination to --count n "
    "--published totals_by_origin.csv --hole x; bayes-sdc audit countyinflow1011.csv"
)
@_interruptible("the same command starts anew")
def audit(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz) or Parquet: true counts, or with holes; or a county file of the "
            "IRS, if no columns are named."
        ),
    ],
    *,
    origin: Annotated[str | None, option("Column of the origin's code.", INPUT)] = None,
    destination: Annotated[str | None, option("Column of the destination's code.", INPUT)] = None,
    count: Annotated[str | None, option("Column of the count.", INPUT)] = None,
    groups: Annotated[str | None, option("Columns, comma between.", INPUT)] = None,
    low: Annotated[int, option("Smallest count that is hidden.", INPUT)] = 1,
    high: Annotated[int, option("Largest count that is hidden.", INPUT)] = 9,
    hole: Annotated[
        list[str] | None,
        option("Mark of a hidden count from --low to --high, beside blanks; repeatable.", INPUT),
    ] = None,
    secondary: Annotated[
        list[str] | None,
        option("Mark of a hidden count of any size; repeatable.", INPUT),
    ] = None,
    published: Annotated[list[str] | None, option(PUBLISHED, RISK)] = None,
    base: Annotated[
        int, option("What the published totals are rounded to a multiple of.", RISK)
    ] = 1,
    direction: Annotated[
        str | None, option("IRS file: inflow or outflow, where it does not say.", INPUT)
    ] = None,
    years: Annotated[
        str | None, option("IRS file: its years, as 2010-2011, where it does not say.", INPUT)
    ] = None,
    out: Annotated[
        Path | None, option("CSV file for the bounds of every cell; confidential.", RELEASE)
    ] = None,
) -> None:
    """Tell which hidden counts follow from totals; of true counts, the small ones are hidden.

    Without names of columns the file is read as a county-to-county file of the IRS: rows that are
    replaced by -1 or d, and flows that are not shown, are bounded by its totals. The file of the
    other direction can be given as published beside.
    """
    from bayes_sdc.jobs.audit import run_audit, run_irs_audit

    if not (origin or destination or count):
        _audited(
            run_irs_audit(
                file,
                direction=direction,
                years=years,
                published=tuple(published or ()),
                out=out,
            )
        )
        return
    if not (origin and destination and count):
        raise InputError(
            "--origin, --destination and --count belong together; name all three, or none for a "
            "county file of the IRS"
        )
    if direction or years:
        raise InputError("--direction and --years are for files of the IRS; leave out the columns")
    found = run_audit(
        file,
        reading={
            "origin": origin,
            "destination": destination,
            "count": count,
            "groups": columns(groups or "") or None,
            "low": low,
            "high": high,
        },
        marks=tuple(hole or ()),
        secondary=tuple(secondary or ()),
        published=tuple(published or ()),
        base=base,
        out=out,
    )
    _audited(found)


def _audited(found: "Audit") -> None:
    """Print an audit; the exit code tells whether something is pinned."""
    _say(found.summary())
    if found.pinned + found.pinned_besides:
        raise typer.Exit(EXIT_FAILED)


def _flows(file: Path, **options: Any) -> None:
    # imported here: PyMC takes seconds, and --help should not
    from bayes_sdc.jobs.flows import run_flows

    written, lines = run_flows(file, **options, command=_command(), announce=_say)
    _end(written, lines)


def _end(written: "WrittenRun", lines: Sequence[str]) -> None:
    """Print the summary of a run; the exit code tells whether its release is held."""
    from bayes_sdc.jobs.summary import closing_lines

    _say("\n".join([*lines, *closing_lines(written)]))
    if written.failed:
        raise typer.Exit(EXIT_FAILED)


@app.command(epilog="Example: bayes-sdc approve moves-run --reason 'board decision of 15 January'")
def approve(
    folder: Annotated[Path, typer.Argument(help="Folder of a run whose release is held.")],
    reason: Annotated[str, typer.Option(help="Why it may leave although a check failed.")],
) -> None:
    """Release what a failed check holds back, with a reason that is recorded in run.json."""
    from bayes_sdc.jobs.writing import approve as release_held

    moved, failed = release_held(folder, reason=reason)
    _say(f"approved although failed: {', '.join(failed)}; the reason and the date are recorded")
    _say("\n".join(f"may leave: {path}" for path in moved))


@app.command(epilog="Example: bayes-sdc doctor")
def doctor() -> None:
    """Tell whether this machine has what the jobs need, and what would be slow on it."""
    from bayes_sdc.jobs.doctor import examine, verdict_line

    findings = examine()
    _say("\n".join([*map(str, findings), verdict_line(findings)]))
    if any(finding.verdict == "missing" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _show_version(asked: bool) -> None:
    if asked:
        from bayes_sdc import __version__

        _say(f"bayes-sdc {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the command itself."""


def _command() -> str:
    return shlex.join(["bayes-sdc", *sys.argv[1:]])


def _say(text: str) -> None:
    """Print text as it is: codes from the data may look like markup."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command; bad input ends with one clear line and exit code 2."""
    try:
        app(args=joined_lists(sys.argv[1:]))
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_INPUT)
    except Exception:
        # not 1, which says that the job is done and a check failed
        traceback.print_exc()
        sys.exit(EXIT_DEFECT)


if __name__ == "__main__":
    main()
