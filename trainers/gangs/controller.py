"""Callback in Ray Train's controller of a gang, which tells the driver of lost workers.

Workers unpickle this too, with the rest of their run's configuration; so it imports nothing that only a driver needs.
"""

from __future__ import annotations

from typing import Any

import ray
from ray.train import UserCallback

from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import GangLost, one_line
from trainers.process import end_surely


class TellLosses(UserCallback):
    """Tells the driver at once that workers died.

    Args:
        gang: whose run it is.
        mailbox: where its events go.
    """

    def __init__(self, gang: str, mailbox: MailboxHandle) -> None:
        self._gang = gang
        self._mailbox = mailbox

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled in the controller's process before anywhere else: the mailbox keeps the first that says so.
        end_surely()
        self.__dict__.update(state)
        self._mailbox.run_by(self._gang, ray.get_runtime_context().current_actor)

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        """Says which ranks died, and of what."""
        reasons = "; ".join(f"rank {rank}: {innermost(error)}" for rank, error in sorted(worker_exceptions.items()))
        self._mailbox.post(GangLost(gang=self._gang, reason=reasons))


def innermost(error: BaseException) -> str:
    """The first line of what an error of Ray's was raised for."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error)
