"""Clients and streams that follow a job."""

from __future__ import annotations

import asyncio
from typing import Any

from hpo.record import Store
from hpo.serve.following import EventStream, Follower, Hub, HubTimes
from hpo.serve.workers import Workers


class Client:
    """A client of a stream, as ASGI has it; one that `stands` still takes nothing after the head."""

    def __init__(self, *, stands: bool = False) -> None:
        self.sent, self.stands = b"", stands
        self.left = asyncio.Event()

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if self.stands and message["type"] == "http.response.body":
            await asyncio.sleep(3600)
        self.sent += message.get("body", b"")

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(20):
            while text not in self.sent:
                await asyncio.sleep(0.01)


async def _looked_at(store: Store, workers: Workers) -> tuple[Hub, Follower]:
    """A hub that has looked once at the job "runs"."""
    hub = Hub(lambda: store, workers, HubTimes(look=0.02))
    follower = hub.job("runs")
    await follower.fresh()
    return hub, follower


async def _stream(follower: Any, client: Client, last: str, dropped: list[Any] | None = None) -> None:
    gone: list[Any] = [] if dropped is None else dropped
    stream = EventStream(follower, last, send_seconds=10.0 if dropped is None else 0.2, dropped=gone.append)
    await stream({"type": "http", "client": ("127.0.0.1", 1)}, client.receive, client.send)
