"""What a worker of XGBoost's gangs holds between trials; no Ray."""

from __future__ import annotations

from pathlib import Path

from tests.support.trainers.xgboost.program import matrices, order, program
from trainers.gangs.in_process import alone


def test_what_every_trial_needs_is_built_before_the_first(tmp_path: Path) -> None:
    served = program(max_bin=16, eval_metric="aucpr")
    served.open(alone(1))
    opened = matrices()
    served.train(order(tmp_path, max_bin=16, eval_metric="aucpr"), lambda report: None)
    assert matrices() == opened
    served.close()
