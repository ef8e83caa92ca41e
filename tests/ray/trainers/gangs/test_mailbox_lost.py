"""The mailbox's process is killed: gangs begin anew with another, and what was being served is served again."""

from __future__ import annotations

import pytest

from tests.support.gangs import Pool
from tests.support.refusals import refuses
from tests.support.sharing import Waits
from tests.support.trainers.gangs.mailbox_lost import DEADLINE, kill_its_mailbox, mailboxes
from trainers import GangError

pytestmark = pytest.mark.fault


def test_a_mailbox_that_is_lost_again_and_again_ends_the_job_which_says_how_to_go_on(ray_cluster: None) -> None:
    others = mailboxes()
    pool = Pool("short", workers=1, program=lambda workers: Waits(), notify=lambda line: None)
    try:
        for _ in range(2):
            kill_its_mailbox(others)
            pool.gangs.events(DEADLINE)
        kill_its_mailbox(others)
        with refuses(GangError, field=("actor", "lost"), value=3, remedy="hpo resume"):
            pool.gangs.events(DEADLINE)
    finally:
        pool.gangs.close()
