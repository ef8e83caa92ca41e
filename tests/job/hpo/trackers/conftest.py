"""Trackers on a machine that has other things to do, and an MLflow server."""

from tests.support.fixtures.hpo_trackers import alone, patient  # noqa: F401
