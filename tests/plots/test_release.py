"""Plots of a release: heat maps and maps hold the sums and errors they are said to hold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from bayes_sdc import InputError, Shapes, plot_flows, plot_map, plot_margins, read_flows
from bayes_sdc.flows.release.use.utility import between, margins

COLUMNS = {"origin": "o", "destination": "d", "count": "n"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    pairs = [(o, d) for o in range(101, 113) for d in range(101, 113) if o != d]
    return pd.DataFrame(
        {
            "o": [f"0{o}" for o, _ in pairs],
            "d": [f"0{d}" for _, d in pairs],
            "n": 1 + rng.poisson(5, len(pairs)),
            "from": [f"s{o % 3}" for o, _ in pairs],
            "to": [f"t{d % 4}" for _, d in pairs],
        }
    ).query("not (`from` == 's0' and to == 't1')")


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(n=frame["n"].where(frame["n"] > 9, 10 - frame["n"]))


def shown(axes) -> list[np.ma.MaskedArray]:
    return [one.images[0].get_array() for one in axes]


def test_sums_between_groups_are_those_of_the_small_cells(frame):
    table = read_flows(frame, **COLUMNS, groups=["from", "to"])
    sums = between(table, changed(frame))
    small = frame[frame["n"] <= 9]
    expected = small.groupby(["from", "to"])["n"].agg(["size", "sum"])
    pd.testing.assert_series_equal(sums["true"], expected["sum"], check_names=False)
    pd.testing.assert_series_equal(sums["cells"], expected["size"], check_names=False)
    np.testing.assert_allclose(sums["synthetic"], 10 * expected["size"] - expected["sum"])


def test_sums_agree_with_the_totals_by_area(frame):
    table = read_flows(frame, **COLUMNS)
    by_area, totals = between(table, changed(frame)), margins(table, changed(frame))
    for level, side in enumerate(("origin", "destination")):
        mine = totals[totals["side"] == side].set_index("area")[["true", "synthetic"]]
        summed = by_area.groupby(level=level)[["true", "synthetic"]].sum()
        pd.testing.assert_frame_equal(summed, mine, check_names=False, check_dtype=False)


def test_heat_maps_have_one_scale_and_hold_the_sums(frame):
    table = read_flows(frame, **COLUMNS, groups=["from", "to"])
    axes = plot_flows(table, changed(frame), figure=Figure())
    sums = between(table, changed(frame))
    for values, name in zip(shown(axes), ("true", "synthetic"), strict=True):
        expected = sums[name].unstack()
        np.testing.assert_allclose(values.filled(np.nan), expected)
        assert values.mask.tolist() == expected.isna().to_numpy().tolist()
        assert values.mask.sum() == 1, "a pair without small cells has a colour"
    assert axes[0].images[0].norm is axes[1].images[0].norm
    assert [text.get_text() for text in axes[0].get_yticklabels()] == ["s0", "s1", "s2"]
    assert [text.get_text() for text in axes[1].get_xticklabels()] == ["t0", "t1", "t2", "t3"]


def test_large_tables_show_the_largest_areas(frame):
    table = read_flows(frame, **COLUMNS)
    axes = plot_flows(table, changed(frame), most=5, figure=Figure())
    totals = margins(table, changed(frame)).query("side == 'origin'").set_index("area")["true"]
    names = [text.get_text() for text in axes[0].get_yticklabels()]
    assert names == sorted(totals.nlargest(5).index)
    assert shown(axes)[0].shape == (5, 5)


def test_release_of_another_table_is_refused(frame):
    table = read_flows(frame, **COLUMNS)
    with pytest.raises(InputError):
        plot_flows(table, frame.iloc[1:], figure=Figure())
    with pytest.raises(InputError, match="read_flows"):
        plot_flows(frame, frame, figure=Figure())


def test_margins_have_a_mark_an_area_and_side(frame):
    totals = margins(read_flows(frame, **COLUMNS), changed(frame))
    ax = plot_margins(totals, ax=Figure().add_subplot())
    for marks, side in zip(ax.collections, ("origin", "destination"), strict=True):
        mine = totals[totals["side"] == side]
        np.testing.assert_allclose(marks.get_offsets(), mine[["true", "synthetic"]])
    with pytest.raises(InputError, match="margins"):
        plot_margins(totals.drop(columns="true"))


def square(x: float, size: float = 1.0, y: float = 0.0) -> np.ndarray:
    return np.array([[x, y], [x + size, y], [x + size, y + size], [x, y + size]])


SHAPES = Shapes(
    {"a": [[square(0)]], "b": [[square(1)], [square(2)]], "c": [[square(3)]], "d": [[square(4)]]},
    missing=("z",),
    geographic=False,
)


def test_map_colours_each_area_by_its_own_value():
    values = pd.Series({"c": np.nan, "b": -0.2, "z": 9.0, "a": 0.2})
    ax = plot_map(values, SHAPES, label="error", diverging=True, ax=Figure().add_subplot())
    (areas,) = ax.collections
    faces = areas.get_facecolors()
    bar = ax.figure.axes[-1]
    low, high = bar.get_xlim()
    assert (low, high) == pytest.approx((-0.2, 0.2)), "0 is not in the middle"
    assert not np.allclose(faces[0], faces[1])
    grey = (*to_rgba("0.5")[:3], 0.35)
    np.testing.assert_allclose(faces[2:], [grey, grey], err_msg="a missing value has a colour")
    assert bar.get_xlabel() == "error"
    assert len(areas.get_paths()) == 4


def test_hole_in_an_area_is_empty():
    """An area that surrounds another would be drawn over it, or the other way round."""
    ring = [square(0.0, 9.0), square(3.0, 3.0, 3.0)[::-1]]
    shapes = Shapes({"a": [ring]}, missing=(), geographic=False)
    figure = Figure(figsize=(3, 3))
    canvas = FigureCanvasAgg(figure)
    ax = plot_map(pd.Series({"a": 0.5}), shapes, label="share", ax=figure.add_subplot())
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())

    def at(x: float, y: float) -> list[int]:
        column, row = ax.transData.transform((x, y))
        return pixels[len(pixels) - 1 - int(row), int(column)].tolist()

    assert at(4.5, 4.5) == [255, 255, 255, 255]
    assert at(1.5, 4.5) != [255, 255, 255, 255]


def test_degrees_are_drawn_true_to_scale_in_the_middle():
    north = Shapes({"a": [[square(0.0, y=59.5)]]}, missing=(), geographic=True)
    ax = plot_map(pd.Series({"a": 0.5}), north, label="share", ax=Figure().add_subplot())
    assert ax.get_aspect() == pytest.approx(2.0, rel=0.01)  # at 60 degrees, half as wide


def test_map_without_any_value_is_grey():
    ax = plot_map(pd.Series(dtype=float), SHAPES, label="share", ax=Figure().add_subplot())
    assert len({tuple(face) for face in ax.collections[0].get_facecolors()}) == 1
    with pytest.raises(InputError, match="read_shapes"):
        plot_map(pd.Series(dtype=float), None, label="share")
