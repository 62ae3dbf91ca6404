"""Labels beside marks cover neither each other nor the marks."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from bayes_sdc.plots import plot_promises, plot_ru_map


def extents(axes) -> np.ndarray:
    axes.figure.draw_without_rendering()
    return np.array([text.get_window_extent().extents for text in axes.texts])


def overlapping(boxes: np.ndarray) -> int:
    return sum(
        bool((a[:2] < b[2:]).all() and (b[:2] < a[2:]).all())
        for k, a in enumerate(boxes)
        for b in boxes[:k]
    )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_numbers_of_data_sets_do_not_overlap(seed: int) -> None:
    """Methods with about the same risk and error: the numbers of two lie on each other."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "method": f"method {k}",
            "knowledge": "all-others",
            "datasets": m,
            "totals_error": 0.1 + 0.01 * rng.random(),
            "true_count_probability": 0.3 + 0.03 * rng.random(),
        }
        for k in range(4)
        for m in (1, 10)
    ]
    # one far away, so that the others share a small part of the picture
    rows.append({**rows[0], "method": "far", "totals_error": 0.3, "true_count_probability": 0.9})
    axes = plot_ru_map(
        pd.DataFrame(rows), ax=Figure(figsize=(5.4, 3.3), layout="constrained").add_subplot()
    )
    boxes = extents(axes)
    assert len(boxes) == 9
    apart = np.array([-0.5, 0.0, 0.5, 0.0])  # pixels: side by side, 1 and 10 would be read as 110
    assert overlapping(boxes + apart) == 0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_epsilons_do_not_overlap(seed: int) -> None:
    """Five mechanisms with about the same risk and error, and no bound beside a wide one."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "method": f"method {k}",
            "epsilon": epsilon,
            "totals_error": 0.35 + 0.02 * rng.random(),
            "after": 0.12 + 0.02 * rng.random(),
        }
        for k in range(5)
        for epsilon in (0.25, 1.0, np.inf)
    ]
    rows.append({"method": "far", "epsilon": 1.0, "totals_error": 0.1, "after": 0.5})
    axes = plot_promises(
        pd.DataFrame(rows), ax=Figure(figsize=(5.4, 3.3), layout="constrained").add_subplot()
    )
    boxes = extents(axes)
    assert len(boxes) == 11
    assert overlapping(boxes) == 0


def test_a_label_is_not_on_a_mark() -> None:
    line = pd.DataFrame(
        {
            "method": "model",
            "knowledge": "all-others",
            "datasets": [1, 5],
            "totals_error": [0.1, 0.11],
            "true_count_probability": [0.2, 0.25],
        }
    )
    axes = plot_ru_map(line, ax=Figure(figsize=(5.4, 3.3), layout="constrained").add_subplot())
    boxes = extents(axes)
    points = axes.transData.transform(line[["totals_error", "true_count_probability"]])
    for low, high in zip(boxes[:, :2], boxes[:, 2:], strict=True):
        assert not ((points > low) & (points < high)).all(axis=1).any()
