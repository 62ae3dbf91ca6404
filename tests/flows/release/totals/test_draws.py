"""Releases that keep totals, against the enumeration of all tables with these totals."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, fit_flows, intruder_risk, read_flows, synthesize
from bayes_sdc.flows.model import truncated
from bayes_sdc.flows.release.synthetic.synthesis import (
    draw_datasets_given_totals,
    rates_by_draw,
)
from bayes_sdc.flows.release.totals import draws as totals_drawn
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of, mix
from bayes_sdc.flows.release.totals.draws import (
    _mix_in_pieces,
    connected_parts,
    mixing,
    with_totals,
)
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.flows.release.totals.margins import Margins, check_margins, repaired
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.simulate import simulate_flows

# cells as pairs of blocks: dense, sparse, rings, a bridge between two squares, parts, one partition
SHAPES = {
    "dense": [(i, j) for i in range(2) for j in range(3)],
    "square": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "ring of six": [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)],
    "ring of eight": [(i, (i + k) % 4) for i in range(4) for k in range(2)],
    "bridge": [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (3, 2), (3, 3)],
    "two parts": [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)],
    "parallel": [(0, 0), (0, 0), (0, 1), (1, 1), (1, 1)],
    "one partition": [(0, 0), (0, 0), (0, 0), (1, 1), (1, 1)],
    "tree": [(0, 0), (0, 1), (1, 1)],
}


def margins(shape: list[tuple[int, int]], y: np.ndarray) -> Margins:
    left, right = np.array(shape, np.int64).T
    return Margins(left, right, *(np.bincount(b, y).astype(np.int64) for b in (left, right)))


def by_area(table: FlowTable) -> Margins:
    """The totals of the small counts by origin and by destination."""
    return kept_by_name(table, ["origin", "destination"]).margins(table.cells["y"].to_numpy())


def tables(kept: Margins, upper: int) -> list[tuple[int, ...]]:
    """All tables with these totals, by trying every one."""
    return [
        y
        for y in itertools.product(range(upper + 1), repeat=len(kept.left))
        if (np.bincount(kept.left, y) == kept.left_sums).all()
        and (np.bincount(kept.right, y) == kept.right_sums).all()
    ]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_draws_are_those_of_the_enumeration(shape: list[tuple[int, int]]) -> None:
    """Wrong weights, an unreachable table or a path that looks at the counts shift the shares."""
    rng = np.random.default_rng(5)
    upper = 2
    weight = rng.dirichlet(np.ones(upper + 1), len(shape))
    truth = rng.integers(0, upper + 1, len(shape))
    kept = margins(shape, truth)
    every = tables(kept, upper)
    exact = np.array([np.prod(weight[np.arange(len(shape)), y]) for y in every])
    exact /= exact.sum()
    y = repaired(kept, np.zeros(len(shape), np.int64), upper)
    graph = graph_of(kept.left, kept.right)
    place = {table: k for k, table in enumerate(every)}
    seen, draws = np.zeros(len(every)), 4000
    for _ in range(draws):
        for part in connected_parts(graph):
            mix(rng, graph, part, np.log(weight), y, 60)
        seen[place[tuple(int(count) for count in y)]] += 1
    # 4.5 standard errors of the worst table, were the draws independent; they nearly are
    error = np.sqrt(exact * (1.0 - exact) / draws)
    assert np.all(np.abs(seen / draws - exact) <= 4.5 * error + 1e-12)


@pytest.mark.parametrize("shape", ["dense", "ring of six"])
def test_pieces_side_by_side_draw_from_the_enumeration(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cycle must lie in a piece some time, and no two pieces may change a cell."""
    rng, cells, upper, draws = np.random.default_rng(6), SHAPES[shape], 1, 1500
    weight = rng.dirichlet(np.full(upper + 1, 4.0), len(cells))
    kept = margins(cells, np.arange(len(cells)) % 2)
    every = tables(kept, upper)
    exact = np.array([np.prod(weight[np.arange(len(cells)), y]) for y in every])
    exact /= exact.sum()
    y = repaired(kept, np.zeros(len(cells), np.int64), upper)
    graph, all_cells = graph_of(kept.left, kept.right), np.arange(len(cells))
    monkeypatch.setattr(totals_drawn, "PIECE", len(cells) // 2)
    place = {table: k for k, table in enumerate(every)}
    seen = np.zeros(len(every))
    with ThreadPoolExecutor(2) as pool:
        for draw in range(draws):
            _mix_in_pieces(pool, graph, all_cells, np.log(weight), y, 8, (f"{draw}",), 1)
            seen[place[tuple(int(count) for count in y)]] += 1
    # draws are not independent: a ring lies in one piece in every fourth split, so twice the error
    error = 2.0 * np.sqrt(exact * (1.0 - exact) / draws)
    assert len(every) > 1
    assert np.all(np.abs(seen / draws - exact) <= 4.5 * error)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20),
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
)
def test_repair_meets_any_totals_that_can_be_met(shape, upper, seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.unique(side, return_inverse=True)[1] for side in np.array(shape).T)
    truth, start = rng.integers(0, upper + 1, (2, len(shape)))
    kept = margins(list(zip(left, right, strict=True)), truth)
    y = repaired(kept, start, upper)
    assert y.min() >= 0
    assert y.max() <= upper
    assert (np.bincount(left, y) == kept.left_sums).all()
    assert (np.bincount(right, y) == kept.right_sums).all()
    assert (repaired(kept, truth, upper) == truth).all()  # nothing is changed without need


def test_totals_that_no_table_has_are_refused() -> None:
    kept = margins(SHAPES["square"], np.array([1, 0, 0, 1]))
    with pytest.raises(InputError, match="no table"):
        repaired(kept._replace(left_sums=np.array([30, 1])), np.zeros(4, np.int64), 8)


@pytest.fixture(scope="module")
def fitted():
    frame = simulate_flows(areas=14, states=2, seed=5)
    table = read_flows(
        frame, origin="origin", destination="destination", count="count",
        groups=["origin_state", "destination_state"],
    )  # fmt: skip
    return table, fit_flows(table, draws=50, tune=50, chains=2, seed=1)


@pytest.mark.parametrize(
    "totals",
    [
        "origin",
        ("destination",),
        "group",
        "origin,destination",
        ("origin-by-group", "destination-by-group"),
        ("origin", "destination-by-group"),
        ("origin", "origin-by-group", "group"),
        ("group", "destination"),
    ],
)
def test_totals_of_the_release_are_the_true_ones(fitted, totals) -> None:
    table, posterior = fitted
    release = synthesize(table, posterior, datasets=2, totals=totals, seed=3)
    columns = {
        "origin": ["origin"],
        "destination": ["destination"],
        "group": ["origin_state", "destination_state"],
        "origin-by-group": ["origin_state", "destination_state", "origin"],
        "destination-by-group": ["origin_state", "destination_state", "destination"],
    }
    small = table.cells["row"].to_numpy()
    for _, data in release.groupby("dataset"):
        data = data.drop(columns="dataset").reset_index(drop=True)
        assert (data["count"].iloc[small] != table.frame["count"].iloc[small]).any()
        assert data["count"].iloc[small].between(1, 9).all()
        safe = data.drop(index=small)
        assert (safe["count"] == table.frame["count"].drop(index=small)).all()
        for name in check_margins(totals):
            sums = [frame.groupby(columns[name])["count"].sum() for frame in (data, table.frame)]
            assert (sums[0] == sums[1]).all(), name


def test_two_truths_with_equal_totals_give_the_same_release(fitted) -> None:
    """What starts at the truth, or looks at it on the way, gives itself away here."""
    table, posterior = fitted
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    kept = by_area(table)
    graph = graph_of(kept.left, kept.right)
    other = cells.y.copy()
    for part in connected_parts(graph):
        mix(np.random.default_rng(1), graph, part, np.zeros((len(other), 9)), other, 5000)
    assert (other != cells.y).mean() > 0.3
    assert (np.bincount(kept.left, other) == kept.left_sums).all()
    first, second = (
        draw_datasets_given_totals(cells._replace(y=y), mixing(kept), rates, 2, seed=4)
        for y in (cells.y, other)
    )
    assert (first == second).all()


def test_counts_do_not_depend_on_the_cores(fitted) -> None:
    table, posterior = fitted
    one, two = (
        synthesize(table, posterior, totals="origin-by-group", seed=4, cores=cores)
        for cores in (1, 2)
    )
    assert one.equals(two)


def test_share_of_unchanged_counts_is_at_its_plateau_from_the_start(fitted) -> None:
    """A chain that starts at the truth comes down to the plateau; ours is there, or below."""
    table, posterior = fitted
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    kept = mixing(by_area(table))
    rng = np.random.default_rng(2)
    same = {sweeps: [] for sweeps in (0, 5, 40)}
    for number in range(20):
        log_rate, rungs = rates.at(cells, number)
        free = truncated.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        weight = truncated.log_table(log_rate, cells.group, rungs)
        for sweeps, shares in same.items():
            y = with_totals(kept, free, weight, seed=number, dataset=0, sweeps=sweeps)
            shares.append((y == cells.y).mean())
    error = np.std(same[40]) / np.sqrt(10)
    for sweeps in (0, 5):
        assert np.mean(same[sweeps]) < np.mean(same[40]) + 4 * error


def test_the_plateau_does_not_depend_on_the_start(fitted) -> None:
    """A start at the truth shows at first and is forgotten: both come to the same share."""
    table, posterior = fitted
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    kept = mixing(by_area(table))
    rng = np.random.default_rng(6)
    same = {(start, sweeps): [] for start in ("truth", "repaired draw") for sweeps in (1, 40)}
    for number in range(40):
        log_rate, rungs = rates.at(cells, number)
        free = truncated.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        weight = truncated.log_table(log_rate, cells.group, rungs)
        for (start, sweeps), shares in same.items():
            first = cells.y if start == "truth" else free
            seed = number + (1000 if start == "truth" else 0)  # two chains, not one coupled
            y = with_totals(kept, first, weight, seed=seed, dataset=0, sweeps=sweeps)
            shares.append((y == cells.y).mean())
    mean = {key: np.mean(shares) for key, shares in same.items()}
    of_one = np.hypot(*(np.std(same[start, 40]) for start in ("truth", "repaired draw")))
    error = of_one / np.sqrt(40)
    assert abs(mean["truth", 40] - mean["repaired draw", 40]) < 4 * error
    # the check would see a chain that was stopped early: the difference is there to be forgotten
    assert mean["truth", 1] - mean["truth", 40] > 10 * error


def test_the_risk_of_cells_drawn_alone_is_not_told_of_cells_drawn_together(fitted) -> None:
    """The totals are the disclosure, and the intruder of intruder_risk does not know them."""
    table, posterior = fitted
    release = synthesize(table, posterior, totals="origin", seed=3)
    with pytest.raises(InputError, match="keeps the totals by origin"):
        intruder_risk(table, posterior, release)
    intruder_risk(table, posterior, synthesize(table, posterior, seed=3), cells=2, seed=1)


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        ("orign", "'orign' is unknown"),
        (["origin", "destination", "group"], "more than a two-way table"),
        (3, "totals must be a text or a list of texts"),
    ],
)
def test_unusable_totals_are_refused(fitted, totals, said) -> None:
    table, posterior = fitted
    with pytest.raises(InputError, match=said):
        synthesize(table, posterior, totals=totals, seed=1)
