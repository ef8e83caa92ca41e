"""Objectives and metrics of a user's own: what `xgboost.train` makes of them, on any number of workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import own_objectives as own
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.processes import printed
from tests.support.refusals import mentions
from tests.support.trainers.xgboost.own_functions import METRIC_ALONE, PLACE, SEVERAL, SINGLE, Case, Y, make, order
from trainers.errors import TrialError
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("case", [SINGLE, SEVERAL, METRIC_ALONE])
def test_three_workers_learn_and_report_what_one_does(gang: ProcessGang, tmp_path: Path, case: Case) -> None:
    segments = [answer for [answer] in gang.run(make(case), order(tmp_path / "three", case))]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    [alone] = serve_alone(make(case)(), order(tmp_path / "one", case))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)


def test_what_fails_on_one_worker_is_every_worker_s_error_and_the_gang_goes_on(
    gang: ProcessGang, tmp_path: Path
) -> None:
    label = Y.copy()
    label[1] = 77
    case = (Y, {"eval_metric": "rmse"}, {"objective_function": own.raises_elsewhere})
    orders = [order(tmp_path / "one", case), order(tmp_path / "two", case)]
    for answers in gang.run(make(case, label), *orders):
        for error in answers:
            mentions(str(error), f"{PLACE}:raises_elsewhere", "ValueError", "a label of 77")
    wrong = (Y, {"eval_metric": "rmse"}, {"metric_functions": [own.raises]})
    for [error] in gang.run(make(wrong), order(tmp_path / "three", wrong)):
        mentions(str(error), f"{PLACE}:raises", "KeyError")
    assert all(isinstance(answer, Segment) for [answer] in gang.run(make(SINGLE), order(tmp_path / "four", SINGLE)))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("guarded_elsewhere", ("gradients", "RuntimeError", "use detach()", "NumPy")),
        ("silent_elsewhere", ("_Silent",)),
    ],
)
def test_no_worker_waits_for_one_whose_objective_is_odd(
    gang: ProcessGang, tmp_path: Path, name: str, names: tuple[str, ...]
) -> None:
    label = Y.copy()
    label[1] = 77
    case = (Y, {"eval_metric": "rmse"}, {"objective_function": getattr(own, name)})
    for [error] in gang.run(make(case, label), order(tmp_path, case)):
        assert isinstance(error, TrialError)
        mentions(str(error), f"{PLACE}:{name}", *names)


SCRIPT = """
    import numpy as np
    from ray import cloudpickle
    from trainers import XGBoostTrainer, ScalingConfig, Channel

    def squared(predt, dtrain):
        return predt - dtrain.get_label(), np.ones_like(predt)

    trainer = XGBoostTrainer(objective_function=squared, hyperparameters={"eval_metric": "rmse"})
    program = cloudpickle.dumps(trainer.program({}))
    del squared
    print(trainer.options, b"get_label" in program)
"""


def test_a_script_s_function_goes_to_workers_by_value() -> None:
    assert printed(SCRIPT) == "{'objective_function': '__main__:squared'} True\n"
