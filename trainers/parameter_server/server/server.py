"""One parameter server: its part of the parameters, its optimizer, and its waiting workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainers.errors import DivergedError, GangError, TrialError, WarmbandError
from trainers.parameter_server.opening import Opening, Options, pack_state
from trainers.parameter_server.server.line import Line
from trainers.parameter_server.server.pacing import Pacing
from trainers.parameter_server.wire import pack_number


class Waiting(Protocol):
    """Condition that a server waits on: a `threading.Condition`, or a simulation's."""

    def __enter__(self) -> Any:
        """Nobody else is in the server."""

    def __exit__(self, *error: Any) -> Any:
        """Others may be."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Lets others in until `predicate` holds; False if it does not after `timeout` seconds."""

    def notify_all(self) -> None:
        """Something changed."""


@dataclass(slots=True)
class Desk:
    """One worker's buffers on a server: gradients are received into them, and values sent from them.

    Args:
        gradients: the worker's last push, by layout.
        values: what it pulls, by layout.
        views: the gradients by parameter.
        rows: that its last push averages over.
        options: as the worker last said.
        waits: for the norm of the update that its last push is part of.
    """

    gradients: list[Tensor]
    values: list[Tensor]
    views: list[Tensor]
    rows: int = 0
    options: Options | None = None
    waits: bool = False


class Session:
    """One training on a server. All its methods are called by one thread at a time.

    Args:
        opening: what it begins with.
        name: of the server, for messages.
    """

    def __init__(self, opening: Opening, name: str) -> None:
        self.opening = opening
        self.pacing = Pacing(opening.settings)
        self.failure: WarmbandError | None = None
        self.gone: dict[int, WarmbandError] = {}
        self.values = opening.values
        self.met: list[Tensor] = []
        self.met_state = b""
        self.bytes = sum(layout.bytes for layout in opening.layouts)
        """Of all gradients, or all values."""
        rate = opening.settings.link_bytes_per_second
        self.up, self.down = Line(rate), Line(rate)
        """What pushes come over, and what answers to them go over; meetings take no time on either."""
        self._name = name
        self._bytes_pushed = 0
        self._bytes_pulled = 0
        self._waited = 0.0
        self._optimizer = opening.optimizer
        self._options: Options | None = None
        self._parted = opening.settings.num_servers > 1
        self._held = False
        """Whether there is an update that waits for the norm over all servers."""
        self._norm = 0.0
        places = [
            view for layout, buffer in zip(opening.layouts, self.values, strict=True) for view in layout.views(buffer)
        ]
        for parameter, place in zip(opening.parameters, places, strict=True):
            parameter.data = place
        self._sum = self._desk()
        self.desks = [self._desk() for _ in range(opening.settings.workers)]

    def push(self, rank: int, rows: int, options: Options | None) -> None:
        """Takes a worker's step; its gradients lie on its desk."""
        desk = self.desks[rank]
        desk.rows = rows
        if options is not None:
            desk.options = replace(options, groups=[options.groups[group] for group in self.opening.groups])
        desk.waits = desk.options is not None and desk.options.max_norm is not None and self._parted
        self._bytes_pushed += self.bytes if rows else 0
        self._update(self.pacing.push(rank, rows))

    def clip(self, norm: float) -> None:
        """Makes the update that waits for its norm over all servers; the first worker to come brings it."""
        if self._held and self._options is not None and self._options.max_norm is not None:
            self._held, whole = False, torch.tensor(norm, dtype=torch.float64)
            nn.utils.clip_grads_with_norm_(self.opening.parameters, self._options.max_norm, whole)
            self._step()

    def meet(self, rank: int, waited: float) -> None:
        """A worker is at the end of its pass; the last one to come settles what all leave with."""
        self._waited += waited
        before = self.pacing.meetings
        self._update(self.pacing.meet(rank))
        if self.pacing.meetings > before:
            self.met = [values.clone() for values in self.values]
            self._bytes_pulled += self.bytes * len(self.desks)
            try:
                self.met_state = pack_state(self._optimizer, self.opening.parameters)
            except Exception as error:
                name = type(self._optimizer).__name__
                self.fail(TrialError(f"{self._name}: the state of {name} cannot be sent: {error}"))

    def pull(self, rank: int, met: bool) -> bytes:
        """Puts the values on a worker's desk: as they are now, or as they were at the meeting.

        Returns:
            Where the update waits for the norm over all servers: this one's part of it, and the values wait as well.
        """
        desk = self.desks[rank]
        if desk.waits and not met:
            desk.waits = False
            return pack_number(self._norm)
        for mine, values in zip(desk.values, self.met if met else self.values, strict=True):
            mine.copy_(values)
        if not met:
            self._bytes_pulled += self.bytes
            self.pacing.pull(rank)
        return b""

    def account(self) -> dict[str, Any]:
        """The account so far; bytes are those of gradients and parameters, for all workers."""
        limited = self.opening.settings.link_bytes_per_second is not None
        return {
            "updates": self.pacing.updates,
            "pushes": self.pacing.pushes,
            "dropped": self.pacing.dropped,
            "staleness": {str(steps): count for steps, count in sorted(self.pacing.staleness.items())},
            "bytes_pushed": self._bytes_pushed,
            "bytes_pulled": self._bytes_pulled,
            "waiting_seconds": self._waited,
            **({"link_seconds": self.up.seconds + self.down.seconds} if limited else {}),
        }

    def obstacle(self, rank: int) -> WarmbandError | None:
        """Why a worker waits in vain, if it does."""
        if self.failure is not None:
            return self.failure
        missing = self.pacing.missing(rank) if self.gone else []
        return next((self.gone[other] for other in missing if other in self.gone), None)

    def fail(self, failure: WarmbandError) -> None:
        """Ends the training for all workers; that it diverged says more than anything else."""
        if self.failure is None or isinstance(failure, DivergedError):
            self.failure = failure

    def _update(self, ranks: Sequence[int]) -> None:
        if not ranks or self.failure is not None:
            return
        first = self.desks[ranks[0]]
        for parameter, gradient in zip(self.opening.parameters, self._combined(ranks).views, strict=True):
            parameter.grad = gradient
        if first.options is not None and first.options != self._options:
            self._options = first.options
            for group, options in zip(self._optimizer.param_groups, first.options.groups, strict=True):
                group.update(options)
        if self._options is not None and self._options.max_norm is not None:
            if self._parted:
                gradients = [parameter.grad for parameter in self.opening.parameters if parameter.grad is not None]
                self._held, self._norm = True, float(nn.utils.get_total_norm(gradients))
                return
            nn.utils.clip_grad_norm_(self.opening.parameters, self._options.max_norm)
        self._step()

    def _step(self) -> None:
        try:
            self._optimizer.step()
        except Exception as error:
            self.fail(TrialError(f"{self._name}: {type(self._optimizer).__name__} failed: {error}"))
            return
        for values in self.values:
            if not torch.isfinite(_sum(values)):
                self.fail(DivergedError(f"diverged: parameters are not finite after update {self.pacing.updates}"))

    def _combined(self, ranks: Sequence[int]) -> Desk:
        """The mean gradient over all rows of these workers, summed in their order."""
        if len(ranks) == 1:
            return self.desks[ranks[0]]
        total = sum(self.desks[rank].rows for rank in ranks)
        for index, summed in enumerate(self._sum.gradients):
            first, *others = (self.desks[rank] for rank in ranks)
            torch.mul(first.gradients[index], first.rows / total, out=summed)
            for other in others:
                summed.add_(other.gradients[index], alpha=other.rows / total)
        return self._sum

    def _desk(self) -> Desk:
        layouts = self.opening.layouts
        gradients = [layout.buffer() for layout in layouts]
        views = [view for layout, buffer in zip(layouts, gradients, strict=True) for view in layout.views(buffer)]
        return Desk(gradients, [layout.buffer() for layout in layouts], views)


class Server:
    """A server as its connections see it. Each worker makes one request at a time.

    Requests that change something return at once; `pull` waits until the worker may go on.

    Args:
        name: for messages, as in "parameter server 1".
        waiting: what it waits with.
    """

    def __init__(self, name: str, waiting: Waiting | None = None) -> None:
        self.name = name
        self._waiting: Waiting = waiting if waiting is not None else threading.Condition()
        self._session: Session | None = None

    def begin(self, opening: Opening) -> Session:
        """Begins a training, for rank 0; what was before is over."""
        with self._waiting:
            if self._session is not None:
                self._session.fail(GangError(f"{self.name} has begun another training"))
            self._session = session = Session(opening, self.name)
            self._waiting.notify_all()
        return session

    def join(self, name: str) -> Session:
        """The training of this name, which rank 0 has begun.

        Raises:
            GangError: it is over.
        """
        with self._waiting:
            if self._session is None or self._session.opening.session != name:
                raise GangError(f"{self.name} serves another training")
            return self._session

    def push(self, session: Session, rank: int, rows: int, options: Options | None) -> None:
        """See `Session.push`."""
        with self._waiting:
            session.push(rank, rows, options)
            # Who has to wait itself was not what others waited for, and waking them all for nothing is dear.
            if session.failure is not None or not session.pacing.missing(rank):
                self._waiting.notify_all()

    def carry(self, session: Session, line: Line, size: int) -> None:
        """Waits until so many bytes would have come over one of the session's lines.

        Raises:
            TrialError: that takes longer than workers wait.
        """
        patience = session.opening.patience
        with self._waiting:
            now = time.monotonic()
            seconds = line.carry(size, now) - now
            if seconds > patience:
                rate = session.opening.settings.link_bytes_per_second
                session.fail(
                    TrialError(
                        f"hyperparameter 'link_bytes_per_second' {rate:g}: {size} bytes arrive at {self.name} after "
                        f"{seconds:.0f} s, longer than the {patience:g} s that workers wait; give more bytes a second"
                    )
                )
                self._waiting.notify_all()
            elif seconds:
                self._waiting.wait_for(lambda: session.failure is not None, seconds)
            if session.failure is not None:
                raise session.failure

    def meet(self, session: Session, rank: int, waited: float) -> None:
        """See `Session.meet`."""
        with self._waiting:
            session.meet(rank, waited)
            self._waiting.notify_all()

    def clip(self, session: Session, norm: float) -> None:
        """See `Session.clip`."""
        with self._waiting:
            session.clip(norm)

    def pull(self, session: Session, rank: int, met: bool = False) -> bytes:
        """Waits until a worker may go on, and puts the values on its desk; see `Session.pull`.

        Raises:
            DivergedError: the parameters are not finite.
            GangError: a worker that it waits for is gone.
            TrialError: one ended its training, or did not come within the training's patience.
        """
        patience = session.opening.patience
        with self._waiting:
            came = self._waiting.wait_for(
                lambda: session.obstacle(rank) is not None or not session.pacing.missing(rank), patience
            )
            obstacle = session.obstacle(rank)
            if obstacle is not None:
                raise obstacle
            if not came:
                what = "the end of a pass" if met else "a step"
                raise TrialError(
                    f"rank {rank} waited {f'{patience:g} s' if patience else 'in vain'} at {self.name} for {what} of "
                    f"ranks {session.pacing.missing(rank)}; every rank has to step and synchronize() as often"
                )
            return session.pull(rank, met)

    def account(self, session: Session) -> dict[str, Any]:
        """See `Session.account`."""
        with self._waiting:
            return session.account()

    def gone(self, session: Session, rank: int, failure: WarmbandError) -> None:
        """A worker takes no further part; whoever waits for it, now or later, is told `failure`.

        That the training diverged everybody is told at once.
        """
        with self._waiting:
            session.gone[rank] = failure
            if isinstance(failure, DivergedError):
                session.fail(failure)
            self._waiting.notify_all()


def _sum(values: Tensor) -> Tensor:
    return values.sum(dtype=torch.float32) if values.dtype.itemsize < 4 else values.sum()
