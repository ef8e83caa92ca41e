"""Changes of a job as its watch reads them, feeds, and streams of events."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.testclient import TestClient

from hpo.record import JobRow, Store
from hpo.record.tables import LineRow
from hpo.serve.following.hub import LATELY
from hpo.serve.workers import Workers
from tests.support.hpo.serve.following import Client, _looked_at, _stream
from tests.support.recorded import record


class Costly(Client):
    """One to whom it takes 50 ms of the processor to send an event."""

    async def send(self, message: Any) -> None:
        until = time.thread_time() + 0.05 * (b"event: lines" in message.get("body", b""))
        while time.thread_time() < until:
            pass
        await super().send(message)


def test_the_more_it_takes_to_tell_all_who_listen_the_rarer_are_looks(store: Store) -> None:
    record(store, "runs", 4, ended=False)

    async def play() -> float:
        workers = Workers(2, 50, 10.0, "the database")
        hub, follower = await _looked_at(store, workers)
        clients = [Costly() for _ in range(3)]
        tasks = [asyncio.create_task(_stream(follower, each, "")) for each in clients]
        for each in clients:
            await each.until(b"event: hello")
        with store.writer("runs") as writer:
            writer.line(LineRow(job="runs", text="said", at=1.0))
            writer.flush()
        for each in clients:
            await each.until(b'"text":"said"')
        pause = follower._pause
        hub.close()
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        workers.close()
        return pause

    assert asyncio.run(play()) >= 0.02 + 4 * LATELY * 3 * 0.05


def test_a_job_that_takes_the_name_of_a_deleted_one_is_found_at_once(
    store: Store, client: TestClient, tokens: dict[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {tokens['look']}"}
    spec = store.job("bank").spec
    assert len(client.get("/api/jobs/bank/trials", headers=headers).json()["trials"]) == 3
    deleted = client.delete("/api/jobs/bank", headers={"Authorization": f"Bearer {tokens['act']}"})
    assert deleted.status_code == 200, deleted.text
    store.create_job(JobRow(name="bank", created_at=5.0, spec=spec))
    again = client.get("/api/jobs/bank/trials", headers=headers)
    assert (again.status_code, again.json().get("trials")) == (200, [])
    assert client.get("/api/jobs/banc", headers=headers).status_code == 404
