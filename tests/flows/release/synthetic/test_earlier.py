"""Earlier releases of a table are matched by their codes, or refused."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import FlowTable, InputError, read_flows
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.table.covariates import gravity_covariates


@pytest.fixture
def table() -> FlowTable:
    frame = pd.DataFrame(
        {
            "o": ["01", "01", "02", "03"],
            "d": ["02", "03", "03", "01"],
            "n": [1, 9, 4, 120],
            "name": list("wxyz"),
        }
    )
    return read_flows(frame, origin="o", destination="d", count="n")


def released(table: FlowTable, counts: list[int]) -> pd.DataFrame:
    return table.frame.assign(n=counts)


def test_rows_are_matched_by_their_codes(table, tmp_path):
    """Else a cell gets the released count of another."""
    release = released(table, [2, 3, 5, 120])
    expected = [[1, 2, 4]]
    shuffled = release.iloc[[3, 1, 0, 2]]
    assert earlier_counts(table, [shuffled]).tolist() == expected
    shuffled.drop(columns="name").to_csv(tmp_path / "out.csv", index=False)
    assert earlier_counts(table, [tmp_path / "out.csv"]).tolist() == expected
    assert earlier_counts(table, [str(tmp_path / "out.csv"), release]).tolist() == expected * 2
    assert earlier_counts(table, []).shape == (0, 3)


def test_data_sets_in_one_file_are_several_looks(table, tmp_path):
    both = pd.concat(
        [
            released(table, [2, 3, 5, 120]).assign(dataset=2),
            released(table, [9, 1, 1, 120]).assign(dataset=1),
        ]
    )
    both.to_csv(tmp_path / "out.csv", index=False)
    assert earlier_counts(table, [tmp_path / "out.csv"]).tolist() == [[8, 0, 0], [1, 2, 4]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(n=[2, 30, 5, 120]), r"release 1 .*no count from 1 to 9 in 1 .*'01>03'"),
        (lambda f: f.assign(n=[2, 3, 5, 8]), r"1 small cells that .* does not have.*'03>01'"),
        (lambda f: f.drop(index=1), r"no count from 1 to 9 in 1 .*'01>03'"),
        (lambda f: f.assign(o=f["o"].astype(int)), r"codes as text"),
        (lambda f: f.drop(columns="n"), r"release 1 .*'n'"),
        (lambda f: f.assign(n=[2, 3, -1, 120]), r"release 1 .*negative count"),
    ],
)
def test_a_release_of_other_cells_is_refused(table, change, message):
    with pytest.raises(InputError, match=message):
        earlier_counts(table, [change(released(table, [2, 3, 5, 120]))])


def test_one_frame_or_path_is_no_list(table):
    """A path would be read letter by letter, a frame column by column."""
    for one in ("out.csv", table.frame):
        with pytest.raises(InputError, match="must be a list"):
            earlier_counts(table, one)


def test_the_protected_table_is_no_release_of_itself(tmp_path):
    """Named by mistake, it would make the intruder know every count, or be taken for a release."""
    rng = np.random.default_rng(1)
    codes = list("abcdefgh")
    frame = pd.DataFrame([(o, d) for o in codes for d in codes if o != d], columns=["o", "d"])
    frame = frame.assign(n=rng.integers(1, 20, len(frame)), name="x")
    frame.to_csv(tmp_path / "in.csv", index=False)
    shuffled = frame.sample(frac=1, random_state=1)[["n", "d", "o"]]
    shuffled.to_parquet(tmp_path / "other.parquet")
    (tmp_path / "copy.csv").write_bytes((tmp_path / "in.csv").read_bytes())
    names = {"origin": "o", "destination": "d", "count": "n"}
    sources = [tmp_path / "in.csv", tmp_path / "copy.csv", tmp_path / "other.parquet", shuffled]
    sources.append(pd.concat([frame.assign(dataset=1), frame.assign(dataset=2)]))
    for table in (read_flows(tmp_path / "in.csv", **names), read_flows(frame, **names)):
        for source in sources:
            with pytest.raises(InputError, match=r"release 1 .* is the table that is protected"):
                earlier_counts(table, [source])
            if not isinstance(source, pd.DataFrame) or "dataset" not in source:
                earlier = read_flows(source, **names)
                with pytest.raises(InputError, match=r"earlier: .* is the table that is protected"):
                    gravity_covariates(table, earlier=earlier)
    small = frame["n"].between(1, 9)
    release = frame.assign(n=frame["n"].where(~small, frame["n"] % 9 + 1))
    assert earlier_counts(table, [release]).shape == (1, small.sum())
    year = frame.assign(n=rng.integers(1, 20, len(frame)))
    assert not gravity_covariates(table, earlier=read_flows(year, **names)).empty


def test_a_release_named_twice_is_refused(tmp_path):
    """Counted twice, it seems that the intruder knew more before, and the stated gain falls."""
    rng = np.random.default_rng(2)
    pairs = [(o, d) for o in "abcdef" for d in "abcdef" if o != d]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=rng.integers(1, 10, len(pairs)))
    table = read_flows(frame, origin="o", destination="d", count="n")
    one, other = (frame.assign(n=rng.integers(1, 10, len(pairs))) for _ in range(2))
    one.to_csv(tmp_path / "one.csv", index=False)
    one.to_parquet(tmp_path / "one.parquet")
    both = pd.concat([other.assign(dataset=1), one.assign(dataset=2)])
    same = [tmp_path / "one.csv", tmp_path / "one.parquet", one.iloc[::-1], both]
    for again in same:
        for pair in ([one, again], [again, one]):
            with pytest.raises(InputError, match=r"release 2 .* of earlier release 1 .* once"):
                earlier_counts(table, pair)
    assert len(earlier_counts(table, [one, other])) == 2
    assert len(earlier_counts(table, [both])) == 2
    twice = pd.concat([one.assign(dataset=1), one.assign(dataset=2)])
    assert len(earlier_counts(table, [twice])) == 2


def test_a_file_named_twice_is_refused_where_equal_counts_may_be_chance(table, tmp_path):
    released(table, [2, 3, 5, 120]).to_csv(tmp_path / "one.csv", index=False)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "one.csv").read_bytes())
    with pytest.raises(InputError, match=r"release 2 \(copy.csv\): .* of earlier release 1"):
        earlier_counts(table, [tmp_path / "one.csv", tmp_path / "copy.csv"])
