"""Changes of a job as its watch reads them, feeds, and streams of events."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hpo.record import ReportRow, Store, TrialRow
from hpo.record.tables import LineRow
from hpo.serve import ServeSettings, Tokens
from hpo.serve.errors import RefusedError
from hpo.serve.following import HubTimes
from hpo.serve.following.feed import MOST_EVENTS, Feed, Position
from hpo.serve.security.tokens import Who, digest
from hpo.serve.service import Service
from hpo.serve.shared import Shared
from hpo.serve.workers import Workers
from tests.support.hpo.serve.following import Client, _looked_at, _stream
from tests.support.recorded import record
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


def test_a_watch_tells_each_change_once(store: Store) -> None:
    record(store, "runs", 8, ended=False)
    watch = store.watch("runs")
    assert watch.look().job
    assert not watch.look()
    known = {row.trial_id: len(store.reports("runs", row.trial_id)) for row in store.trials("runs")}
    for number in range(2):  # Two drivers, one after the other, whose ids have nothing in common.
        with store.writer("runs") as writer:
            trial = TrialRow(job="runs", trial_id=f"new-{number}", number=100 + number, status="Running")
            writer.trial(trial)
            writer.report(*(_report(trial.trial_id, step) for step in (1, 2)))
            writer.line(LineRow(job="runs", text=f"line {number}", at=5.0 + number))
            writer.flush()
            changes = watch.look()
            assert [row.trial_id for row in changes.trials] == [trial.trial_id]
            assert [(row.trial_id, row.step) for row in changes.reports] == [(trial.trial_id, 1), (trial.trial_id, 2)]
            assert [row.text for row in changes.lines] == [f"line {number}"]
            writer.report(_report(trial.trial_id, 3))
            writer.flush()
            assert [row.step for row in watch.look().reports] == [3]
            writer.trial(replace(trial, status="Completed", ended_at=9.0))
            writer.flush()
            ended = watch.look()
            assert [row.status for row in ended.trials] == ["Completed"]
            assert not ended.reports
    assert set(watch.trials) == {row.trial_id for row in store.trials("runs")} != set(known)


def test_a_watch_hears_of_the_job_s_end(store: Store) -> None:
    watch = store.watch("bank")
    watch.look()
    store.delete_job("bank")
    with refuses(ConfigurationError, field=("bank", "deleted")):
        watch.look()


def _report(trial: str, step: int) -> ReportRow:
    return ReportRow(job="runs", trial_id=trial, step=step, objective=0.5, metrics={}, at=float(step))


def test_a_feed_keeps_the_last_events_and_says_where_they_begin() -> None:
    async def fill() -> Feed:
        feed = Feed()
        for number in range(MOST_EVENTS + 10):
            feed.put("job", {"n": number}, 1.0)
        return feed

    feed = asyncio.run(fill())
    assert feed.since(1) is None
    assert (feed.since(feed.next - 1) or b"").endswith(b'data: {"n":%d}\n\n' % (MOST_EVENTS + 9))
    assert Position.of(feed.id) == Position(feed=feed.name, number=MOST_EVENTS + 10, at=1.0)
    assert Position.of("zz.1") is None


def test_what_many_ask_for_at_once_is_made_once() -> None:
    async def ask() -> tuple[list[int], int]:
        workers, made = Workers(2, 10, 5.0, "the test"), []
        shared: Shared[int] = Shared(workers)

        def make() -> int:
            made.append(1)
            return len(made)

        values = await asyncio.gather(*(shared.get("a", 1, make) for _ in range(50)))
        workers.close()
        return values, len(made)

    assert asyncio.run(ask()) == ([1] * 50, 1)


def test_streams_go_on_beside_one_that_takes_nothing_and_after_a_restart(store: Store) -> None:
    record(store, "runs", 4, ended=False)

    async def play() -> None:
        workers = Workers(2, 50, 10.0, "the database")
        hub, follower = await _looked_at(store, workers)
        good, slow, dropped = Client(), Client(stands=True), []
        tasks = [
            asyncio.create_task(_stream(follower, good, "")),
            asyncio.create_task(_stream(follower, slow, "", dropped)),
        ]
        await good.until(b"event: hello")
        with store.writer("runs") as writer:
            writer.line(LineRow(job="runs", text="said", at=1.0))
            writer.flush()
            await good.until(b'"text":"said"')
            await asyncio.wait_for(tasks[1], 20)
            assert dropped == [("127.0.0.1", 1)]
            last = good.sent.rpartition(b"id: ")[2].partition(b"\n")[0].decode()
            hub.close()
            await asyncio.wait_for(tasks[0], 20)
            assert b"event: end" in good.sent
            writer.line(LineRow(job="runs", text="missed", at=_now(store)))
            writer.flush()
        again, other = await _looked_at(store, workers)
        back = Client()
        task = asyncio.create_task(_stream(other, back, last))
        await back.until(b'"text":"missed"')
        back.left.set()
        await asyncio.wait_for(task, 20)
        assert other.listeners == 0
        again.close()
        workers.close()

    asyncio.run(play())


def test_a_stream_ends_with_the_token_of_who_follows(
    store: Store, settings: ServeSettings, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpo.serve.following.stream.CHECK_SECONDS", 0.0)
    leaver, other = Client(), Client()

    async def play() -> None:
        service = Service(settings, times=HubTimes(look=0.02))
        follower = await service.hub.followed("bank")
        tasks = [
            asyncio.create_task(
                service.stream(follower, "", Who(name="", rights="look", address="", digest=digest(token)))(
                    {"type": "http"}, client.receive, client.send
                )
            )
            for client, token in ((leaver, tokens["look"]), (other, tokens["act"]))
        ]
        await leaver.until(b"event: hello")
        Tokens(settings.tokens_file).remove("looker")
        with store.writer("bank") as writer:
            writer.line(LineRow(job="bank", text="a secret", at=1.0))
        await other.until(b"a secret")
        await asyncio.wait_for(tasks[0], 20)
        settings.tokens_file.write_text("{")
        store.request_stop("bank")
        store.act("bank", "stopped", {})
        await asyncio.wait_for(tasks[1], 20)
        service.end()
        service.close()

    asyncio.run(play())
    assert b"a secret" not in leaver.sent
    assert b"event: end" in leaver.sent
    assert b"event: end" in other.sent


def _now(store: Store) -> float:
    return store.job("runs").heard


def test_one_token_follows_with_few_clients_and_leaves_room_to_others(store: Store, settings: ServeSettings) -> None:
    record(store, "runs", 2)
    service = Service(replace(settings, streams_of_one=2), times=HubTimes(look=0.02))

    async def run() -> None:
        follower = await service.hub.followed("runs")
        clients = []

        def follow(name: str) -> Client:
            who = Who(name=name, rights="look", address="127.0.0.1")
            client, stream = Client(), service.stream(follower, "", who)
            called = stream({"type": "http", "client": ("127.0.0.1", 1)}, client.receive, client.send)
            clients.append(asyncio.create_task(called))
            return client

        first = follow("alice")
        follow("alice")
        await first.until(b"hello")
        with refuses(RefusedError, field=("token", "alice"), value=2) as refused:
            follow("alice")
        assert (refused.value.status, refused.value.wait) == (429, 30.0)
        await follow("bob").until(b"hello")
        first.left.set()
        await clients[0]
        await follow("alice").until(b"hello")
        service.end()
        await asyncio.gather(*clients)
        assert not service._streams

    asyncio.run(run())
    service.close()


def test_a_browser_s_stream_ends_with_its_session(
    store: Store, settings: ServeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpo.serve.following.stream.CHECK_SECONDS", 0.0)
    record(store, "runs", 2, ended=False)
    service = Service(settings, times=HubTimes(look=0.02))
    token = service.tokens.find(service.tokens.add("alice", "look"))
    assert token is not None
    cookie = service.sessions.begin(token)

    async def run() -> None:
        follower, client = await service.hub.followed("runs"), Client()
        who = Who(name="alice", rights="look", address="127.0.0.1", browser=True, digest=token.digest, cookie=cookie)
        stream = service.stream(follower, "", who)
        task = asyncio.create_task(stream({"type": "http", "client": ("127.0.0.1", 1)}, client.receive, client.send))
        await client.until(b"hello")
        service.sessions.end(cookie)
        with store.writer("runs") as writer:
            writer.line(LineRow(job="runs", text="said", at=5.0))
        await client.until(b"event: end")
        await task
        service.end()

    asyncio.run(run())
    assert service.tokens.of_digest(token.digest) == token
    service.close()
