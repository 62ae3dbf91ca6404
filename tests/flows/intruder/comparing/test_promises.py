"""The same promise by several mechanisms: what is compared is what was promised."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, compare_promises, read_flows
from bayes_sdc.flows.table.read import FlowTable


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(5)
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).astype(str)
    frame["n"] = 1 + np.minimum(rng.geometric(0.3, len(frame)) - 1, 8)
    return read_flows(frame, origin="o", destination="d", count="n")


def test_no_log_ratio_is_beyond_what_was_promised(table) -> None:
    """Of the model, whose probabilities are estimated, and of the others, which are exact."""
    compared = compare_promises(
        table, epsilons=[1.0, 0.3], delta=0.0, draws=60, tune=60, chains=2, seed=1
    )
    assert (compared["log_ratio"] <= compared["epsilon"] + 1e-6).all()
    assert (compared.groupby("method")["epsilon"].count() == [2, 2, 2, 2, 3]).all()
    assert not compared.isna().any(axis=None)
    shares = compared[["before", "after", "r_all", "shares", "unchanged"]].to_numpy()
    assert 0.0 <= shares.min() <= shares.max() <= 1.0
    noise = compared[compared["method"] == "geometric noise"].set_index("epsilon")
    assert noise.loc[1.0, "after"] > noise.loc[0.3, "after"] > noise.loc[0.3, "before"]
    # nothing tells more than the promise allows on average
    odds = compared["after"] / (1.0 - compared["after"]) / (compared["before"] / (
        1.0 - compared["before"]))  # fmt: skip
    assert (odds <= np.exp(8.0 * compared["epsilon"])).all()


def test_what_promises_nothing_is_refused(table) -> None:
    with pytest.raises(InputError, match="name at least one"):
        compare_promises(table, epsilons=[], seed=1)
    with pytest.raises(InputError, match="epsilon"):
        compare_promises(table, epsilons=[0.0], seed=1)
