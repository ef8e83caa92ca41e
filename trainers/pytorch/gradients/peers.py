"""Peers of a worker: its process group, and meetings with deadlines."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore

from trainers.errors import BrokenWorkerError, GangError, TrialError
from trainers.gangs import WorkerContext, one_line
from trainers.pytorch.distribution import Peers
from trainers.pytorch.gradients.environment import Environment, free_port, network, variables
from trainers.pytorch.gradients.leaving import Watch, leave

_SAID = "\n"
"""At the end of what rank 0 comes to a meeting with: that it says yes, to whatever the others take that for."""
_FAILED = "failed"
"""Key that the worker sets which fails first; its value is the reason."""
_COLLECTIVE = ("Timed out waiting", "timed out", "Connection closed by peer", "Connection reset by peer", "gloo")
"""What errors of collectives say whose other ranks do not come."""
_DESTROYED = "destroyed"
"""Key that a worker sets which has no group any more."""


class Alone:
    """A worker without peers; see `trainers.pytorch.distribution.Peers`."""

    rank = 0
    world_size = 1

    def sum(self, values: Tensor) -> Tensor:
        """The values."""
        return values.clone()

    def broadcast(self, values: Tensor) -> None:
        """Nothing to do."""

    def gather(self, value: Any) -> list[Any]:
        """The value."""
        return [value]

    def meet(self, what: str, answer: bool = False) -> bool:
        """Nobody to wait for."""
        return answer


class ProcessGroup:
    """A gang's process group: gloo between CPUs, NCCL between GPUs, joined once and used by every trial.

    Before each of its own collectives all workers meet through a key-value store, which unlike a collective can say who
    is missing, and pass on that a worker failed.

    Args:
        context: of the worker; every rank makes a group at the same time.
        device: what the worker trains on.
        timeout_s: how long workers wait for each other, in seconds.
    """

    def __init__(self, context: WorkerContext, device: torch.device, timeout_s: float) -> None:
        self.rank = context.rank
        self.world_size = context.world_size
        self._device = device
        self._timeout_s = timeout_s
        self._meetings = 0
        self._broken = False
        self._generation = 0
        timeout = timedelta(seconds=timeout_s)
        home, store = None, None
        if self.rank == 0:
            store = TCPStore(
                context.node_ip, 0, self.world_size, is_master=True, wait_for_workers=False, timeout=timeout
            )
            home = (context.node_ip, store.port, uuid.uuid4().hex, free_port(context.node_ip))
        address, port, self._name, free = context.broadcast(home)
        self._store = store or TCPStore(address, port, is_master=False, timeout=timeout)
        self._environment = Environment({**network(context.node_ip), **variables(context, address, free)})
        # While a thread waits for a key, others wait for the connection.
        on_gpus = self.world_size > 1 and device.type == "cuda"
        self._watched = TCPStore(address, port, is_master=False, timeout=timeout) if on_gpus else None
        self._watch: Watch | None = None
        self._join()

    def _join(self) -> None:
        name = f"{self._name}/{self._generation}"
        dist.init_process_group(
            "nccl" if self._device.type == "cuda" else "gloo",
            store=PrefixStore(f"{name}/group", self._store),
            rank=self.rank,
            world_size=self.world_size,
            timeout=timedelta(seconds=self._timeout_s),
        )
        self._meeting = PrefixStore(f"{name}/meeting", self._store)
        self._meetings = 0
        if self._watched is not None:
            meeting = PrefixStore(f"{name}/meeting", self._watched)
            self._watch = Watch(lambda: bool(meeting.check([_FAILED])))

    def _leave(self, *, abort: bool = False) -> None:
        if self._watch is not None:
            self._watch.stop()
        leave(self._device, abort=abort)

    @property
    def generation(self) -> int:
        """How often the group was made anew; groups of its workers are gone with it."""
        return self._generation

    def sum(self, values: Tensor) -> Tensor:
        """See `Peers.sum`."""
        total = values.detach().clone().to(self._device)
        if self.world_size > 1:
            self.meet(f"context.sum() of {_kind(total)}")
            dist.all_reduce(total)
        return total

    def broadcast(self, values: Tensor) -> None:
        """See `Peers.broadcast`."""
        if self.world_size > 1:
            self.meet(f"the parameters of rank 0, {_kind(values)}")
            dist.broadcast(values, 0)

    def gather(self, value: Any) -> list[Any]:
        """See `Peers.gather`."""
        if self.world_size == 1:
            return [value]
        self.meet("every worker's state")
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def meet(self, what: str, answer: bool = False) -> bool:
        """See `Peers.meet`."""
        if self.world_size == 1:
            return answer
        number, self._meetings = self._meetings, self._meetings + 1
        # What each waits for is compared: one worker in report() and another in sum() would wait for ever.
        self._meeting.set(f"{number}/{self.rank}", what + _SAID * (answer and self.rank == 0))
        if self._meeting.add(f"{number}/count", 1) == self.world_size:
            self._meeting.set(f"{number}/end", self._outcome(number))
        try:
            end = self._meeting.get(f"{number}/end").decode()
        except RuntimeError as error:
            missing = [rank for rank in range(self.world_size) if not self._meeting.check([f"{number}/{rank}"])]
            raise TrialError(
                f"rank {self.rank} waited {self._timeout_s:g} s in {what} for ranks {missing}; every rank has to call "
                "report() after every epoch, and sum() and synchronize() as often as the others"
            ) from error
        if end not in ("", _SAID):
            raise TrialError(end)
        return end == _SAID

    def failed(self, error: Exception, let_go: Callable[[], None] = lambda: None) -> Exception:
        """Takes the group apart, since this worker will not come: peers that wait for it fail too.

        Args:
            error: why.
            let_go: lets go of all that keeps the connections of groups, once peers can find out why.

        Returns:
            The error to raise: that of the worker that failed first, which the others only followed; or one that says
            that this worker is broken, where it cannot leave the group.
        """
        self._broken = True
        if self.world_size == 1:
            return error
        of_its_own = isinstance(error, TrialError)  # Others may have failed first where it is not.
        error = self._placed(error)
        reason = f"rank {self.rank} failed: {one_line(error)}"
        try:
            first = self._meeting.compare_set(_FAILED, "", reason).decode()
            self._meeting.set(f"{self._meetings}/end", reason)
        except RuntimeError:
            first = reason  # Rank 0, which keeps the store, is gone.
        let_go()
        try:
            self._leave(abort=True)
        except GangError:
            return BrokenWorkerError(first)
        own = first == reason or of_its_own
        return error if own else TrialError(first)

    def _placed(self, error: Exception) -> Exception:
        """Return the error of a collective of the function's own with what the other ranks wait for meanwhile."""
        if isinstance(error, TrialError) or not any(sign in str(error) for sign in _COLLECTIVE):
            return error
        places = []
        with suppress(RuntimeError):  # Rank 0, which keeps the store, is gone.
            for rank in range(self.world_size):
                if rank != self.rank and self._meeting.check([f"{self._meetings}/{rank}"]):
                    what = self._meeting.get(f"{self._meetings}/{rank}").decode().removesuffix(_SAID)
                    places.append(f"rank {rank} waited in {what}")
        meanwhile = f", while {' and '.join(places)}" if places else ""
        return TrialError(
            f"rank {self.rank} waited for other ranks in a collective of the function's own{meanwhile}: "
            f"{one_line(error)}; let every rank take as many steps, as context.prepare_data() deals them out, or train "
            "within model.join() of DistributedDataParallel"
        )

    def ready(self) -> None:
        """Makes the group anew if the last assignment failed."""
        if self._broken:
            self._broken = False
            self._generation += 1
            if self.world_size == 1:
                self._leave()
            self._join()

    def mend(self) -> None:
        """Makes the group anew where the user's code has destroyed it, be it on one worker; all of them call it."""
        if not dist.is_initialized():
            self._meeting.set(_DESTROYED, "")
        self.meet("the end of its assignment")
        if self._meeting.check([_DESTROYED]):
            self._leave()
            self._generation += 1
            self._join()

    def close(self) -> None:
        """Leaves the group."""
        if not self._broken or self.world_size == 1:
            with suppress(GangError):  # The process ends as well.
                self._leave()
        self._environment.restore()

    def _outcome(self, number: int) -> str:
        """Rank 0's answer, marked as such; or how the workers disagree."""
        came = [self._meeting.get(f"{number}/{rank}").decode() for rank in range(self.world_size)]
        calls = [what.removesuffix(_SAID) for what in came]
        if len(set(calls)) == 1:
            return _SAID * (came[0] != calls[0])
        places = ", ".join(f"rank {rank} in {what}" for rank, what in enumerate(calls))
        return f"the workers went different ways: {places}; every rank has to call the same methods in the same order"


def _kind(values: Tensor) -> str:
    """The shape and type of numbers that all workers have to come with: gloo ends the process of one with fewer."""
    return f"{'x'.join(map(str, values.shape)) or 'one'} {str(values.dtype).removeprefix('torch.')}"


def share(peers: Peers, tensors: Sequence[Tensor]) -> None:
    """Gives all workers rank 0's tensors, with one broadcast for each type of number."""
    kinds: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
    for kind in kinds.values():
        together = torch.cat([tensor.reshape(-1) for tensor in kind])
        peers.broadcast(together)
        for tensor, part in zip(kind, torch.split(together, [tensor.numel() for tensor in kind]), strict=True):
            tensor.copy_(part.view(tensor.shape))
