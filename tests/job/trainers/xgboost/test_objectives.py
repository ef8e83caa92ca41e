"""The table of XGBoost's objectives and metrics: every one of the installed release, as the page says."""

from __future__ import annotations

from tests.support import objective_table as table
from trainers.xgboost.parameters import METRICS


def test_no_metric_is_missing() -> None:
    measured = {metric.partition("@")[0] for case in table.CASES.values() for metric in case.metrics}
    assert measured == set(METRICS)
    assert table.own_metrics() <= measured
