"""Which hyperparameters mattered, by the model."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hpo.report import JobData
from hpo.report.model.belief import Belief
from hpo.report.model.importance import Importance, importance_bars, importances
from hpo.suggestions import propose
from tests.support.records import HOSTILE, by_function, large, made_up


def found_in(data: JobData) -> list[Importance]:
    belief = Belief.of(data)
    assert belief is not None
    return importances(belief)


def test_the_one_that_decides_is_found_with_its_uncertainty() -> None:
    found = found_in(made_up(trials=150, resource=9, halving=False))
    assert found[0].name == "eta"
    assert found[0].total > 5 * found[1].total
    assert all(0 <= each.alone <= each.total <= 1 and each.spread >= 0 for each in found)
    assert {each.name for each in found} == set(made_up().ranges)


def test_parts_are_those_of_the_function_although_a_model_chose_where_to_look() -> None:
    """By Monte Carlo over ranks, of `a` 0.75, of `b` 0.17 and of `c` 0.13 together with others; nothing of the rest."""

    def value(x: dict[str, float]) -> float:
        return -4 * (x["a"] - 0.3) ** 2 - 2 * (x["b"] - 0.6) ** 2 + 0.5 * x["c"]

    data = by_function(
        value, [dict(zip("abcdef", row, strict=True)) for row in np.random.default_rng(1).random((8, 6))]
    )
    stream = np.random.RandomState(1)
    for _ in range(22):
        belief = Belief.of(data)
        assert belief is not None
        new = propose(belief.space, belief.observations, max_resource=1, maximize=True, stream=stream).hyperparameters
        data = by_function(value, [*(trial.hyperparameters for trial in data.trials), new])
    found = {each.name: each.total for each in found_in(data)}
    assert found == pytest.approx({"a": 0.75, "b": 0.17, "c": 0.13, "d": 0, "e": 0, "f": 0}, abs=0.3)
    assert max(found.values()) == found["a"]


def test_the_same_job_gives_the_same_answer() -> None:
    assert found_in(made_up(trials=12)) == found_in(made_up(trials=12))


def test_a_thousand_trials_take_a_second_of_one_core() -> None:
    belief = Belief.of(large())
    assert belief is not None
    began = time.process_time()
    assert importances(belief)[0].name == "eta"
    assert time.process_time() - began < 4.0  # Measured: 0.6; a loaded machine counts more.


def test_both_forms_show_bars_with_their_spread() -> None:
    belief = Belief.of(made_up(hostile=True))
    assert belief is not None
    found = importances(belief)
    figure = importance_bars(belief, found)
    assert figure is not None
    alone, together = figure.interactive.data
    assert alone.x + together.x == pytest.approx([each.total for each in found], abs=1e-5)
    ends = [(max(0, each.total - each.spread), min(1, each.total + each.spread)) for each in found]
    totals = alone.x + together.x
    assert totals - together.error_x.arrayminus == pytest.approx([low for low, _ in ends], abs=1e-5)
    assert totals + together.error_x.array == pytest.approx([high for _, high in ends], abs=1e-5)
    assert not any("<script" in text or "<img" in text for text in alone.hovertext)
    assert any(f"colsample{HOSTILE}" == each.name for each in found)
    (axes,) = figure.still().axes
    assert len(axes.patches) == 2 * len(found)
