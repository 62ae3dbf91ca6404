"""Bands of levels by closed forms: what a class says of a key at each resolution."""

import numpy as np
import pytest
from scipy.special import gammaln

from bayes_sdc.microdata.latent_classes import resolutions as r
from bayes_sdc.models.latent_classes import bands_of


@pytest.mark.parametrize("levels", [1, 2, 3, 8, 13])
def test_each_resolution_has_the_probability_of_its_bands(levels: int) -> None:
    """Dirichlet-multinomial between the bands, and everybody's levels inside them."""
    rng = np.random.default_rng(levels)
    base = rng.dirichlet(np.full(levels, 0.5))
    counts = rng.poisson(2.0, levels)
    strength, bands = 3.7, bands_of(levels)
    assert r.depth_of(levels) == len(bands) - 1
    found = np.empty(len(bands))
    r.log_of_resolutions(strength, *r.means_of_bands(base), counts, found)
    for s, same in enumerate(bands):
        first = np.unique(same, axis=0)
        m, c = first @ base, first @ counts
        total = gammaln(strength) - gammaln(strength + c.sum())
        total += (gammaln(strength * m + c) - gammaln(strength * m)).sum() - (c * np.log(m)).sum()
        # at 0 there is one band, which says nothing
        assert found[s] == pytest.approx(total if s else 0.0, abs=1e-9)


def test_splits_of_records_alone_are_a_dirichlet_draw() -> None:
    """With everybody's records at every node, m is Dirichlet(1/2 + records), by its moments."""
    counts = np.array([4, 0, 1, 7, 2])
    splits = np.zeros((r.depth_of(5) + 1, 5))
    rng = np.random.default_rng(1)
    r.add_to_splits(rng, 2.0, np.full(5, 0.2), counts, 0, splits)
    draws = np.empty((20_000, 5))
    for draw in draws:
        r.draw_splits(rng, splits, draw)
    shape = counts + r.BASE
    mean = shape / shape.sum()
    sd = np.sqrt(mean * (1.0 - mean) / (shape.sum() + 1.0))
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)
    assert np.abs((draws.mean(axis=0) - mean) / sd * np.sqrt(len(draws))).max() < 4.5
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.05)


def test_a_class_says_tables_above_its_resolution_and_records_below() -> None:
    """Ten records of one level at resolution 1: the half gets a table or more, its level all."""
    splits = np.zeros((3, 4))
    counts = np.array([0, 10, 0, 0])
    r.add_to_splits(np.random.default_rng(2), 1e-6, np.full(4, 0.25), counts, 1, splits)
    np.testing.assert_array_equal(splits[1], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(splits[2], [0.0, 10.0, 0.0, 0.0])
