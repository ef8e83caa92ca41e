"""The pictures of experiments: both forms hold the numbers that they were given."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.shared.pictures import Dot, Line, bars, histogram, learning, scores
from hpo.report import Figure
from hpo.report.pictures import look

LINES = [
    Line(label="<b>one</b>", curves=[[0.1, 0.5, 0.9], [0.3, 0.7]], colour=look.GREY),
    Line(label="none", curves=[[]], colour=look.BLUE),
]


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


def test_curves_over_magnitudes_have_a_line_a_magnitude_and_their_numbers_in_plain(tmp_path: Path) -> None:
    lines = [Line(label="a", curves=[[5.0, float("nan"), 1400.0]], colour="#000000")]
    drawn = learning("l", "L", "", lines, "epoch", "rows", logarithmic=True)
    assert (drawn.interactive.layout.yaxis.type, drawn.interactive.layout.yaxis.dtick) == ("log", 1)
    [svg] = [path for path in drawn.save(tmp_path) if path.suffix == ".svg"]
    assert "mathdefault" not in svg.read_text()
