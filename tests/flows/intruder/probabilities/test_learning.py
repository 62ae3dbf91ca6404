"""What the release adds, against direct enumeration where the release probabilities are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.intruder.probabilities.change import percents
from bayes_sdc.flows.intruder.probabilities.gain import SHAPE_CELLS, strongest
from bayes_sdc.flows.intruder.probabilities.learning import gains_by_prior, learn, measure_gain

PRIORS = ("uniform", "shape", "model")


def draw_case(seed: int, cells: int, width: int, datasets: int, *, told: bool = True) -> dict:
    """Release probabilities, priors, true and released counts; without `told` M says nothing."""
    rng = np.random.default_rng(seed)
    m = rng.dirichlet(np.full(width, 0.5), (cells, width)) + 1e-12
    if not told:
        m[:] = m[:, :1]
    y = rng.integers(0, width, cells)
    shares = np.bincount(y, minlength=width) / cells
    prior = {
        "uniform": np.full((cells, width), 1.0 / width),
        "shape": np.tile(shares, (cells, 1)),
        "model": rng.dirichlet(np.ones(width), cells),
    }
    released = rng.integers(0, width, (datasets, cells))
    return {"m": m, "y": y, "prior": prior, "released": released}


def by_enumeration(case: dict, name: str, cell: int) -> tuple[float, float]:
    """Probability of the true count before and after, by Bayes' rule in plain sums."""
    prior, m = case["prior"][name][cell], case["m"][cell]
    joint = [
        prior[y] * math.prod(m[y, k] for k in case["released"][:, cell]) for y in range(len(prior))
    ]
    true = case["y"][cell]
    return prior[true], joint[true] / math.fsum(joint)


def gains(case: dict, order: np.ndarray | None = None) -> dict:
    cells = np.arange(len(case["y"])) if order is None else order
    log_m = np.log(case["m"])
    likelihood = sum(log_m[np.arange(len(cells)), :, k] for k in case["released"])
    return gains_by_prior(
        {name: [weights[cells]] for name, weights in case["prior"].items()},
        [likelihood[cells]],
        [np.stack([likelihood[cells]] * 2)],
        case["y"][cells],
        unique=case["y"][cells] == 0,
        labels=[f"cell {t}" for t in cells],
    )


CASES = st.builds(
    draw_case,
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(2, 9),
    st.integers(1, 3),
)


@given(CASES)
def test_before_and_after_are_those_of_direct_enumeration(case):
    """Else the headline is of another intruder than the one it names."""
    for name, gain in gains(case).items():
        pairs = [by_enumeration(case, name, t) for t in range(len(case["y"]))]
        before, after = (np.array(part) for part in zip(*pairs, strict=True))
        np.testing.assert_allclose(gain.by_cell["before"], before, atol=1e-12)
        np.testing.assert_allclose(gain.by_cell["after"], after, atol=1e-9)
        assert gain.probability.before == pytest.approx(before.mean(), abs=1e-12)
        assert gain.probability.after == pytest.approx(after.mean(), abs=1e-9)
        if gain.bits.gain is not None and (after > 1e-200).all():
            assert gain.bits.gain == pytest.approx(np.log2(after / before).mean(), abs=1e-6)
        clear = np.abs(after[:, None] - [0.5, 0.8, 0.95]).min() > 1e-9  # of rounding
        if clear:
            assert gain.pushed == {
                limit: ((after > limit) & (before <= limit)).sum() for limit in (0.5, 0.8, 0.95)
            }


@given(CASES)
def test_numbers_are_in_their_ranges(case):
    """Else a report prints a share above one, or no number."""
    for gain in gains(case).values():
        for change in (gain.found, gain.guessed, gain.probability):
            assert 0.0 <= change.before <= 1.0
            assert 0.0 <= change.after <= 1.0
        assert gain.found.before <= gain.guessed.before + 1e-12  # a tie is not found
        assert gain.found.after <= gain.guessed.after + 1e-12
        assert gain.largest_ratio >= 0.0
        assert gain.guessed.monte_carlo_error == 0.0  # both chains are alike
        assert gain.by_cell[["before", "after"]].stack().between(0.0, 1.0).all()
        assert gain.summary()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 9))
def test_a_release_that_does_not_depend_on_the_table_adds_nothing(seed, cells, width):
    """Else a release of noise alone would look like a disclosure, as under a dull prior."""
    for gain in gains(draw_case(seed, cells, width, 2, told=False)).values():
        for change in (gain.found, gain.guessed, gain.probability):
            assert change.gain == pytest.approx(0.0, abs=1e-12)
        assert gain.bits.gain is None or gain.bits.gain == pytest.approx(0.0, abs=1e-9)
        assert gain.pushed == {0.5: 0, 0.8: 0, 0.95: 0}
        assert gain.largest_ratio == pytest.approx(1.0, abs=1e-9)
        assert not gain.by_cell["moved"].any()


@given(CASES, st.randoms())
def test_order_of_cells_moves_no_number(case, random):
    order = list(range(len(case["y"])))
    random.shuffle(order)
    for one, other in zip(gains(case).values(), gains(case, np.array(order)).values(), strict=True):
        assert one.pushed == other.pushed
        assert one.largest_ratio == other.largest_ratio
        for name in ("found", "guessed", "unique", "probability", "bits"):
            pairs = zip(getattr(one, name)[:3], getattr(other, name)[:3], strict=True)
            assert all(a == b or a == pytest.approx(b, abs=1e-12) for a, b in pairs)


def test_who_always_says_one_finds_the_ones():
    """Else the release gets the credit for what everybody knows: that most small counts are 1."""
    y = np.repeat([0, 1, 2], [5, 3, 2])
    shares = np.tile(np.bincount(y, minlength=9) / 10, (10, 1))
    gain = measure_gain("shape", shares, shares, [], y, unique=y == 0, labels=map(str, range(10)))
    assert gain.guessed.before == gain.guessed.after == 0.5
    assert gain.unique.before == 1.0
    assert "50.0% before, 50.0% after: +0.0 points" in percents(gain.guessed)


def test_a_prior_that_rules_out_a_true_count_leaves_the_bits_undefined():
    """Minus infinity would not be a mean, and 0 would be a pass."""
    sure = np.array([[0.0, 1.0], [0.0, 1.0]])
    gain = measure_gain(
        "given", sure, sure, [], np.array([0, 1]), unique=np.zeros(2, bool), labels=["a", "b"]
    )
    assert gain.bits.gain is None
    assert gain.ruled_out == 1
    assert gain.unique.gain is None  # there is no such cell, which is not a gain of 0
    assert "undefined" in gain.summary()


def test_the_strongest_says_most_of_the_true_counts():
    case = draw_case(3, SHAPE_CELLS, 5, 1)
    found = gains(case)
    best = max(found.values(), key=lambda gain: gain.bits.after)
    assert strongest(found) is best
    few = gains(draw_case(3, SHAPE_CELLS - 1, 5, 1))
    # of one cell "shape" would know all, whatever is released, and the release would add nothing
    assert strongest(gains(draw_case(3, 1, 5, 1))).prior != "shape"
    assert strongest({"shape": few["shape"], "uniform": few["uniform"]}).prior == "uniform"


def test_several_fits_are_averaged():
    """Who knows little fits each released data set; what they say is the mean over these fits."""
    priors = [np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])]
    likelihoods = [np.log([[0.2, 0.6]]), np.log([[0.5, 0.5]])]
    before, after = learn(priors, likelihoods)
    np.testing.assert_allclose(before, [[0.7, 0.3]])
    np.testing.assert_allclose(after, [[(0.25 + 0.9) / 2, (0.75 + 0.1) / 2]])
