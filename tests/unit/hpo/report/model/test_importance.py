"""Which hyperparameters mattered, by the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpo.report import JobData
from hpo.report.model.belief import Belief
from hpo.report.model.importance import Importance, headline, importance_bars, importances
from tests.support.records import by_function, made_up
from tests.support.refusals import mentions, missing_names


def found_in(data: JobData) -> list[Importance]:
    belief = Belief.of(data)
    assert belief is not None
    return importances(belief)


def test_what_works_only_together_is_not_by_itself() -> None:
    points = [dict(zip("ab", row, strict=True)) for row in np.random.default_rng(3).random((60, 2))]
    found = found_in(by_function(lambda x: (x["a"] - 0.5) * (x["b"] - 0.5), points))
    assert all(each.total > 0.8 and each.alone < 0.2 for each in found)


def test_one_hyperparameter_is_compared_with_nothing() -> None:
    data = made_up()
    spec = {**data.job.spec, "hyperparameter_ranges": {"eta": data.job.spec["hyperparameter_ranges"]["eta"]}}
    trials = tuple(replace(trial, hyperparameters={"eta": trial.hyperparameters["eta"]}) for trial in data.trials)
    only = replace(data, job=replace(data.job, spec=spec), trials=trials)
    belief = Belief.of(only)
    assert belief is not None
    assert importances(belief) == []
    assert importance_bars(belief, []) is None


def test_the_title_says_no_more_than_can_be_told() -> None:
    def found(*parts: tuple[float, float]) -> list[Importance]:
        return [
            Importance(name=f"h{place}", total=total, alone=total, spread=spread)
            for place, (total, spread) in enumerate(parts)
        ]

    told = mentions(headline(found((0.6, 0.1), (0.2, 0.1), (0.1, 0.0)), 30), "h0")
    assert missing_names(told, "h1", "h2") == ["h1", "h2"]
    told = mentions(headline(found((0.4, 0.1), (0.3, 0.1), (0.1, 0.0), (0.0, 0.0)), 30), "h0", "h1")
    assert missing_names(told, "h2", "h3") == ["h2", "h3"]
    told = mentions(headline(found((0.4, 0.3), (0.3, 0.1), (0.2, 0.0)), 30), 30)
    assert missing_names(told, "h0", "h1", "h2") == ["h0", "h1", "h2"]
