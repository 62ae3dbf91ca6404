"""Numbers of a measured file as rows of text, for the internal report."""

from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.microdata.file.microdata import VIOLATIONS, Microdata
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.report import plots
from bayes_sdc.report.microdata.public import LEVELS

RISKIEST = 10


def violation_rows(data: Microdata) -> list[list[str]]:
    """Records and combinations that are rarer than each k."""
    violations = []
    for k in VIOLATIONS:
        low = data.k_violations(k)
        share = f"{low.records / data.n:.2%}"
        violations.append([f"f < {k}", f"{low.records:,}", share, f"{low.combinations:,}"])
    return violations


def measure_rows(result: Measurement) -> list[list[str]]:
    """Totals of the closed form, and how many records are beyond each level."""
    risk = result.risk
    by_record = result.recommended_risk
    recommended = (
        []
        if result.latent_classes is None
        else [
            [
                f"records with risk > {level:g}, sample uniques by latent classes",
                f"{int((by_record > level).sum()):,}",
            ]
            for level in LEVELS
        ]
    )
    above = [(f"with risk > {level:g}", risk.above(level)) for level in LEVELS]
    above.append((f"above the bulk (risk > {risk.bulk_limit:.4g})", risk.above_bulk()))
    return [
        ["expected re-identifications", f"{risk.expected:,.2f}"],
        ["global risk (mean)", f"{risk.global_risk:.3%}"],
        ["sample uniques that are population uniques (tau1)", f"{risk.tau1:,.2f}"],
        ["right matches among sample uniques (tau2)", f"{risk.tau2:,.2f}"],
        *(
            [f"records, combinations {what}", f"{t.records:,}, {t.combinations:,}"]
            for what, t in above
        ),
        *recommended,
    ]


def class_rows(found: LatentClassRisk) -> list[list[str]]:
    """Estimates by latent classes with 90 % intervals."""
    totals = [
        ("tau1, sample uniques that are population uniques", found.tau1),
        ("tau2, expected correct matches of sample uniques", found.tau2),
        ("population uniques, in the file or not", found.population_uniques),
        ("kappa, how scatter goes with size (0: not at all, 1: in proportion)", found.kappa),
        ("log R, 0 for strong scatter, 5 for none", found.log_R),
    ]
    rows = [
        [what, f"{total.value:,.2f}", f"{total.interval[0]:,.2f} to {total.interval[1]:,.2f}"]
        for what, total in totals
    ]
    for level in LEVELS:
        above = int((found.records["P_unique"] > level).sum())
        rows.append([f"sample uniques with P(F = 1) > {level:g}", f"{above:,}", ""])
    return rows


def key_set_rows(table: pd.DataFrame | None) -> dict[str, Any]:
    """Totals of each set of key variables, and a picture of them."""
    if table is None:
        return {"key_sets": [], "key_sets_plot": ""}
    counts = [f"records_below_{k}" for k in VIOLATIONS]
    rows = [
        [
            str(name),
            *(f"{row[column]:,.0f}" for column in ("keys", "combinations", *counts)),
            f"{row['expected']:,.2f}",
            f"{row['global_risk']:.3%}",
            f"{row['tau1']:,.2f}",
            f"{row['tau2']:,.2f}",
        ]
        for name, row in table.iterrows()
    ]
    return {"key_sets": rows, "key_sets_plot": plots.key_sets(table)}


def riskiest_columns(result: Measurement) -> list[str]:
    """Names of the columns of :func:`riskiest_rows`."""
    columns = [*result.data.keys, "records", "f", "F", "risk"]
    return [*columns, "90 % interval", "closed form"] if result.latent_classes else columns


def riskiest_rows(result: Measurement) -> list[list[str]]:
    """The combinations with the highest risk: sample uniques by latent classes, if fitted."""
    data, frame, found = result.data, result.risk.combinations, result.latent_classes
    risk = result.recommended_by_combination
    ends: dict[int, str] = {}
    if found is not None:
        low, high = (found.records[f"inverse_F_{end}"] for end in ("low", "high"))
        places = data.combination[found.records.index]
        ends = {
            int(place): f"{a:.4f} to {b:.4f}" for place, a, b in zip(places, low, high, strict=True)
        }
    order = np.argsort(-risk, kind="stable")[:RISKIEST]
    top = frame.iloc[order]
    labels = top.index.to_frame().to_numpy(dtype=object)
    return [
        [
            *(
                "(missing)" if pd.isna(value) else data.shown(key, str(value))
                for key, value in zip(data.keys, values, strict=True)
            ),
            f"{row.records:,}",
            f"{row.f:,}",
            f"{row.F:,.1f}",
            f"{risk[place]:.4f}",
            *([] if found is None else [ends.get(place, "none given"), f"{row.risk:.4f}"]),
        ]
        for place, values, row in zip(
            order.tolist(), labels, top.itertuples(index=False), strict=True
        )
    ]


def interval(estimate: Estimate) -> str:
    """Write an estimate with its interval."""
    low, high = estimate.interval
    return f"{estimate.value:,.1f} ({low:,.1f} to {high:,.1f})"


def unstructured_rows(result: Measurement) -> list[list[str]]:
    """Expected population uniques under models without structure."""
    found = result.unstructured
    if found is None:
        return []
    c, uniques = found.learned.concentration, found.learned.uniques
    return [
        [
            "uniform on all tables (c = 1)",
            f"{found.uniform:,.2f}",
            f"standard deviation {found.uniform_deviation:,.2f}",
        ],
        [
            f"concentration learned (c = {c.value:.3g})",
            f"{uniques.value:,.2f}",
            f"95 % interval {uniques.interval[0]:,.0f} to {uniques.interval[1]:,.0f}",
        ],
    ]


def household_rows(result: Measurement) -> list[list[str]]:
    """Risk of households and of persons in them, sample uniques by latent classes if fitted."""
    homes, inside = result.households, result.expected_by_household
    if homes is None or inside is None:
        return []
    found, risk, persons = result.expected_households, homes["risk_recommended"], homes["persons"]
    others = [(f"model {name}", found[name]) for name in result.models]
    if result.latent_classes is not None:
        others.insert(0, ("closed form", float(np.sort(homes["risk"]).sum())))
    return [
        ["households", f"{len(homes):,}"],
        ["expected re-identified households", f"{found['recommended']:,.2f}"],
        *([f"expected re-identified households, {by}", f"{number:,.2f}"] for by, number in others),
        *([f"households with risk > {level:g}", f"{(risk > level).sum():,}"] for level in LEVELS),
        ["expected persons in re-identified households", f"{inside:,.2f}"],
        ["mean household risk of a person", f"{inside / result.data.n:.3%}"],
        *(
            [f"persons with household risk > {level:g}", f"{persons[risk > level].sum():,}"]
            for level in LEVELS
        ),
    ]
