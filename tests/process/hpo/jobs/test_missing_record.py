"""A record in SQLite that is removed between a job's row in it and the start of the job's driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.jobs.launch import supervisor
from hpo.jobs.launch.supervisor import log_file
from tests.support.background import begin
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


@pytest.mark.fault
def test_a_background_driver_without_its_record_says_so_and_makes_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, start = home / "warmband.db", supervisor.start

    def start_without_record(*arguments: object) -> int:
        for path in home.glob("warmband.db*"):
            path.unlink()
        return start(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(supervisor, "start", start_without_record)
    with refuses(ConfigurationError, field="background", value=str(record), remedy="hpo resume background"):
        begin()
    mentions(log_file("background").read_text(), str(record), "hpo resume background")
    assert not list(home.glob("warmband.db*"))
