"""Protections beside each other: what each tells is what Bayes' rule over the tables gives."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, compare_protections, fit_flows, read_flows
from bayes_sdc.flows.intruder.comparing.protections import Protected, believed_counts
from bayes_sdc.flows.intruder.totals.cycles import tables_along
from bayes_sdc.flows.intruder.totals.search import widest_cycles
from bayes_sdc.flows.release.protections.noise import geometric_noise
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of

LEFT, RIGHT = np.divmod(np.arange(12), 4)


def test_what_is_released_along_a_cycle_counts_where_totals_are_published() -> None:
    """Counted from the tables of the cycle, one by one."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 5, 12)
    m = geometric_noise(0, 4, epsilon=0.7).to_numpy()
    released = np.array([rng.choice(5, p=m[count]) for count in y])
    cycles = widest_cycles(rng, graph_of(LEFT, RIGHT), y, 4)
    even = tables_along(np.ones(5), y, cycles)
    one = Protected("noise", released.astype(float), np.log(m.T[released]), totals=False)
    found = believed_counts(one, even, y, cycles, published=True)
    for t in range(12):
        expected = np.zeros(5)
        for d in range(cycles.low[t], cycles.high[t] + 1):
            other = y.copy()
            cells = cycles.through(t)
            other[cells] += d * np.resize([1, -1], len(cells))
            expected[other[t]] = np.prod(m[other, released])
        np.testing.assert_allclose(found[t], expected / expected.sum(), atol=1e-12)
    alone = believed_counts(one, np.full((12, 5), 0.2), y, cycles, published=False)
    np.testing.assert_allclose(alone, (m.T / m.T.sum(axis=1, keepdims=True))[released])


@pytest.fixture(scope="module")
def compared() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).astype(str)
    frame["n"] = 1 + np.minimum(rng.geometric(0.3, len(frame)) - 1, 8)
    table = read_flows(frame, origin="o", destination="d", count="n")
    return compare_protections(table, fit_flows(table, draws=60, tune=60, chains=2, seed=1), seed=2)


def test_what_follows_from_totals_tells_no_more_than_they_do(compared) -> None:
    rows = compared.set_index(["method", "totals"])
    fitted = rows.loc[("suppression, proportional fitting", "kept")]
    assert fitted["after"] == pytest.approx(fitted["before"])
    assert abs(rows.loc[("model, totals kept", "kept"), "bits"]) < 0.05
    kept = compared[compared["totals"] == "kept"].set_index("method")
    further = [method for method in kept.index if "further" in method]
    assert len(further) == 1
    np.testing.assert_allclose(kept["totals_error"].drop(further), 0.0, atol=1e-9)


def test_noise_tells_more_beside_exact_totals(compared) -> None:
    """Averages over cells; one cell can be misled."""
    other = compared[compared["totals"] != "kept"].pivot_table(
        index="method", columns="totals", values="after"
    )
    assert (other["published beside"] > other["not published"]).all()
    strong = other["not published"]
    assert strong["geometric noise, epsilon 1"] > strong["geometric noise, epsilon 0.5"]
    shares = compared[["before", "after", "r_all", "shares", "unchanged"]].to_numpy()
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0
    assert not compared.isna().any(axis=None)


def test_evidence_from_cells_that_change_together_misleads_nobody(compared) -> None:
    """Counted as separate evidence it makes the intruder sure of what is wrong: negative bits."""
    rows = compared.set_index("method")
    for method in ("swapping of 10% of the movers", "swapping of 50% of the movers"):
        assert rows.loc[method, "bits"] >= 0.0
        assert rows.loc[method, "after"] >= rows.loc[method, "before"]
    assert (
        rows.loc["swapping of 10% of the movers", "after"]
        > (rows.loc["swapping of 50% of the movers", "after"])
    )


def test_totals_must_be_named(compared) -> None:
    frame = pd.DataFrame({"o": list("aabb"), "d": list("xyxy"), "n": [1, 4, 2, 5]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    posterior = fit_flows(table, draws=20, tune=20, chains=2, seed=1)
    with pytest.raises(InputError, match="name at least one margin"):
        compare_protections(table, posterior, totals="none", seed=1)
