"""The figures and the picture of the demo."""

from __future__ import annotations

import math
import re

import pytest

from experiments.demo import ACCURACY, EPOCHS, Runs, errors_apart, picture


def runs(*last: float, name: str = "four workers") -> Runs:
    """Runs that end with these accuracies."""
    return Runs(name=name, curves=[[0.5] * (EPOCHS - 1) + [value] for value in last])


def test_the_error_is_that_of_the_mean_of_the_runs() -> None:
    of = runs(0.90, 0.92, 0.94)
    assert of.mean == pytest.approx(0.92)
    assert of.error == pytest.approx(0.02 / math.sqrt(3))
    assert of.text == "0.920 ± 0.012"


def test_a_difference_is_told_in_standard_errors_of_both_means() -> None:
    better, worse = runs(0.90, 0.92, 0.94), runs(0.06, 0.10, 0.14)
    assert errors_apart(better, worse) == pytest.approx(0.82 / math.hypot(better.error, worse.error))
    assert errors_apart(worse, better) == -errors_apart(better, worse)
    assert errors_apart(runs(0.9, 0.9), runs(0.1, 0.1)) == math.inf


def test_the_picture_has_a_line_and_a_band_of_each_setting_and_each_once_in_its_legend() -> None:
    figure = picture([runs(0.9, 0.92, name="one"), runs(0.1, 0.1, name="unchanged"), runs(0.9, 0.95, name="tuned")])
    shown = [trace.name for trace in figure.interactive.data if trace.showlegend is not False]
    assert len(figure.interactive.data) == 6
    assert [name.split(":")[0] for name in shown] == ["one", "unchanged", "tuned"]
    assert figure.interactive.layout.yaxis.title.text == ACCURACY
    assert re.search(r"unchanged: 0\.100 ± 0\.000; tuned: 0\.925", figure.title)
