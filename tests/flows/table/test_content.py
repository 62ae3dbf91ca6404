"""The digest of a table is that of its flows, not of its file."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_flows, settle_totals
from bayes_sdc.flows.table.content import content_digest

NAMES = {"origin": "o", "destination": "d", "count": "n"}


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    pairs = [(f"0{o}", f"0{d}") for o in range(6) for d in range(6) if o != d]
    table = pd.DataFrame(pairs, columns=["o", "d"])
    return table.assign(n=rng.integers(1, 40, len(table)), g=table["o"].str[1])


def test_the_same_flows_in_any_form_have_one_digest(frame, tmp_path):
    """Else the same table, sorted or saved in another format, is protected twice unnoticed."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = (tmp_path / "t.csv").read_text(encoding="utf-8")
    (tmp_path / "lines.csv").write_bytes(text.replace("\n", "\r\n").encode())
    frame.sample(frac=1, random_state=1).to_csv(tmp_path / "order.csv", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "t.parquet")
    tables = [read_flows(path, **NAMES) for path in sorted(tmp_path.iterdir())]
    named = frame.rename(columns={"o": "from", "d": "to", "n": "people"})[["people", "to", "from"]]
    tables.append(read_flows(named, origin="from", destination="to", count="people"))
    tables.append(read_flows(frame.assign(n=frame["n"].astype(float)), **NAMES))
    tables += [read_flows(frame, **NAMES, groups="g"), read_flows(frame, **NAMES, low=0, high=5)]
    assert len({table.sha256 for table in tables}) > 5
    assert len({content_digest(table) for table in tables}) == 1


def test_settled_totals_do_not_change_the_digest(frame):
    sums = frame.groupby("o", as_index=False)["n"].sum().assign(d="Total", g="9")
    table = read_flows(pd.concat([frame, sums]), **NAMES)
    digests = {content_digest(settle_totals(table, totals)) for totals in ("drop", "publish")}
    assert digests == {content_digest(read_flows(frame, **NAMES))}


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.assign(n=f["n"].where(f.index > 0, f["n"] + 1)),
        lambda f: f.iloc[1:],
        lambda f: f.rename(columns={"o": "d", "d": "o"}),
    ],
)
def test_other_flows_have_another_digest(frame, change):
    """Else a table is taken for one that it is not."""
    one, other = (read_flows(each, **NAMES) for each in (frame, change(frame)))
    assert content_digest(one) != content_digest(other)
