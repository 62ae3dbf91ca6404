"""Tables whose totals lie within bands, against the enumeration of all of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, fit_flows, intruder_risk, keep_totals, read_flows, synthesize
from bayes_sdc.flows.audit.kept_totals import pinned_cells
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of, mix
from bayes_sdc.flows.release.totals.bands import band_of, mix_within, rounding_bounds
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.flows.release.totals.margins import Margins
from bayes_sdc.flows.table.simulate import simulate_flows

SHAPES = {
    "square": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "tree": [(0, 0), (0, 1), (1, 1), (2, 1)],
    "ring of six": [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)],
    "parallel": [(0, 0), (0, 0), (0, 1), (1, 1)],
    "one partition": [(0, 0), (0, 0), (1, 1)],
    "bridge": [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2)],
}


def within(left, right, bounds, upper):
    """All tables with totals within the bounds."""
    every = np.array(list(itertools.product(range(upper + 1), repeat=len(left))))
    good = np.ones(len(every), bool)
    for of, limits in ((left, bounds[0]), (right, bounds[1])):
        sums = np.stack([np.bincount(of, table, len(limits)) for table in every])
        good &= ((sums >= limits[:, 0]) & (sums <= limits[:, 1])).all(axis=1)
    return every[good]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_draws_are_those_of_the_enumeration(shape) -> None:
    """A path that looks at counts, or a bound that is missed, shifts the shares."""
    rng = np.random.default_rng(7)
    upper, base = 2, 3
    left, right = np.array(shape).T
    weight = rng.dirichlet(np.ones(upper + 1), len(shape))
    y = rng.integers(0, upper + 1, len(shape))
    sums = [np.bincount(of, y).astype(np.int64) for of in (left, right)]
    bounds = [rounding_bounds(total, total, base) for total in sums]
    every = within(left, right, bounds, upper)
    exact = np.array([np.prod(weight[np.arange(len(y)), table]) for table in every])
    exact /= exact.sum()
    band, cycles = band_of(left, right, *bounds), graph_of(left, right)
    place = {tuple(table): k for k, table in enumerate(every.tolist())}
    seen, draws = np.zeros(len(every)), 4000
    for _ in range(draws):
        mix_within(rng, *band, np.log(weight), y, 60)
        if len(cycles.edges):
            mix(rng, cycles, cycles.edges, np.log(weight), y, 20)
        seen[place[tuple(y.tolist())]] += 1
    error = np.sqrt(exact * (1 - exact) / draws)
    assert (np.abs(seen / draws - exact) <= 4.5 * error + 1e-12).all()


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_pinned_within_bands_is_pinned_in_all_tables(shape, base, seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.unique(side, return_inverse=True)[1] for side in np.array(shape).T)
    y = rng.integers(0, 3, len(shape))
    sums = [np.bincount(of, y).astype(np.int64) for of in (left, right)]
    bounds = [rounding_bounds(total, total, base) for total in sums]
    every = within(left, right, bounds, 2)
    found = pinned_cells(Margins(left, right, *sums), y, 2, band_of(left, right, *bounds))
    assert (found == (every == every[0]).all(axis=0)).all()


@given(st.integers(0, 500), st.integers(1, 20), st.integers(0, 100))
def test_bounds_hold_all_totals_that_round_alike(whole, base, small) -> None:
    least, most = rounding_bounds(np.array([whole]), np.array([small]), base)[0]
    shown = (whole + base // 2) // base
    alike = [t for t in range(whole - 40, whole + 41) if (t + base // 2) // base == shown]
    assert (least, most) == (alike[0] - whole + small, alike[-1] - whole + small)


@pytest.fixture(scope="module")
def fitted():
    table = read_flows(
        simulate_flows(areas=14, states=2, seed=5), origin="origin", destination="destination",
        count="count", groups=["origin_state", "destination_state"],
    )  # fmt: skip
    return table, fit_flows(table, draws=50, tune=50, chains=2, seed=1)


def test_released_totals_round_to_the_true_multiples(fitted) -> None:
    """Of the whole areas, as they are published: safe counts included, own areas not."""
    table, posterior = fitted
    kept = keep_totals(table, posterior, totals="origin,destination-by-group", base=5)
    release = synthesize(table, posterior, totals=kept, seed=3)
    flow = table.frame["origin"] != table.frame["destination"]
    exact = []
    for columns in (["origin"], ["destination", "origin_state", "destination_state"]):
        true, found = (
            frame[flow].groupby(columns)["count"].sum() for frame in (table.frame, release)
        )
        assert ((true + 2) // 5 == (found + 2) // 5).all()
        exact.append((true == found).mean())
    assert max(exact) < 0.9  # and are not simply the true ones
    risk = intruder_risk(table, posterior, release, totals=kept, seed=1)
    rho = risk.rho.to_numpy()
    np.testing.assert_allclose(rho.sum(axis=1), 1.0)
    # who knows all others knows the target to within four
    assert ((rho > 0).sum(axis=1) <= 5).all()
    again = synthesize(table, posterior, totals=kept, seed=3, cores=1)
    assert release.equals(again)


def test_a_base_below_one_is_refused(fitted) -> None:
    with pytest.raises(InputError, match="base of totals must be 1 or more"):
        kept_by_name(fitted[0], "origin", base=0)


@pytest.mark.parametrize(
    "totals",
    ["origin,origin-by-group", "origin-by-group,group", "destination,destination-by-group"],
)
def test_coarser_totals_do_not_follow_from_rounded_ones(fitted, totals: str) -> None:
    """40 and 40 may be 36 and 36: the release named totals that it did not have."""
    table, posterior = fitted
    kept_by_name(table, totals)  # exact totals do
    with pytest.raises(InputError, match="only where these are exact"):
        kept_by_name(table, totals, base=5)
    with pytest.raises(InputError, match="only where these are exact"):
        keep_totals(table, posterior, totals=totals, base=5)
