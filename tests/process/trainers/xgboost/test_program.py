"""What a worker of XGBoost's gangs holds between trials; no Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.trainers.xgboost.program import matrices, order, program
from trainers import storage
from trainers.gangs.in_process import alone


@pytest.mark.process  # For its time: it looks through all objects of the process.
def test_matrices_of_a_tuned_max_bin_are_kept_for_the_last_two_values(tmp_path: Path) -> None:
    before = matrices()
    served = program()
    served.open(alone(1))
    opened = matrices()
    models = {}
    for max_bin in (16, 32, 64, 16, 128, 16):
        segment = served.train(order(tmp_path, max_bin=max_bin), lambda report: None)
        assert matrices() <= opened + 1, "one beside those that it opened with"
        models.setdefault(max_bin, set()).add(storage.read(segment.checkpoint))
    assert [len(of_value) for of_value in models.values()] == [1, 1, 1, 1]
    served.close()
    assert matrices() == before
