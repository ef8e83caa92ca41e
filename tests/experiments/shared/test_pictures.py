"""The pictures of experiments: both forms hold the numbers that they were given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.shared.pictures import Dot, Line, bars, histogram, learning, scores
from hpo.report import Figure
from hpo.report.pictures import look

LINES = [
    Line(label="<b>one</b>", curves=[[0.1, 0.5, 0.9], [0.3, 0.7]], colour=look.GREY),
    Line(label="none", curves=[[]], colour=look.BLUE),
]


def test_a_line_is_the_mean_of_the_seeds_that_came_so_far_in_a_band_of_them_all() -> None:
    assert LINES[0].mean == pytest.approx([0.2, 0.6, 0.9])
    low, high = LINES[0].band
    assert (list(low), list(high)) == ([0.1, 0.5, 0.9], [0.3, 0.7, 0.9])


@pytest.fixture(params=["scores", "learning", "bars", "histogram"])
def figure(request: pytest.FixtureRequest) -> Figure:
    dots = [
        Dot(label="$one & two", value=0.9, error=0.01),
        Dot(label="lost", value=float("nan")),
        Dot(label="b", value=0.5),
    ]
    made = {
        "scores": lambda: scores("scores", "Scores", "How.", dots, "accuracy", {"one": 0.9}),
        "learning": lambda: learning("learning", "Curves", "How.", LINES, "epoch", "accuracy"),
        "bars": lambda: bars("bars", "Costs", "How.", ["a", "b"], {"seconds": [1.234, 1234.5], "worker-s": [5.0, 6.0]}),
        "histogram": lambda: histogram("histogram", "Ages", "How.", {3: 30, 0: 10}, "updates", look.BEST),
    }
    return made[request.param]()


def test_both_forms_can_be_drawn(figure: Figure, tmp_path: Path) -> None:
    paths = figure.save(tmp_path)
    assert [path.suffix for path in paths] == [".png", ".svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert figure.interactive.to_json()


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


def test_curves_over_magnitudes_have_a_line_a_magnitude_and_their_numbers_in_plain(tmp_path: Path) -> None:
    lines = [Line(label="a", curves=[[5.0, float("nan"), 1400.0]], colour="#000000")]
    drawn = learning("l", "L", "", lines, "epoch", "rows", logarithmic=True)
    assert (drawn.interactive.layout.yaxis.type, drawn.interactive.layout.yaxis.dtick) == ("log", 1)
    [svg] = [path for path in drawn.save(tmp_path) if path.suffix == ".svg"]
    assert "mathdefault" not in svg.read_text()


def test_a_histogram_shows_shares_in_order() -> None:
    [bar] = histogram("h", "H", "", {3: 30, 0: 10}, "updates", look.BEST).interactive.data
    assert (list(bar.x), list(bar.y)) == ([0, 3], [0.25, 0.75])


def test_bars_stand_side_by_side_over_the_same_labels() -> None:
    first, second = bars("b", "B", "", ["a", "b"], {"seconds": [1.234, 1234.5], "cost": [5.0, 6.0]}).interactive.data
    assert (list(first.x), list(first.text)) == ([1.234, 1234.5], ["1.2", "1,234"])
    assert list(second.x) == [5.0, 6.0]
    assert list(first.y) == list(second.y) == ["a", "b"]
