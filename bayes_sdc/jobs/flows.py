"""A run on a flow table from file to folder: reading, protecting, and what is left behind."""

import hashlib
import inspect
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.settle import settle_totals
from bayes_sdc.flows.compiling import start_compiling
from bayes_sdc.flows.fit.checkpoint import kept_call
from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.flows.intruder.log_ratios import log_ratios
from bayes_sdc.flows.intruder.probabilities.gain import as_frames
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.protect import protect_flows
from bayes_sdc.flows.protection import Measured, Protection, with_checks
from bayes_sdc.flows.release.synthetic.released import released_counts
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
from bayes_sdc.io.tables import encode
from bayes_sdc.jobs.repeated import check_repeated
from bayes_sdc.jobs.summary import notes_to_act_on
from bayes_sdc.jobs.writing import (
    Writer,
    WrittenRun,
    csv_writer,
    describe_call,
    text_writer,
    write_run,
)
from bayes_sdc.policy import read_policy
from bayes_sdc.progress import Progress
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.page import all_or_nothing
from bayes_sdc.runs import RunFolder, check_out, open_run
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
    earlier = _seed_of_interrupted(run)
    seed = earlier if seed is None else seed
    seed = secrets.randbits(128) if seed is None else seed

    def ready() -> None:
        # not sooner: a call that is refused leaves no folder
        open_run(out, resume=resume)
        if resume:
            announce("nothing to resume" if earlier is None else "resuming: what is done is kept")

    repeated = check_repeated(out, table.sha256, arguments.get("already_released", ()))
    for check in repeated:
        announce(f"{check.name}: {check.reason}")
    result = protect_flows(
        table,
        **arguments,
        distance=distance,
        policy=limits,
        seed=seed,
        resume=run.resume,
        ready=ready,
    )
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


def write_flows(
    run: RunFolder, result: Protection, call: Mapping[str, Any], *, shapes: Shapes | None = None
) -> WrittenRun:
    """Write the folder of a run; files of an earlier run are deleted first.

    Parameters
    ----------
    run : RunFolder
        Where to.
    result : Protection
        The release and what was measured.
    call : mapping
        Command, arguments, seed, date and versions, for the record.
    shapes : Shapes, optional
        Outlines of the areas, for maps in the internal report.

    Returns
    -------
    WrittenRun
        The files written; the release is held if a check failed.

    Raises
    ------
    InputError
        If a file cannot be written; no file is left half-written.
    """
    table = result.table
    content = encode(result.release, table.dialect)
    call = {**call, "release_sha256": hashlib.sha256(content).hexdigest()}
    # rendered before the first file is touched: a picture that fails stops the run here
    reports = {}
    with all_or_nothing(), Progress(2, "pictures and reports") as progress:
        for audience in ("internal", "external"):
            reports[audience] = render_flows(result, audience=audience, call=call, shapes=shapes)
            progress.advance(1)
    confidential: dict[str, Writer] = {}
    measured = result.measured
    if measured is not None:
        confidential["posterior.nc"] = partial(write_posterior, measured.posterior)
        for name, frame in _tables(result, measured).items():
            confidential[f"{name}.csv"] = csv_writer(frame, index=True)
    if result.audit is not None:
        confidential["published_totals.csv"] = csv_writer(
            pd.concat([result.audit.bounds, result.audit.besides]), index=True
        )
    if result.with_totals is not None and result.with_totals.given is not None:
        confidential["given_totals.csv"] = csv_writer(
            result.with_totals.given.probability.to_series().unstack(), index=True
        )
    confidential["report.html"] = text_writer(reports["internal"])
    stem = Path(table.source).name.partition(".")[0] or "table"
    return write_run(
        run,
        confidential=confidential,
        public={
            "report.html": reports["external"].encode(),
            f"{stem}_synthetic{table.dialect.suffix}": content,
        },
        record=_record(result, call),
        checks=result.checks,
    )


def _tables(result: Protection, measured: Measured) -> dict[str, pd.DataFrame]:
    """The confidential tables: by cell, group, area and release, and all that is compared."""
    risk, table = measured.risk, result.table
    cells = table.cells.drop(columns=["row", "y"]).assign(true=table.cells["y"] + table.low)
    released = released_counts(table, result.release) + table.low
    for number, values in enumerate(released, start=1):
        cells[f"released_{number}" if len(released) > 1 else "released"] = values
    rho = risk.rho.to_numpy()
    cells["most_probable"] = np.argmax(rho, axis=1) + table.low
    cells["probability_of_true"] = risk.true_count_probability.to_numpy()
    cells["distance"] = risk.distance.to_numpy()
    cells["worst_khat"] = risk.khat.max("count").to_numpy()
    cells["unreliable"] = risk.unreliable.to_numpy()
    cells["smallest_ess"] = risk.ess.min("count").to_numpy()
    cells["monte_carlo_error"] = risk.release_probability_error.max("true").to_numpy()
    cells["refitted"] = risk.refitted.to_numpy()
    for position, count in enumerate(risk.rho["count"].to_numpy()):
        cells[f"probability_of_{count}"] = rho[:, position]
    tables = {
        "risk_by_cell": cells,
        "groups": measured.groups,
        "margins": measured.margins.set_index("side"),
        "risk_by_release": measured.repeats,
        **{f"risk_by_{by.replace('-', '_')}": of for by, of in measured.classes.items()},
        "predictive_counts": measured.predictive,
        "predictive_counts_by_size": measured.predictive_by_size,
        "risk_by_datasets": measured.by_datasets,
        "other_protections": measured.tradeoff.set_index("method"),
    }
    tables["gain_by_prior"], tables["gain_by_cell"] = as_frames(measured.worst.gains)
    tables["log_ratios"] = log_ratios(measured.worst).by_cell
    if measured.uses is not None:
        tables["uses"] = measured.uses.table.set_index("use")
    if measured.kept is not None and len(measured.kept.merged):
        tables["totals_not_to_publish"] = measured.kept.merged.set_index("margin")
    if measured.combined is not None:
        tables["combined_totals"] = measured.combined.totals.set_index("side")
    return tables


def _record(result: Protection, call: Mapping[str, Any]) -> dict[str, Any]:
    """What repeats the run, and its main numbers."""
    table = result.table
    record: dict[str, Any] = {
        **call,
        "input": {
            "source": table.source,
            "sha256": table.sha256,
            "rows": table.n_read,
            "safe": table.n_safe,
            "small": table.n_small,
            "set_aside": table.n_set_aside,
            "below": table.n_below,
            "notes": list(table.notes),
        },
        "columns": {
            "released": list(result.columns.released),
            "kept": list(result.columns.kept),
            "left_out": dict(result.columns.left_out),
        },
        "checks": [vars(check) for check in result.checks],
        "seconds": result.seconds,
    }
    return record if result.measured is None else record | _main_numbers(result.measured)


def _gain_in_numbers(worst: IntruderRisk) -> dict[str, Any]:
    """What the release adds for the strongest intruder, for the record."""
    gain = worst.strongest
    return {
        "prior": gain.prior,
        "cells": gain.cells,
        **{name: getattr(gain, name)._asdict() for name in ("guessed", "unique", "bits")},
        "pushed": {f"{limit:.0%}": count for limit, count in gain.pushed.items()},
        "largest_ratio": gain.largest_ratio,
        "already_released": worst.already_released.sizes["dataset"],
        "trusted": gain.trusted,
    }


def _main_numbers(measured: Measured) -> dict[str, Any]:
    """Risk, utility and choice, for the record."""
    risk, worst, utility = measured.risk, measured.worst, measured.utility
    numbers: dict[str, Any] = {
        "risk": {
            "r_all": vars(risk.r_all),
            "r_unq": vars(risk.r_unq),
            "mean_probability_of_true": float(risk.true_count_probability.mean()),
            "expected_correct": risk.expected_correct,
            "believes_release": risk.believes_release,
            "cells_beyond_khat": risk.unreliable_cells,
            "estimator": risk.estimator,
            "prior": risk.prior,
            "knowledge": risk.knowledge,
        },
        "worst_case": {"r_all": vars(worst.r_all), "r_unq": vars(worst.r_unq)},
        "gain": _gain_in_numbers(worst),
        "utility": {
            "totals_error": utility.totals_error,
            "net_migration_error": utility.net_migration_error,
            "right_band": utility.right_band,
            "pmse_ratio": utility.pmse_ratio,
        },
    }
    if measured.kept is not None:
        numbers["totals_kept"] = {
            "margins": list(measured.kept.names),
            "by_themselves": measured.kept.number,
            "in_sum_only": len(measured.kept.merged),
        }
    if measured.combined is not None:
        numbers["combined_totals"] = measured.combined.by_side.to_dict("index")
    if measured.choice is not None:
        numbers["choice"] = str(measured.choice)
    return numbers


def _what_was_read(table: FlowTable) -> str:
    """What was read, in one line."""
    below = f", {table.n_below:,} below {table.low}" if table.n_below else ""
    return (
        f"{table.source}: {table.n_read:,} rows: {table.n_small:,} small counts ({table.low} to "
        f"{table.high}) in {table.cells['group'].nunique():,} groups, {table.n_safe:,} above, "
        f"{table.n_set_aside:,} of people who stayed{below}"
    )


def _seed_of_interrupted(run: RunFolder) -> int | None:
    """Seed of an interrupted run in this folder, if there is one."""
    if not (run.resume / "call.json").exists():
        return None
    return int(kept_call(run.resume)["seed"])
