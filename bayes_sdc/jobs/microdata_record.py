"""The record of a run on microdata: what repeats it, and its main numbers."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from bayes_sdc.microdata.file.microdata import VIOLATIONS
from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.individual.superpopulation import SuperpopulationRisk
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure.result import Measurement, Unstructured

CLASS_TOTALS = ("tau1", "tau2", "population_uniques", "kappa", "log_R")


def record_of(
    result: Measurement, call: Mapping[str, Any], key_sets: pd.DataFrame | None
) -> dict[str, Any]:
    """Return what repeats the run, and its main numbers."""
    data, classes, free = result.data, result.latent_classes, result.unstructured
    return {
        **call,
        "input": {**call.get("input", {}), **_input(result)},
        "notes": [*result.notes, *result.model_notes],
        "key_sets": None if key_sets is None else key_sets.to_dict("index"),
        "violations": {f"f < {k}": data.k_violations(k)._asdict() for k in VIOLATIONS},
        "risk": _closed_form(result.risk),
        "households": None if result.households is None else len(result.households),
        "expected_households": result.expected_households.get("recommended"),
        "latent_classes": None if classes is None else _latent_classes(classes),
        "models": {
            name: _model(model, result.expected_households.get(name))
            for name, model in result.models.items()
        },
        "unstructured": None if free is None else _unstructured(free),
        "truth": None if result.truth is None else result.truth._asdict(),
        "checks": [vars(check) for check in result.checks],
        "seconds": result.seconds,
    }


def _input(result: Measurement) -> dict[str, Any]:
    data = result.data
    return {
        "source": data.source,
        "sha256": data.sha256,
        "records": data.n,
        "population_size": result.population_size,
        "combinations": len(data.combinations),
        "keys": list(data.keys),
        "missing": data.missing,
        "notes": list(data.notes),
    }


def _closed_form(risk: RecordRisk) -> dict[str, Any]:
    return {
        "expected": risk.expected,
        "global_risk": risk.global_risk,
        "tau1": risk.tau1,
        "tau2": risk.tau2,
        "expected_by_household": risk.expected_by_household,
        "expected_households": risk.expected_households,
    }


def _latent_classes(found: LatentClassRisk) -> dict[str, Any]:
    return {
        **{name: getattr(found, name)._asdict() for name in CLASS_TOTALS},
        "trusted": found.trusted,
        "gain": found.gain,
        "diagnostics": found.diagnostics.to_dict("index"),
        "notes": list(found.notes),
    }


def _model(model: SuperpopulationRisk, households: float | None) -> dict[str, Any]:
    return {
        "expected": model.expected._asdict(),
        "tau1": model.tau1._asdict(),
        "tau2": model.tau2._asdict(),
        "expected_households": households,
        "draws": model.draws,
        "notes": list(model.notes),
    }


def _unstructured(free: Unstructured) -> dict[str, Any]:
    return {
        "cells": free.cells,
        "uniform": free.uniform,
        "uniform_deviation": free.uniform_deviation,
        "learned": free.learned.uniques._asdict(),
        "concentration": free.learned.concentration._asdict(),
    }
