"""How many people a record stands for, by its key values."""

import numpy as np
import pytest

from bayes_sdc.microdata.latent_classes.combinations import Cells
from bayes_sdc.microdata.latent_classes.weights import log_weights, mean_weights, weights_of_rows

ROWS = np.array([[a, 3 + b] for a in range(3) for b in range(4)], dtype=np.int32)


def cells(records: np.ndarray) -> Cells:
    k = np.arange(len(ROWS))
    return Cells(ROWS, 0 * k, records, np.array([0, 3, 7]), k)


def test_weights_that_follow_from_the_keys_are_found() -> None:
    """Regions at different rates, of every age: what a survey does, exactly log-linear."""
    truth = np.outer([5.0, 20.0, 30.0], [1.0, 1.5, 0.8, 1.0]).ravel()
    n = np.full(12, 5000)
    found = mean_weights(cells(n), truth, float(n @ truth))
    np.testing.assert_allclose(found, truth, rtol=1e-3)


def test_few_records_are_drawn_to_the_mean() -> None:
    """A single odd weight must not say of a whole level that hardly anybody is outside."""
    weights = np.full(12, 20.0)
    weights[0] = 2.0
    n = np.ones(12, dtype=int)
    found = mean_weights(cells(n), weights, 240.0)
    assert 2.0 < found[0] < 20.0
    assert n @ found == pytest.approx(240.0)


@pytest.mark.parametrize("total", [12.0, 1200.0])
def test_equal_weights_share_the_population_evenly(total: float) -> None:
    n = np.full(12, 1)
    np.testing.assert_allclose(mean_weights(cells(n), np.ones(12), total), total / 12)


def test_a_record_stands_at_least_for_itself() -> None:
    weights = np.array([0.1] * 6 + [50.0] * 6)
    assert (mean_weights(cells(np.full(12, 900)), weights, 900 * weights.sum()) >= 1.0).all()


def test_combinations_that_nobody_has_get_the_weight_of_their_values() -> None:
    """Cells without records are where most population uniques are: N / n would not do there."""
    truth = np.outer([5.0, 20.0, 30.0], [1.0, 1.5, 0.8, 1.0]).ravel()
    seen = np.arange(12) % 5 != 0
    part = cells(np.full(12, 5000))._replace(rows=ROWS[seen], records=np.full(seen.sum(), 5000))
    effects = log_weights(part, truth[seen], 5000 * truth[seen].sum())
    np.testing.assert_allclose(weights_of_rows(ROWS, effects), truth, rtol=2e-3)


def test_a_missing_value_says_nothing_of_the_weight() -> None:
    effects = np.log(np.array([1.0, 4.0, 9.0, 1.0, 1.0, 1.0, 1.0, 10.0]))
    rows = np.array([[1, 4], [-1, 4]], dtype=np.int32)
    np.testing.assert_allclose(weights_of_rows(rows, effects), [40.0, 10.0])
