"""Totals inside the table: codes, rows and columns that are sums of others, whatever their names.

A row ``A > Total`` is no flow, and released beside the flows it is a published total: 23 less 20 is
3. Such rows are found by arithmetic. A code is a total if for nearly all partners its count is the
sum of the others; how far that is from chance is measured in bits, a partner with a sum of 1,000
being worth ten, so that three numbers that happen to add up are no alarm in a large table.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp

from bayes_sdc.flows.audit.families import Family, Hidden, Ints, keyed, none_hidden, sums_of
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes

BITS = 2.9  # beyond those that the choice among so many codes costs
BITS_OF_A_NAME = 1.0  # enough for a code that is called a total
PARTNERS, SEEN = 0.9, 0.8  # shares of partners where it adds up, and where the code is there
LARGEST_CODES = 60  # codes that are tried as subtotals of codes that nothing else groups
MOST_MEMBERS = 400  # codes among which those of such a subtotal are sought
NAMES = re.compile(
    r"_t|(grand |sub)?[ _-]?(totals?|totale|totaal|insgesamt|gesamt|summe|ensemble|sum|all)\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class InsideTotal:
    """A code or a column whose values are totals of the table.

    Parameters
    ----------
    column
        Where the code stands, or the column of totals itself.
    code
        The code; None for a column of totals.
    rows
        Rows of the frame that hold totals; none for a column.
    family
        The totals, and the rows that each is the sum of.
    matches, tested
        For how many totals the sum was right, and for how many it was tested.
    whole
        (row,) which row is the total that each row counts in, hidden ones too, or -1; None where
        totals are rounded or no rows.
    """

    column: str
    code: str | None
    rows: Ints = field(repr=False)
    family: Family = field(repr=False)
    matches: int
    tested: int
    whole: Ints | None = None

    def __str__(self) -> str:
        """Say what it is, with the evidence."""
        rows = "1 row" if len(self.rows) == 1 else f"{len(self.rows):,} rows"
        what = "" if self.code is None else f", code {self.code!r} ({rows})"
        return (
            f"column {self.column!r}{what}: sums of the counts by {self.family.name}, "
            f"right in {self.matches:,} of {self.tested:,}"
        )


class _Rows(NamedTuple):
    """The table as arrays, with the rows that are known to be totals."""

    counts: Ints  # 0 where hidden
    lower: Ints  # what a hidden count is at least, 0 elsewhere
    upper: Ints
    hidden: np.ndarray
    own: np.ndarray
    total: np.ndarray  # changed as totals are found
    texts: dict[str, np.ndarray]  # codes of origin, destination and groups
    others: dict[str, np.ndarray]  # every other column, as text


class _Hit(NamedTuple):
    """A code that is the sum of the others."""

    code: int
    matches: int
    tested: int
    base: int
    own_area: bool


def totals_inside(table: FlowTable, hidden: Hidden | None = None) -> list[InsideTotal]:
    """Find codes of areas and groups, single rows and columns that are sums of others.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    hidden : Hidden, optional
        Rows whose count is not known, and between what it lies.

    Returns
    -------
    list of InsideTotal
        Codes first, by column, then a grand total, then columns of totals.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["A"] * 3, "d": ["B", "C", "99"], "n": [3, 20, 23]})
    >>> [found] = totals_inside(read_flows(frame, origin="o", destination="d", count="n"))
    >>> print(found)
    column 'd', code '99' (1 row): sums of the counts by o, right in 1 of 1
    """
    rows = _rows(table, hidden)
    found: list[InsideTotal] = []
    for axis in rows.texts:
        found += _on_axis(rows, axis)
    if not rows.hidden.any():
        found += _grand_total(rows, table)
        found += _columns_of_totals(rows, table)
    return [_checked(each, rows) for each in found]


def found_inside(table: FlowTable) -> list[InsideTotal]:
    """Search a table of known counts for totals once, and remember what was found."""
    if not table.searched:
        table.searched.append(totals_inside(table))
    return list(table.searched[0])


def _rows(table: FlowTable, hidden: Hidden | None) -> _Rows:
    frame = table.frame
    hidden = none_hidden(len(frame)) if hidden is None else hidden
    names = [table.origin, table.destination, *table.groups]
    texts = {name: read_codes(frame[name], name).texts() for name in names}
    return _Rows(
        counts=np.where(hidden.mask, 0, frame[table.count].to_numpy(np.int64)),
        lower=hidden.lower,
        upper=hidden.upper,
        hidden=hidden.mask,
        own=texts[table.origin] == texts[table.destination],
        total=np.zeros(len(frame), dtype=bool),
        texts=texts,
        others={
            str(name): frame[name].astype(str).to_numpy(dtype=object)
            for name in frame.columns
            if name not in (*names, table.count)
        },
    )


def _checked(found: InsideTotal, rows: _Rows) -> InsideTotal:
    """Leave out rows that proved to be totals later, and totals that do not add up."""
    family = found.family
    of = np.where(rows.total, -1, family.of)
    n = len(family.labels)
    sums = sums_of(of, rows.counts, n)
    least, most = (sums + sums_of(of, each, n) for each in (rows.lower, rows.upper))
    # with holes what does not add up is left to be seen: they may be larger than was thought
    holes = sums_of(of, rows.hidden.astype(np.int64), n)
    right = (family.low <= most) & (least <= family.high) | (holes > 0)
    of = np.where((of >= 0) & right[of], of, -1)
    # a total of totals alone has no part left, and says nothing of one
    has = np.bincount(of[of >= 0], minlength=n) > 0
    low, high = (np.where(has, each, 0) for each in (family.low, family.high))
    return InsideTotal(
        found.column,
        found.code,
        found.rows,
        family._replace(of=of, low=low, high=high),
        found.matches,
        found.tested,
        found.whole,
    )


def _follows(rows: _Rows, axis: str, values: np.ndarray) -> bool:
    """Whether a column is a function of the codes of another, but for a few codes."""
    pairs = pd.DataFrame({"code": rows.texts[axis], "value": values}).drop_duplicates()
    if pairs["value"].nunique() == 1:
        return False
    return pairs["code"].nunique() >= 0.9 * len(pairs)


def _on_axis(rows: _Rows, axis: str) -> list[InsideTotal]:
    """Find the codes of one column that are sums of other codes of it."""
    rest = {name: text for name, text in rows.texts.items() if name != axis}
    follows = {name: text for name, text in rest.items() if _follows(rows, axis, text)}
    by = [name for name in rest if name not in follows]
    follows |= {n: text for n, text in rows.others.items() if _follows(rows, axis, text)}
    found: list[InsideTotal] = []
    again = True
    while again:
        again = False
        for name, regions in _partitions(rows.texts[axis], follows):
            keys = [rest[n] for n in by] + ([] if regions is None else [regions])
            named = " and ".join([*by, *([name] if name else [])]) or "all rows"
            for each in _sums_of_others(rows, axis, keys, regions, named):
                rows.total[each.rows] = True
                found.append(each)
                again = True
    return found if rows.hidden.any() else found + _subtotals(rows, axis, by)


def _partitions(
    codes: np.ndarray, follows: dict[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray | None]]:
    """Ways to split codes into regions: by other columns, by first characters, and not at all."""
    for name, values in follows.items():
        regions = set(values)
        if 1 < len(regions) < len(set(codes)):
            # the subtotal of a region can have the region's code, and stand in no region itself
            yield (
                name,
                np.array(
                    [c if c in regions else v for c, v in zip(codes, values, strict=True)],
                    dtype=object,
                ),
            )
    distinct = set(codes)
    for length in range(1, min(max(map(len, distinct), default=1), 6)):
        start = {code: code[:length] for code in distinct}
        if 1 < len(set(start.values())) < len(distinct):
            yield f"first {length} characters", np.array([start[c] for c in codes], dtype=object)
    yield "", None


def _sums_of_others(
    rows: _Rows, axis: str, keys: Sequence[np.ndarray], regions: np.ndarray | None, named: str
) -> list[InsideTotal]:
    """Find the codes whose count is the sum of all others of their key."""
    key, labels = keyed(keys, len(rows.counts))
    code, codes = pd.factorize(rows.texts[axis], sort=True)
    region = np.zeros(len(code), dtype=np.int64)
    if regions is not None:
        region = pd.factorize(regions)[0].astype(np.int64)
    hits = _hits(rows, key, code.astype(np.int64), [str(c) for c in codes], region)
    found = []
    for hit in hits:
        own_rows = np.flatnonzero((code == hit.code) & ~rows.total)
        family = _family(rows, key, labels, own_rows, hit, named)
        whole = _whole(rows, key, own_rows, hit)
        found.append(
            InsideTotal(
                axis, str(codes[hit.code]), own_rows, family, hit.matches, hit.tested, whole
            )
        )
    return found


def _family(
    rows: _Rows, key: Ints, labels: list[str], totals: Ints, hit: _Hit, named: str
) -> Family:
    """Make a family of the totals of one code; several rows of a key are taken together."""
    every = totals
    totals = totals[~np.isin(key[totals], key[totals[rows.hidden[totals]]])]
    place, kept = pd.factorize(key[totals], sort=True)
    shown = sums_of(place.astype(np.int64), rows.counts[totals], len(kept))
    position = np.full(len(labels), -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    members = ~rows.total & (~rows.own | hit.own_area)
    members[every] = False
    return Family(
        named,
        [labels[k] for k in kept],
        np.where(members, position[key], -1),
        np.maximum(shown - (hit.base - 1), 0),
        shown + hit.base - 1,
    )


def _whole(rows: _Rows, key: Ints, totals: Ints, hit: _Hit) -> Ints | None:
    """Which row each row counts in, be that hidden or not."""
    if hit.base > 1:
        return None
    of_key = np.full(int(key.max()) + 1, -1, dtype=np.int64)
    of_key[key[totals]] = totals
    of_key[np.bincount(key[totals], minlength=len(of_key)) > 1] = -1
    members = ~rows.total & (~rows.own | hit.own_area)
    members[totals] = False
    return np.where(members, of_key[key], -1)


def _hits(rows: _Rows, key: Ints, code: Ints, names: list[str], region: Ints) -> list[_Hit]:
    """Compare each code with the sum of the others of its key.

    One or two further layers of totals, such as subtotals by region, make that sum two or three
    times as large. Totals can hold the own-area rows, and can be rounded.
    """
    n = len(names)
    at = np.flatnonzero(~rows.total)
    if len(at) == 0:
        return []
    # a code that a key has several rows of counts with their sum
    pair, pairs = pd.factorize(key[at] * n + code[at], sort=True)
    pair = pair.astype(np.int64)
    value = sums_of(pair, rows.counts[at], len(pairs))
    holes = sums_of(pair, rows.hidden[at].astype(np.int64), len(pairs))
    of_key, of_code = np.divmod(np.asarray(pairs, dtype=np.int64), n)
    of_region = np.zeros(int(key.max()) + 1, dtype=np.int64)
    of_region[key] = region
    for own_area in (False, True) if rows.own.any() else (False,):
        member = rows.counts[at] * (~rows.own[at] | own_area)
        can = ~rows.own[at] | own_area
        entry = (can & ((rows.counts[at] > 0) | rows.hidden[at])).astype(np.int64)

        def others(values: Ints) -> Ints:
            """Sums of a number over the other codes of the key."""
            inside = sums_of(pair, values, len(pairs))
            return sums_of(of_key, inside, len(of_region))[of_key] - inside

        number = np.where(holes > 0, 0, others(entry))  # what is hidden cannot be tested
        known = others(member)
        slack = [others(each[at] * can) for each in (rows.lower, rows.upper)]
        for layers in (1, 2, 3):
            tested = _Tested(
                of_key, of_code, of_region, value * layers,
                known + slack[0], known + slack[1], known, number, layers,
            )  # fmt: skip
            hits = [hit._replace(own_area=own_area) for hit in _judged(tested, names)]
            if hits:
                return hits
    return []


class _Tested(NamedTuple):
    """Pairs of key and code: the count, and the sum of the other codes of the key."""

    key: Ints
    code: Ints
    region: Ints  # (key,)
    value: Ints
    others: Ints  # least that they can add up to
    most: Ints
    known: Ints  # least that they can add up to if holes are smaller or larger than they should be
    number: Ints  # of others that are not 0
    layers: int


def _judged(tested: _Tested, names: list[str]) -> Iterator[_Hit]:
    """Give the codes that are totals: exact ones, and only then rounded ones."""
    n = len(names)
    testable = tested.number >= 2 * tested.layers
    cost = BITS + np.log2(max(n, 2)) + 2 * (tested.layers - 1)
    width = tested.most - tested.others + 1.0
    exact = (tested.others <= tested.value) & (tested.value <= tested.most)
    worth = np.log2(np.maximum((tested.others / tested.layers + 1.0) / width, 1.0)) * exact
    # holes can be larger than they should be: then there is no proof, and no contradiction
    exact |= (width > 1) & (tested.known <= tested.value)
    found = False
    for code in _likely(tested, testable & exact, testable, n):
        hit = _judge(tested, code, names[code], testable, exact, worth, cost, 1)
        if hit is not None:
            found = True
            yield hit
    if found or tested.layers > 1:
        return
    divisor = np.zeros(n, dtype=np.int64)
    np.gcd.at(divisor, tested.code, tested.value)
    others_too = int(np.gcd.reduce(tested.others)) if len(tested.others) else 1
    off = np.maximum(divisor, 1)[tested.code]
    near = (tested.others - off < tested.value) & (tested.value < tested.most + off)
    worth = np.log2(np.maximum((tested.others + 1.0) / (2.0 * off + width), 1.0))
    for code in _likely(tested, testable & near, testable, n):
        base = int(divisor[code])
        if 1 < base <= 1000 and base != others_too:
            hit = _judge(tested, code, names[code], testable, near, worth, cost + 3, base)
            if hit is not None:
                yield hit


def _likely(tested: _Tested, match: np.ndarray, testable: np.ndarray, n: int) -> list[int]:
    tests = np.bincount(tested.code[testable], minlength=n)
    matches = np.bincount(tested.code[match], minlength=n)
    return [int(c) for c in np.flatnonzero((matches > 0) & _nearly_all(matches, tests))]


def _nearly_all(matches: Any, tests: Any) -> Any:
    """Whether nearly all are right: but for one, or one in ten."""
    return tests - matches <= np.maximum((1 - PARTNERS) * tests, 1)


def _judge(
    tested: _Tested,
    code: int,
    name: str,
    testable: np.ndarray,
    match: np.ndarray,
    worth: np.ndarray,
    cost: float,
    base: int,
) -> _Hit | None:
    """Weigh what speaks for one code: how often it adds up, to how much, and where it is not."""
    own = (tested.code == code) & testable
    bits = float(worth[own & match].sum()) - 5.0 * int((own & ~match).sum())
    holes = bool((tested.most > tested.others).any())
    if bits < ((0.0 if holes else BITS_OF_A_NAME) if NAMES.fullmatch(name) else cost):
        return None
    region = tested.region[tested.key[own][0]]
    could = testable & (tested.region[tested.key] == region)
    # one may be missing in any case: totals of rows and columns often come without the grand total
    partners, seen = len(np.unique(tested.key[could])), len(np.unique(tested.key[own]))
    if partners - seen > max((1 - SEEN) * partners, 1):
        return None
    return _Hit(code, int((own & match).sum()), int(own.sum()), base, False)


def _subtotals(rows: _Rows, axis: str, by: Sequence[str]) -> list[InsideTotal]:
    """Find codes that are sums of some others that no column and no first characters group."""
    found: list[InsideTotal] = []
    key, labels = keyed([rows.texts[name] for name in by], len(rows.counts))
    code, codes = pd.factorize(rows.texts[axis], sort=True)
    for own_area in (False, True) if rows.own.any() else (False,):
        member = np.flatnonzero(~rows.total & (~rows.own | own_area))
        pair, pairs = pd.factorize(key[member] * len(codes) + code[member], sort=True)
        value = sums_of(pair.astype(np.int64), rows.counts[member], len(pairs))
        of_key, of_code = np.divmod(np.asarray(pairs, dtype=np.int64), len(codes))
        size = sums_of(of_code, value, len(codes))
        # smaller ones first: those above them are made of the same codes
        for target in np.argsort(-size, kind="stable")[:LARGEST_CODES][::-1]:
            members = _members_of(of_key, of_code, value, (len(labels), len(codes)), int(target))
            if members is None:
                continue
            own_rows = np.flatnonzero((code == target) & ~rows.total)
            hit = _Hit(int(target), len(own_rows), len(own_rows), 1, own_area)
            named = " and ".join([*by, f"{len(members)} codes of {axis}"])
            family = _family(rows, key, labels, own_rows, hit, named)
            of = np.where(np.isin(code, members), family.of, -1)
            found.append(
                InsideTotal(
                    axis, str(codes[target]), own_rows, family._replace(of=of),
                    len(own_rows), len(own_rows),
                )
            )  # fmt: skip
            rows.total[own_rows] = True
            value[of_code == target] = 0
    return found


def _members_of(
    key: Ints, code: Ints, value: Ints, shape: tuple[int, int], target: int
) -> Ints | None:
    """Find the codes whose counts add up to those of one code in every key, if chance cannot."""
    keys, codes = shape
    total = np.zeros(keys, dtype=np.int64)
    total[key[code == target]] = value[code == target]
    if (total > 0).sum() < 3:
        return None
    larger = np.bincount(code[value > total[key]], minlength=codes) > 0
    there = np.bincount(code[value > 0], minlength=codes) > 0
    members = np.flatnonzero(there & ~larger)
    members = members[members != target]
    bits = float(np.log2(total + 1.0).sum()) - len(members) - np.log2(codes)
    if not 2 <= len(members) <= MOST_MEMBERS or bits < 8.0:
        return None
    position = np.full(codes, -1)
    position[members] = np.arange(len(members))
    inside = position[code] >= 0
    matrix = np.zeros((keys, len(members)), dtype=np.int64)
    matrix[key[inside], position[code[inside]]] = value[inside]
    if (matrix.sum(axis=1) < total).any():
        return None
    matrix_of: Any = matrix.astype(np.float64)
    found = milp(
        np.zeros(len(members)),
        constraints=LinearConstraint(matrix_of, total, total),
        bounds=Bounds(0, 1),
        integrality=np.ones(len(members), dtype=np.int64),
        options={"node_limit": 200},
    )
    chosen = np.flatnonzero(np.rint(found.x) == 1) if found.x is not None else members[:0]
    if len(chosen) < 2 or (matrix[:, chosen].sum(axis=1) != total).any():
        return None
    return np.asarray(members[chosen], dtype=np.int64)


def _grand_total(rows: _Rows, table: FlowTable) -> list[InsideTotal]:
    """Find a single row that is the sum of all others, with codes that no other flow has."""
    at = np.flatnonzero(~rows.total)
    if len(at) < 3:
        return []
    row = int(at[np.argmax(rows.counts[at])])
    rest = at[at != row]
    ends = (table.origin, table.destination)
    alone = all((rows.texts[n][rest] != rows.texts[n][row]).all() for n in ends)
    sums = {own: int(rows.counts[rest][~rows.own[rest] | own].sum()) for own in (False, True)}
    own_area = next((own for own, total in sums.items() if total == rows.counts[row]), None)
    if own_area is None or not alone or np.log2(sums[own_area] + 1.0) < BITS + np.log2(len(at)):
        return []
    rows.total[row] = True
    of = np.where(~rows.total & (~rows.own | own_area), 0, -1)
    shown = rows.counts[[row]]
    code = ">".join(str(rows.texts[name][row]) for name in ends)
    family = Family("all rows", [""], of, shown, shown)
    return [InsideTotal(ends[1], code, np.array([row]), family, 1, 1)]


def _columns_of_totals(rows: _Rows, table: FlowTable) -> list[InsideTotal]:
    """Find columns that repeat a total on each of the rows that it is the sum of."""
    found = []
    numbers = {name: _whole_numbers(text) for name, text in rows.others.items()}
    numbers = {name: values for name, values in numbers.items() if values is not None}
    o, d, groups = table.origin, table.destination, table.groups
    for name, values in numbers.items():
        for by in dict.fromkeys([(o,), (d,), (o, *groups), (d, *groups), groups, ()]):
            each = _column_by(rows, name, np.asarray(values), by, len(numbers))
            if each is not None:
                found.append(each)
                break
    return found


def _column_by(
    rows: _Rows, name: str, values: Ints, by: tuple[str, ...], columns: int
) -> InsideTotal | None:
    key, labels = keyed([rows.texts[n] for n in by], len(values))
    flows = np.flatnonzero(~rows.total & ~rows.own & (values >= 0))
    if len(flows) == 0:
        return None
    shown = np.full(len(labels), -1, dtype=np.int64)
    shown[key[flows]] = values[flows]
    if (values[flows] != shown[key[flows]]).any():
        return None
    base = max(int(np.gcd.reduce(shown[shown >= 0])), 1)
    for own_area in (False, True):
        member = ~rows.total & (~rows.own | own_area)
        of = np.where(member, key, -1)
        sums = sums_of(of, rows.counts, len(labels))
        tested = (np.bincount(key[member], minlength=len(labels)) >= 2) & (shown >= 0)
        for off in (0, base - 1):
            right = tested & (np.abs(shown - sums) <= off)
            bits = float(np.log2((sums[right] + 1.0) / (2 * off + 1)).clip(0).sum())
            bits -= 5.0 * int((tested & ~right).sum())
            if (
                tested.any()
                and _nearly_all(right.sum(), tested.sum())
                and (bits >= BITS + np.log2(12 * columns))
            ):
                family = Family(
                    " and ".join(by) or "all rows", labels, np.where(shown[key] >= 0, of, -1),
                    np.maximum(shown - off, 0), shown + off,
                )  # fmt: skip
                none = np.zeros(0, dtype=np.int64)
                return InsideTotal(name, None, none, family, int(right.sum()), int(tested.sum()))
    return None


def _whole_numbers(texts: np.ndarray) -> Ints | None:
    """Read a column of whole numbers, -1 where there is none; None if it is no such column."""
    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    given = numbers.notna().to_numpy()
    empty = np.array(
        [not str(text).strip() or str(text) in ("nan", "None", "<NA>") for text in texts]
    )
    whole = numbers[given]
    if not given.any() or (~given & ~empty).any() or (whole % 1 != 0).any():
        return None
    if (whole.abs() > 2**53).any():
        return None
    return np.where(given, numbers.fillna(-1), -1).astype(np.int64)
