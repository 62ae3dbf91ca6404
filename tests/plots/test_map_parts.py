"""Areas far from the rest get maps of their own, and none is lost."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from bayes_sdc.plots import plot_map
from bayes_sdc.plots.map_parts import MOST, parts_of
from bayes_sdc.shapes import Shapes

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def shapes(places: list[tuple[float, float]]) -> Shapes:
    outlines = {f"a{k}": [[SQUARE + np.array(place)]] for k, place in enumerate(places)}
    return Shapes(outlines, missing=(), geographic=False)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30),
    st.integers(0, 2**16),
)
def test_every_area_that_is_shown_is_in_one_part(places, seed) -> None:
    left = np.array(places, dtype=float)
    boxes = np.concatenate([left, left + 1.0], axis=1)
    shown = np.random.default_rng(seed).random(len(places)) < 0.7
    parts = parts_of(boxes, shown)
    found = np.sort(np.concatenate(parts))
    wanted = np.flatnonzero(shown) if shown.any() else np.arange(len(places))
    assert (found == wanted).all()
    assert len(parts) <= MOST + 1


def test_islands_stand_beside_and_the_map_is_cropped_to_the_rest() -> None:
    """Without it a mainland is a spot in the corner of an ocean."""
    mainland = [(float(i), float(j)) for i in range(8) for j in range(8)]
    islands = [(-60.0, 30.0), (-59.0, 30.0), (-70.0, -20.0)]
    areas = shapes([*mainland, *islands])
    values = pd.Series(0.1, index=list(areas.outlines))
    axes = plot_map(values, areas, label="error", ax=Figure().add_subplot())
    assert axes.get_xlim()[0] > -1.0
    assert len(axes.child_axes) == 2
    assert {len(one.collections) for one in axes.child_axes} == {1}


def test_areas_without_a_value_do_not_widen_the_map() -> None:
    areas = shapes([(float(i), 0.0) for i in range(30)])
    values = pd.Series(0.1, index=[f"a{k}" for k in range(10)])
    axes = plot_map(values, areas, label="error", ax=Figure().add_subplot())
    assert axes.get_xlim()[1] < 11.0
