"""What the benchmark of XGBoost on gangs makes of its measurements, and how it measures; no Ray."""

from __future__ import annotations

import pytest

from experiments.workloads.shared_evaluation import measure


def test_a_worker_of_many_is_simulated() -> None:
    """Not how long it takes, which depends on the machine: that each way does its work."""
    found = measure("bank-marketing-synthetic", None, 1, 1, shares=4)
    assert found.rows == pytest.approx(5 * found.evaluated, rel=0.01)
    assert found.seconds.keys() == {"here", "by hand", "prediction", "one split", "here, AUC", "whole"}
    assert min(found.update, *found.seconds.values()) > 0
