"""A run on a flow table from file to folder: reading, protecting, and what is left behind."""

import inspect
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.settle import settle_totals
from bayes_sdc.flows.compiling import start_compiling
from bayes_sdc.flows.fit.fit import kept_seed
from bayes_sdc.flows.job.protect import protect_flows
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.protection import Protection, with_checks
from bayes_sdc.flows.table.content import content_digest
from bayes_sdc.flows.table.covariates import (
    gravity_covariates,
    read_areas,
    read_neighbours,
    row_distances,
    with_covariates,
)
from bayes_sdc.flows.table.read import FlowTable, read_flows
from bayes_sdc.io.columns import read_codes
from bayes_sdc.io.form import as_said
from bayes_sdc.jobs.flows_folder import write_flows
from bayes_sdc.jobs.repeated import check_repeated
from bayes_sdc.jobs.summary import notes_to_act_on
from bayes_sdc.jobs.writing import WrittenRun, describe_call
from bayes_sdc.policy import read_policy
from bayes_sdc.runs import check_out, open_run
from bayes_sdc.shapes import Shapes, read_shapes

NO_OPTIONS = ("resume", "ready", "distance")  # of the call, not of what it does
PACKAGES = ("bayes-sdc", "pymc", "nutpie", "arviz", "numpy")


def run_flows(
    file: Path,
    *,
    reading: Mapping[str, Any],
    gravity: Mapping[str, Any],
    shapes: Mapping[str, Any],
    policy: Path | None,
    out: Path,
    seed: int | None,
    resume: bool,
    arguments: Mapping[str, Any],
    command: str,
    announce: Callable[[str], None],
    totals: str | None = None,
) -> tuple[WrittenRun, list[str]]:
    """Read a table, protect it and write the run folder.

    Parameters
    ----------
    file : Path
        The table.
    reading : mapping
        Arguments of :func:`bayes_sdc.read_flows`.
    gravity : mapping
        Files and columns for :func:`bayes_sdc.gravity_covariates`; None for what
        is not asked for.
    shapes : mapping
        ``shapes``, a file of outlines for maps, and ``shape_key``, where its code is; or None.
    policy : Path or None
        File of limits.
    out : Path
        Folder for ``release``, or ``held``, and ``confidential``.
    seed : int or None
        By default that of the run that is resumed, or a fresh one.
    resume : bool
        Resume an interrupted run.
    arguments : mapping
        Further arguments of :func:`bayes_sdc.protect_flows`.
    command : str
        What was typed, for the record.
    announce : callable
        Told, in lines of text, what was read and what is done before the fit.
    totals : {"drop", "publish", "flows"}, optional
        What becomes of totals inside the table; by default the run stops at them.

    Returns
    -------
    WrittenRun
        The files written, and whether the release is held.
    list of str
        Lines for the console; confidential.

    Raises
    ------
    InputError
        If something cannot be used or written. What is refused before the fit leaves no folder
        behind.
    """
    run = check_out(out, resume=resume)
    limits = None if policy is None else read_policy(policy)
    if arguments.get("sampler", "gibbs") == "gibbs":
        start_compiling()
    table = settle_totals(read_flows(file, **reading), totals)
    columns = select_columns(table, arguments.get("keep", ()))
    notes = notes_to_act_on([*table.notes, *columns.notes()])
    announce("\n".join([_what_was_read(table), *notes]))
    table, distance = _with_gravity(table, gravity, reading, announce)
    outlines = _outlines(table, **shapes)
    earlier = kept_seed(run.resume)
    seed = earlier if seed is None else seed
    seed = secrets.randbits(128) if seed is None else seed

    def ready() -> None:
        # not sooner: a call that is refused leaves no folder
        open_run(out, resume=resume)
        if resume:
            announce("nothing to resume" if earlier is None else "resuming: what is done is kept")

    released = arguments.get("already_released", ())
    repeated = check_repeated(
        out, table.sha256, released, content_sha256=content_digest(table),
        released_epsilon=arguments.get("released_epsilon", ()),
    )  # fmt: skip
    for check in repeated:
        announce(f"{check.name}: {check.reason}")
    result = protect_flows(
        table, **arguments, distance=distance, policy=limits, seed=seed, resume=run.resume,
        ready=ready,
    )  # fmt: skip
    result = with_checks(result, repeated)
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(protect_flows).parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in NO_OPTIONS
    }
    call = describe_call(
        command,
        seed=seed,
        arguments={
            **as_said(reading),
            **defaults,
            **arguments,
            "policy": None if limits is None else str(limits),
            "covariates": _covariates(result),
            "totals": totals,
            **{
                name: str(value)
                for name, value in {**gravity, **shapes}.items()
                if value is not None
            },
        },
        packages=PACKAGES,
    )
    return write_flows(run, result, call, shapes=outlines), result.summary().splitlines()


def _with_gravity(
    table: FlowTable,
    gravity: Mapping[str, Any],
    reading: Mapping[str, Any],
    announce: Callable[[str], None],
) -> tuple[FlowTable, list[float] | None]:
    """Add the covariates that the options ask for; distances of all rows, where they are known."""
    asked = {name: value for name, value in gravity.items() if value is not None}
    area = asked.pop("area", None)
    if area not in (None, "area") and "areas" not in asked:
        raise InputError(f"--area {area!r} is a column of --areas: give both of them, or neither")
    if not asked or table.n_small == 0:
        return table, None
    if "areas" in asked:
        asked["areas"] = read_areas(asked["areas"], area=str(area))
    if "neighbours" in asked:
        asked["neighbours"] = read_neighbours(asked["neighbours"])
    if "earlier" in asked:
        same = {name: value for name, value in reading.items() if name != "threshold_column"}
        asked["earlier"] = read_flows(asked["earlier"], **same)
    covariates = gravity_covariates(table, **asked)
    if covariates.empty:
        raise InputError(
            "covariates: none differs between the small cells; with --areas, name its columns by "
            "--population, --longitude and --latitude, or --state"
        )
    announce(f"covariates: {', '.join(covariates.columns)}")
    distance = None
    if {"areas", "longitude", "latitude"} <= set(asked):
        place = {name: asked[name] for name in ("longitude", "latitude")}
        distance = row_distances(table, asked["areas"], **place)
    return with_covariates(table, covariates), distance


def _covariates(result: Protection) -> list[str]:
    """Names of all covariates of the fit: the user's, those of areas, those of groups."""
    if result.measured is None:
        return list(result.table.covariates.columns)
    coords = result.measured.posterior["constant_data"].coords
    names = [coords[dim].to_numpy() for dim in ("covariate", "group_covariate") if dim in coords]
    return [str(name) for some in names for name in some]


def _outlines(
    table: FlowTable, shapes: Path | None = None, shape_key: str | None = None
) -> Shapes | None:
    """Read the outlines of the areas, if asked for; before the fit, so that it is not lost."""
    if (shapes is None) != (shape_key is None):
        raise InputError("--shapes and --shape-key belong together: a file, and where its code is")
    if shapes is None or shape_key is None or table.n_small == 0:
        return None
    columns = [read_codes(table.frame[name], name) for name in (table.origin, table.destination)]
    codes = {code for column in columns for code in column.labels}
    return read_shapes(shapes, key=shape_key, codes=codes)


def _what_was_read(table: FlowTable) -> str:
    """What was read, in one line."""
    below = f", {table.n_below:,} below {table.low}" if table.n_below else ""
    return (
        f"{table.source}: {table.n_read:,} rows: {table.n_small:,} small counts ({table.low} to "
        f"{table.high}) in {table.cells['group'].nunique():,} groups, {table.n_safe:,} above, "
        f"{table.n_set_aside:,} of people who stayed{below}"
    )
