"""Leaving of process groups: with a deadline where they are NCCL's, whose peers may wait on their GPUs for ever.

`_abort_process_group` is one of PyTorch's private functions, for want of a public one that aborts every group. Tested
with torch 2.13.0; tests/unit/trainers/pytorch/test_leaving.py fails where it is gone or changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _abort_process_group

from trainers.errors import GangError
from trainers.pytorch.devices import within

SECONDS = 15.0
"""How long it may take to leave NCCL's groups."""

EVERY_SECONDS = 1.0
"""How often a worker looks whether a peer has failed."""


def leave(device: torch.device, *, abort: bool = False, seconds: float = SECONDS) -> None:
    """Leaves all process groups of this process, if it has any: the user's code may have left them before.

    Args:
        device: of the worker.
        abort: peers may wait in a collective for this worker, or have done so: with NCCL, whose
            `destroy_process_group` waits for all workers, what is under way is broken off.
        seconds: how long NCCL may take.

    Raises:
        GangError: it took longer, or failed.
    """
    if not dist.is_initialized():
        return
    if device.type != "cuda":  # gloo: connections are closed, which its peers notice.
        dist.destroy_process_group()
    elif not within(seconds, _abort_process_group if abort else dist.destroy_process_group) and dist.is_initialized():
        raise GangError(f"NCCL's process group could not be left within {seconds:g} s")


class Watch:
    """Watches for a peer that fails, while this worker may wait on its GPU in a collective that never ends.

    gloo's peers notice by the closed connection. NCCL's would wait for their deadline, which then ends the process.
    Once aborted, the collective is over, and the next call of a group fails.

    Args:
        failed: whether a peer has; RuntimeError, if nobody can say any more, is taken for yes.
        abort: breaks off what is under way.
        every: seconds between two looks.
    """

    def __init__(
        self,
        failed: Callable[[], bool],
        abort: Callable[[], object] = _abort_process_group,
        every: float = EVERY_SECONDS,
    ) -> None:
        self._failed = failed
        self._abort = abort
        self._every = every
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._watch, name="peers-watch", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Watches no longer; waits for an abort that has begun."""
        self._over.set()
        self.thread.join(SECONDS)

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            try:
                failed = self._failed()
            except RuntimeError:
                failed = True  # Rank 0, which keeps the store, is gone.
            if failed:
                if dist.is_initialized():
                    self._abort()
                return
