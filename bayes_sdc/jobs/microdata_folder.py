"""What a run on microdata leaves behind: reports and tables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.jobs.microdata_record import record_of
from bayes_sdc.jobs.treatment import TreatedRun
from bayes_sdc.jobs.writing import WrittenRun, csv_writer, text_writer, write_run
from bayes_sdc.microdata.comparison.result import RiskComparison
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.microdata.render import render_microdata
from bayes_sdc.report.page import all_or_nothing
from bayes_sdc.runs import RunFolder


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
        Where to write.
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
    done = None if treated is None else (treated.treatment, treated.utility, treated.file)
    if treated is not None:
        result = replace(result, checks=treated.checks_after(result.checks))
    with all_or_nothing():
        internal = render_microdata(
            result, audience="internal", call=call, key_sets=key_sets, treatment=done,
            treatments=treatments, attributes=None if treated is None else treated.attributes,
            proposals=None if treated is None else treated.proposals,
        )  # fmt: skip
        external = render_microdata(result, audience="external", call=call, treatment=done)
    tables = {"risk_by_record": _records(result), "risk_by_combination": _combinations(result)}
    tables["combinations_by_size"] = result.data.size_indices.reset_index()
    if result.latent_classes is not None:
        tables["risk_of_uniques"] = _uniques(result.latent_classes)
    if (found := result.drivers) is not None:
        tables |= {"uniques_by_key": found.keys.reset_index(), "uniques_by_value": found.values}
    if result.households is not None:
        tables["risk_by_household"] = result.households
    if key_sets is not None:
        tables["key_sets"] = key_sets.reset_index()
    if treatments is not None:
        tables["treatments"] = treatments
    if result.comparison is not None:
        tables |= _comparison(result.comparison)
    confidential = {f"{name}.csv": csv_writer(frame, index=False) for name, frame in tables.items()}
    record, public = record_of(result, call, key_sets), {"report.html": external.encode()}
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
    return result.risk.records().assign(risk_recommended=result.recommended_risk, **columns)


def _combinations(result: Measurement) -> pd.DataFrame:
    frame = result.risk.combinations
    keys = frame.index.to_frame(index=False)
    numbers = frame.reset_index(drop=True).assign(
        risk_recommended=result.recommended_by_combination, **_by_model(result)
    )
    # a key may be called f; its column then says that it is a key
    keys.columns = pd.Index(
        [
            f"key {name}" if name in numbers.columns or name == "combination" else name
            for name in keys
        ]
    )
    place = pd.Series(np.arange(1, len(frame) + 1), name="combination")
    return pd.concat([place, keys, numbers], axis=1)
