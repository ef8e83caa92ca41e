"""How a cluster of the job's own begins and ends under Ctrl-C, with a Ray that only says what is asked of it."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray

from tests.support.refusals import mentions
from trainers.cluster.session import Cluster, cluster
from trainers.gangs import mailbox
from trainers.gangs.mailbox import Mailbox


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """As in a process that nobody has changed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Ray was asked for, to its end."""
    asked: list[str] = []
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # No token is made.
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: asked.append("init"))
    monkeypatch.setattr(ray, "shutdown", lambda: asked.append("shutdown"))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")
    return asked


def presses_in(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Ctrl-C comes in the middle of one of Ray's functions, three times."""
    rest: Callable[..., None] = getattr(ray, name)

    def run(**options: Any) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        rest(**options)

    monkeypatch.setattr(ray, name, run)


def test_ctrl_c_while_ray_starts_ends_it_again(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    presses_in(monkeypatch, "init")
    with pytest.raises(KeyboardInterrupt), cluster(1):
        asked.append("block")
    assert asked == ["init", "shutdown"]


def test_ctrl_c_while_ray_ends_comes_behind_it(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    presses_in(monkeypatch, "shutdown")
    with pytest.raises(KeyboardInterrupt), cluster(1):
        asked.append("block")
    assert asked == ["init", "block", "shutdown"]


def test_ray_is_not_ended_under_a_thread_that_calls_it(asked: list[str]) -> None:
    said: list[str] = []
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="gang-late", daemon=True)
    thread.start()
    with cluster(1, said.append) as found:
        found.left.append(thread)
    assert asked == ["init"]
    mentions(said[-1], "gang-late")
    over.set()
    thread.join(30)
    with cluster(1, said.append) as found:
        found.left.append(thread)  # It has ended after all.
    assert asked == ["init", "init", "shutdown"]


def test_clusters_do_not_share_what_was_left() -> None:
    assert Cluster(private=True).left is not Cluster(private=True).left


@pytest.mark.parametrize("order", ["up first", "unwanted first"])
def test_a_run_that_is_not_wanted_ends_up_or_still_starting(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ends it does not wait for it to have started."""
    killed: list[str] = []
    monkeypatch.setattr(mailbox.ray, "kill", killed.append)
    monkeypatch.setattr(mailbox, "end_surely", lambda: None)  # Of the actor's process, not of this one.

    def reference(actor: str) -> list[Any]:
        there = asyncio.get_running_loop().create_future()
        there.set_result(actor)
        return [there]

    async def play() -> None:
        desk = Mailbox()
        await desk.run_by("wanted", reference("the wanted gang's controller"))
        if order == "up first":
            await desk.run_by("gang", reference("its controller"))
            assert not killed
            await desk.kill("gang")
        else:
            await desk.kill("gang")
            assert not killed
            await desk.run_by("gang", reference("its controller"))

    asyncio.run(play())
    assert killed == ["its controller"]
