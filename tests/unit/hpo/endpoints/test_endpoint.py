"""Endpoints on Ray Serve: they answer what the model predicts, live through a killed replica, and end."""

from __future__ import annotations

from hpo.endpoints import Predictor, check_place
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, WarmbandError


def test_wrong_arguments_are_told() -> None:
    refuses_each(
        [
            (lambda: check_place("a/b", 1, 1, 1), ("endpoint_name", "a/b", 63)),
            (lambda: check_place("", 1, 1, 1), ("endpoint_name", "''")),
            (lambda: check_place("a", 0, 1, 1), ("initial_instance_count", 0, 1)),
            (lambda: check_place("a", 1, float("nan"), 1), ("cpus", "nan", 0.5)),
            (lambda: check_place("a", 1, 1, True), ("max_batch_size", True, 1)),
        ],
        ConfigurationError,
    )


def test_an_address_that_does_not_answer_is_told() -> None:
    with refuses(WarmbandError, field="none", value="http://127.0.0.1:1/none", remedy="2 s"):
        Predictor("none", "http://127.0.0.1:1/none").ping(2.0)
