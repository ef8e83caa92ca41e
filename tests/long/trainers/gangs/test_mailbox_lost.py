"""The mailbox's process is killed: gangs begin anew with another, and what was being served is served again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ray.util import placement_group_table

from tests.support.assignments import assignment
from tests.support.cluster.ray_machines import until
from tests.support.gangs import Pool
from tests.support.refusals import mentions
from tests.support.sharing import Waits
from tests.support.trainers.gangs.mailbox_lost import DEADLINE, kill_its_mailbox, mailboxes
from trainers.gangs.messages import GangEnded, GangUp, Served

pytestmark = pytest.mark.fault


def test_a_job_goes_on_when_its_mailbox_is_killed_as_its_gang_starts_and_as_it_serves(ray_cluster: None) -> None:
    others, told = mailboxes(), list[str]()
    pool = Pool("lost", workers=1, program=lambda workers: Waits(), notify=told.append)
    try:
        pool.gangs.want({1: 1}, None)
        assert pool.gangs.starting == 1
        kill_its_mailbox(others)
        ended = pool.until(lambda event: isinstance(event, GangEnded))
        [gang] = pool.start(1)
        assert gang != ended.gang

        long = assignment(trial_id="a", stop=600)
        pool.gangs.assign(gang, long)
        assert pool.gangs.events(0.5) == []  # It is handed out, and takes a minute.
        kill_its_mailbox(others)
        assert pool.until(lambda event: isinstance(event, GangEnded)).gang == gang
        again = pool.until(lambda event: isinstance(event, GangUp))
        assert again.gang not in (gang, ended.gang)
        pool.gangs.assign(again.gang, replace(long, stop=1))
        served = pool.until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        assert served.segment is not None
    finally:
        pool.gangs.close()
    assert len(told) == 2
    for line in told:
        mentions(line, "actor", "lost", "rungs")
    assert all(row["state"] == "REMOVED" for row in placement_group_table().values())
    until(lambda: mailboxes() <= others, "the last mailbox has ended", DEADLINE)
