"""Secondary suppression and proportional fitting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.audit.kept_totals import pinned_cells
from bayes_sdc.flows.release.protections.suppression import proportional_fit, secondary_cells
from bayes_sdc.flows.release.totals.margins import Margins


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_no_hidden_cell_is_alone_in_its_totals(rows, columns, seed) -> None:
    """In a full table each hidden cell can be brought onto a cycle of hidden ones."""
    rng = np.random.default_rng(seed)
    left, right = np.divmod(np.arange(rows * columns), columns)
    counts = rng.integers(1, 60, rows * columns)
    hidden = counts < 10
    more = secondary_cells(left, right, counts, hidden)
    assert not (more & hidden).any()
    gone = hidden | more
    if not hidden.any():
        assert not more.any()
        return
    ends = [np.unique(of[gone], return_inverse=True)[1] for of in (left, right)]
    wide = np.full(gone.sum(), 5)  # away from all bounds: what is left is the shape alone
    sums = [np.bincount(of, wide).astype(np.int64) for of in ends]
    assert not pinned_cells(Margins(*ends, *sums), wide, 10).any()


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_fitting_meets_the_totals_and_is_a_product_in_a_full_table(rows, columns, seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = np.divmod(np.arange(rows * columns), columns)
    counts = rng.integers(1, 10, rows * columns).astype(float)
    sums = np.bincount(left, counts), np.bincount(right, counts)
    x = proportional_fit(left, right, *sums)
    np.testing.assert_allclose(np.bincount(left, x), sums[0], rtol=1e-8)
    np.testing.assert_allclose(np.bincount(right, x), sums[1], rtol=1e-8)
    np.testing.assert_allclose(x, np.outer(*sums).ravel() / counts.sum(), rtol=1e-8)
