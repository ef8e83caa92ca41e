"""The mailbox: an actor between a driver and its gangs."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainers.gangs.messages import Event, GangEnded, GangLost, GangUp, Goodbye, Halt, Order, Served
from trainers.process import end_surely

NAMESPACE = "warmband"
"""Of the mailboxes' names, so that the jobs on one cluster find each other's."""

LOST_STARTS = 4
"""How often the workers of a gang are lost in a row without being ready; then it is over."""


@dataclass(slots=True)
class _Desk:
    """One gang's letters in the mailbox."""

    incarnation: str = ""
    opened: dict[str, dict[int, GangUp]] = field(default_factory=dict)
    number: int = 0
    order: Order | None = None
    closing: bool = False
    halted: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    refusals: dict[int, Served] = field(default_factory=dict)
    all_refused: asyncio.Event = field(default_factory=asyncio.Event)
    controller: list[Any] = field(default_factory=list)
    unwanted: bool = False
    lost_starts: int = 0
    """How often its workers have been lost since it was last up."""


class Mailbox:
    """Orders wait here for gangs, events wait here for the driver; every wait is a long poll with a deadline."""

    def __init__(self) -> None:
        end_surely()
        self._desks: dict[str, _Desk] = {}
        self._events: list[Event] = []
        self._arrived = asyncio.Event()
        self._claim: tuple[float, Any] | None = None

    # ---- what the job says to others

    async def claim(self, claim: Any) -> None:
        """Keeps what the job wants of the cluster; see `trainers.gangs.sharing.fair_share`."""
        self._claim = time.monotonic(), claim

    async def claims(self) -> tuple[float, Any] | None:
        """How many seconds ago the job said what it wants, and that; None if it has not."""
        return self._claim and (time.monotonic() - self._claim[0], self._claim[1])

    # ---- the driver's side

    async def order(self, gang: str, incarnation: str, order: Order) -> None:
        """Leaves an order for one incarnation of a gang; `Goodbye` is for every incarnation, now or later.

        `Halt` is for the assignment that was ordered last.
        """
        desk = self._desk(gang)
        if isinstance(order, Goodbye):
            desk.closing = True
        elif incarnation != desk.incarnation:
            return  # That worker group is gone; its GangLost is on the way to the driver.
        elif isinstance(order, Halt):
            desk.halted = True
            return
        desk.halted = False
        desk.number += 1
        desk.order = order
        desk.refusals.clear()
        desk.all_refused = asyncio.Event()
        desk.changed.set()
        desk.changed = asyncio.Event()

    async def exchange(self, orders: Sequence[tuple[str, str, Order]], timeout: float) -> list[Event]:
        """Leaves orders, as `order` does, and returns all events since the last call.

        Both in one call, since calls are what an assignment costs. Waits up to `timeout` seconds for an event.
        """
        for gang, incarnation, order in orders:
            await self.order(gang, incarnation, order)
        if not self._events:
            await _wait(self._arrived, timeout)
        self._arrived.clear()
        events, self._events = self._events, []
        return events

    async def kill(self, gang: str) -> None:
        """Ends the actor in which Train runs a gang, now or as soon as it has started."""
        desk = self._desk(gang)
        desk.unwanted = True
        if desk.controller:
            await _end(desk.controller)

    # ---- the gangs' side

    async def run_by(self, gang: str, actor: list[Any]) -> None:
        """The actor in which Train runs a gang, as a list with a reference to it; later ones that say so are not it."""
        desk = self._desk(gang)
        desk.controller = desk.controller or actor
        if desk.unwanted:
            await _end(desk.controller)

    async def fetch(
        self, gang: str, incarnation: str, seen: int, timeout: float, served: Served | None = None
    ) -> tuple[int, Order | None]:
        """The first order for this incarnation after number `seen`; (seen, None) if none came in `timeout` seconds.

        Rank 0 hands in what it has `served` with the same call.
        """
        if served is not None:
            await self.post(served)
        desk = self._desk(gang)
        while not desk.closing and (desk.incarnation != incarnation or desk.number <= seen or desk.order is None):
            if not await _wait(desk.changed, timeout):
                return seen, None
        return (desk.number, Goodbye()) if desk.closing else (desk.number, desk.order)

    async def halted(self, gang: str) -> bool:
        """Whether the assignment that a gang serves is to end with its next report."""
        return self._desk(gang).halted

    async def opened(self, up: GangUp, rank: int, world_size: int) -> None:
        """One rank is ready; once all are, the driver is told, with each rank's process and place."""
        desk = self._desk(up.gang)
        ranks = desk.opened.setdefault(up.incarnation, {})
        ranks[rank] = up
        if len(ranks) == world_size:
            del desk.opened[up.incarnation]
            desk.incarnation, desk.order, desk.halted, desk.lost_starts = up.incarnation, None, False, 0
            ups = [ranks[other] for other in range(world_size)]
            whole = replace(
                ranks[0],
                pids=tuple(pid for one in ups for pid in one.pids),
                nodes=tuple(node for one in ups for node in one.nodes),
                hosts=tuple(host for one in ups for host in one.hosts),
                devices=tuple(device for one in ups for device in one.devices),
            )
            await self.post(whole)

    async def post(self, event: Event) -> None:
        """Hands an event to the driver."""
        desk = self._desk(event.gang)
        if isinstance(event, GangLost):
            if not desk.incarnation:
                desk.lost_starts += 1
                if desk.lost_starts != LOST_STARTS:
                    return  # Told already, or the gang has not been up, and Train starts it again.
                event = _never_up(event)
            desk.incarnation = ""
        self._events.append(event)
        self._arrived.set()

    async def refuse(self, served: Served, rank: int, world_size: int, timeout: float) -> bool:
        """One rank's error on the current assignment.

        Only an error that every rank has is the trial's own: when a peer dies, or one rank's data is bad, the others
        break or hang in the collective instead.

        Where it has broken a worker, the driver hears in the same breath that the gang is lost, and gives it nothing.

        Returns:
            True once every rank has refused it, and the driver is told; False if not all have after `timeout` seconds.
        """
        desk = self._desk(served.gang)
        agreed = desk.all_refused
        desk.refusals[rank] = served
        if len(desk.refusals) == world_size:
            # Others may only have waited in vain for the one that cannot reach its checkpoint, or finds it spoilt.
            told = min(desk.refusals.items(), key=lambda item: (not item[1].away, not item[1].spoilt, item[0]))
            await self.post(told[1])
            if broken := [f"rank {other}" for other, refusal in sorted(desk.refusals.items()) if refusal.broken]:
                await self.post(GangLost(gang=served.gang, reason=f"{', '.join(broken)}: {told[1].error}"))
            agreed.set()
        return await _wait(agreed, timeout)

    def _desk(self, gang: str) -> _Desk:
        return self._desks.setdefault(gang, _Desk())


def _never_up(lost: GangLost) -> GangEnded:
    """The end of a gang that Train would start for ever."""
    return GangEnded(
        gang=lost.gang,
        error=f"its workers were lost {LOST_STARTS} times before they were ready, the last time with: {lost.reason} "
        "Where they end while they load their rows, memory is often short: `hpo data check` says what a worker loads, "
        "and more workers, or external_memory=True of XGBoostTrainer, take less each",
        final=True,
    )


async def _end(actor: list[Any]) -> None:
    with suppress(RayError):  # It may be gone, and the reference with it.
        ray.kill(await actor[0])


async def _wait(event: asyncio.Event, timeout: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except TimeoutError:
        return False
    return True


class MailboxHandle:
    """A typed, picklable handle to a `Mailbox` actor, for both sides."""

    def __init__(self, actor: Any, name: str) -> None:
        self._actor = actor
        self.name = name

    @classmethod
    def open(cls, job: str) -> MailboxHandle:
        """Starts the mailbox of a job, on the driver's node. It ends with the driver, or with `close`."""
        # On its machine, as the death of another must not take the mailbox along. The name ends in something random, as
        # a job that is resumed may come before the mailbox of the driver that died has gone.
        name = f"{job}-mailbox-{uuid.uuid4().hex[:4]}"
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = (
            ray.remote(num_cpus=0)(Mailbox)
            .options(name=name, namespace=NAMESPACE, max_concurrency=10_000, scheduling_strategy=here)
            .remote()
        )
        return cls(actor, name)

    @classmethod
    def of(cls, name: str) -> MailboxHandle:
        """Another job's.

        Raises:
            ValueError: there is none of that name.
        """
        return cls(ray.get_actor(name, namespace=NAMESPACE), name)

    def claim(self, claim: Any) -> None:
        """See `Mailbox.claim`; does not wait."""
        self._actor.claim.remote(claim)

    def claims(self) -> Any:
        """See `Mailbox.claims`; returns a reference to the answer."""
        return self._actor.claims.remote()

    def order(self, gang: str, incarnation: str, order: Order) -> None:
        """See `Mailbox.order`; does not wait."""
        self._actor.order.remote(gang, incarnation, order)

    def exchange(self, orders: Sequence[tuple[str, str, Order]], timeout: float) -> Sequence[Event]:
        """See `Mailbox.exchange`."""
        events: list[Event] = ray.get(self._actor.exchange.remote(orders, timeout), timeout=timeout + 60)
        return events

    def fetch(
        self, gang: str, incarnation: str, seen: int, timeout: float = 60.0, served: Served | None = None
    ) -> tuple[int, Order | None]:
        """See `Mailbox.fetch`."""
        answer: tuple[int, Order | None] = ray.get(
            self._actor.fetch.remote(gang, incarnation, seen, timeout, served), timeout=timeout + 60
        )
        return answer

    def halted(self, gang: str) -> Any:
        """See `Mailbox.halted`; does not wait, but returns a reference to the answer."""
        return self._actor.halted.remote(gang)

    def kill(self, gang: str) -> None:
        """See `Mailbox.kill`; does not wait."""
        self._actor.kill.remote(gang)

    def run_by(self, gang: str, actor: Any) -> None:
        """See `Mailbox.run_by`; does not wait."""
        # By reference: who reads a handle to an actor imports what its methods take, here all of Ray Train.
        self._actor.run_by.remote(gang, [ray.put(actor)])

    def opened(self, up: GangUp, rank: int, world_size: int) -> None:
        """See `Mailbox.opened`; does not wait."""
        self._actor.opened.remote(up, rank, world_size)

    def post(self, event: Event) -> None:
        """See `Mailbox.post`; does not wait."""
        self._actor.post.remote(event)

    def refuse(self, served: Served, rank: int, world_size: int, timeout: float) -> bool:
        """See `Mailbox.refuse`."""
        agreed: bool = ray.get(self._actor.refuse.remote(served, rank, world_size, timeout), timeout=timeout + 60)
        return agreed

    def close(self) -> None:
        """Ends the actor."""
        ray.kill(self._actor)
