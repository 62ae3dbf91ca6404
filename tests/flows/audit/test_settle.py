"""Totals inside a table are left out or set aside, never taken for flows."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, audit_totals, read_flows, settle_totals

ROWS = [("A", "B", 3), ("A", "C", 20), ("B", "A", 4), ("B", "C", 8), ("A", "T", 23), ("B", "T", 12)]


def table(rows=ROWS, **columns):
    frame = pd.DataFrame(rows, columns=["o", "d", "n"]).assign(**columns)
    return read_flows(frame, origin="o", destination="d", count="n")


def test_the_run_stops_and_asks():
    with pytest.raises(InputError, match=r"code 'T' \(2 rows\).*--totals drop.*--totals publish"):
        settle_totals(table())


def test_an_unknown_word_is_refused():
    with pytest.raises(InputError, match="totals 'keep' is unknown"):
        settle_totals(table(), "keep")


def test_a_table_without_totals_stays_the_same():
    plain = table(ROWS[:4])
    assert settle_totals(plain) is plain


def test_dropped_totals_are_gone_from_frame_cells_and_counts():
    mixed = table([ROWS[4], *ROWS[:4], ROWS[5]])
    settled = settle_totals(mixed, "drop")
    assert settled.frame["d"].tolist() == ["B", "C", "A", "C"]
    assert settled.cells["row"].tolist() == [0, 2, 3]
    assert (settled.frame["n"].to_numpy()[settled.cells["row"]] == settled.cells["y"] + 1).all()
    assert (settled.n_read, settled.n_safe, settled.n_small) == (4, 1, 3)
    assert "left out as totals" in settled.notes[-1]
    assert settle_totals(settled) is settled


def test_published_totals_stay_and_are_no_cells():
    small = table([*ROWS[:2], ("B", "A", 1), ("B", "C", 2), ROWS[4], ("B", "T", 3)])
    settled = settle_totals(small, "publish")
    assert len(settled.frame) == 6
    assert settled.cells.index.tolist() == ["A>B", "B>A", "B>C"]
    assert (settled.n_set_aside, settled.n_small, settled.n_safe) == (2, 3, 1)
    assert settle_totals(settled) is settled
    found = audit_totals(settled, published=()).bounds
    assert found["why"].to_dict() == {
        "A>B": "total of o A: 23 minus 20",
        "B>A": "",
        "B>C": "",
    }
    assert found["upper"].tolist() == [3, 2, 2]


def test_a_column_of_totals_is_left_out_or_published():
    column = table(ROWS[:4], out=[23, 23, 12, 12])
    assert "out" not in settle_totals(column, "drop").frame
    settled = settle_totals(column, "publish")
    assert settled.total_columns == ("out",)
    assert audit_totals(settled, published=()).pinned == 1


def test_an_audit_finds_them_by_itself():
    found = audit_totals(table(), published=())
    assert found.bounds.loc["A>B", "pinned"]
    assert "totals inside the table" in found.notes[0]


def test_no_small_count_leaves_an_audit_because_counts_add_up_by_chance():
    """1 + 2 = 3 and 2 + 3 = 5 say little in a handful of rows; a cell that is gone has no bound."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        pairs = [(o, d) for o in "ABC" for d in "XYZ" if rng.random() < 0.8]
        counts = rng.integers(1, 7, len(pairs))
        frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=counts)
        given = read_flows(frame, origin="o", destination="d", count="n")
        assert list(audit_totals(given).bounds.index) == list(given.cells.index)
