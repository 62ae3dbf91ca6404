"""Pictures: the same bytes each time, said in words, and told apart without colour."""

import re

import pandas as pd

from bayes_sdc.report.plots import ru_map


def compared() -> pd.DataFrame:
    """Two methods over data sets, out of order, and one with two kinds of knowledge."""
    return pd.DataFrame(
        [
            ("model", "all-others", 10, 0.05, 0.4),
            ("model", "all-others", 1, 0.1, 0.2),
            ("model", "all-others", 5, 0.07, 0.3),
            ("noise", "all-others", 1, 0.02, 0.5),
            ("noise", "all-others", 10, 0.01, 0.9),
            ("suppression", "margins", 1, 0.09, 0.3),
            ("suppression", "all-others", 1, 0.09, 1.0),
        ],
        columns=["method", "knowledge", "datasets", "totals_error", "true_count_probability"],
    )


def test_ru_map_names_every_line_and_the_ends() -> None:
    """A line without a name, or an end without its number of data sets, cannot be read."""
    svg = str(ru_map(compared()))
    assert 'role="img"' in svg
    assert 'aria-label="Mean probability of the true count against error of totals' in svg
    words = re.findall(r">([^<>]+)</text>", svg)
    names = ["model", "noise", "suppression, sums known", "suppression, other cells known"]
    assert [word for word in words if word in names] == names
    # the ends of two lines, and one mark for each knowledge of suppression
    assert (words.count("1"), words.count("10"), words.count("5")) == (4, 2, 0)
    assert svg == str(ru_map(compared()))


def test_ru_map_lines_differ_by_marker_and_not_by_colour_alone() -> None:
    """In print, and for one reader in twelve, two colours can be the same."""
    svg = str(ru_map(compared()))
    shapes = re.findall(r'<path id="ru-map-m[0-9a-f]+" d="([^"]+)"', svg)
    assert len(set(shapes)) >= 4


def test_marks_of_an_axis_say_where_they_stand() -> None:
    """Marks at 2.5 and 7.5 per cent that read 2 and 8 are wrong, and look like a broken ruler."""
    frame = compared().assign(totals_error=[0.05, 0.18, 0.07, 0.02, 0.01, 0.09, 0.09])
    words = re.findall(r">([\d.]+)%</text>", str(ru_map(frame)))
    assert words[:4] == ["0.0", "2.5", "5.0", "7.5"]
