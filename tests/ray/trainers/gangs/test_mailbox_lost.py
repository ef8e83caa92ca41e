"""The mailbox's process is killed: gangs begin anew with another, and what was being served is served again."""

from __future__ import annotations

from contextlib import suppress

import psutil
import pytest

from tests.support.cluster.ray_machines import until
from tests.support.gangs import Pool
from tests.support.refusals import refuses
from tests.support.sharing import Waits
from trainers import GangError

pytestmark = pytest.mark.fault

DEADLINE = 60.0


def mailboxes() -> set[psutil.Process]:
    """The processes of the mailboxes on this process's own Ray."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # It may have ended.
            if process.name().startswith("ray::Mailbox"):
                found.add(process)
    return found


def kill_its_mailbox(others: set[psutil.Process]) -> None:
    """Kills the one that is not among others, as soon as it is there."""
    until(lambda: mailboxes() - others, "the mailbox is there", DEADLINE)
    for process in mailboxes() - others:
        process.kill()
        process.wait(DEADLINE)


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
