"""Published totals are the same totals in whatever layout they were published."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import FlowTable, InputError, audit_totals, read_flows
from bayes_sdc.flows.table.families import families_of

COLUMNS = {"origin": "o", "destination": "d", "count": "n", "groups": ["so", "sd"]}


def flows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    areas = [(f"{s}{i}", s) for s in "ab" for i in range(3)]
    rows = [(o, d, so, sd) for o, so in areas for d, sd in areas if o != d]
    frame = pd.DataFrame(rows, columns=["o", "d", "so", "sd"])
    return frame.assign(n=rng.integers(1, 20, len(frame)))


def told(table: FlowTable, published: pd.DataFrame, base: int = 1) -> set[tuple]:
    """What each total says, whatever the order: its kind, its label, its bounds, its rows."""
    return {
        (family.name, label, int(low), int(high), tuple(np.flatnonzero(family.of == place)))
        for family in families_of(table, [published], base=base)
        for place, (label, low, high) in enumerate(
            zip(family.labels, family.low, family.high, strict=True)
        )
    }


def sums(frame: pd.DataFrame, *by: str) -> pd.DataFrame:
    return frame.groupby(list(by), as_index=False)["n"].sum()


@given(
    st.integers(0, 2**31),
    st.sampled_from(["Total", "_T", "99", "W92000004"]),
    st.sampled_from([1, 5]),
)
def test_a_code_that_the_table_does_not_have_stands_for_all(seed, code, base):
    frame = flows(seed)
    table = read_flows(frame, **COLUMNS)
    parts = [sums(frame, "o"), sums(frame, "d"), pd.DataFrame({"n": [frame["n"].sum()]})]
    rounded = [part.assign(n=(part["n"] + base // 2) // base * base) for part in parts]
    together = pd.concat(rounded).fillna(code)[["o", "d", "n"]]
    apart = set().union(*(told(table, part, base) for part in rounded))
    assert told(table, together.sample(frac=1, random_state=1), base) == apart


@pytest.mark.parametrize(("rows", "columns"), [("o", "sd"), ("so", "d"), ("so", "sd")])
def test_a_matrix_of_totals_is_read_as_rows(rows, columns):
    frame = flows(3)
    table = read_flows(frame, **COLUMNS)
    long = sums(frame, rows, columns)
    wide = long.pivot(index=rows, columns=columns, values="n").reset_index()
    assert told(table, wide) == told(table, long)
    margin = wide.assign(Total=wide.drop(columns=rows).sum(axis=1))
    assert told(table, margin) == told(table, long) | told(table, sums(frame, rows))


def test_an_area_without_flows_is_no_word_for_all():
    frame = flows(4)
    table = read_flows(frame, **COLUMNS)
    more = pd.concat([sums(frame, "o"), pd.DataFrame({"o": ["c1"], "n": [0]})])
    assert audit_totals(table, published=[more]).totals == 7
    with pytest.raises(InputError, match="add up to"):
        audit_totals(table, published=[more.assign(n=more["n"] + 1)])
    with pytest.raises(InputError, match="more than once"):
        audit_totals(table, published=[pd.concat([sums(frame, "o")] * 2)])
