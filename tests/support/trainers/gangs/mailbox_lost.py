"""The processes of mailboxes on this process's own Ray, and the death of one of them."""

from __future__ import annotations

from contextlib import suppress

import psutil

from tests.support.cluster.ray_machines import until

DEADLINE = 60.0


def mailboxes() -> set[psutil.Process]:
    """Return the processes of the mailboxes on this process's own Ray."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # It may have ended.
            if process.name().startswith("ray::Mailbox"):
                found.add(process)
    return found


def kill_its_mailbox(others: set[psutil.Process]) -> None:
    """Kill the mailbox that is not among others, as soon as it is there."""
    until(lambda: mailboxes() - others, "the mailbox is there", DEADLINE)
    for process in mailboxes() - others:
        process.kill()
        process.wait(DEADLINE)
