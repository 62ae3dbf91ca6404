"""What a run on a flow table leaves behind: release, reports, posterior and tables."""

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.flows.intruder.log_ratios import log_ratios
from bayes_sdc.flows.intruder.probabilities.gain import as_frames
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.io.tables import encode
from bayes_sdc.jobs.flows_record import record_of
from bayes_sdc.jobs.writing import Writer, WrittenRun, csv_writer, text_writer, write_run
from bayes_sdc.progress import Progress
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.page import all_or_nothing
from bayes_sdc.runs import RunFolder
from bayes_sdc.shapes import Shapes


def write_flows(
    run: RunFolder, result: Protection, call: Mapping[str, Any], *, shapes: Shapes | None = None
) -> WrittenRun:
    """Write the folder of a run; files of an earlier run are deleted first.

    Parameters
    ----------
    run : RunFolder
        Where to write.
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
        record=record_of(result, call),
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
        tables["totals_not_to_publish"] = measured.kept.not_to_publish.set_index("margin")
    if measured.combined is not None:
        tables["combined_totals"] = measured.combined.totals.set_index("side")
    return tables
