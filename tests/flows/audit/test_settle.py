"""Totals inside a table are left out or set aside, never taken for flows."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, audit_totals, read_flows, settle_totals
from bayes_sdc.flows.audit.inside.search import totals_inside

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


def test_an_audit_finds_by_itself_what_is_called_a_total():
    found = audit_totals(table([(o, d.replace("T", "_T"), n) for o, d, n in ROWS]), published=())
    assert found.bounds.loc["A>B", "pinned"]
    assert "totals inside the table count as published" in found.notes[0]


def many(total):
    """Six origins with four destinations each, and a code for their totals."""
    rng = np.random.default_rng(3)
    flows = [(o, d, int(rng.integers(1, 60))) for o in "ABCDEF" for d in "wxyz"]
    sums = [(o, total, sum(n for p, _, n in flows if p == o)) for o in "ABCDEF"]
    return table([*flows, *sums])


@pytest.mark.parametrize("code", ["99", "W92000004", "Z"])
def test_an_audit_finds_by_itself_what_chance_does_not_make(code):
    found = audit_totals(many(code), published=())
    assert "totals inside the table count as published" in found.notes[0]
    assert found.published == ("o",)


def test_what_may_be_chance_is_noted_and_not_believed():
    """3 + 20 = 23 and 4 + 8 = 12 of a code that says nothing: a run asks, an audit tells."""
    found = audit_totals(table(), published=())
    assert (found.pinned, found.in_doubt, found.check().verdict) == (0, 1, "look")
    assert found.cells == 3
    assert "may be totals inside the table, or add up by chance" in found.notes[0]
    assert "code 'T'" in found.notes[0]
    with pytest.raises(InputError, match="--totals flows"):
        settle_totals(table())


def test_what_may_be_chance_can_be_taken_for_flows():
    settled = settle_totals(table(), "flows")
    assert settled.n_small == 3
    assert settle_totals(settled) is settled
    assert "taken for flows that add up by chance" in settled.notes[-1]
    assert audit_totals(settled, published=()).notes == ()
    assert audit_totals(settled, published=()).in_doubt == 0


def test_what_may_be_a_total_is_joined_with_what_is_published():
    """3 + 4 + 200 = 207 pins nothing alone; beside a total of destination x it does."""
    rows = [("A", "x", 3), ("A", "y", 4), ("A", "z", 200), ("A", "w", 207), ("B", "x", 30)]
    rows += [("B", "y", 41), ("B", "z", 15), ("C", "w", 12), ("C", "x", 17)]
    found = audit_totals(table(rows), published=pd.DataFrame({"d": ["x"], "t": [50]}))
    assert set(found.bounds.index[found.bounds["pinned"]]) == {"A>x"}
    assert found.in_doubt == 1  # A>y is 207 - 3 - 200


def test_what_is_beyond_chance_is_not_taken_for_flows():
    with pytest.raises(InputError, match=r"code '99'.*Choose drop or publish"):
        settle_totals(many("99"), "flows")
    with pytest.raises(InputError) as asked:
        settle_totals(many("99"))
    assert "--totals flows" not in str(asked.value)


@pytest.mark.parametrize("kind", ["low", "clumped", "wide"])
def test_chance_sums_are_never_believed(kind):
    """A table without totals: whatever adds up in it does so by chance."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        pairs = [(o, d) for o in "ABCD" for d in "WXYZ" if rng.random() < 0.7]
        counts = {
            "low": rng.integers(1, 5, len(pairs)),
            "clumped": rng.integers(1, 4, len(pairs)) + 20 * (rng.random(len(pairs)) < 0.3),
            "wide": rng.geometric(1 / 30, len(pairs)),
        }[kind]
        given = table([(o, d, n) for (o, d), n in zip(pairs, counts, strict=True)])
        found = totals_inside(given)
        assert not any(each.believed for each in found)
        assert audit_totals(given).cells == given.n_small
