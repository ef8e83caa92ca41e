"""Gangs of processes, which tests of a module share, and rows that are learnt from disk."""

from tests.support.fixtures.trainers_xgboost import folder, scratch  # noqa: F401
