"""A cluster of a job's own: it listens on 127.0.0.1 alone, asks for its token, and ends with the job."""

from __future__ import annotations

import os
import sys

import pytest

from trainers.loopback import LOOPBACK_VARIABLE, on_loopback


def test_the_variable_is_there_for_an_import_of_ray_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOOPBACK_VARIABLE, raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("sys.modules", {name: module for name, module in sys.modules.items() if name != "ray"})
    with on_loopback():
        assert os.environ[LOOPBACK_VARIABLE] == "0"
        with on_loopback():
            assert os.environ[LOOPBACK_VARIABLE] == "0"
        assert os.environ[LOOPBACK_VARIABLE] == "0"
    assert LOOPBACK_VARIABLE not in os.environ


@pytest.mark.parametrize(("name", "value"), [(LOOPBACK_VARIABLE, "1"), ("RAY_ADDRESS", "10.0.0.1:6379")])
def test_who_asks_for_more_gets_it(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.modules", {name: module for name, module in sys.modules.items() if name != "ray"})
    monkeypatch.delenv(LOOPBACK_VARIABLE, raising=False)
    monkeypatch.setenv(name, value)
    with on_loopback():
        assert os.environ.get(LOOPBACK_VARIABLE) == ("1" if name == LOOPBACK_VARIABLE else None)


def test_what_imported_ray_already_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray  # noqa: F401

    monkeypatch.delenv(LOOPBACK_VARIABLE, raising=False)
    with on_loopback():
        assert LOOPBACK_VARIABLE not in os.environ
