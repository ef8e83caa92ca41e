"""Gangs that begin with fewer workers than they were asked for, or with none that stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from ray.util import placement_group_table

from tests.support.failing import LosesAnActor
from tests.support.gangs import Pool
from tests.support.refusals import refuses
from tests.support.sharing import Waits
from trainers import GangError
from trainers.gangs.messages import GangEnded, GangUp


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


def test_another_gang_is_started_where_one_finds_an_actor_dead_while_it_opens(
    ray_cluster: None, tmp_path: Path
) -> None:
    """A controller that is killed while a gang opens looks like that to its workers."""
    others = set(placement_group_table())
    pool = Pool("opening", program=lambda workers: LosesAnActor(str(tmp_path / "opened")))
    try:
        ended = pool.until(lambda event: isinstance(event, GangEnded))
        assert isinstance(ended, GangEnded)
        assert not ended.final
        up = pool.until(lambda event: isinstance(event, GangUp))
        assert up.gang != ended.gang
        states = [row["state"] for name, row in placement_group_table().items() if name not in others]
        assert states.count("CREATED") == 1, "the first gang holds nothing any more"
    finally:
        pool.gangs.close()
