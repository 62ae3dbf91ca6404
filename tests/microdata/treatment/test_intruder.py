"""Matches of an intruder put together over data sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.treatment.intruder import risk_of_matches
from bayes_sdc.microdata.treatment.matching import Matches


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_rates_over_data_sets_are_shares(seed: int, datasets: int) -> None:
    """Means that were rounded gave a false match rate of -4e-16."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    alone = [rng.random(n) < 0.5 for _ in range(datasets)]
    matches = [
        Matches(np.where(one, 1.0, 0.5), np.full(n, 0.5), np.where(one, 1, 2)) for one in alone
    ]
    risk = risk_of_matches(matches, np.ones((1, n)), knowledge="sample", knows="keys", keys=("a",))
    assert 0.0 <= risk.true_rate <= 1.0
    assert (risk.false_rate is None) == (not np.any(alone))
    assert risk.false_rate is None or 0.0 <= risk.false_rate < 1e-12
