"""The record of a run on a flow table: what repeats it, and its main numbers."""

from collections.abc import Mapping
from typing import Any

from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.table.content import content_digest


def record_of(result: Protection, call: Mapping[str, Any]) -> dict[str, Any]:
    """What repeats the run, and its main numbers."""
    table = result.table
    record: dict[str, Any] = {
        **call,
        "input": {
            "source": table.source,
            "sha256": table.sha256,
            "content_sha256": content_digest(table),  # of the table in whatever file
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
