"""``bayes-sdc flows``: a table of flows becomes a release and reports."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayes_sdc.commands.options import (
    INPUT,
    MACHINE,
    MODEL,
    PUBLISHED,
    RELEASE,
    RISK,
    Cores,
    Decimal,
    HeaderLine,
    Layout,
    Out,
    PolicyFile,
    Query,
    Sampler,
    SkipRows,
    Thousands,
    Totals,
    Wide,
    form_of,
    numbers,
    option,
    shares_or_name,
    some_columns,
    whole_numbers,
)
from bayes_sdc.commands.terminal import (
    end_of_run,
    interruptible,
    refuse_small_memory,
    say,
    the_command,
)


@interruptible("the same command with --resume continues from here")
def flows(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz), Parquet, Excel, Eurostat, fixed width or a database; one row per "
            "pair of areas, or with --wide one per origin."
        ),
    ],
    *,
    origin: Annotated[str, option("Column of the origin's code.", INPUT)],
    destination: Annotated[str, option("Column of the destination's code.", INPUT)],
    count: Annotated[str, option("Column of the count.", INPUT)],
    groups: Annotated[
        str | None, option("Columns, separated by commas: one model for each combination.", INPUT)
    ] = None,
    low: Annotated[int, option("Smallest count to protect.", INPUT)] = 1,
    high: Annotated[int, option("Largest count to protect.", INPUT)] = 9,
    threshold_column: Annotated[
        str | None,
        option("Column of people behind a weighted count: few make it unsafe.", INPUT),
    ] = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    header_line: HeaderLine = None,
    skip_rows: SkipRows = 0,
    layout: Layout = None,
    query: Query = None,
    wide: Wide = False,
    totals: Totals = None,
    family: Annotated[
        str,
        option(
            "default (negative-binomial), canonical to keep how counts grow with areas, base for "
            "heaped or rounded counts, or poisson: the paper's.",
            MODEL,
            choices=["default", "negative-binomial", "canonical", "poisson", "base"],
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
    epsilon: Annotated[
        float | None,
        option("Bound what one person can change, by a factor of exp(EPSILON).", MODEL),
    ] = None,
    centres: Annotated[
        str,
        option(
            "With --epsilon: bundled, file of another year, or shares, separated by commas.", MODEL
        ),
    ] = "bundled",
    impossible: Annotated[
        str | None,
        option(
            "With --family base: counts that a rule excludes, such as 1,2, separated by commas.",
            MODEL,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        option(
            "risk: cells of which a release tells too much weigh less.", MODEL, choices=["risk"]
        ),
    ] = None,
    gain_limit: Annotated[
        float | None,
        option("With --weights risk: bits a cell may tell of its count, by default 0.05.", MODEL),
    ] = None,
    out: Out,
    keep: Annotated[
        str | None,
        option(
            "Further columns to release, separated by commas, if they give nothing away.", RELEASE
        ),
    ] = None,
    own_area: Annotated[
        str,
        option(
            "Small counts of own areas: protect, withhold or publish.",
            RELEASE,
            choices=["protect", "withhold", "publish"],
        ),
    ] = "protect",
    totals_kept: Annotated[
        str | None,
        option(
            "Totals of people who moved that the release has exactly, separated by commas: "
            "origin, destination, group, origin-by-group, destination-by-group; or auto: as many "
            "as tell no small count.",
            RELEASE,
        ),
    ] = None,
    totals_base: Annotated[
        int, option("Kept totals need only round to the same multiple of this.", RELEASE)
    ] = 1,
    kept_limit: Annotated[
        float,
        option("With totals kept: largest probability of a true count they may cause.", RELEASE),
    ] = 0.9,
    pinned_allowed: Annotated[
        bool,
        option("Release unchanged the counts that kept totals pin.", RELEASE, "--pinned-allowed"),
    ] = False,
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
            "How the intruder's risk is estimated: integrated, paper, or refit (exact, slow).",
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
        str | None, option("Earlier releases of the same table: files, separated by commas.", RISK)
    ] = None,
    released_epsilon: Annotated[
        str | None,
        option("With --epsilon: that of each --already-released, separated by commas.", RISK),
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
    run_and_tell(
        file,
        reading={
            "origin": origin,
            "destination": destination,
            "count": count,
            "groups": some_columns(groups, "--groups") or None,
            "low": low,
            "high": high,
            "threshold_column": threshold_column,
            **form_of(decimal, thousands, header_line, skip_rows, layout, query, wide=wide),
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
            "epsilon": epsilon,
            "centres": shares_or_name(centres),
            "impossible": whole_numbers(impossible, "--impossible"),
            "weights": weights,
            "gain_limit": gain_limit,
            "released_epsilon": numbers(released_epsilon, "--released-epsilon"),
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
            "already_released": some_columns(already_released, "--already-released"),
            "refits": refits,
            "candidates": choose,
            "keep": some_columns(keep, "--keep"),
            "own_area": own_area,
            "totals_kept": _totals_kept(totals_kept),
            "totals_base": totals_base,
            "kept_limit": kept_limit,
            "pinned_allowed": pinned_allowed,
            "published": tuple(published or ()),
            "published_base": published_base,
            "cores": cores,
            "scheduler": scheduler,
        },
    )


def _totals_kept(text: str | None) -> str | tuple[str, ...]:
    """Names of margins; one word alone may be auto."""
    names = tuple(some_columns(text, "--totals-kept"))
    return names[0] if names in (("auto",), ("none",)) else names


def run_and_tell(file: Path, **options: Any) -> None:
    """Run the job and print its summary."""
    refuse_small_memory()
    # imported here: PyMC takes seconds, and --help should not
    from bayes_sdc.jobs.flows import run_flows

    written, lines = run_flows(file, **options, command=the_command(), announce=say)
    end_of_run(written, lines)
