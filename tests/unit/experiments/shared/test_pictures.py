"""The pictures of experiments: both forms hold the numbers that they were given."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.shared.pictures import Dot, Line, bars, histogram, learning, scores
from hpo.report.pictures import look

LINES = [
    Line(label="<b>one</b>", curves=[[0.1, 0.5, 0.9], [0.3, 0.7]], colour=look.GREY),
    Line(label="none", curves=[[]], colour=look.BLUE),
]


def test_a_line_is_the_mean_of_the_seeds_that_came_so_far_in_a_band_of_them_all() -> None:
    assert LINES[0].mean == pytest.approx([0.2, 0.6, 0.9])
    low, high = LINES[0].band
    assert (list(low), list(high)) == ([0.1, 0.5, 0.9], [0.3, 0.7, 0.9])


def test_a_score_stands_with_two_standard_errors_and_what_is_not_finite_is_left_out() -> None:
    dots = [Dot(label="a & b", value=0.9, error=0.01), Dot(label="lost", value=float("nan"))]
    [trace] = scores("s", "S", "", dots, "accuracy", {}).interactive.data
    assert list(trace.x) == [0.9]
    assert list(trace.y) == ["a &amp; b"]
    assert list(trace.error_x.array) == [0.02]
    assert list(trace.text) == ["0.9000 ± 0.0100"]


def test_curves_and_bands_hold_the_seeds() -> None:
    band, line = learning("l", "L", "", LINES, "epoch", "accuracy").interactive.data
    assert line.name == "&lt;b&gt;one&lt;/b&gt;"
    assert np.allclose(line.y, [0.2, 0.6, 0.9])
    assert np.allclose(band.y, [0.3, 0.7, 0.9, 0.9, 0.5, 0.1])


def test_a_histogram_shows_shares_in_order() -> None:
    [bar] = histogram("h", "H", "", {3: 30, 0: 10}, "updates", look.BEST).interactive.data
    assert (list(bar.x), list(bar.y)) == ([0, 3], [0.25, 0.75])


def test_bars_stand_side_by_side_over_the_same_labels() -> None:
    first, second = bars("b", "B", "", ["a", "b"], {"seconds": [1.234, 1234.5], "cost": [5.0, 6.0]}).interactive.data
    assert (list(first.x), list(first.text)) == ([1.234, 1234.5], ["1.2", "1,234"])
    assert list(second.x) == [5.0, 6.0]
    assert list(first.y) == list(second.y) == ["a", "b"]
