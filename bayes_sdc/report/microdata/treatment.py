"""What a report says about a treatment, to the agency and to the public."""

from typing import Any, Literal

import pandas as pd

from bayes_sdc.microdata.treatment.attributes import AttributeRisk
from bayes_sdc.microdata.treatment.intruder import KNOWLEDGE, KNOWS, MatchRisk
from bayes_sdc.microdata.treatment.release import ReleasedFile
from bayes_sdc.microdata.treatment.result import METHODS, Treatment
from bayes_sdc.microdata.treatment.utility import TreatedUtility
from bayes_sdc.report import plots
from bayes_sdc.report.microdata.public import public_share
from bayes_sdc.results import or_undefined

GOOD = {True: "good", False: "not good", None: "not judged"}
TRIED = {  # words, column and form
    "strength": ("strength", "g"),
    "right matches": ("expected", ",.1f"),
    "low": ("expected_low", ",.1f"),
    "high": ("expected_high", ",.1f"),
    "treated records known": ("strongest", ",.1f"),
    "highest risk": ("highest", ".3f"),
    "records treated": ("treated", ".0%"),
    "moved in tables of two": ("two_way", ".1%"),
    "of three": ("three_way", ".1%"),
    "pMSE ratio": ("pmse_ratio", ".1f"),
    "rare levels kept": ("rare_kept", ".0%"),
}
REGRESSION = {
    **dict.fromkeys(
        ("true", "true_low", "true_high", "released", "released_low", "released_high"), ".4g"
    ),
    "overlap": ".0%",
}


def tell_treatment(
    treatment: Treatment,
    utility: TreatedUtility,
    file: ReleasedFile,
    *,
    audience: Literal["internal", "external"],
) -> dict[str, Any]:
    """Return facts, and a table of the risk before and after.

    Parameters
    ----------
    treatment : Treatment
        From :func:`bayes_sdc.treat`.
    utility : TreatedUtility
        From :func:`bayes_sdc.treated_utility`.
    file : ReleasedFile
        What leaves.
    audience : {"internal", "external"}
        The public reads shares in whole per cents and no value of a record.

    Returns
    -------
    dict
        ``facts``, ``columns``, ``rows``, ``good_for``, ``tables``, ``regressions``, ``notes``,
        ``recoded``, ``before_recoded`` and ``only_recoded``.
    """
    before = "before, recoded file" if treatment.before_recoded else "before"
    if treatment.recoded is not None and not treatment.before_recoded:
        before = "before the recoding"
    alone = treatment.only_recoded
    both = treatment.recoded is not None and not alone
    risks = {before: treatment.before, "after both" if both else "after": treatment.after}
    if not alone:
        risks["after, treated records known"] = treatment.strongest
    after, treated = treatment.after, int(treatment.treated.sum())
    n, internal = treatment.data.n, audience == "internal"
    told = f"{treated:,} of {n:,}" if internal else public_share(treated / n, n)
    treated_facts = {
        "treated keys": ", ".join(treatment.treated_keys) or "none",
        "treated records": told,
    }
    facts = {
        "method": METHODS[treatment.method],
        **_recoded(treatment, internal),
        **({} if alone else treated_facts),
        "data sets": f"{treatment.datasets}",
        "released columns": ", ".join(map(str, file.frame.columns)),
        **_left_out(treatment, file, internal),
        "what the intruder knows of a target": f"{', '.join(after.keys)}; "
        f"{KNOWLEDGE[after.knowledge]}",
        **({} if alone else {"what they know of the treatment": KNOWS[after.knows]}),
    }
    rows = {name: _measures(risk, n, internal) for name, risk in risks.items()}
    return {
        "facts": facts,
        "columns": ["measure", *risks],
        "rows": [
            [measure, *(columns[measure] for columns in rows.values())] for measure in rows[before]
        ],
        "good_for": [
            [one.use, GOOD[one.good], *([one.reason] if internal else [])]
            for one in utility.good_for
        ],
        "tables": [
            [str(name), f"{row['distance']:.2%}"] for name, row in utility.tables.iterrows()
        ],
        "regressions": [
            [
                str(name),
                *(
                    or_undefined(None if pd.isna(row[column]) else float(row[column]), form)
                    for column, form in REGRESSION.items()
                ),
            ]
            for name, row in utility.regressions.iterrows()
        ],
        "notes": treatment.notes,
        "recoded": treatment.recoded is not None,
        "before_recoded": treatment.before_recoded,
        "only_recoded": alone,
    }


def _recoded(treatment: Treatment, internal: bool) -> dict[str, str]:
    """What recoding changed before the treatment."""
    if treatment.recoded is None:
        return {}
    n, changed = treatment.data.n, int(treatment.recoded.any(axis=1).sum())
    return {
        "recoded keys": ", ".join(treatment.recoded_keys),
        "records with coarser levels": f"{changed:,} of {n:,}"
        if internal
        else public_share(changed / n, n),
    }


def _left_out(treatment: Treatment, file: ReleasedFile, internal: bool) -> dict[str, str]:
    """What the file lacks of the input: whoever uses it must know, and how to change it."""
    told = {}
    if file.left_out:
        names = ", ".join(file.left_out) if internal else f"{len(file.left_out)} columns"
        told["columns left out"] = names + "; --keep releases others" * internal
    weight = treatment.data.weight_name
    if weight is not None and weight not in file.frame.columns:
        told["weights"] = "not released: the file tells nothing of numbers in the population"
    return told


def tell_attributes(risk: AttributeRisk) -> dict[str, Any]:
    """Numbers on what the released file tells of a sensitive variable, for the agency."""
    return {
        "sensitive": risk.sensitive,
        "keys": ", ".join(risk.keys),
        "rows": [[name, str(value), what] for name, value, what in risk.rows()],
        "notes": risk.notes,
    }


def tell_proposals(frame: pd.DataFrame) -> list[list[str]]:
    """Rows of the ranked recodings, best first, for the agency."""
    return [
        [
            str(name),
            *(f"{row['levels_' + when]:,.0f}" for when in ("before", "after")),
            *(f"{row['uniques_' + when]:,.0f}" for when in ("before", "after")),
            *(f"{row['expected_' + when]:,.1f}" for when in ("before", "after")),
            f"{row['bits_lost']:.3f}",
        ]
        for name, row in frame.iterrows()
    ]


def tell_treatments(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a picture and a table of the remaining risk and the cost of every treatment.

    Parameters
    ----------
    frame : DataFrame
        From :func:`bayes_sdc.compare_treatments`.

    Returns
    -------
    dict
        ``plot``, ``columns``, ``rows`` and ``left_out``, what was not tried.
    """
    return {
        "plot": plots.treatments(frame),
        "left_out": frame.attrs.get("left_out", []),
        "columns": ["treatment", *TRIED],
        "rows": [
            [
                str(row["method"]),
                *(
                    "" if name == "strength" and pd.isna(row[column])
                    else or_undefined(None if pd.isna(row[column]) else float(row[column]), form)
                    for name, (column, form) in TRIED.items()
                ),
            ]
            for _, row in frame.iterrows()
        ],
    }  # fmt: skip


def _measures(risk: MatchRisk, n: int, internal: bool) -> dict[str, str]:
    """Measures of a risk, in full or rounded."""
    false, (low, high) = risk.false_rate, risk.expected.interval
    if internal:
        return {
            "expected right matches": f"{risk.expected.value:,.1f}",
            # a row of its own: one cell of both would be too wide for two tables side by side
            "90 % interval": f"{low:,.1f} to {high:,.1f}",
            "highest risk of a record": f"{risk.highest:.4f}",
            "records with risk > 0.05": f"{risk.above(0.05):,}",
            "records with risk > 0.2": f"{risk.above(0.2):,}",
            "true match rate": f"{risk.true_rate:.3%}",
            "false match rate": "undefined" if false is None else f"{false:.2%}",
        }
    return {
        "expected share of records matched rightly": public_share(risk.expected.value / n, n),
        "share of records with risk > 0.05": public_share(risk.above(0.05) / n, n),
        "share of records with risk > 0.2": public_share(risk.above(0.2) / n, n),
        "true match rate": public_share(risk.true_rate, n),
        "false match rate": "undefined" if false is None else public_share(false, n),
    }
