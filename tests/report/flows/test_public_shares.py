"""Nobody who knows all cells but one learns the last one from a printed share."""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.report.flows.public_shares import ODDS, PUBLIC_CELLS, PublicShares, usual_noise

FAR = 400  # moves beyond which there is next to nothing: e**-40


def printed(found: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Probability of each text that can be printed, over all moves by the noise."""
    q = math.exp(-ODDS)
    chances: dict[str, float] = defaultdict(float)
    for move in range(-FAR, FAR + 1):
        monkeypatch.setattr(PublicShares, "noise", lambda _, units, __, by=move: by / units)
        text = PublicShares(0).percent(found / cells, cells, "R_all")
        chances[text] += (1 - q) / (1 + q) * q ** abs(move)
    return chances


def boundaries(cells: int) -> list[int]:
    """Numbers of cells found whose share is rounded otherwise than that of one cell more."""
    return [m for m in range(cells) if f"{m / cells:.0%}" != f"{(m + 1) / cells:.0%}"]


def test_rounding_alone_gives_a_cell_away():
    """The attack is real: at a boundary the two numbers are printed differently for certain."""
    assert len(boundaries(500)) == 100, "one number in five"
    assert len(boundaries(2731)) == 100


@pytest.mark.parametrize("cells", [500, 731])
def test_at_every_boundary_every_text_leaves_both_numbers_possible(cells, monkeypatch):
    """The intruder knows all matches but one, so m or m + 1 cells are found, and the noise's law.

    Whatever is printed, the odds of the two move by a factor of e**ODDS at most.
    """
    for m in [0, *boundaries(cells)[::9], cells - 1]:
        one, more = (printed(found, cells, monkeypatch) for found in (m, m + 1))
        for text in set(one) | set(more):
            chance = one[text]
            if max(chance, more[text]) > 1e-12:
                assert abs(math.log(chance / more[text])) <= ODDS + 1e-6, (m, text)


def test_the_noise_is_the_two_sided_geometric_one():
    cells, q = 10**6, math.exp(-ODDS)
    moves = np.array(
        [round((PublicShares(seed).moved(0.5, cells, "x") - 0.5) * cells) for seed in range(4000)]
    )
    for move in range(-8, 9):
        chance = (1 - q) / (1 + q) * q ** abs(move)
        error = math.sqrt(chance * (1 - chance) / len(moves))
        assert abs((moves == move).mean() - chance) < 4.5 * error, move
    assert np.var(moves) == pytest.approx(2 * q / (1 - q) ** 2, rel=0.15)


def test_a_share_is_moved_once_by_its_name():
    shares = PublicShares(3)
    assert shares.moved(0.4, 500, "x") == shares.moved(0.4, 500, "x")
    assert len({PublicShares(3).moved(0.4, 10**6, name) for name in "abcdefgh"}) > 4
    both = shares.moved_all(pd.Series([0.4, 0.5]), 500, "x")
    assert both.tolist() == pytest.approx([shares.moved(v, 500, "x") for v in (0.4, 0.5)])


def test_shares_stay_shares():
    ends = [PublicShares(seed).moved(end, 500, "x") for seed in range(200) for end in (0.0, 1.0)]
    assert min(ends) == 0.0
    assert max(ends) == 1.0
    assert math.isnan(PublicShares(3).moved(math.nan, 500, "x"))


def test_neither_all_cells_nor_none_are_told_of():
    told = {PublicShares(seed).percent(end, 10**6, "x") for seed in range(20) for end in (0.0, 1.0)}
    assert told == {"under 1%", "over 99%"}


def test_of_few_cells_nothing_is_printed():
    assert PublicShares(1).percent(0.4, PUBLIC_CELLS - 1, "x") == ""
    assert PublicShares(1).percent(None, 5000, "x") == ""
    assert PublicShares(1).percent(math.nan, 5000, "x") == ""


def test_nineteen_of_twenty_reports_move_a_share_by_no_more_than_is_said() -> None:
    units = 1_000
    noise = np.array([abs(PublicShares(seed).noise(units, "a share")) for seed in range(4_000)])
    points = int(usual_noise(units).split()[0])
    assert 0.95 <= np.mean(noise <= points / 100) < 0.99
