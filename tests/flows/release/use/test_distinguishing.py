"""pMSE with functions of the count that totals do not keep."""

import numpy as np

from bayes_sdc.flows.release.totals.alternating_cycles import graph_of, mix
from bayes_sdc.flows.release.use.distinguishing import distinguished, null_ratios
from bayes_sdc.flows.release.use.propensity import propensity_of

LEFT, RIGHT = np.divmod(np.arange(1600), 40)


def known(counts: np.ndarray) -> np.ndarray:
    return np.log(
        np.column_stack([np.bincount(of, counts)[of] for of in (LEFT, RIGHT)]).astype(float)
    )


def test_a_release_with_true_totals_is_told_by_other_functions_of_the_count() -> None:
    """The count times totals sees nothing: all its means are kept."""
    rng = np.random.default_rng(1)
    true = 1 + np.minimum(rng.geometric(0.4, 1600) - 1, 8)
    flat = true - 1
    narrow = np.tile(-((np.arange(9) - 2.0) ** 2), (1600, 1))  # given the totals, near 2
    mix(rng, graph_of(LEFT, RIGHT), np.arange(1600), narrow, flat, 60_000)
    released = flat + 1.0
    assert (np.bincount(LEFT, released) == np.bincount(LEFT, true)).all()
    assert propensity_of(known(true), true[:, None] * 1.0, [released[:, None]]).ratio < 0.05
    found = distinguished(known(true), true * 1.0, released[None], low=1, high=9)
    assert found.others.ratio > 5
    assert found.every.ratio > 5
    assert found.excess > 0


def test_the_right_model_gives_ratios_of_two_and_tables_of_another_are_told() -> None:
    """Two tables of one distribution differ twice as much as one from its own expectation."""
    rng = np.random.default_rng(2)
    tables = [1.0 + np.minimum(rng.geometric(0.3, 1600) - 1, 8) for _ in range(80)]
    ratios = null_ratios(known(tables[0]), tables, low=1, high=9)
    assert len(ratios) == 40
    # the ratio is chi-squared with 11 degrees of freedom over 11, times 2
    assert abs(ratios.mean() - 2.0) < 4.5 * 2.0 * np.sqrt(2 / 11) / np.sqrt(40)
    other = 1.0 + np.minimum(rng.geometric(0.4, 1600) - 1, 8)
    found = distinguished(known(tables[0]), tables[0], other[None], low=1, high=9)
    assert found.every.ratio > ratios.max()


def test_one_function_is_the_measure_of_the_count_alone() -> None:
    rng = np.random.default_rng(3)
    true, released = rng.integers(1, 10, (2, 1600)).astype(float)
    before = propensity_of(known(true), true[:, None], [released[:, None]])
    assert before.parameters == 3
    assert before.expected == 3 * 0.25 * 0.5 / 3200


def test_a_released_zero_has_a_logarithm_too() -> None:
    """Rounding releases zeros where no true count is one."""
    rng = np.random.default_rng(4)
    true = rng.integers(1, 10, 1600).astype(float)
    rounded = 5.0 * np.rint(true / 5.0)
    found = distinguished(known(true), true, rounded[None], low=1, high=9)
    assert found.every.ratio > 5
