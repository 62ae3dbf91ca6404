"""A column made from the count is caught whatever it was made into; one that was not passes."""

import hashlib
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import FlowTable, read_flows
from bayes_sdc.checks import Check
from bayes_sdc.flows.audit.audit import audit_families
from bayes_sdc.flows.kept_columns.check import _ask_shifts, check_columns
from bayes_sdc.flows.kept_columns.features import read_column
from bayes_sdc.flows.kept_columns.findings import ALARM
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.kept_columns.small_counts import small_counts
from bayes_sdc.flows.kept_columns.totals import kept_totals
from bayes_sdc.flows.table.families import Family, keyed
from bayes_sdc.flows.table.simulate import simulate_flows

FLOWS = simulate_flows(areas=30, states=2, seed=4)
COUNT = FLOWS["count"].to_numpy()


def check(frame: pd.DataFrame, keep: list[str], groups: list[str] | None = None) -> Check:
    table = read_flows(
        frame, origin="origin", destination="destination", count="count", groups=groups
    )
    return check_columns(table, select_columns(table, keep))


def kept(**columns: object) -> Check:
    return check(FLOWS.assign(**columns), list(columns))


def parts(k: int, seed: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    split = np.array([rng.multinomial(n, np.ones(k) / k) for n in COUNT])
    return {f"part {i}": split[:, i] for i in range(k)}


def named(found: Check) -> set[str]:
    """Columns that the reason blames, before its first colon."""
    return set(found.reason.partition(":")[0].split("'")[1::2])


@pytest.mark.parametrize("k", [3, 40])
def test_columns_that_add_up_to_the_count_are_named_all(k):
    columns = parts(k)
    found = kept(**columns)
    assert found.verdict == "fail"
    assert named(found) == set(columns), "the remedy must name the whole set"


@pytest.mark.slow
def test_more_parts_than_rows_to_fit_them_to_are_named_all():
    few = simulate_flows(areas=10, states=2, seed=3)
    rng = np.random.default_rng(1)
    split = np.array([rng.multinomial(n, np.ones(60) / 60) for n in few["count"]])
    columns = {f"part {i}": split[:, i] for i in range(60)}
    found = check(few.assign(**columns), list(columns))
    assert found.verdict == "fail"
    assert named(found) == set(columns)


def test_no_column_is_blamed_for_the_one_beside_it():
    """A copy tells the count with a state beside it too, which says nothing of the state."""
    found = kept(copy=COUNT)
    assert named(found) == {"copy"}
    assert "look at" not in found.reason


@settings(max_examples=8)
@given(
    st.integers(2, 400),
    st.booleans(),
    st.booleans(),
    st.sampled_from([lambda n: n, lambda n: -3 * n + 7, lambda n: n**2, lambda n: np.exp(n % 10)]),
    st.sampled_from([60, 300, len(COUNT)]),
)
def test_a_copy_in_other_rows_must_not_leave(shift, turned, wrapped, function, rows):
    """The next reader shifts it back: by any number of rows, from the end, with a constant."""
    rows = rows if wrapped else max(rows, 300)  # what falls out at the end is lost
    frame = FLOWS.iloc[:rows].reset_index(drop=True)
    count = frame["count"].to_numpy(np.float64)
    shift %= rows if wrapped else rows // 5
    column = np.roll(function(count)[::-1] if turned else function(count), shift)
    if not wrapped:
        column[:shift] = 0.0
    assert check(frame.assign(x=column), ["x"]).verdict == "fail"


@settings(max_examples=6)
@given(st.integers(2, 400), st.booleans(), st.sampled_from([30, 300, len(COUNT)]))
def test_a_copy_among_small_rows_alone_must_not_leave(shift, turned, rows):
    """Safe rows may hold anything; the small counts stand in each other's rows."""
    frame = FLOWS.iloc[:rows].reset_index(drop=True)
    count = frame["count"].to_numpy(np.float64)
    small = np.flatnonzero((count >= 1) & (count <= 9))
    column = np.random.default_rng(shift).integers(1, 10, rows).astype(np.float64)
    of_small = count[small][::-1] if turned else count[small]
    column[small] = np.roll(of_small, shift % len(small))
    assert check(frame.assign(x=column), ["x"]).verdict == "fail"


@settings(max_examples=8)
@given(
    st.sampled_from(["text", "number", "first seen"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 17]),
    st.sampled_from([60, 300, len(COUNT)]),
    st.sampled_from(["all", "small"]),
)
def test_a_copy_in_the_order_of_a_matrix_must_not_leave(way, there, turned, shift, rows, which):
    """Out of a matrix read column by column, counts stand by destination; or the file does so."""
    frame = FLOWS.iloc[:rows]
    if way == "number":  # codes of different lengths: 5 comes before 10
        number = {area: str(k + 5) for k, area in enumerate(sorted({*FLOWS["origin"]}))}
        frame = frame.replace(dict.fromkeys(("origin", "destination"), number))
    frame = frame.sort_values(["origin", "destination"], ignore_index=True)
    count = frame["count"].to_numpy(np.float64)
    places = np.flatnonzero((count >= 1) & (count <= 9)) if which == "small" else np.arange(rows)
    ends = [frame[side] for side in ("destination", "origin")]
    if way == "number":
        ends = [end.astype(int) for end in ends]
    elif way == "first seen":
        seen = {area: k for k, area in enumerate(pd.unique(pd.concat(ends[::-1])))}
        ends = [end.map(seen) for end in ends]
    by = pd.concat(ends, axis=1).iloc[places].sort_values(["destination", "origin"]).index
    column = np.random.default_rng(shift).integers(1, 10, rows).astype(np.float64)
    source, goal = (by, places) if there else (places, by)
    listed = count[source][::-1] if turned else count[source]
    column[goal] = np.roll(listed, shift)
    assert check(frame.assign(x=column), ["x"]).verdict == "fail"


@settings(max_examples=6)
@given(st.integers(0, 10_000), st.sampled_from([30, 300, len(COUNT)]))
def test_columns_that_go_with_areas_and_not_with_counts_raise_no_alarm(seed, rows):
    """Neighbouring rows share an origin: what goes with it goes with itself a row away."""
    rng = np.random.default_rng(seed)
    frame = FLOWS.iloc[:rows].reset_index(drop=True)
    places = {area: rng.normal(size=2) for area in {*FLOWS["origin"], *FLOWS["destination"]}}
    ends = [np.array([places[a] for a in frame[side]]) for side in ("origin", "destination")]
    apart = np.sqrt(((ends[0] - ends[1]) ** 2).sum(axis=1)) + rng.normal(size=rows) / 9
    frame["apart"] = apart.round(3)
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    column = read_column("apart", table.frame["apart"], inside=True)
    assert not [*_ask_shifts(column, table, small_counts(table), np.log(ALARM / 9))]


@pytest.mark.parametrize("text", ["n{} of 2003", "id {}", "{stars}"])
def test_a_text_with_the_count_of_another_row_must_not_leave(text):
    """The number stands first, last, or as the length."""
    shifted = np.roll(COUNT, 37)
    texts = [text.format(n, stars="*" * min(n, 60)) for n in shifted]
    assert kept(x=texts).verdict == "fail"


@settings(max_examples=10)
@given(st.floats(0.4, 0.9), st.integers(-3, 3), st.integers(0, 1000))
def test_a_copy_with_errors_in_some_rows_must_not_leave(right, shift, seed):
    """It is no function of the count, and still the count in most rows."""
    rng = np.random.default_rng(seed)
    errors = rng.integers(1, 10, len(COUNT))
    noisy = np.where(rng.random(len(COUNT)) < right, COUNT, errors) + shift
    assert kept(x=noisy).verdict == "fail"


@settings(max_examples=12)
@given(
    st.sampled_from(["back", "before", "after"]),
    st.lists(st.integers(0, 4), min_size=10, max_size=10).filter(lambda v: len({*v[1:]}) > 1),
    st.booleans(),
)
def test_a_function_of_the_count_of_another_row_must_not_leave(row, values, grouped):
    """The small count of the way back stands in the release then, beside another pair."""
    groups = ["origin_state", "destination_state"] if grouped else None
    pairs = FLOWS.set_index(["origin", "destination"])["count"]
    turned = pairs.reindex([(d, o) for o, d in pairs.index]).to_numpy(float, na_value=np.nan)
    other = {"back": turned, "before": np.r_[np.nan, COUNT[:-1]], "after": np.r_[COUNT[1:], np.nan]}
    for kind in (other[row], [f"<{values[int(min(n, 9))]}>" if n == n else "" for n in other[row]]):
        assert check(FLOWS.assign(x=kind), ["x"], groups).verdict == "fail"


@settings(max_examples=10)
@given(st.sampled_from(["md5", "sha1", "sha256"]), st.booleans(), st.integers(0, 1000))
def test_a_hash_of_pair_and_count_does_not_pass(method, number, salt):
    """Nine trials for each pair give the count to whoever knows the method."""
    pairs = zip(FLOWS["origin"], FLOWS["destination"], COUNT, strict=True)
    codes = [hashlib.new(method, f"{salt}{row}".encode()).hexdigest()[:10] for row in pairs]
    assert kept(code=[int(c, 16) for c in codes] if number else codes).verdict != "pass"


def test_a_sum_without_one_of_its_columns_still_tells():
    columns = parts(4)
    del columns["part 2"]
    assert kept(**columns).verdict == "fail"


RNG = np.random.default_rng(7)


def letters(k: int) -> str:
    return "".join(RNG.choice(list("bcdefgh"), k))


def shuffled(text: str) -> str:
    return "".join(RNG.permutation(list(text)))


BASE = RNG.integers(0, 1000, len(COUNT))


def check_digit(base: int, n: int) -> int:
    """Append the digit that makes the sum of all digits n, but for tens."""
    return 10 * base + (int(n) - sum(map(int, str(base)))) % 10


def capitals(n: int) -> str:
    return shuffled(letters(n).upper() + letters(14 - n))


MADE: dict[str, Callable[[], dict[str, object]]] = {
    "flag": lambda: {"x": np.where(COUNT < 4, "S", "")},
    "unique": lambda: {"x": np.where(COUNT == 1, "unique", "")},
    "size bands": lambda: {"x": pd.cut(COUNT, [0, 2, 4, 9, 10**9]).astype(str)},
    "text": lambda: {"x": pd.Series(COUNT).map(lambda n: f"class {n * 7 % 11}")},
    "hash": lambda: {
        "x": [hashlib.sha256(f"salt {n}".encode()).hexdigest() for n in COUNT]
    },
    "running total": lambda: {"x": COUNT.cumsum()},
    "gaps in numbers of rows": lambda: {"x": 1000 + COUNT.cumsum() - COUNT},
    "running total of an origin": lambda: {"x": FLOWS.groupby("origin")["count"].cumsum()},
    "date": lambda: {
        "x": [str((pd.Timestamp("2020-01-01") + pd.Timedelta(days=int(n))).date()) for n in COUNT]
    },
    "number in a text": lambda: {
        "x": [f"case-{i * 7919 % 10_007}-{n}" for i, n in enumerate(COUNT)]
    },
    "number as text": lambda: {"x": [f"{n},0 %" for n in COUNT]},
    "length of a text": lambda: {"x": [f"{i:05}" + "x" * min(n, 30) for i, n in enumerate(COUNT)]},
    "number of a letter": lambda: {
        "x": [shuffled("a" * min(n, 30) + letters(int(RNG.integers(3, 40)))) for n in COUNT]
    },
    "share of a letter": lambda: {
        "x": [shuffled("a" * min(n, 30) + letters(40 - min(n, 30))) for n in COUNT]
    },
    "number of words": lambda: {"x": [" ".join([letters(3)] * min(n, 20)) for n in COUNT]},
    "a digit in the middle": lambda: {
        "x": RNG.integers(1, 10**4, len(COUNT)) * 10**5
        + COUNT % 10 * 1000
        + RNG.integers(0, 1000, len(COUNT))
    },
    "rounded share": lambda: {
        "x": (100 * COUNT / FLOWS.groupby("origin")["count"].transform("sum")).round(1)
    },
    "rank": lambda: {"x": pd.Series(-COUNT).rank(method="first").to_numpy()},
    "missing where small": lambda: {"x": np.where(COUNT < 3, None, "a")},
    "noise of one": lambda: {"x": COUNT + np.random.default_rng(1).integers(-1, 2, len(COUNT))},
    "normal noise": lambda: {"x": COUNT + np.random.default_rng(1).normal(0, 1, len(COUNT))},
    "share of the origin": lambda: {
        "x": (COUNT / FLOWS.groupby("origin")["count"].transform("sum")).round(5)
    },
    "last digit": lambda: {
        "x": 10 * np.random.default_rng(1).integers(0, 10**6, len(COUNT)) + COUNT % 10
    },
    "capitals": lambda: {"x": [capitals(min(n, 14)) for n in COUNT]},
    "items of a list": lambda: {
        "x": [";".join(map(str, RNG.integers(0, 100, min(n, 20)))) for n in COUNT]
    },
    "check digit": lambda: {"x": [check_digit(int(RNG.integers(10**4, 10**5)), n) for n in COUNT]},
    "remainder of 97": lambda: {"x": RNG.integers(0, 10**5, len(COUNT)) * 97 + COUNT % 97},
    "bits": lambda: {
        "x": [sum(1 << int(b) for b in RNG.choice(30, min(n, 30), replace=False)) for n in COUNT]
    },
    "interval": lambda: {"x": [f"{a}-{a + n}" for a, n in zip(BASE, COUNT, strict=True)]},
    "how often a value occurs": lambda: {
        "x": pd.Series(np.where(COUNT < 5, "many", np.arange(len(COUNT)).astype(str)))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_column_made_from_the_count_must_not_leave(name):
    found = kept(**MADE[name]())
    assert found.verdict == "fail", found.reason
    assert "x" in named(found)


def two() -> dict[str, dict[str, object]]:
    rng = np.random.default_rng(2)
    base, factor = rng.integers(0, 10**4, len(COUNT)), rng.uniform(1, 5, len(COUNT))
    nine = rng.integers(0, 9, len(COUNT))
    return {
        "difference": {"a": base, "b": base + COUNT},
        "product": {"a": factor, "b": COUNT / factor},
        "ratio": {"a": factor, "b": factor * COUNT},
        "remainder": {"a": nine, "b": (nine + COUNT) % 9},
        "remainder of 1000": {"a": BASE, "b": (BASE + COUNT) % 1000},
        "texts": {"a": [f"id {n}" for n in BASE], "b": [f"id {n}" for n in BASE + COUNT]},
        "dates": {"a": dates(BASE), "b": dates(BASE + np.minimum(COUNT, 1000))},
    }


def dates(days: np.ndarray) -> list[str]:
    first = pd.Timestamp("2020-01-01")
    return [(first + pd.Timedelta(days=int(day))).strftime("%d %b %Y") for day in days]


@pytest.mark.parametrize(
    "name",
    ["difference", "product", "ratio", "remainder", "remainder of 1000", "texts", "dates"],
)
def test_two_columns_may_tell_together_what_neither_tells_alone(name):
    columns = two()[name]
    for alone in columns:
        if name in ("difference", "remainder"):
            assert kept(**{alone: columns[alone]}).verdict != "fail", alone
    found = kept(**columns)
    assert found.verdict == "fail"
    assert named(found) == {"a", "b"}


def three() -> dict[str, dict[str, object]]:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 10, (2, len(COUNT)))
    wide = rng.integers(0, 2**20, (2, len(COUNT)))
    return {
        "remainder": {"a": a, "b": b, "c": (a + b + COUNT) % 10},
        "sum": {"a": wide[0], "b": wide[1], "c": wide[0] + wide[1] + COUNT},
        "bits": {"a": wide[0], "b": wide[1], "c": wide[0] ^ wide[1] ^ COUNT},
    }


@pytest.mark.parametrize("name", ["remainder", "sum", "bits"])
def test_three_columns_may_tell_what_no_two_of_them_tell(name):
    columns = three()[name]
    assert kept(a=columns["a"], c=columns["c"]).verdict != "fail"
    found = kept(**columns)
    assert found.verdict == "fail", found.reason
    assert named(found) == {"a", "b", "c"}


def test_share_times_the_total_of_the_origin():
    total = FLOWS.groupby("origin")["count"].transform("sum")
    found = kept(share=(COUNT / total).round(5), total=total)
    assert found.verdict == "fail"


def test_a_total_of_areas_is_named_as_published():
    found = kept(outflow=FLOWS.groupby("origin")["count"].transform("sum"))
    assert "sums of the counts of each origin" in found.reason
    assert found.verdict in ("look", "fail")


@pytest.mark.parametrize(
    ("factor", "places"), [(1 / 7, 2), (1 / 1000, 3), (1e-4, 5)], ids=["mean", "thousands", "share"]
)
def test_totals_without_own_areas_are_seen_through_rounding(factor, places):
    """Small totals lose most by rounding: 1 / 7 is 0.14, and 0.14 times 7 is 0.98."""
    away = FLOWS["count"].where(FLOWS["origin"] != FLOWS["destination"], 0)
    totals = away.groupby(FLOWS["origin"]).transform("sum")
    found = kept(x=(totals * factor).round(places))
    assert found.verdict == "fail"
    assert "sums of the counts without own areas of each origin" in found.reason


def by_sex(seed: int = 2) -> pd.DataFrame:
    """Flows of two sexes between nine areas of three regions."""
    rng = np.random.default_rng(seed)
    areas = [f"{r}{i}" for r in "RST" for i in range(3)]
    rows = [(o, d, o[0], d[0], s) for o in areas for d in areas if o != d for s in "MF"]
    frame = pd.DataFrame(rows, columns=["origin", "destination", "from", "to", "sex"])
    return frame.assign(count=rng.geometric(0.12, len(frame)))


SUMS = {
    "both sexes of a pair": ["origin", "destination"],
    "one sex of an origin": ["origin", "sex"],
    "one sex of a destination": ["destination", "sex"],
    "sex": ["sex"],
    "an origin to a region": ["origin", "to"],
    "a pair of regions": ["from", "to"],
}


@pytest.mark.parametrize("factor", [1, 0.001])
@pytest.mark.parametrize("by", SUMS.values(), ids=SUMS)
def test_totals_of_any_codes_in_a_kept_column_join_the_audit(by, factor):
    """Who is told both sexes, and sees the safe count of one, subtracts: the other is 3."""
    frame = by_sex()
    frame["x"] = frame.groupby(by)["count"].transform("sum") * factor
    table = read_flows(
        frame, origin="origin", destination="destination", count="count",
        groups=["from", "to", "sex"],
    )  # fmt: skip
    found = check_columns(table, select_columns(table, ["x"]))
    exact = audit_families(table, [_exactly(table, by)])
    if exact.pinned:
        assert found.verdict == "fail", found.reason
    if len(by) > 1:
        assert "publishes them" in found.reason
        [(_, _, family)] = kept_totals(table, ["x"])
        together = audit_families(table, [family])
        assert (together.pinned, together.narrowed) == (exact.pinned, exact.narrowed)


def _exactly(table: FlowTable, by: list[str]) -> Family:
    counts = table.frame[table.count].to_numpy(np.int64)
    key, labels = keyed([table.frame[name].to_numpy(object) for name in by], len(counts))
    sums = np.bincount(key, counts, minlength=len(labels)).astype(np.int64)
    return Family("x", labels, key, sums, sums)


@pytest.mark.parametrize("side", ["origin", "destination"])
@pytest.mark.parametrize("part", ["men", "leaving", "staying", "to R", "half"])
def test_totals_of_a_part_of_the_flows_are_not_released_as_facts_of_an_area(side, part):
    """Men who leave an area: a function of the area alone, and yet a sum of its counts."""
    frame = by_sex(3)
    rows = {
        "men": frame["sex"] == "M",
        "leaving": frame["from"] != frame["to"],
        "staying": frame["from"] == frame["to"],
        "to R": frame["to" if side == "origin" else "from"] == "R",
        "half": frame["sex"] == "F",
    }[part]
    sums = frame["count"].where(rows, 0).groupby(frame[side]).transform("sum")
    frame = frame.assign(
        x=(sums / 2) if part == "half" else sums,
        population=frame[side].map(
            {a: 1000 + 37 * i**2 for i, a in enumerate(sorted(set(frame[side])))}
        ),
    )
    table = read_flows(
        frame, origin="origin", destination="destination", count="count",
        groups=["from", "to", "sex"],
    )  # fmt: skip
    chosen = select_columns(table)
    assert "population" in chosen.areas
    [left] = chosen.left_out
    assert left.name == "x"
    assert "it publishes totals" in left.why


def test_what_only_goes_with_totals_is_no_total():
    areas = pd.factorize(FLOWS["origin"])[0]
    totals = FLOWS.groupby("origin")["count"].transform("sum")
    rng = np.random.default_rng(5)
    near = (totals * rng.uniform(0.9, 1.1, areas.max() + 1)[areas]).round(2)
    population = rng.lognormal(8, 1, areas.max() + 1).round()[areas]
    assert {"near", "population"} <= set(
        select_columns(
            read_flows(
                FLOWS.assign(near=near, population=population),
                origin="origin", destination="destination", count="count",
            )
        ).areas
    )  # fmt: skip


@settings(max_examples=12)
@given(st.lists(st.integers(0, 4), min_size=9, max_size=9), st.integers(0, 4))
def test_every_function_of_the_count_is_caught(values, of_safe):
    """Any map of 1..9 to a few values, many counts to one value or not."""
    if len(set(values)) == 1:
        return
    column = np.where(COUNT < 10, np.array([*values, 0])[np.minimum(COUNT, 10) - 1], of_safe)
    found = kept(x=pd.Series(column).map(lambda v: f"kind {v}"))
    assert found.verdict == "fail", found.reason


def tiny(n: int) -> pd.DataFrame:
    rows = [(o, d) for o in "abcdef" for d in "uvwxyz"]
    count = np.where(np.arange(36) < n, 1 + np.arange(36) % 9, 100 + np.arange(36) ** 2)
    return pd.DataFrame(rows, columns=["origin", "destination"]).assign(count=count)


@pytest.mark.parametrize("n", range(1, 9))
def test_a_copy_beside_a_handful_of_small_counts_must_not_leave(n):
    for column in (tiny(n)["count"], "c" + tiny(n)["count"].astype(str)):
        assert check(tiny(n).assign(x=column), ["x"]).verdict == "fail"


def test_beside_few_small_counts_nothing_passes():
    noise = np.random.default_rng(1).normal(size=36)
    assert check(tiny(4).assign(x=noise), ["x"]).verdict == "fail"
    assert check(tiny(20).assign(x=noise), ["x"]).verdict == "look"


def test_a_group_made_from_the_count_must_not_leave():
    frame = FLOWS.assign(g=FLOWS["count"].clip(upper=10).astype(str))
    assert check(frame, [], ["g"]).verdict == "fail"
    assert check(frame, [], ["origin_state", "destination_state"]).verdict == "pass"


def test_the_verdict_does_not_depend_on_the_order_of_the_rows():
    columns = {"a": np.random.default_rng(1).normal(size=len(COUNT)), "b": COUNT % 2}
    frame = FLOWS.assign(**columns)
    mixed = frame.sample(frac=1, random_state=3)
    assert check(frame, ["b"]) == check(mixed, ["b"])


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["normal", "count", "flag", "id", "text"]))
def test_a_random_column_passes(seed, kind):
    rng, n = np.random.default_rng(seed), len(COUNT)
    column = {
        "normal": lambda: rng.normal(size=n),
        "count": lambda: rng.poisson(3, n),
        "flag": lambda: rng.random(n) < 0.1,
        "id": lambda: rng.permutation(n),
        "text": lambda: rng.choice([f"k{i}" for i in range(20)], n),
    }[kind]()
    other = rng.integers(0, 10, n)
    assert kept(x=column, y=other).verdict != "fail"


def test_formulas_of_several_columns_are_seen():
    """A distance from what is expected, in its deviation, beside the expectation."""
    rng = np.random.default_rng(3)
    expected = rng.gamma(2.0, 4.0, len(FLOWS)).round(3)
    for made in ((COUNT - expected) / np.sqrt(expected), COUNT - 0.3 * expected * expected):
        found = kept(expected=expected, made=made.round(3))
        assert (found.verdict, named(found)) == ("fail", {"expected", "made"})


def test_one_number_hidden_in_another_digit_by_digit_is_seen():
    rng = np.random.default_rng(3)
    key = rng.integers(0, 1000, len(FLOWS))
    for modulus in (10, 100):
        assert kept(key=key, code=(COUNT + key) % modulus).verdict == "fail"
        assert kept(key=key, code=(COUNT - key) % modulus).verdict == "fail"


def test_row_numbers_in_the_order_of_the_counts_are_seen():
    assert kept(x=np.argsort(COUNT, kind="stable") + 1).verdict == "fail"
    found = kept(x=np.random.default_rng(1).permutation(len(COUNT)))
    assert (found.verdict, "like a code" in found.reason) == ("look", True)


@pytest.mark.parametrize("buckets", [100, 1000])
def test_a_part_of_a_keyed_hash_is_said_to_be_like_a_code(buckets):
    """Only who has the key reads the count from it, so no statistic makes it fail."""
    pairs = zip(FLOWS["origin"], FLOWS["destination"], COUNT, strict=True)
    hashed = [hashlib.sha256(f"key {pair}".encode()).digest() for pair in pairs]
    for x in ([int.from_bytes(h[:8]) % buckets for h in hashed], [h.hex()[:3] for h in hashed]):
        found = kept(x=x)
        assert (found.verdict, named(found)) == ("look", {"x"}), found.reason


def test_decimal_numbers_are_no_copies_by_rounding_of_the_computer():
    """A number agrees with itself in one row, which says nothing."""
    for seed in range(2):
        x = np.random.default_rng(seed).normal(500, 90, len(FLOWS)).round(1)
        assert kept(x=x).verdict == "pass"


def test_two_classes_beside_many_safe_counts_make_no_overflow():
    """A product fitted to the safe counts can be huge for small ones; that is no warning."""
    kind = np.where(COUNT == 8, 1, np.where(COUNT < 10, 0, 2))
    assert kept(x=kind).verdict == "fail"
