"""Updates through parameter servers: a worker's pushes and pulls at each step."""

from __future__ import annotations

import math
import random
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.errors import DivergedError, GangError, TrialError, WarmbandError
from trainers.gangs import one_line
from trainers.parameter_server.clock import Clock, WallClock
from trainers.parameter_server.flat import Block
from trainers.parameter_server.opening import Opening, Options, check, groups_of, restricted, take_state
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.sharding import spread
from trainers.parameter_server.wire import unpack_number
from trainers.pytorch import (
    Communication,
    Distribution,
    HostClock,
    MicroBatch,
    Mixed,
    ModelPlan,
    Peers,
    SetUp,
    share,
    trained,
    weighed,
)

PATIENCE_SECONDS = 600.0


class Link(Protocol):
    """A worker's way to one server. It does not wait for what it asks with `push`, `clip` and `meet`; `pull` does.

    Raises:
        DivergedError: the parameters are not finite.
        GangError: the server is gone, or a worker that this one waits for.
        TrialError: another worker ended its training, or did not come in time.
    """

    name: str

    def begin(self, opening: Opening, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Begins a training, on rank 0; later pushes send `gradients`, and pulls fill `values`."""

    def join(self, session: str, patience: float, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Takes part in what rank 0 has begun, on the other ranks."""

    def push(self, rows: int, options: Options | None) -> None:
        """Sends the gradients, averaged over so many rows; no rows and no gradients are a step that changes nothing."""

    def clip(self, norm: float) -> None:
        """Behind a push whose answer was a norm: that of the whole update's gradient, of all servers together."""

    def meet(self, waited: float) -> None:
        """Says that this worker is at the end of its pass, and how many seconds it waited in it."""

    def pull(self) -> bytes:
        """Waits until this worker may go on, with the values; after a meeting rank 0 gets the optimizer's state too.

        After a push that is clipped over several servers: the norm of this one's part, and no values yet.
        """

    def account(self) -> dict[str, Any]:
        """The server's account so far; after `leave` too."""

    def leave(self, failure: WarmbandError) -> None:
        """Takes no further part; who waits for this worker is told `failure`. A server that is gone is no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """One server's part of the model: its parameters, in the order of its blocks, and how to reach it."""

    link: Link
    blocks: list[Block]
    parameters: list[Tensor]

    def buffers(self) -> tuple[list[Tensor], list[Tensor]]:
        """Buffers to send from and receive into: gradients and values, by block."""
        return [block.gradients for block in self.blocks], [block.values for block in self.blocks]


class ServerDistribution(Distribution):
    """Updates through parameter servers: they hold parameters and optimizer, and each step pushes and pulls at once.

    The first update begins it: rank 0 sends its parameters, and its optimizer with its state. Every parameter that the
    optimizer has and that requires a gradient is trained; one that got none in a step counts as having zeros. What a
    worker writes into its parameters itself is overwritten by the next pull.

    Args:
        peers: the gang.
        links: to the servers, in the same order on every worker; `settings.num_servers` of them.
        settings: how pushes become updates.
        seed: the trial's; of the delays.
        start: pushes that this worker made in the trial's earlier segments, so that delays go on where they were.
        clock: what delays pass on.
        patience: seconds that a worker waits for another.
    """

    def __init__(
        self,
        *,
        peers: Peers,
        links: Sequence[Link],
        settings: Settings,
        seed: int,
        start: int = 0,
        clock: Clock | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.mixed = Mixed()
        self._peers = peers
        self._links = list(links)
        self._settings = settings
        self._seed = seed
        self._pushes = start
        self._clock: Clock = clock or WallClock()
        self.communication = Communication(HostClock(self._clock.now))
        self._patience = patience
        self._optimizer: Optimizer | None = None
        self._models: list[nn.Module] = []
        self._shards: list[_Shard] = []
        self._options: Options | None = None
        self._waited = 0.0
        self._failure: WarmbandError | None = None
        self._open = True

    @property
    def workers_an_update(self) -> int:
        """See `Distribution.workers_an_update`."""
        return self._settings.workers_an_update

    @property
    def pushes(self) -> int:
        """Pushes that this worker made over the trial's life, ticks among them: `start` of the next segment."""
        return self._pushes

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """See `Distribution.wrap`."""
        set_up(model)
        self._models.append(model)
        share(self._peers, [*model.parameters(), *model.buffers()])

    @property
    def together(self) -> None:
        """See `Distribution.together`; workers meet at the servers alone."""
        return

    @property
    def takes_wrappers(self) -> bool:
        """See `Distribution.takes_wrappers`: the servers would not hear of their gradients."""
        return False

    @property
    def takes_own_steps(self) -> bool:
        """See `Distribution.takes_own_steps`: the servers would not hear of one."""
        return False

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`; the servers weight workers against each other."""
        self.communication.begin(loss.device)
        weighed(loss, micro.rows / micro.update_rows if micro.update_rows else 0.0, inputs)

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """See `Distribution.update`."""
        self._begin(optimizer)
        parameters = trained(optimizer)
        with self.mixed.handed_over(parameters):
            finite = self.mixed.unscaled(parameter.grad for parameter in parameters)
            if max_norm is not None:
                max_norm = self._clipped(optimizer, max_norm)
            for shard in self._shards:
                for block in shard.blocks:
                    block.collect()
        self.mixed.clear(parameters)
        options = Options(groups=groups_of(optimizer), max_norm=max_norm)
        changed = options if options != self._options else None
        self._options = options
        self._clock.step(self._pushes, self._delay())
        self._pushes += 1
        before = self._clock.now()
        rows = micro.update_rows if finite else 0  # An overflow of this worker's is no update of the others'.
        with self.communication.waiting:
            norms = self._exchange(lambda link: link.push(rows, changed))
            if max_norm is not None and len(self._shards) > 1:
                whole = math.hypot(*map(unpack_number, norms))
                self._exchange(lambda link: link.clip(whole))
        self._waited += self._clock.now() - before
        size = sum(block.layout.bytes for shard in self._shards for block in shard.blocks)
        self.communication.bytes += size * (2 if micro.update_rows else 1)  # A push without rows has no gradients.
        for shard in self._shards:
            for block in shard.blocks:
                block.zero()
        self.communication.end()

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`; buffers, such as those of batch normalisation, are those of rank 0 too."""
        self.communication.pause()
        if optimizer is None:
            self._peers.meet("the end of a pass")
        else:
            self._begin(optimizer)
            states = self._exchange(lambda link: link.meet(self._waited))
            self._waited = 0.0
            if self._peers.rank == 0:
                for shard, state in zip(self._shards, states, strict=True):
                    take_state(optimizer, shard.parameters, state)
        with torch.no_grad():
            share(self._peers, [buffer for model in self._models for buffer in model.buffers()])

    def close(self) -> dict[str, Any]:
        """See `Distribution.close`; a second call does nothing. Others who wait hear of an error that is raised."""
        if not self._open:
            return {}
        self._open = False
        try:
            return self._details() if self._shards and self._peers.rank == 0 else {}
        finally:
            self._leave(self._reason(sys.exception()))

    def _clipped(self, optimizer: Optimizer, max_norm: float) -> float | None:
        """Clips here what is all of an update's gradient, and leaves the rest to the servers that add it up.

        Raises:
            TrialError: servers may each add up other workers' gradients.
        """
        if self._settings.workers_an_update == 1:
            nn.utils.clip_grad_norm_(trained(optimizer), max_norm)
            return None
        if self._settings.num_servers > 1 and self._settings.backup_workers:
            raise TrialError(
                f"context.step(max_norm={max_norm:g}) with mode 'sync', num_servers {self._settings.num_servers} and "
                f"backup_workers {self._settings.backup_workers}: each server may leave out another worker, so that no "
                "update has one norm; use num_servers 1, or backup_workers 0"
            )
        return max_norm

    def _begin(self, optimizer: Optimizer) -> None:
        check(optimizer)
        if self._optimizer is optimizer:
            return
        if self._optimizer is not None:
            raise TrialError(
                "the training function steps with two optimizers, and parameter servers train with one; "
                "give one optimizer several parameter groups"
            )
        self._optimizer, self._shards = optimizer, self._shard(optimizer)
        begun = self._peers.gather(self._begin_servers(optimizer) if self._peers.rank == 0 else None)[0]
        try:
            if isinstance(begun, WarmbandError):
                raise begun
            if self._peers.rank != 0:
                for shard in self._shards:
                    shard.link.join(begun, self._patience, *shard.buffers())
        except WarmbandError as error:
            self._failure = error
            raise
        # What LRScheduler looks for; it would warn that nobody called `optimizer.step()`, which the servers do.
        optimizer._opt_called = True  # type: ignore[attr-defined]

    def _begin_servers(self, optimizer: Optimizer) -> str | WarmbandError:
        """The new training's name, or why there is none: every rank has to hear of it."""
        session = uuid.uuid4().hex
        try:
            for shard in self._shards:
                shard.link.begin(self._opening(session, optimizer, shard), *shard.buffers())
        except WarmbandError as error:
            return error
        except Exception as error:
            name = type(optimizer).__name__
            return TrialError(f"optimizer {name} cannot be sent to parameter servers: {type(error).__name__}: {error}")
        return session

    def _shard(self, optimizer: Optimizer) -> list[_Shard]:
        parameters = trained(optimizer)
        sizes = [parameter.numel() * parameter.dtype.itemsize for parameter in parameters]
        homes = spread(sizes, self._settings.num_servers)
        shards = []
        for server, link in enumerate(self._links[: self._settings.num_servers]):
            kinds: dict[Any, list[Tensor]] = {}
            for parameter, home in zip(parameters, homes, strict=True):
                if home == server:
                    kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
            parts = [parameter for kind in kinds.values() for parameter in kind]
            shards.append(_Shard(link=link, blocks=[*map(Block, kinds.values())], parameters=parts))
        return shards

    def _opening(self, session: str, optimizer: Optimizer, shard: _Shard) -> Opening:
        part, groups, stand_ins = restricted(optimizer, shard.parameters)
        return Opening(
            session=session,
            settings=self._settings,
            patience=self._patience,
            optimizer=part,
            groups=groups,
            layouts=tuple(block.layout for block in shard.blocks),
            parameters=stand_ins,
            values=[block.current() for block in shard.blocks],
        )

    def _exchange(self, ask: Callable[[Link], None]) -> list[bytes]:
        """Asks all servers, then hears all: none has to wait for another's answer, and none is left unheard."""
        if self._failure is not None:
            raise self._failure
        asked: list[_Shard] = []
        notes: list[bytes] = []
        failures: list[WarmbandError] = []
        for shard in self._shards:
            try:
                ask(shard.link)
                asked.append(shard)
            except WarmbandError as error:
                failures.append(error)
        for shard in asked:
            try:
                notes.append(shard.link.pull())
            except WarmbandError as error:
                failures.append(error)
        if failures:
            self._failure = min(failures, key=_gravity)
            self._leave(self._failure)
            raise self._failure
        for shard in self._shards:
            for block in shard.blocks:
                block.spread()
        return notes

    def _leave(self, failure: WarmbandError) -> None:
        for shard in self._shards:
            shard.link.leave(failure)

    def _reason(self, error: BaseException | None) -> WarmbandError:
        """The message to workers that wait for this one, now that it has ended, because of an error or without one."""
        if isinstance(error, DivergedError | GangError):
            return error
        if error is None:
            return TrialError(f"rank {self._peers.rank} ended its training while others waited for it")
        return TrialError(f"rank {self._peers.rank} failed: {one_line(error)}")

    def _details(self) -> dict[str, Any]:
        """The servers' accounts; of steps, that of the server that holds most, since all workers push to each."""
        try:
            accounts = [shard.link.account() for shard in self._shards]
        except WarmbandError:
            return {}  # After an error there may be no server to ask.
        elements = [sum(block.layout.elements for block in shard.blocks) for shard in self._shards]
        details = accounts[elements.index(max(elements))]
        details |= {name: sum(account[name] for account in accounts) for name in ("bytes_pushed", "bytes_pulled")}
        details |= {"mode": self._settings.mode, "servers": elements, "clock": self._clock.name}
        details |= {"server_placement": self._settings.placement}
        if self._settings.delayed:
            details["delay"] = f"simulated: mean ms a worker {[*self._settings.delay_ms]}"
        if self._settings.link_bytes_per_second is not None:
            details["link"] = f"simulated: {self._settings.link_bytes_per_second:.15g} bytes a second each way"
            details["link_seconds"] = sum(account["link_seconds"] for account in accounts)
        return {"parameter_server": details}

    def _delay(self) -> float:
        """Seconds, drawn from the trial's seed, this worker and the number of its push."""
        mean = self._settings.delay_ms[self._peers.rank] / 1000
        if not mean:
            return 0.0
        return random.Random(f"{self._seed}/{self._peers.rank}/{self._pushes}").expovariate(1 / mean)


def _gravity(failure: WarmbandError) -> int:
    """Which of several errors is raised: that a training diverged says most, that a peer ended least."""
    return (isinstance(failure, DivergedError), isinstance(failure, GangError), True).index(True)
