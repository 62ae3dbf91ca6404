"""Every number of every table of the reports equals the result to the last digit that is shown.

What a table should hold is written down here once more, from the result alone. A table that is not
written down fails the test, and so does a row too many or too few.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from types import EllipsisType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lxml import html

from bayes_sdc import Gain, LatentClassRisk, Protection, log_ratios
from bayes_sdc.checks import Check
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.parameters import effects, extreme
from bayes_sdc.flows.release.use.uses import VERDICTS
from bayes_sdc.microdata.individual.superpopulation import MODELS
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.flows import render as flows
from bayes_sdc.report.flows.public_shares import PublicShares
from bayes_sdc.report.flows.public_verdicts import public_uses
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.microdata import render as microdata
from bayes_sdc.report.microdata.render import render_microdata

pytestmark = pytest.mark.usefixtures("sketches")

CALL: dict[str, Any] = {
    "command": "bayes-sdc",
    "created": "2026-11-27",
    "seed": 987654321,
    "arguments": {"draws": 30, "groups": ["a", "b"], "share": None, "releases": 3},
    "versions": {"bayes-sdc": "0.1.0", "numpy": "2.5.5"},
}
NUMBER = r"([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?(?: ?%)?)"
NO_NUMBER = re.compile("undefined|none|unknown|not shown")
MARKS = {"pass": "✓ pass", "look": "! look", "fail": "✗ fail", "not shown": "not shown"}
CONTENTS = "Contents and verdicts"

# words as they are; a number; None: said in words that there is none; a pattern with its numbers;
# ...: words that other tests read
Cell = str | float | None | tuple[Any, ...] | EllipsisType


def shown(text: str) -> dict[str, list[list[str]]]:
    """Rows of each table but its head, by caption."""
    tables = {}
    for table in html.fromstring(text).iter("table"):
        caption = table.find("caption")
        for small in caption.findall("small"):
            small.drop_tree()
        name = caption.text_content().strip()
        assert name not in tables, f"two tables are called {name!r}"
        tables[name] = [
            [cell.text_content().strip() for cell in row] for row in table.iterfind("tbody/tr")
        ]
    return tables


def digits_agree(text: str, value: float) -> bool:
    """Whether a number is the value, rounded to the digits that it has."""
    percent = text.endswith("%")
    number = Decimal(text.rstrip("% ").replace(",", ""))
    half = 0.5 * 10.0 ** int(number.as_tuple().exponent)
    return abs(float(number) - float(value) * (100 if percent else 1)) <= half * (1 + 1e-9)


def agrees(text: str, cell: Cell) -> bool:
    if cell is ...:
        return True
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return NO_NUMBER.match(text) is not None
    if isinstance(cell, str):
        return text == cell
    pattern, *values = cell if isinstance(cell, tuple) else ("{}", cell)
    found = re.fullmatch(re.escape(pattern).replace(r"\{\}", NUMBER), text)
    return found is not None and all(map(digits_agree, found.groups(), values))


def compare(text: str, expected: dict[str, list[list[Cell]]]) -> None:
    tables = shown(text)
    del tables[CONTENTS]
    assert sorted(tables) == sorted(expected), "a table is not checked, or missing"
    for caption, rows in expected.items():
        assert len(tables[caption]) == len(rows), f"rows of {caption!r}"
        for row, (is_shown, wanted) in enumerate(zip(tables[caption], rows, strict=True)):
            assert len(is_shown) == len(wanted), f"cells of row {row} of {caption!r}"
            for part, cell in zip(is_shown, wanted, strict=True):
                assert agrees(part, cell), f"{caption!r}, row {row}: {part!r} is not {cell!r}"


@pytest.mark.parametrize(
    ("text", "value", "right"),
    [
        ("23.3%", 0.23349, True),
        ("23.3%", 0.23351, False),
        ("12 %", 0.124, True),
        ("1,234.5", 1234.54, True),
        ("1,234.5", 1234.56, False),
        ("-0.02", -0.021, True),
        ("-0.02", 0.021, False),
        ("0.00309", 0.0030851, True),
        ("3.1e-05", 3.16e-05, False),
    ],
)
def test_comparison_sees_the_last_digit(text: str, value: float, right: bool) -> None:
    """Else all that follows would pass for any number."""
    assert agrees(text, value) is right


def test_comparison_tells_words_from_numbers() -> None:
    assert agrees("undefined", float("nan"))
    assert not agrees("nan", float("nan"))
    assert not agrees("0.0%", None)
    assert agrees("21.7% to 24.9%", ("{} to {}", 0.217, 0.249))
    assert not agrees("21.7% to 24.9%", ("{} to {}", 0.217, 0.24))
    assert not agrees("21.7% to 24.9%", 0.217)


# ---- flow tables -----------------------------------------------------------------------------


def row_classes(result: Protection) -> list[tuple[str, int]]:
    table = result.table
    low, high = table.low, table.high
    return [
        ("rows read", table.n_read),
        (f"small (count from {low} to {high}): protected", table.n_small),
        (f"safe (count above {high}): unchanged", table.n_safe),
        ("own area (origin is destination), or total: not in the model", table.n_set_aside),
        (f"below {low}: unchanged", table.n_below),
        ("groups with small cells", table.cells["group"].nunique()),
    ]


def gain_tables(result: Protection) -> dict[str, list[list[Cell]]]:
    """Before and after the release: by prior in the worst case, and by cell."""
    table, risk, worst = result.table, result.measured.risk, result.measured.worst

    def of_cells(gain: Gain, by: str) -> list[list[Cell]]:
        cells = gain.by_cell
        # of the most probable, those that the release lifts above 80 % come first
        lifted = (cells["before"] <= 0.8) & (cells["after"] > 0.8) & (by == "after")
        order = cells.assign(lifted=lifted).sort_values(
            ["lifted", by], ascending=False, kind="stable"
        )
        first = order.iloc[:20]
        return [
            [
                *table.cells.loc[label, ["origin", "destination", "group"]],
                table.cells.loc[label, "y"] + table.low,
                *(g["before"], g["after"]),
                ("the release" if g["moved"] else "known anyway")
                if by == "after"
                else g["after"] / g["before"],
            ]
            for label, g in first.iterrows()
        ]

    ratios = log_ratios(worst)
    steps = table.k
    return {
        "Before and after the release, by what the intruder expects": [
            [
                name + " (strongest)" * (gain is worst.strongest),
                *(gain.guessed.before, gain.guessed.after),
                ("{} points", 100 * gain.guessed.gain),
                ("{} points", 100 * gain.guessed.monte_carlo_error),
                ("{} → {}", gain.unique.before, gain.unique.after),
                ("{} → {}", gain.probability.before, gain.probability.after),
                ("{} bits", gain.by_cell["bits"].mean()),
                ("{} to {}", *gain.bits.interval),
                ("{} / {} / {}", *gain.pushed.values()),
                (gain.by_cell["after"] / gain.by_cell["before"]).max(),
            ]
            for name, gain in worst.gains.items()
        ],
        "Cells that the release moves most": of_cells(worst.strongest, "bits"),
        "Cells whose true count is most probable": of_cells(risk.strongest, "after"),
        "Log ratio of release probabilities": [
            [
                name,
                *(q["neighbours"], q["neighbours_at_least"], q["neighbours"]),
                *(q["any_pair"], q["any_pair_at_least"], q["any_pair"] / steps),
            ]
            for name, q in zip(
                ("median", "95 % of cells below", "largest"),
                (ratios.by_cell.quantile(part) for part in (0.5, 0.95, 1.0)),
                strict=True,
            )
        ],
    }


def limits(result: Protection | Measurement, *, internal: bool) -> list[list[Cell]]:
    return [
        [
            check.name.removeprefix("limit "),
            check.definition,
            MARKS[check.verdict],
            check.exceeded_when,
            *([check.value] if internal else []),
        ]
        for check in result.checks
        if isinstance(check, LimitCheck)
    ]


def made(call: dict[str, Any], seconds: dict[str, float]) -> dict[str, list[list[Cell]]]:
    words = {None: "none"}
    return {
        "Arguments": [
            [name, ", ".join(value) if isinstance(value, list) else words.get(value, str(value))]
            for name, value in call["arguments"].items()
        ],
        "Time of each stage": [list(pair) for pair in seconds.items()],
        "Versions": [list(pair) for pair in call["versions"].items()],
    }


def use_of(result: Protection) -> list[Check]:
    """The verdicts on use and trust that page one gives, from the limits it states."""
    use, gain = result.measured.utility, result.measured.worst.strongest
    error, ratio = use.totals_error, use.pmse_ratio
    doubt = f"{gain.unreliable} of {gain.cells} cells rest on unreliable weights or too few draws"
    return [
        *([] if gain.trusted else [Check("trust", "look", doubt, key="gain_trust")]),
        Check(
            "error of totals",
            "pass" if error <= 0.1 else "look",
            f"{error:.1%}, pass up to 10%",
            key="use_totals_error",
        ),
        Check(
            "pMSE ratio",
            "pass" if ratio <= 3.0 else "look",
            f"{ratio:.2f}, pass up to 3",
            key="use_pmse_ratio",
        ),
    ]


def contents(
    result: Protection | Measurement,
    sections: dict[str, tuple[str, tuple[str, ...]]],
    more: Sequence[Check] = (),
) -> list[list[str]]:
    """Sections with the worst verdict of their checks, and in short why."""
    rows = []
    for id_, (title, keys) in sections.items():
        mine = [check for check in (*result.checks, *more) if check.key in keys]
        # neither a promise nor a treatment was asked for
        if id_ in ("other", "guarantee", "treatment", "treatments"):
            continue
        worst = next((v for v in ("fail", "look", "pass") if v in {c.verdict for c in mine}), "")
        names: dict[str, list[str]] = {}  # one reason of several checks is said once
        for check in mine:
            if check.verdict == worst:
                named = worst == "pass" or check.key.startswith("limit_")
                names.setdefault("" if named else check.reason, []).append(check.name)
        room = 120 if len(names) < 2 else 60
        reasons = [", ".join(one) + short(reason, room) for reason, one in names.items()]
        why = "; ".join(reasons)
        if len(names) > 2:
            why = ", ".join(check.name for check in mine if check.verdict == worst)
        rows.append([f"{len(rows) + 1}. {title}", MARKS.get(worst, "facts"), why])
    return rows


def short(reason: str, room: int) -> str:
    """What stands after the name of a check: as many whole words as there is room for."""
    if len(reason) <= room:
        return f": {reason}" if reason else ""
    clauses = re.split(r"(?<=[;.]) ", reason)  # as many as there is room for
    while len(clauses) > 1 and len(" ".join(clauses)) > room + 1:
        clauses.pop()
    if len(together := " ".join(clauses)) <= room + 1:
        return f": {together[:-1]}"
    words = clauses[0].split(" ")
    while len(" ".join(words)) > room - 2:
        words.pop()
    return f": {' '.join(words).rstrip(' ,:')} …"


def pairs_by_distance(result: Protection) -> list[list[Any]]:
    khat, y = result.measured.risk.khat.to_numpy(), result.table.cells["y"].to_numpy()
    rows: list[list[Any]] = []
    for d in range(1, result.table.k + 1):
        at = np.abs(np.arange(result.table.k + 1) - y[:, None]) == d
        above = int((khat[at] > result.measured.risk.khat_threshold).sum())
        rows.append([d, int(at.sum()), above, above / at.sum()])
    return rows


def classes(frame: pd.DataFrame, names: Sequence[Any]) -> list[list[Cell]]:
    measures = ["cells", "r_all", "true_count_probability", "mean_distance"]
    return [
        [name, *row] for name, row in zip(names, frame[measures].to_numpy().tolist(), strict=True)
    ]


def totals(result: Protection) -> tuple[list[list[Cell]], list[list[Cell]]]:
    """Summary and rows of the totals by area, from the cells and the release."""
    table = result.table
    cells = table.cells.assign(
        true=table.cells["y"] + table.low,
        synthetic=result.release[table.count].to_numpy()[table.cells["row"]],
    )
    rows: list[list[Any]] = []
    summary: list[list[Cell]] = []
    for side in ("origin", "destination"):
        errors = []
        for area, part in cells.groupby(side):
            true, synthetic = part["true"].sum(), part["synthetic"].sum()
            error = (synthetic - true) / true
            errors.append(abs(error))
            rows.append([area, side, len(part), true, synthetic, synthetic - true, error])
        summary.append(
            [f"by {side}", len(errors), np.median(errors), float(np.quantile(errors, 0.95))]
        )
    rows.sort(key=lambda row: -abs(row[-1]))
    return summary, rows


def intruder_in_numbers(result: Protection) -> list[list[Cell]]:
    columns = []
    for risk in (result.measured.risk, result.measured.worst):
        assert risk is not None
        n, p = risk.rho.sizes["cell"], risk.true_count_probability
        low, high = risk.expected_correct_interval
        columns.append(
            {
                "R_all": risk.r_all.value,
                "R_unq": risk.r_unq.value,
                "R_all of an intruder who believes the first released count": (
                    risk.believes_release
                ),
                "R_unq of an intruder who believes the first released count": (
                    risk.r_unq.believes_release
                ),
                "R_all of an intruder who sees no release": risk.r_all.baseline,
                "R_unq of an intruder who sees no release": risk.r_unq.baseline,
                "correct guesses that the intruder expects": (
                    f"{{}} of {n}: {{}}",
                    risk.expected_correct * n,
                    risk.expected_correct,
                ),
                "95 % interval of these": ("{} to {}", low * n, high * n),
                "mean probability of the true count": float(p.mean()),
                "mean distance d_t": float(risk.distance.mean()),
                "cells with a probability of the true count above 0.5": int((p > 0.5).sum()),
                "cells with a probability of the true count above 0.9": int((p > 0.9).sum()),
                "cells refitted": int(risk.refitted.sum()),
                "cells still unreliable": risk.unreliable_cells,
                "smallest effective number of draws": float(risk.ess.min()),
                "largest Monte Carlo error of a release probability": float(
                    risk.release_probability_error.max()
                ),
            }
        )
    return [[name, *(column[name] for column in columns)] for name in columns[0]]


def found_shares(result: Protection) -> list[list[Cell]]:
    def row(name: str, share: Share) -> list[Cell]:
        assert share.interval is not None
        return [
            name,
            share.cells,
            share.value,
            ("{} to {}", *share.interval),
            # else a small error stands beside a share that is not to be trusted
            share.monte_carlo_error
            if share.trusted
            else ("{}, and the error of unreliable weights", share.monte_carlo_error),
            share.baseline,
            share.believes_release,
        ]

    return [
        row(f"{name}, {risk.knowledge}", share)
        for risk in (result.measured.risk, result.measured.worst)
        if risk is not None
        for name, share in (("R_all", risk.r_all), ("R_unq", risk.r_unq))
    ]


def flows_tables(result: Protection) -> dict[str, list[list[Cell]]]:
    """What the internal report of a protected table should show."""
    risk, table = result.measured.risk, result.table
    assert risk is not None
    counted = ["rhat_above", "ess_below", "parameters", "cells"]  # gibbs does not diverge
    counted += ["origins", "destinations", "blocks", "at_bound"]
    margin_summary, margin_rows = totals(result)
    by_group = result.measured.classes["group"].sort_values(
        ["true_count_probability", "r_all"], ascending=False, kind="stable"
    )
    measures = {
        "R_all": "r_all",
        "R_unq": "r_unq",
        "mean distance": "mean_distance",
        "mean probability of the true count": "true_count_probability",
        "R_all, believing the first released count": "believes_release",
        "R_unq, believing the first released count": "believes_release_unq",
        "R_all, without the release": "no_release",
        "R_unq, without the release": "no_release_unq",
    }
    use = result.measured.utility
    candidates = result.measured.choice.candidates
    return {
        "Rows of the table by class": [list(pair) for pair in row_classes(result)],
        "Limits of the policy": limits(result, internal=True),
        "Convergence by group, worst first": [
            [
                str(label),
                MARKS[g["verdict"]],
                str(g["worst"]),
                g["rhat"] if np.isfinite(g["rhat"]) else None,
                g["ess"],
                *g[counted],
                "yes" if g["by_prior"] else "no",
            ]
            for label, g in result.measured.groups.iterrows()
        ],
        "Posterior of the hyperparameters": [
            [one.name, median, ("{} to {}", lower, upper)]
            for one in hyperparameters(result.measured.posterior)
            for median, lower, upper in [one.quantiles()]
        ],
        "Most extreme effects, deviations of the log rate from the group's mean": [
            [e["side"], e["group"], e["area"], e["median"], ("{} to {}", e["lower"], e["upper"])]
            for _, e in extreme(effects(result.measured.posterior), number=10).iterrows()
        ],
        "Small cells by count, observed and expected": [
            [
                count,
                int((table.cells["y"] + table.low == count).sum()),
                c["expected"],
                ("{} to {}", c["lower"], c["upper"]),
                (c["expected"] - c["observed"]) / c["observed"] if c["observed"] else None,
            ]
            for count, c in result.measured.predictive.iterrows()
        ],
        "Relative errors of the totals, without sign": margin_summary,
        "Totals of the small cells, largest relative error first": margin_rows,
        "Assumptions": [
            *[["estimator", ...], ["prior of the intruder", ...]],
            *[["knowledge of the intruder", ...], ["knowledge in the worst case, beside", ...]],
            ["released data sets", risk.datasets],
            ["R_all", risk.r_all.definition],
            ["R_unq", risk.r_unq.definition],
        ],
        "Share of cells found": found_shares(result),
        "Intruder in numbers": intruder_in_numbers(result),
        **gain_tables(result),
        "Risk by true count": classes(
            result.measured.classes["true-count"], result.measured.classes["true-count"].index
        ),
        "Risk by group, highest mean probability first": classes(by_group, by_group.index),
        "Risk by size of area": classes(
            result.measured.classes["area-size"],
            ["1, the smallest areas", "2", "3", "4, the largest areas"],
        ),
        "Spread over independent releases": [
            [name, *(result.measured.repeats[column].agg(f) for f in ("mean", "min", "max", "std"))]
            for name, column in measures.items()
        ],
        "Risk by number of data sets": [
            [m, *g[list(measures.values())], ("{} to {}", g["r_all_low"], g["r_all_high"])]
            for m, g in result.measured.by_datasets.iterrows()
            if m in (1, 2, 5, 10, 20)
        ],
        "Candidate releases": [
            [
                str(number),
                *("yes" if c[name] else "no" for name in ("chosen", "within_limits")),
                *c[["totals_error", "r_all", "r_unq"]],
                *c[["true_count_probability", "largest_probability"]],
            ]
            for number, c in candidates.sort_values(
                "chosen", ascending=False, kind="stable"
            ).iterrows()
        ],
        "Utility of the release": [
            ["error of totals by area", use.totals_error],
            ["error of net migration, persons by area", use.net_migration_error],
            [
                "released count in the size band of the true one (1 to 2, 3 to 5, 6 to 9)",
                use.right_band,
            ],
            ["mean log of released over true", use.log_ratio_mean],
            [
                "log of released over true, 5 and 95 % quantiles",
                ("{} to {}", *use.log_ratio_interval),
            ],
            ["pMSE", use.pmse],
            ["pMSE ratio", use.pmse_ratio],
            ["released data sets", use.datasets],
        ],
        "Errors of totals": [
            [
                f"by {side}",
                *t[["areas", "total_error", "mean_relative_error", "mean_relative_error_all"]],
            ]
            for side, t in use.totals.iterrows()
        ],
        "Good for, not good for": [
            [
                row["verdict"],
                row["use"],
                row["measure"],
                row["value"],
                "one data set" if pd.isna(row["covered"]) else row["covered"],
            ]
            for _, row in result.measured.uses.table.iterrows()
        ],
        "pMSE ratio with further functions of the count": [
            ["count, log count, smallest, largest", result.measured.distinguished.every.ratio],
            ["the same without the count", result.measured.distinguished.others.ratio],
            [
                "right model, by simulation (5 and 95 %)",
                ("{} to {}", *result.measured.distinguished.null),
            ],
            ["excess over 1, per 10,000 cells", result.measured.distinguished.excess],
        ],
        "Risk and utility by method": compared(ends_of(result.measured.tradeoff)),
        "Input and seed": [
            ["date", CALL["created"]],
            ["seed", CALL["seed"]],
            ["input", table.source],
            ["SHA-256 of the input", str(table.sha256)],
            ["SHA-256 of the released table", "none: not written yet"],
        ],
        **made(CALL, result.seconds),
        # what is not the default, and what the defaults stood for
        "Arguments": [
            ["draws", "30"],
            ["groups", "a, b"],
            ["releases", "3"],
            *(
                [name, str(result.measured.posterior.attrs[name])]
                for name in ("family", "prior", "tune")
            ),
        ],
    }


def ends_of(frame: pd.DataFrame) -> pd.DataFrame:
    """First and last number of data sets of each method."""
    number = frame.groupby(["method", "knowledge"])["datasets"]
    ends = (number.transform("min"), number.transform("max"))
    return frame[(frame["datasets"] == ends[0]) | (frame["datasets"] == ends[1])]


def compared(frame: pd.DataFrame) -> list[list[Cell]]:
    numbers = ["r_all", "r_unq", "true_count_probability", "mean_distance", "totals_error"]
    knows = {"margins": "sums by origin", "all-others": "all other cells"}
    return [
        [
            row["method"],
            knows[row["knowledge"]],
            row["datasets"],
            *row[[*numbers, "right_band", "pmse_ratio"]],
        ]
        for _, row in frame.iterrows()
    ]


def test_internal_report_of_a_table_shows_the_result(chosen: Protection) -> None:
    text = render_flows(chosen, audience="internal", call=CALL)
    compare(text, flows_tables(chosen))
    assert shown(text)[CONTENTS] == contents(chosen, flows.SECTIONS, use_of(chosen))


def test_numbers_in_sentences_of_a_table_equal_the_result(chosen: Protection) -> None:
    text = " ".join(
        part.text_content()
        for part in html.fromstring(render_flows(chosen, audience="internal", call=CALL)).iter("p")
    )
    pairs = pairs_by_distance(chosen)
    high, of = (sum(row[column] for row in pairs) for column in (2, 1))
    cells, spread = chosen.table.n_small, chosen.measured.dispersion
    for sentence in (
        f"dispersion of the small counts is {spread.value:.2f}, "
        f"and {spread.lower:.2f} to {spread.upper:.2f} in 95 %",
        f"k-hat above {chosen.measured.risk.khat_threshold:.2f} are unreliable",
        f"{chosen.measured.risk.unreliable_cells} of {cells} cells have such a candidate count. "
        f"The k-hat is too high for {high} of {of} pairs",
        f"{len(chosen.measured.repeats)} independent releases",
    ):
        assert sentence in text


def two_figures(n: int) -> str:
    """Return a number in words, as it is told to the public."""
    if n < 10:
        return "fewer than 10" if n else "none"
    step = 10 ** max(1, len(str(n)) - 2)
    return f"about {int(Decimal(n) / step + Decimal('0.5')) * step:,}"


def test_external_report_of_a_table_shows_the_rounded_result(large: Protection) -> None:
    public = PublicShares(CALL["seed"])
    uses = public_uses(large.measured.uses.table, public)
    cells, persons = large.table.n_small, (large.table.cells["y"] + large.table.low).sum() / 2
    believed = "R_all of an intruder who believes the first released count"
    use, measured = large.measured.utility, large.measured

    def compared_with_noise(frame: pd.DataFrame) -> list[list[Cell]]:
        """Every measure of a method moved by a noise of its own, and none of the rules'."""
        frame = frame.assign(r_unq=np.nan)
        for place, row in frame.iterrows():
            ours = f"{row['method']}, {row['knowledge']}"
            use = {"right_band": cells, "totals_error": persons}
            for name, units in use.items():
                frame.loc[place, name] = public.moved(row[name], units, f"{name}, {row['method']}")
            if ours == "suppression, all-others":
                continue
            for name in ("r_all", "true_count_probability"):
                frame.loc[place, name] = public.moved(row[name], cells, f"{name}, {ours}")
            noise = public.noise(cells, f"mean_distance, {ours}")
            frame.loc[place, "mean_distance"] = max(row["mean_distance"] + noise, 0)
        return [row[:-1] for row in compared(frame)]

    risks = (large.measured.risk, large.measured.worst)
    columns = [
        (
            public.moved(risk.r_all.value, risk.r_all.cells, f"R_all, {risk.knowledge}"),
            None,
            public.moved(risk.believes_release, cells, believed),
            *(None, 1 / 9, 1 / 9),
            public.moved(risk.expected_correct, cells, f"expected, {risk.knowledge}"),
        )
        for risk in risks
        if risk is not None
    ]
    names = [
        "R_all: cells found",
        "R_unq: few cells found",
        "R_all of an intruder who believes the first released count",
        "R_unq of an intruder who believes the first released count",
        "R_all found by guessing, without the release",
        "R_unq found by guessing, without the release",
        "share of correct guesses that the intruder expects",
    ]
    ends = large.measured.tradeoff[
        large.measured.tradeoff.groupby(["method", "knowledge"])["datasets"].transform(
            lambda d: (d == d.min()) | (d == d.max())
        )
    ]
    del (tables := made(CALL, {}))["Time of each stage"]
    compare(
        render_flows(large, audience="external", call=CALL),
        tables
        | {
            "Rows of the table by class": [[c, two_figures(n)] for c, n in row_classes(large)],
            "Limits of the policy": [["r_all", ..., "not shown", "> 0.9"]],
            "Assumptions": [[..., ...]] * 4 + [["released data sets", 1]],
            "Risk, rounded": [
                [name, *values]
                for name, values in zip(names, zip(*columns, strict=True), strict=True)
            ]
            + [
                ["cells refitted", ..., ...],
                ["cells that cannot be relied on", ..., ...],
            ],
            "Risk by number of data sets, rounded": [
                [
                    m,
                    *(
                        public.moved(g[name], 2731, f"{name} by data sets")
                        for name in ("r_all", "believes_release")
                    ),
                    g["no_release"],
                ]
                for m, g in measured.by_datasets.iterrows()
                if m in (1, 2, 5, 10, 20)
            ],
            "Utility of the release, rounded": [
                [
                    "error of totals by area",
                    public.moved(use.totals_error, persons, "error of totals"),
                ],
                [
                    "released count in the size band of the true one",
                    public.moved(use.right_band, cells, "size band"),
                ],
            ],
            "Good for, not good for": [
                [verdict, ", ".join(use for of, use in uses if of == verdict)]
                for verdict in VERDICTS
                if any(of == verdict for of, _ in uses)
            ],
            "Risk and utility by method, rounded": compared_with_noise(ends),
            "Arguments": [
                ["draws", "30"],
                ["releases", "3"],
                *(
                    [name, str(large.measured.posterior.attrs[name])]
                    for name in ("family", "prior", "tune")
                ),
            ],
        },
    )


# ---- files of persons ------------------------------------------------------------------------


def with_interval(estimate: Any) -> tuple[Any, ...]:
    return ("{} ({} to {})", estimate.value, *estimate.interval)


def above_levels(result: Measurement) -> list[list[Cell]]:
    """Counted from the table of the records; the levels of the SUDA score are powers of ten."""
    assert result.comparison is not None
    records = result.comparison.records
    levels = [("DIS-SUDA", level) for level in (0.05, 0.1, 0.2, 0.5)] + [("SUDA score", 0.0)]
    largest = records["SUDA score"].max()
    levels += [("SUDA score", 10.0**k) for k in range(9) if k == 0 or 10.0**k <= largest]
    return [[f"{name} > {at:,g}", int((records[name] > at).sum())] for name, at in levels]


def latent_classes(found: LatentClassRisk) -> list[list[Cell]]:
    """Totals with their intervals, and sample uniques above levels."""
    named = {
        "tau1, sample uniques that are population uniques": found.tau1,
        "tau2, expected correct matches of sample uniques": found.tau2,
        "population uniques, in the file or not": found.population_uniques,
        "kappa, how scatter goes with size (0: not at all, 1: in proportion)": found.kappa,
        "log R, 0 for strong scatter, 5 for none": found.log_R,
    }
    alone = found.records["P_unique"].to_numpy()
    return [
        *([name, total.value, ("{} to {}", *total.interval)] for name, total in named.items()),
        *(
            [f"sample uniques with P(F = 1) > {level:g}", int((alone > level).sum()), ""]
            for level in (0.05, 0.1, 0.2, 0.5)
        ),
    ]


def microdata_tables(result: Measurement) -> dict[str, list[list[Cell]]]:
    """What the internal report of a file should show."""
    data, risk, found = result.data, result.risk, result.comparison
    assert result.truth is not None
    assert result.unstructured is not None
    assert result.latent_classes is not None
    assert found is not None
    assert data.household is not None
    assert data.weights is not None
    r, best = risk.risk, recommended(result)
    homes = pd.Series(data.household)

    def found_homes(risk_by_record: Any) -> Any:
        """One minus the product over the members, by pandas."""
        return 1 - pd.Series(1 - risk_by_record).groupby(homes).prod()

    frame = risk.combinations
    violations: list[list[Cell]] = []
    for k in (2, 3, 5):
        low = frame[frame["f"] < k]
        records = int(low["records"].sum())
        violations.append([f"f < {k}", records, records / data.n, len(low)])

    def above(limit: float) -> tuple[Any, ...]:
        of_combinations = int((frame["risk"] > limit).sum())
        return ("{}, {}", int((r > limit).sum()), of_combinations)

    of_homes = found_homes(best)
    household = of_homes.loc[homes].to_numpy()
    by_combination = pd.Series(best).groupby(data.combination).max().to_numpy()
    places = np.argsort(-by_combination, kind="stable")[:10]
    ends = {
        data.combination[record]: ("{} to {}", row["inverse_F_low"], row["inverse_F_high"])
        for record, row in result.latent_classes.records.iterrows()
    }
    learned = result.unstructured.learned
    return {
        "What was read": [
            ["file", data.source],
            ["SHA-256", data.sha256 or "none (a data frame)"],
            ["size", "none (a data frame)"],
            ["records", data.n],
            ["number of key variables", len(data.keys)],
            ["key variables", ", ".join(data.keys)],
            ["weight", "w"],
            ["household", "h"],
            ["population size", float(data.weights.sum())],
            ["missing values", ...],
            ["combinations with F raised to f", data.raised],
        ],
        "Limits of the policy": limits(result, internal=True),
        "Violations of k-anonymity": violations,
        "Individual risk, closed form": [
            ["expected re-identifications", r.sum()],
            ["global risk (mean)", r.mean()],
            ["sample uniques that are population uniques (tau1)", risk.tau1],
            ["right matches among sample uniques (tau2)", risk.tau2],
            *(
                [f"records, combinations with risk > {level:g}", above(level)]
                for level in (0.05, 0.1, 0.2, 0.5)
            ),
            [
                f"records, combinations above the bulk (risk > {risk.bulk_limit:.4g})",
                above(risk.bulk_limit),
            ],
            *(
                [
                    f"records with risk > {level:g}, sample uniques by latent classes",
                    int((recommended(result) > level).sum()),
                ]
                for level in (0.05, 0.1, 0.2, 0.5)
            ),
        ],
        "The ten riskiest combinations": [
            [
                *map(str, label),
                *row[["records", "f", "F"]],
                by_combination[place],
                ends.get(place, "none given"),
                row["risk"],
            ]
            for (label, row), place in zip(frame.iloc[places].iterrows(), places, strict=True)
        ],
        "Totals of the file by model, with 95 % intervals": [
            [
                name,
                with_interval(model.expected),
                model.expected.value / data.n,
                with_interval(model.tau1),
                with_interval(model.tau2),
                MODELS[name],
            ]
            for name, model in result.models.items()
        ],
        **driving(result),
        "Truth beside the estimates": truth_rows(result),
        "Population uniques among sample uniques": [
            [
                "uniform on all tables (c = 1)",
                result.unstructured.uniform,
                ("standard deviation {}", result.unstructured.uniform_deviation),
            ],
            [
                ("concentration learned (c = {})", learned.concentration.value),
                learned.uniques.value,
                ("95 % interval {} to {}", *learned.uniques.interval),
            ],
        ],
        "Estimates by latent classes, with 90 % intervals": latent_classes(result.latent_classes),
        "Convergence of the latent classes": [
            [str(name), chain["rhat"], chain["ess"]]
            for name, chain in result.latent_classes.diagnostics.iterrows()
        ],
        **methods(result),
        "Sample uniques above levels of DIS-SUDA and of the SUDA score": above_levels(result),
        "Agreement of the rankings of the sample uniques, Spearman: 1 where two methods order the "
        "records alike, 0 where their orders have nothing in common": [
            [str(name), *row]
            for name, row in zip(
                found.agreement.index, found.agreement.to_numpy().tolist(), strict=True
            )
        ],
        "Household risk": [
            ["households", len(set(data.household))],
            ["expected re-identified households", of_homes.sum()],
            ["expected re-identified households, closed form", found_homes(r).sum()],
            *(
                [
                    f"expected re-identified households, model {name}",
                    found_homes(model.risk[data.combination]).sum(),
                ]
                for name, model in result.models.items()
            ),
            *(
                [f"households with risk > {level:g}", int((of_homes > level).sum())]
                for level in (0.05, 0.1, 0.2, 0.5)
            ),
            ["expected persons in re-identified households", household.sum()],
            ["mean household risk of a person", household.mean()],
            *(
                [f"persons with household risk > {level:g}", int((household > level).sum())]
                for level in (0.05, 0.1, 0.2, 0.5)
            ),
        ],
        **made(CALL, result.seconds),
        "Arguments": [["draws", "30"], ["groups", "a, b"], ["releases", "3"]],
    }


def driving(result: Measurement) -> dict[str, list[list[Cell]]]:
    """Sample uniques by key and value, counted by pandas from the texts of the records."""
    data = result.data
    assert result.latent_classes is not None
    texts = pd.DataFrame(
        {key: np.array(data.labels[j])[data.codes[:, j]] for j, key in enumerate(data.keys)}
    )
    risk = result.latent_classes.records["inverse_F"]
    rows, values = [], []
    for key in data.keys:
        rest = [other for other in data.keys if other != key]
        without = int((texts.groupby(rest)[key].transform("size") == 1).sum())
        number = texts[key].nunique()
        rows.append([key, ..., number, ..., without, ...])
        for value, part in texts.groupby(key):
            mine = risk[risk.index.isin(part.index)]
            if len(mine):
                shares = len(part) / data.n, mine.sum() / risk.sum()
                row = [
                    key, str(value), ("{} ({})", len(part), shares[0]), len(mine),
                    ("{} ({})", mine.sum(), shares[1]),
                ]  # fmt: skip
                values.append((shares[1] - shares[0], row))
    rows.sort(key=lambda row: row[4])
    values.sort(key=lambda pair: -pair[0])
    return {
        "Sample uniques left without a key, and with coarser values": rows,
        "Values with more of the right matches than of the records, by the difference": [
            row for _, row in values[:10]
        ],
    }


def marked(low: float, high: float, truth: float) -> str:
    """What an interval is called beside the truth."""
    if low <= truth <= high:
        return "right"
    return "wrong, too low" if high < truth else "wrong, too high"


def truth_rows(result: Measurement) -> list[list[Cell]]:
    """Each measure by each method: the truth, the estimate, its interval and its mark."""
    rows: list[list[Cell]] = []
    for words, name in (
        ("sample uniques that are population uniques (tau1)", "tau1"),
        ("right matches among sample uniques (tau2)", "tau2"),
        ("right matches over all records", "expected"),
    ):
        truth = getattr(result.truth, name)
        for of, model in {"latent classes": result.latent_classes, **result.models}.items():
            row: list[Cell] = [words, of, truth]
            estimate = getattr(model, name, None)
            if estimate is None:
                rows.append([*row, "not estimated", "", ""])
                continue
            found = estimate.value, ("{} to {}", *estimate.interval)
            rows.append([*row, *found, marked(*estimate.interval, truth)])
    return rows


def methods(result: Measurement) -> dict[str, list[list[Cell]]]:
    """A table for each question, one row per method."""
    assert result.comparison is not None
    assert result.truth is not None
    tables: dict[str, list[list[Cell]]] = {}
    truths = {
        "sample uniques that are population uniques": result.truth.tau1,
        "correct matches of sample uniques": result.truth.tau2,
    }
    for name, m in result.comparison.methods.iterrows():
        truth, none = truths.get(m["about"]), pd.isna(m["low"])
        mark: Cell = "not asked"
        if truth is not None:
            mark = ("{}: " + ("no interval" if none else marked(m["low"], m["high"], truth)), truth)
        tables.setdefault(f"Expected number by method: {m['about']}", []).append(
            [
                str(name),
                m["expected"],
                None if none else ("{} to {}", m["low"], m["high"]),
                mark,
                m["assumption"],
            ]
        )
    return tables


def recommended(result: Measurement) -> np.ndarray:
    """Mean of 1/F of each record: sample uniques by latent classes, others by the closed form."""
    assert result.latent_classes is not None
    risk = result.risk.risk.copy()
    for record, row in result.latent_classes.records.iterrows():
        risk[record] = row["inverse_F"]
    return risk


def test_internal_report_of_a_file_shows_the_result(measured: Measurement) -> None:
    text = render_microdata(measured, audience="internal", call=CALL)
    compare(text, microdata_tables(measured))
    assert shown(text)[CONTENTS] == contents(measured, microdata.SECTIONS)


def test_external_report_of_a_file_shows_the_rounded_result(measured: Measurement) -> None:
    data, classes = measured.data, measured.latent_classes
    assert classes is not None

    def told(share: float) -> Cell:
        ends = {share < 0.01: "less than 1 %", share > 0.99: "more than 99 %"}
        return ends.get(True, share)

    def between(estimate: Any) -> Cell:
        """A share with its interval; ends that are alike in whole per cents are said once."""
        low, high = (100.0 * end / data.n for end in estimate.interval)
        if estimate.interval[0] != estimate.interval[1] and low < 1.0:
            if high < 1.0:
                return "less than 1 %"
            share = told(estimate.value / data.n)
            share = share if isinstance(share, str) else f"{share:.0%}"
            return f"{share} (at most {np.ceil(high - 1e-9):.0f}%)"
        outwards = (np.floor(low + 1e-9) / 100.0, np.ceil(high - 1e-9) / 100.0)
        value, low, high = (told(share) for share in (estimate.value / data.n, *outwards))
        words = [one if isinstance(one, str) else f"{one:.0%}" for one in (value, low, high)]
        alone = estimate.interval[0] == estimate.interval[1] or words[1] == words[2]
        return words[0] if alone else f"{words[0]} ({words[1]} to {words[2]})"

    levels, by_record = (0.05, 0.1, 0.2, 0.5), recommended(measured)
    kept = pd.Series(1 - by_record).groupby(np.asarray(data.household))
    homes = float((1 - kept.prod()).sum())
    compare(
        render_microdata(measured, audience="external", call=CALL),
        {
            "What was read": [
                ["records", "about 900"],
                ["key variables", ", ".join(data.keys)],
                ["weights", "yes"],
                ["households", "yes"],
                ["missing values", ...],
            ],
            "Limits of the policy": limits(measured, internal=False),
            "Violations of k-anonymity": [
                [f"f < {k}", told(data.k_violations(k).records / data.n)] for k in (2, 3, 5)
            ],
            "Individual risk": [
                ["mean risk", told(by_record.mean())],
                *(
                    [f"share of records with risk > {level:g}", told((by_record > level).mean())]
                    for level in levels
                ),
            ],
            "Totals of the file by model, with 95 % intervals": [
                [
                    name,
                    between(model.expected),
                    "yes" if model.trusted else "no",
                    MODELS[name],
                ]
                for name, model in measured.models.items()
            ],
            "Estimate by latent classes, with 90 % intervals": [
                [
                    "records alone in file and population",
                    between(classes.tau1),
                ],
                [
                    "records that are alone in the file and expected to be matched correctly",
                    between(classes.tau2),
                ],
            ],
            "Household risk": [
                ["mean household risk of a person", told((1 - kept.transform("prod")).mean())],
                [
                    "expected re-identified households",
                    "fewer than 10" if homes < 10 else f"about {float(f'{homes:.2g}'):,.0f}",
                ],
            ],
            "Versions": made(CALL, {})["Versions"],
        },
    )
