"""Callbacks in Ray Train's controller of a gang: ours tells the driver of lost workers, two of Train's are left out.

Workers unpickle this too, with the rest of their run's configuration; so it imports nothing that only a driver needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray
from ray.train import UserCallback

from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import GangEnded, GangLost, one_line
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


def gang_trainer(serve: Callable[[dict[str, Any]], GangEnded | None], **settings: Any) -> Any:
    """Ray Train's trainer for a gang, which starts two processes fewer than Train's own (tested with ray 2.60).

    Train starts a process that hands out datasets, of which a gang has none, and one that removes the resources of a
    controller that died, which `Gang` does itself. Each takes 1.5 to 2 s of a processor while the gang starts and 100
    MB for as long as it lives, and what looks after controllers stays on a cluster when its controller is killed.

    Args:
        serve: what each worker runs.
        settings: of `ray.train.DataParallelTrainer`.
    """
    from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
    from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    class GangTrainer(DataParallelTrainer):
        def _create_default_callbacks(self) -> list[Any]:
            unused = (DatasetsCallback, PlacementGroupCleanerCallback)
            return [each for each in super()._create_default_callbacks() if not isinstance(each, unused)]

    return GangTrainer(serve, **settings)


def innermost(error: BaseException) -> str:
    """The first line of what an error of Ray's was raised for."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error)
