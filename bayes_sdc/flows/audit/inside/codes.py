"""Codes of areas and groups whose counts are sums of those of other codes, whatever their names.

A code is a total if for nearly all partners its count is the sum of the others, or for so many that
it is beyond chance; how far that is is measured in bits. A partner with a sum of 1,000 is worth ten
bits, so three numbers that happen to add up raise no alarm in a large table.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.flows.audit.inside.rows import (
    SURE,
    InsideTotal,
    Rows,
    called_total,
    choices,
    surprise,
)
from bayes_sdc.flows.table.families import Family, Ints, keyed, sums_of

BITS = 2.9  # beyond those that the choice among so many codes costs
BITS_OF_A_NAME = 1.0  # enough for a code that is called a total
TRIED = 5.0  # bits for the ways to split the codes, layers, and own areas
MOST_JOINED = 4  # columns of groups that are taken together
PARTNERS, SEEN = 0.9, 0.8  # shares of partners where it adds up, and where the code is there


class Hit(NamedTuple):
    """A code that is the sum of the others."""

    code: int
    matches: int
    tested: int
    base: int
    own_area: bool
    bits: float


def codes_that_are_sums(rows: Rows, axis: str) -> list[InsideTotal]:
    """Find the codes of one column that are sums of other codes of it."""
    rest = {name: text for name, text in rows.texts.items() if name != axis}
    by = crossing(rows, axis)
    follows = {name: text for name, text in rest.items() if name not in by}
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
    return found


def joined(rows: Rows) -> Iterator[tuple[Rows, str]]:
    """Treat an axis and the groups that cross it as one: a code can be a total over both.

    In rows such as ``A > Total, sex Total`` both codes are totals at once, and neither may occur
    alone.
    """
    ends, groups = list(rows.texts)[:2], list(rows.texts)[2:]
    crossed = [name for name in groups if all(name in crossing(rows, axis) for axis in ends)]
    crossed = crossed[:MOST_JOINED]
    sizes = range(1, len(crossed) + 1)
    some_groups = [some for size in sizes for some in combinations(crossed, size)]
    every = [(*end, *some) for some in some_groups for end in ((), ends[:1], ends[1:])]
    # the fewest columns first: rows A > B, sex Total, age Total are no totals of B
    for names in sorted((names for names in every if len(names) > 1), key=len):
        parts = zip(*(rows.texts[name] for name in names), strict=True)
        whole = np.array([">".join(map(str, each)) for each in parts], dtype=object)
        rest = {name: text for name, text in rows.texts.items() if name not in names}
        called = " and ".join(names)
        yield rows._replace(texts={called: whole, **rest}, others={}), called


def crossing(rows: Rows, axis: str) -> list[str]:
    """Columns of areas and groups that are no functions of the codes of another."""
    rest = {name: text for name, text in rows.texts.items() if name != axis}
    return [name for name, text in rest.items() if not _follows(rows, axis, text)]


def _follows(rows: Rows, axis: str, values: np.ndarray) -> bool:
    """Whether a column is a function of the codes of another, but for a few codes."""
    pairs = pd.DataFrame({"code": rows.texts[axis], "value": values}).drop_duplicates()
    if pairs["value"].nunique() == 1:
        return False
    return pairs["code"].nunique() >= 0.9 * len(pairs)


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
    rows: Rows, axis: str, keys: Sequence[np.ndarray], regions: np.ndarray | None, named: str
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
        family = family_of(rows, key, labels, own_rows, hit, named)
        whole = _whole(rows, key, own_rows, hit)
        found.append(
            InsideTotal(
                axis,
                str(codes[hit.code]),
                own_rows,
                family,
                hit.matches,
                hit.tested,
                hit.bits,
                whole,
            )
        )
    return found


def family_of(
    rows: Rows, key: Ints, labels: list[str], totals: Ints, hit: Hit, named: str
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


def _whole(rows: Rows, key: Ints, totals: Ints, hit: Hit) -> Ints | None:
    """The row of the total that each row counts in, hidden or not."""
    if hit.base > 1:
        return None
    of_key = np.full(int(key.max()) + 1, -1, dtype=np.int64)
    of_key[key[totals]] = totals
    of_key[np.bincount(key[totals], minlength=len(of_key)) > 1] = -1
    members = ~rows.total & (~rows.own | hit.own_area)
    members[totals] = False
    return np.where(members, of_key[key], -1)


def _hits(rows: Rows, key: Ints, code: Ints, names: list[str], region: Ints) -> list[Hit]:
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
            hits = [hit._replace(own_area=own_area) for hit in _judged(rows, tested, names)]
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


def _judged(rows: Rows, tested: _Tested, names: list[str]) -> Iterator[Hit]:
    """Give the codes that are totals: exact ones, and only then rounded ones."""
    n = len(names)
    testable = tested.number >= 2 * tested.layers
    cost = BITS + np.log2(max(n, 2)) + 2 * (tested.layers - 1)
    width = tested.most - tested.others + 1.0
    exact = (tested.others <= tested.value) & (tested.value <= tested.most)
    worth = np.log2(np.maximum((tested.others / tested.layers + 1.0) / width, 1.0)) * exact
    # a hole may be larger than its mark says: then nothing is proved and nothing contradicted
    exact |= (width > 1) & (tested.known <= tested.value)
    found = False
    for code in _likely(tested, testable & exact, testable, n, worth):
        hit = _judge(rows, tested, code, names[code], testable, exact, worth, cost, 1)
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
            hit = _judge(rows, tested, code, names[code], testable, near, worth, cost + 3, base)
            if hit is not None:
                yield hit


def _likely(
    tested: _Tested,
    match: np.ndarray,
    testable: np.ndarray,
    n: int,
    worth: np.ndarray | None = None,
) -> list[int]:
    """Codes that are right nearly always; with the ``worth`` of each, also often enough."""
    tests = np.bincount(tested.code[testable], minlength=n)
    matches = np.bincount(tested.code[match], minlength=n)
    likely = nearly_all(matches, tests)
    if worth is not None:
        bits = np.bincount(tested.code[match], worth[match], minlength=n)
        likely |= bits - choices(tests, tests - matches) >= BITS
    return [int(c) for c in np.flatnonzero((matches > 0) & likely)]


def nearly_all(matches: Any, tests: Any) -> Any:
    """Whether nearly all are right: but for one, or one in ten.

    Examples
    --------
    >>> bool(nearly_all(27, 30)), bool(nearly_all(26, 30)), bool(nearly_all(1, 2))
    (True, False, True)
    """
    return tests - matches <= np.maximum(np.round((1 - PARTNERS) * tests, 6), 1)


def _judge(
    rows: Rows,
    tested: _Tested,
    code: int,
    name: str,
    testable: np.ndarray,
    match: np.ndarray,
    worth: np.ndarray,
    cost: float,
    base: int,
) -> Hit | None:
    """Weigh the evidence for one code: how often it adds up, to how much, and where it does not."""
    own = (tested.code == code) & testable
    right, wrong = own & match, int((own & ~match).sum())
    usual = bool(nearly_all(right.sum(), own.sum()))
    called = called_total(name)
    lost = 5.0 * wrong if usual and not called else float(choices(own.sum(), wrong))
    bits = float(worth[right].sum()) - lost
    holes = bool((tested.most > tested.others).any())
    if bits < ((0.0 if holes else BITS_OF_A_NAME) if called else cost):
        return None
    region = tested.region[tested.key[own][0]]
    could = testable & (tested.region[tested.key] == region)
    partners, seen = len(np.unique(tested.key[could])), len(np.unique(tested.key[own]))
    strange = surprise(rows, tested.value[right] // tested.layers, 2 * base - 1)
    strange -= lost + np.log2(max(len(np.unique(tested.code)), 2)) + TRIED
    # one may be missing in any case: totals of rows and columns often come without the grand total
    rare = partners - seen > max((1 - SEEN) * partners, 1)
    if not (strange >= SURE or called or (usual and rows.doubtful and not rare)):
        return None
    return Hit(code, int(right.sum()), int(own.sum()), base, False, strange)
