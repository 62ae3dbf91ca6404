"""The command ``bayes-sdc``."""

import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayes_sdc.errors import InputError

if TYPE_CHECKING:
    from bayes_sdc.jobs.writing import WrittenRun

app = typer.Typer(
    help="Bayesian statistical disclosure control.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

EXIT_FAILED, EXIT_INPUT, EXIT_DEFECT, EXIT_INTERRUPTED = 1, 2, 70, 130

Out = Annotated[Path, typer.Option(help="Folder for release/ and confidential/.")]
Sampler = Annotated[
    str, typer.Option(help="gibbs, nuts, or reference: the paper's own Metropolis within Gibbs.")
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="TOML file of named, dated limits on the risk.")
]
Cores = Annotated[
    int | None, typer.Option(help="Threads; by default all. Draws do not depend on it.")
]


@contextmanager
def _interruptible(remedy: str) -> Iterator[None]:
    """End with one line and an exit code of its own after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted; {remedy}\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None


@app.command()
@_interruptible("the same command with --resume goes on from here")
def flows(
    file: Annotated[
        Path, typer.Argument(help="CSV (also .gz) or Parquet, one row a pair of areas.")
    ],
    origin: Annotated[str, typer.Option(help="Column of the origin's code.")],
    destination: Annotated[str, typer.Option(help="Column of the destination's code.")],
    count: Annotated[str, typer.Option(help="Column of the count.")],
    out: Out,
    groups: Annotated[
        str | None, typer.Option(help="Columns, comma between: one model for each combination.")
    ] = None,
    low: Annotated[int, typer.Option(help="Smallest count to protect.")] = 1,
    high: Annotated[int, typer.Option(help="Largest count to protect.")] = 9,
    family: Annotated[
        str, typer.Option(help="default (negative-binomial), or poisson: the paper's.")
    ] = "default",
    prior: Annotated[str, typer.Option(help="default (pooled), weak or paper.")] = "default",
    sampler: Sampler = "gibbs",
    draws: Annotated[int, typer.Option(help="Draws kept of each chain.")] = 1000,
    tune: Annotated[
        int | None, typer.Option(help="Warm-up draws of each chain; by default 1000, 500 for nuts.")
    ] = None,
    chains: Annotated[int, typer.Option(help="Chains.")] = 4,
    datasets: Annotated[int, typer.Option(help="Synthetic data sets in the release.")] = 1,
    releases: Annotated[int, typer.Option(help="Releases over which risk is repeated.")] = 20,
    unique: Annotated[
        str, typer.Option(help="R_unq is about: single-mover or isolated.")
    ] = "single-mover",
    estimator: Annotated[
        str, typer.Option(help="Of the intruder's risk: integrated, paper, or refit: exact, slow.")
    ] = "integrated",
    intruder_prior: Annotated[
        str, typer.Option(help="What the intruder expects of a small count: uniform or model.")
    ] = "uniform",
    knowledge: Annotated[
        str, typer.Option(help="Other small counts the intruder knows: all-others, none or share.")
    ] = "all-others",
    share: Annotated[
        float | None, typer.Option(help="With --knowledge share: the share of them, 0 to 1.")
    ] = None,
    refits: Annotated[
        int, typer.Option(help="Refit so many of the cells whose risk is not reliable.")
    ] = 0,
    choose: Annotated[
        int, typer.Option(help="Draw so many releases and choose the best within the policy.")
    ] = 1,
    policy: PolicyFile = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeats a run; confidential. By default a fresh one.")
    ] = None,
    areas: Annotated[
        Path | None, typer.Option(help="File of areas, for covariates of the model.")
    ] = None,
    area: Annotated[str, typer.Option(help="Column of --areas with the code.")] = "area",
    population: Annotated[
        str | None, typer.Option(help="Column of --areas: populations as covariates.")
    ] = None,
    longitude: Annotated[
        str | None, typer.Option(help="Column of --areas, degrees: distance as covariate.")
    ] = None,
    latitude: Annotated[str | None, typer.Option(help="Column of --areas, degrees.")] = None,
    state: Annotated[
        str | None, typer.Option(help="Column of --areas: same state as covariate.")
    ] = None,
    neighbours: Annotated[
        Path | None, typer.Option(help="File of pairs of areas that touch, two columns.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option(help="Table of an earlier year: class of its counts.")
    ] = None,
    shapes: Annotated[
        Path | None, typer.Option(help="GeoJSON or TopoJSON of the areas: maps in the report.")
    ] = None,
    shape_key: Annotated[
        str | None, typer.Option(help="Property of --shapes with the code; id is known too.")
    ] = None,
    cores: Cores = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Run the chains on a dask cluster: address of its scheduler."),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with an interrupted run in --out.")] = False,
) -> None:
    """Replace the small counts of an origin-destination table and measure what is left to learn."""
    _flows(
        file,
        reading={
            "origin": origin,
            "destination": destination,
            "count": count,
            "groups": [name for name in (groups or "").split(",") if name] or None,
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
        arguments={
            "family": family,
            "prior": prior,
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
            "refits": refits,
            "candidates": choose,
            "cores": cores,
            "scheduler": scheduler,
        },
    )


@app.command()
@_interruptible("the same command starts anew")
def microdata(
    file: Annotated[
        Path, typer.Argument(help="CSV (also .gz), Parquet, Stata, SPSS or SAS; a row a person.")
    ],
    keys: Annotated[str, typer.Option(help="Key variables, comma between.")],
    out: Out,
    weight: Annotated[str | None, typer.Option(help="Column of sampling weights.")] = None,
    household: Annotated[str | None, typer.Option(help="Column of the household's id.")] = None,
    population_size: Annotated[int | None, typer.Option(help="People in the population.")] = None,
    sampling_fraction: Annotated[
        float | None, typer.Option(help="Records over population, for a file without weights.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="A missing value: wildcard, own or conservative.")
    ] = "wildcard",
    missing_code: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=CODE: code that means missing, of a key or household; repeatable."
        ),
    ] = None,
    key_set: Annotated[
        list[str] | None,
        typer.Option(help="NAME=KEY,KEY: another set to compare; may be repeated."),
    ] = None,
    cells: Annotated[
        int | None,
        typer.Option(help="Combinations that can occur, without structural zeros."),
    ] = None,
    policy: PolicyFile = None,
    truth: Annotated[
        str | None,
        typer.Option(help="Column of the known population frequency, for studies."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws behind the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Repeats a run.")] = 1,
) -> None:
    """Measure the re-identification risk of the records of a file of persons."""
    codes: dict[str, list[str]] = {}
    for name, code in _pairs(missing_code, "--missing-code"):
        codes.setdefault(name, []).append(code)
    sets = {name: listed.split(",") for name, listed in _pairs(key_set, "--key-set")}
    _microdata(
        file,
        reading={
            "keys": keys.split(","),
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


def _pairs(options: list[str] | None, name: str) -> list[tuple[str, str]]:
    """Split NAME=VALUE; the last = separates, because names of columns may hold one."""
    split = [option.rpartition("=") for option in options or []]
    for option, (left, _, right) in zip(options or [], split, strict=True):
        if not left or not right:
            raise InputError(f"{name} must look like NAME=VALUE; it is {option!r}")
    return [(left, right) for left, _, right in split]


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


@app.command()
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
    from bayes_sdc.flows.table.simulate import simulate_areas, simulate_flows
    from bayes_sdc.io.tables import Dialect, encode
    from bayes_sdc.runs import write_bytes

    files = [path for path in (file, areas_file) if path is not None]
    for path in files:
        if path.exists():
            raise InputError(f"{path}: is there already; choose another name")
        if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
            raise InputError(f"{path}: must end in .csv, .csv.gz or .parquet")
    if len({path.resolve() for path in files}) < len(files):
        raise InputError(f"{file}: is named for the flows and for the areas; choose two names")
    frame = simulate_flows(areas=areas, states=states, small=small, truth=truth, seed=seed)
    frames = [frame]
    if areas_file is not None:
        frames.append(simulate_areas(areas=areas, states=states, seed=seed))
    for path, content in zip(files, frames, strict=True):
        dialect = Dialect(
            format="parquet" if path.suffix == ".parquet" else "csv", gzipped=path.suffix == ".gz"
        )
        try:
            write_bytes(path, encode(content, dialect))
        except BaseException:
            with suppress(OSError):
                files[0].unlink(missing_ok=True)  # both files, or none
            raise
    moved = frame[frame["origin"] != frame["destination"]]
    few = int(moved["count"].between(1, 9).sum())
    groups = moved[["origin_state", "destination_state"]].drop_duplicates()
    _say(
        f"{file}: {len(frame):,} rows, {few:,} counts from 1 to 9, {len(groups):,} pairs of states"
    )
    if areas_file is not None:
        _say(f"{areas_file}: {len(frames[1]):,} areas")


@app.command()
@_interruptible("the same command goes on with it")
def demo(
    out: Out = Path("bayes-sdc-demo"), sampler: Sampler = "gibbs", cores: Cores = None
) -> None:
    """Run both jobs on the bundled files of an invented country."""
    from bayes_sdc.flows.fit.fit import sampling_of
    from bayes_sdc.flows.table.simulate import example_flows_path
    from bayes_sdc.microdata.file.simulate import EXAMPLE_KEYS, PERSONS, example_persons_path
    from bayes_sdc.runs import discard_finished, is_interrupted

    # what is refused must be so before an earlier demo is deleted, which can be made again
    sampling_of(
        family="default", prior="default", sampler=sampler, draws=1, tune=None, chains=1, seed=1,
        cores=cores, scheduler=None,
    )  # fmt: skip
    discard_finished(out, example_flows_path())
    discard_finished(out / "microdata", example_persons_path())
    _microdata(
        example_persons_path(),
        reading={"keys": list(EXAMPLE_KEYS), "weight": "weight", "household": "household"},
        policy=None,
        arguments={"population_size": PERSONS, "seed": 1},
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
        seed=1,  # the data are invented, so nobody is protected by a secret seed
        resume=is_interrupted(out),
        arguments={"sampler": sampler, "cores": cores},
    )


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


@app.command()
def approve(
    folder: Annotated[Path, typer.Argument(help="Folder of a run whose release is held.")],
    reason: Annotated[str, typer.Option(help="Why it may leave although a check failed.")],
) -> None:
    """Release what a failed check holds back, with a reason that is recorded in run.json."""
    from bayes_sdc.jobs.writing import approve as release_held

    moved, failed = release_held(folder, reason=reason)
    _say(f"approved although failed: {', '.join(failed)}; the reason and the date are recorded")
    _say("\n".join(f"may leave: {path}" for path in moved))


def _command() -> str:
    return shlex.join(["bayes-sdc", *sys.argv[1:]])


def _say(text: str) -> None:
    """Print text as it is: codes from the data may look like markup."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command; bad input ends with one clear line and exit code 2."""
    try:
        app()
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_INPUT)
    except Exception:
        # not 1, which says that the job is done and a check failed
        traceback.print_exc()
        sys.exit(EXIT_DEFECT)


if __name__ == "__main__":
    main()
