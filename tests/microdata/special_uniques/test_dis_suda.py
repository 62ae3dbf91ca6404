"""DIS-SUDA against the paper's steps, carried out one after another."""

import json
from math import fsum
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.special_uniques.dis_suda import dis_suda, share_out

CASES = json.loads((Path(__file__).parents[2] / "data" / "suda_dis.json").read_text("utf-8"))


def read(codes: np.ndarray) -> Microdata:
    frame = pd.DataFrame(codes).astype(str)
    frame.columns = [f"k{place}" for place in frame.columns]
    return read_microdata(frame, keys=list(frame.columns))


def step_by_step(total: float, scores: np.ndarray) -> np.ndarray:
    """The paper's steps 2 to 6, with the rules for score 1."""
    logs = np.log(np.maximum(scores, 1.0))
    if not logs.any():
        return np.full(len(scores), total / len(scores))
    shares = total * logs / logs.sum()
    for _ in range(len(scores) + 1):
        excess = (shares - 1.0)[shares > 1.0].sum()
        shares = np.minimum(shares, 1.0)
        rest = np.where(shares < 1.0, logs, 0.0)
        if excess <= 0:
            break
        if not rest.any():
            free = logs == 0
            if free.any():  # else what is left over is rounding
                shares[free] += excess / free.sum()
            break
        shares = shares + excess * rest / rest.sum()
    return shares


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_worked_cases(case):
    data = read(np.array(case["rows"]))
    found = dis_suda(data, case["sampling_fraction"], max_size=case["max_size"])
    np.testing.assert_allclose(found.risk, case["dis_suda"], rtol=1e-13)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 6.0, 12.0, 1e3, 1e40]), min_size=1, max_size=30),
    st.floats(0.0, 1.0),
)
def test_shares_are_those_of_the_steps_and_add_up(scores, part):
    scores = np.array(scores)
    total = part * len(scores)
    shares = share_out(total, scores)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert fsum(shares) == pytest.approx(total, rel=1e-12, abs=1e-300)
    np.testing.assert_allclose(shares, step_by_step(total, scores), rtol=1e-9, atol=1e-12)


def test_total_is_conserved_on_a_large_file():
    scores = np.random.default_rng(1).choice([0.0, 1.0, 2.0, 24.0, 600.0], 100_000)
    for total in (0.3, 1e3, 7e4, 99_999.0):
        assert fsum(share_out(total, scores)) == pytest.approx(total, rel=1e-12)


def test_sdcmicro_formula_term_by_term():
    codes = np.random.default_rng(2).integers(0, 4, (200, 5))
    data = read(codes)
    found = dis_suda(data, 0.1, max_size=5, method="sdcmicro", score="ihsn")
    scores, power = found.suda.scores, 1.0 + (8 - 5) / 20
    false = found.dis.pair_records * 0.9 / 0.1
    adjust = sum(s**-power for s in scores if s > 0)
    for score, risk in zip(scores, found.risk, strict=True):
        expected = 1.0 / (1.0 + false / (score**power * adjust)) if score > 0 else 0.0
        assert risk == pytest.approx(expected, rel=1e-12)


def test_sdcmicro_gives_the_file_level_risk_when_scores_are_equal():
    # three uniques by both keys and a pair: all scores are equal
    data = read(np.array([[0, 0], [1, 1], [2, 2], [3, 3], [3, 3]]))
    found = dis_suda(data, 0.2, method="sdcmicro")
    np.testing.assert_allclose(found.risk[:3], found.dis.value, rtol=1e-14)


def test_only_score_one_shares_equally():
    # every unique needs both of its keys
    data = read(np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [2, 2]]))
    found = dis_suda(data, 0.5)
    assert found.without_share == 4
    np.testing.assert_allclose(found.risk[:4], found.dis.value, rtol=1e-15)


def test_a_census_gives_every_unique_risk_one():
    found = dis_suda(read(np.array([[0, 0], [0, 1], [1, 2], [1, 2]])), 1.0)
    assert found.risk.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_file_without_uniques_has_no_risk_and_an_undefined_total():
    found = dis_suda(read(np.zeros((3, 2), int)), 0.1)
    assert found.total is None
    assert found.risk.tolist() == [0.0, 0.0, 0.0]


def test_what_the_methods_cannot_do_is_refused():
    data = read(np.zeros((3, 2), int))
    with pytest.raises(InputError, match="method 'suda2' is unknown"):
        dis_suda(data, 0.1, method="suda2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="score='elliot'"):
        dis_suda(data, 0.1, score="ihsn")
    with pytest.raises(InputError, match="beyond 28 keys"):
        dis_suda(read(np.zeros((3, 29), int)), 0.1, method="sdcmicro")
