"""What the released columns, alone and together, reveal about the small counts beside them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.audit.audit import audit_families
from bayes_sdc.flows.kept_columns import evidence
from bayes_sdc.flows.kept_columns.features import (
    Codes,
    Column,
    Feature,
    Numbers,
    categories,
    moved_features,
    number_read,
    pair_features,
    read_column,
    single_features,
)
from bayes_sdc.flows.kept_columns.findings import ALARM, Finding, levels, statistics
from bayes_sdc.flows.kept_columns.identities import identity
from bayes_sdc.flows.kept_columns.levels import left_over
from bayes_sdc.flows.kept_columns.selection import Selection
from bayes_sdc.flows.kept_columns.shifts import best_shifts, listings
from bayes_sdc.flows.kept_columns.small_counts import (
    Small,
    moves_of,
    small_counts,
    where_known,
)
from bayes_sdc.flows.kept_columns.spread import evenly_spread
from bayes_sdc.flows.kept_columns.totals import kept_totals
from bayes_sdc.flows.table.read import FlowTable

FEWEST, FEW = 6, 30  # small counts below which nothing, or little, can be shown
MOST = 5_000  # small rows searched for relations; values and shifts are looked at in all rows
STRONG_INFORMATION = 0.1  # of the entropy of the small counts
STRONG_ORDER = 0.5  # rank correlation
STRONG_FIT = 0.25  # share of the variance of small counts, or of those that stand in other rows
LONG_NUMBER, NEARLY_ALL = 1e8, 0.9  # whole numbers like codes; share of rows that differ
GROUPS_INFORMATION = 0.5  # groups differ in their counts, and are always released


Make = Callable[[Verdict, float, str], Finding]


def check_columns(table: FlowTable, selection: Selection) -> Check:
    """Check what the columns of a release reveal about the small counts.

    Parameters
    ----------
    table : FlowTable
        With the true counts.
    selection : Selection
        From :func:`bayes_sdc.flows.kept_columns.selection.select_columns`.

    Returns
    -------
    Check
        "fail" when columns fix a small count, leave fewer counts than chance would, or are closely
        related to them; it names all columns that are needed. "look" when they are slightly
        related.
    """
    findings = sorted(_findings(table, selection), key=_worst_first)
    left_out = len(selection.left_out)
    without = f"; {left_out} of the input are left out" if left_out else ""
    if not findings:
        kept = ", ".join(map(repr, selection.kept))
        told = f"column {kept} tells" if len(selection.kept) == 1 else f"columns {kept} tell"
        reason = (
            f"{told} nothing of the small counts that chance would not"
            if selection.kept
            else "every other released column only describes areas"
        )
        return Check("other columns", "pass", reason + without, key="other_columns")
    worst = findings[0]
    # what holds for a column holds for it and any other together: that says nothing of the other
    apart = [found for found in findings[1:] if not {*worst.columns} <= {*found.columns}]
    others = sorted({name for found in apart for name in found.columns} - {*worst.columns})
    named = ("column " if len(worst.columns) == 1 else "columns ") + ", ".join(
        map(repr, worst.columns)
    )
    more = f"; look at {', '.join(map(repr, others[:5]))} too" if others else ""
    remedy = "; do not keep them" if worst.verdict == "fail" else ""
    reason = f"{named}: {worst.words}{more}{remedy}{without}"
    return Check("other columns", worst.verdict, reason, key="other_columns")


def _worst_first(found: Finding) -> tuple[int, float]:
    return ("fail", "look", "pass").index(found.verdict), found.log_chance


def _findings(table: FlowTable, selection: Selection) -> Iterator[Finding]:
    yield from _totals(table, selection)
    asked = (*table.groups, *selection.kept)
    small = small_counts(table)
    if not asked or len(small.rows) == 0:
        return
    columns = {
        name: read_column(name, table.frame[name], inside=name in selection.kept)
        for name in (*asked, *selection.areas)
    }
    kept = [columns[name] for name in selection.kept]
    yield from _too_few(kept, small)
    yield from _like_codes(kept, small)
    told = [
        *_identities(table, selection, columns, small),
        *levels(table, kept, small.rows),
        *statistics(table, selection.kept, selection.areas),
    ]
    yield from told
    settled = {name for found in told for name in found.columns}
    ends = [pd.factorize(table.frame[name])[0] for name in (table.origin, table.destination)]
    features = [feature for column in kept for feature in single_features(column, ends)]
    moves = moves_of(table)
    features += [feature for column in kept for feature in moved_features(column, moves)]
    groups = [
        Feature((name,), "", pd.factorize(columns[name].text)[0], raw=True) for name in table.groups
    ]
    features += pair_features([*kept, *(columns[name] for name in selection.areas)], selection.kept)
    # of each: categories three times, orders four, copies and levels of areas two
    questions = 11 * (len(features) + len(groups))
    for feature in features:
        if not settled.issuperset(feature.columns):
            yield from _ask(feature, small, np.log(ALARM / questions))
    for feature in groups:
        yield from _ask_group(feature, small, np.log(ALARM / questions))
    for column in kept:
        if column.name not in settled:
            yield from _ask_shifts(column, table, small, np.log(ALARM / questions))


def _totals(table: FlowTable, selection: Selection) -> Iterator[Finding]:
    """Totals of areas among the named columns: they publish sums."""
    found = list(kept_totals(table, selection.kept))
    if not found:
        return
    audit = audit_families(table, [family for _, _, family in found])
    pinned, closer = audit.pinned + audit.pinned_besides, audit.narrowed
    held = " and ".join(dict.fromkeys(total.words for _, total, _ in found))
    yield Finding(
        "fail" if pinned or closer else "look",
        -np.inf,
        tuple(name for name, _, _ in found),
        f"{'holds' if len(found) == 1 else 'hold'} {held}, which publishes them: with the safe "
        f"counts this fixes {pinned:,} of the small counts and leaves fewer values for "
        f"{closer:,} others",
    )


def _too_few(kept: Sequence[Column], small: Small) -> Iterator[Finding]:
    """A handful of small counts can show nothing, nor can a column that is filled in a few rows."""
    for column in kept:
        filled = (column.text.iloc[small.rows] != "").to_numpy(bool)
        n, where = int(filled.sum()), "" if filled.all() else " where something stands"
        if n < FEWEST and (n or filled.all()):
            yield Finding(
                "fail", 0.0, (column.name,),
                f"with {n} small counts{where} it cannot be shown that it tells nothing of them",
            )  # fmt: skip
        elif 0 < n < FEW:
            yield Finding(
                "look", 0.0, (column.name,),
                f"with {n} small counts{where} only a strong relation would be seen",
            )  # fmt: skip
        for what, numbers in {"": column.numbers, **column.inside}.items():
            x = numbers[small.rows]
            known = np.isfinite(x)
            if (
                known.sum() >= 3
                and not known.all()
                and np.ptp(small.y[known]) > 0
                and _is_copy(x[known], small.y[known], True)
            ):
                yield Finding(
                    "fail", -np.inf, (column.name,),
                    f"{what or column.name}: the small count itself, where something stands",
                )  # fmt: skip


def _like_codes(kept: Sequence[Column], small: Small) -> Iterator[Finding]:
    """Values that are spread like codes, such as a hash of pair and count, whole or a part of it.

    Anyone who knows how it is made finds the count by trying all of them, and no statistic shows
    it: to everybody else such a hash is noise. What is spread evenly over many values is taken for
    one.
    """
    for column in kept:
        text, numbers = column.text.iloc[small.rows], column.numbers[small.rows]
        known = np.isfinite(numbers)
        coded = ~known | ((numbers % 1 == 0) & (np.abs(numbers) >= LONG_NUMBER))
        differs = text[coded].nunique() >= NEARLY_ALL * len(text)
        if len(text) >= FEWEST and (differs or evenly_spread(text, numbers)):
            how = "differs from row to row" if differs else "is spread evenly over many values"
            yield Finding(
                "look", 0.0, (column.name,),
                f"{how} like a code: one that is made from pair and count gives the count to "
                "whoever knows how, and no statistic shows that",
            )  # fmt: skip


def _identities(
    table: FlowTable, selection: Selection, columns: dict[str, Column], small: Small
) -> Iterator[Finding]:
    """Sums, differences and products of columns that give the count."""
    read = [number_read(c) if c.name in selection.kept else c for c in columns.values()]
    numeric = [c for c in read if np.isfinite(c.numbers).any()]
    kept = [c for c in numeric if c.name in selection.kept]
    count = table.frame[table.count].to_numpy(np.float64)
    is_small = np.zeros(len(count), bool)
    is_small[small.rows] = True
    # rows in an order of their own, so that the halves do not depend on that of the file
    safe = np.flatnonzero(~is_small)
    sides = [table.frame[name].astype(str).to_numpy() for name in (table.origin, table.destination)]
    order = np.r_[small.rows, safe[np.lexsort([side[safe] for side in sides[::-1]])]]
    for chosen in [kept, numeric] if len(numeric) > len(kept) else [kept]:
        if not kept:
            return
        x = np.column_stack([c.numbers for c in chosen])[order]
        found = identity(x, count[order], is_small[order], small.rng)
        if found is None or not {chosen[i].name for i in found.places} & {*selection.kept}:
            continue
        strong = STRONG_FIT if found.rows >= FEW else 0.9
        if found.explained < strong:
            continue
        names = tuple(chosen[i].name for i in found.places)
        yield Finding(
            "fail", -np.inf, names,
            f"{found.how}, they give {found.hits:.0%} of the small counts they were not fitted to, "
            f"and {found.explained:.1%} of their variance",
        )  # fmt: skip
        return


def _ask(feature: Feature, small: Small, log_alarm: float) -> Iterator[Finding]:
    """Put every question to one feature."""
    if feature.there is not None:
        small = where_known(feature.there[small.rows], small)
    values = feature.values[small.rows]
    if len(values) < FEWEST or len(np.unique(values)) < 2:
        return
    prefix = f"{feature.how}: " if feature.how else ""

    def finding(verdict: Verdict, log_chance: float, words: str) -> Finding:
        return Finding(verdict, log_chance, feature.columns, prefix + words)

    if feature.raw:
        log_chance = evidence.function_of_count(values.astype(np.intp), small.y)
        if log_chance < np.log(ALARM):
            yield finding("fail", log_chance, "the same wherever the small count is the same")
    few = small.rng.permutation(len(values))[:MOST]
    for codes in categories(values):
        found = evidence.narrowed(codes, small.y)
        if found.log_chance < log_alarm:
            yield finding("fail", found.log_chance, _left(found, small.y))
        part = evidence.information(codes[few], small.y[few], small.rng)
        if part.log_chance < log_alarm:
            yield finding(
                "fail" if part.share >= STRONG_INFORMATION else "look",
                part.log_chance,
                f"tells {part.share:.0%} of what there is to know of the small counts",
            )
    if values.dtype.kind != "i":
        itself = feature.how == ""
        yield from _ask_numbers(
            values.astype(np.float64), few, small, log_alarm, itself=itself, finding=finding
        )
        if itself or len(feature.columns) > 1:
            yield from _beside_levels(values.astype(np.float64), small, log_alarm, finding)


def _ask_numbers(
    values: Numbers, few: Codes, small: Small, log_alarm: float, *, itself: bool, finding: Make
) -> Iterator[Finding]:
    """Put the questions that only numbers allow: equality and order."""
    if _is_copy(values, small.y, itself):
        yield finding("fail", -np.inf, "the small count itself, but for a constant")
    same = evidence.equal_but_for_a_constant(values, small.y)
    if same.log_chance < log_alarm:
        yield finding(
            "fail" if same.share >= STRONG_INFORMATION else "look",
            same.log_chance,
            f"the small count itself, but for a constant, in {same.share:.0%} of the rows more "
            "than by chance",
        )
    log_chance = evidence.in_perfect_order(values, small.y)
    if log_chance < log_alarm:
        yield finding("fail", log_chance, "rises or falls with the small count without exception")
    for where, strata in small.strata.items():
        part = None if strata is None else strata[few]
        r, log_chance = evidence.in_order(values[few], small.y[few], part)
        if log_chance < log_alarm:
            yield finding(
                "fail" if abs(r) >= STRONG_ORDER else "look",
                log_chance,
                f"rank correlation {r:+.2f} with the small counts {where}".rstrip(),
            )


def _beside_levels(
    values: Numbers, small: Small, log_alarm: float, finding: Make
) -> Iterator[Finding]:
    """A count plus a level of each area, or times one, is one still when the levels are unknown."""
    known = np.isfinite(values)
    sides = [small.strata[f"of one {end}"] for end in ("origin", "destination")]
    ends = [side for side in sides if side is not None]
    if known.sum() > MOST:  # some areas with their rows: of single rows few would share an area
        for end in ends:
            chosen = small.rng.random(int(end.max()) + 1) < np.sqrt(MOST / known.sum())
            known = known & chosen[end]
    ends = [end[known] for end in ends]
    x, y = values[known], np.asarray(small.y[known] + small.low, np.float64)
    ways: dict[str, tuple[Numbers, Numbers]] = {"plus": (x, y)}
    if len(x) and min(x.min(), small.low) > 0:
        ways["times"] = np.asarray(np.log(x)), np.asarray(np.log(y))
    for how, (column, count) in ways.items():
        (of_column, free), (of_count, _) = left_over(column, ends), left_over(count, ends)
        r, log_chance = evidence.beside_levels(of_column, of_count, free)
        if log_chance < log_alarm:
            yield finding(
                "fail" if abs(r) >= STRONG_ORDER else "look",
                log_chance,
                f"correlation {r:+.2f} with the small counts {how} a level of each of their areas",
            )


def _ask_shifts(
    column: Column, table: FlowTable, small: Small, log_alarm: float
) -> Iterator[Finding]:
    """Ask whether the counts stand in other rows; a weak relation may be one of neighbours."""
    readings: dict[str, Numbers] = {"": column.numbers}
    if np.isnan(column.numbers).all():  # its texts, by what they tell
        length = np.asarray(column.text.str.len(), np.float64)
        readings = {**column.inside, "the length of its text": length}
    count, rows = table.frame[table.count].to_numpy(np.float64), np.sort(small.rows)
    orders = listings(table.frame[table.origin], table.frame[table.destination])
    shifted = [
        (f"{what}: {how}" if what else how, values, tried * len(readings))
        for what, numbers in readings.items()
        for how, values, tried in best_shifts(numbers, count, rows, orders)
    ]
    for how, values, tried in shifted:
        known = np.isfinite(values[small.rows])
        if known.sum() < FEWEST:
            continue
        x, y = values[small.rows][known], small.y[known]
        r, log_chance = evidence.in_order(x, y)
        same = evidence.equal_but_for_a_constant(x, y)
        chances = [same.log_chance] if same.share >= STRONG_FIT else []
        if abs(r) >= STRONG_ORDER:
            chances += [log_chance, evidence.in_perfect_order(x, y)]
        if chances and min(chances) < log_alarm - np.log(tried):
            yield Finding(
                "fail", min(chances), (column.name,),
                f"{how}: rank correlation {r:+.2f} with the small counts",
            )  # fmt: skip


def _ask_group(feature: Feature, small: Small, log_alarm: float) -> Iterator[Finding]:
    """Groups differ in their counts; only a group made from the count must not be released."""
    codes = np.unique(feature.values[small.rows], return_inverse=True)[1]
    if codes.max(initial=0) == 0:
        return
    found = evidence.information(codes, small.y, small.rng)
    if found.log_chance < log_alarm and found.share >= GROUPS_INFORMATION:
        yield Finding(
            "fail", found.log_chance, feature.columns,
            f"a group column that tells {found.share:.0%} of what there is to know of the small "
            "counts",
        )  # fmt: skip


def _is_copy(x: Numbers, y: Codes, itself: bool) -> bool:
    """Whether numbers are the counts, shifted or scaled."""
    if not np.isfinite(x).all() or len(x) < (1 if itself else FEWEST):
        return False
    shift = x - y
    return bool(np.ptp(shift) <= 1e-9 * max(1.0, np.abs(x).max()))


def _left(found: evidence.Narrowed, y: Codes) -> str:
    kinds = np.unique(y)
    return (
        f"one of its values leaves {len(found.counts)} of {len(kinds)} small counts in "
        f"{found.cells:,} rows"
    )
