"""Scenes with a mailbox, without Ray: what is sent there, on an event loop that ends in time."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from trainers.gangs.mailbox import Mailbox
from trainers.gangs.messages import Assignment, GangUp, Served

LONG, SHORT = 30.0, 0.01
"""Seconds: a wait that has to be ended by what it waits for, and one that has to run out."""


def played(scene: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test of a scene with a mailbox, on an event loop of its own; a wait without an end fails it."""

    @functools.wraps(scene)
    def test(**given: Any) -> None:
        async def with_deadline() -> None:
            await asyncio.wait_for(scene(Mailbox(), **given), 10.0)

        asyncio.run(with_deadline())

    signature = inspect.signature(scene)
    others = [each for each in signature.parameters.values() if each.name != "mailbox"]
    test.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return test


async def settled(waiting: Awaitable[Any]) -> asyncio.Task[Any]:
    """Starts something and lets it run until it waits."""
    task = asyncio.ensure_future(waiting)
    for _ in range(10):
        await asyncio.sleep(0)
    return task


def assignment(trial: str = "trial") -> Assignment:
    return Assignment(trial_id=trial, hyperparameters={}, seed=1, start=0, stop=3, checkpoint=None, save_to="/nowhere")


def up(incarnation: str, gang: str = "gang", pid: int = 100) -> GangUp:
    return GangUp(
        gang=gang,
        incarnation=incarnation,
        pids=(pid,),
        hosts=(f"host-{pid}",),
        devices=("2 cores",),
        opening={"load": float(pid)},
    )


def refusal(message: str = "max_depth", gang: str = "gang") -> Served:
    return Served(gang=gang, trial_id="trial", error=message)


async def open_gang(mailbox: Mailbox, incarnation: str, gang: str = "gang", world_size: int = 2) -> None:
    """All ranks open; the driver hears of it."""
    for rank in range(world_size):
        await mailbox.opened(up(incarnation, gang), rank, world_size)
    assert [event.gang for event in await mailbox.exchange((), SHORT)] == [gang]
