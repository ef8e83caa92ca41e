"""Gangs that begin with fewer workers than they were asked for, or with none that stays."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.support.gangs import Pool
from tests.support.refusals import refuses
from tests.support.sharing import Waits
from trainers import GangError


class DiesAsItOpens(Waits):
    """As a worker does that runs out of memory while it loads its rows."""

    def open(self, context: Any) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


@pytest.mark.fault
def test_a_gang_whose_workers_are_never_ready_ends_with_what_helps(ray_cluster: None) -> None:
    """It earns its seconds: Ray Train starts workers again for ever, and nobody heard of it."""
    pool = Pool("dies", workers=1, program=lambda workers: DiesAsItOpens())
    try:
        pool.gangs.want({1: 1}, None)
        with refuses(GangError, field="lost", value=4, remedy=("memory", "hpo data check", "external_memory=True")):
            pool.until(lambda event: False, seconds=120.0)
    finally:
        pool.gangs.close()
