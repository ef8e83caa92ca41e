"""Trackers on a machine that has other things to do."""

import pytest

from hpo.trackers import tracker


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested for what it writes has time to."""
    monkeypatch.setattr(tracker, "CLOSE_SECONDS", 120.0)
    monkeypatch.setattr(tracker, "LONGEST_CLOSE_SECONDS", 240.0)
