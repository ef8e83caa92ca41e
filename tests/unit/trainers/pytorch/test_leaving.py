"""Leaving of process groups: abort, deadlines, and the watch over peers that fail. gloo alone; NCCL needs GPUs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore

from tests.support.refusals import refuses
from trainers.errors import BrokenWorkerError, GangError
from trainers.gangs.in_process import alone
from trainers.pytorch.gradients import leaving, peers
from trainers.pytorch.gradients.leaving import Watch, leave
from trainers.pytorch.gradients.peers import ProcessGroup

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one, and one beside it; none is left."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    dist.new_group([0])
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_abort_ends_every_group_and_another_can_be_made(group: None) -> None:
    """PyTorch's function is a private one: this is what is expected of it."""
    leaving._abort_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(1))


def test_gloo_is_destroyed_and_a_second_time_does_nothing(group: None) -> None:
    leave(CPU, abort=True)
    assert not dist.is_initialized()
    leave(CPU)
    leave(GPU, abort=True)


@pytest.mark.parametrize("abort", [True, False])
def test_nccl_is_aborted_where_peers_may_wait_and_destroyed_where_none_does(
    group: None, abort: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    real = dist.destroy_process_group
    monkeypatch.setattr(leaving, "_abort_process_group", lambda: (called.append("abort"), real()))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: (called.append("destroy"), real()))
    leave(GPU, abort=abort)
    assert called == ["abort" if abort else "destroy"]
    assert not dist.is_initialized()


def hangs() -> None:
    threading.Event().wait(60)


def fails() -> None:
    raise RuntimeError("NCCL error: unhandled cuda error")


@pytest.mark.parametrize("end", [hangs, fails])
def test_what_cannot_be_left_in_time_is_the_gangs_error(
    group: None, end: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "_abort_process_group", end)
    with refuses(GangError, field="NCCL", value="0.2 s"):
        leave(GPU, abort=True, seconds=0.2)


def test_a_worker_that_cannot_leave_is_broken_by_the_trial_whose_reason_it_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gang's error alone would have the trial served again, and end the next worker group, too."""

    def stuck(device: torch.device, *, abort: bool = False) -> None:
        if abort:
            raise GangError("NCCL's process group could not be left")
        leave(device)

    monkeypatch.setattr(peers, "leave", stuck)
    context = alone(1)
    worker = ProcessGroup(context, CPU, 10.0)
    try:
        worker.world_size = 2
        first = worker.failed(ValueError("of the user's"))
        assert isinstance(first, BrokenWorkerError)
        assert str(first) == "rank 0 failed: ValueError: of the user's"
    finally:
        worker.world_size = 1
        worker.close()


# ---- the watch


def watched(failed: Callable[[], bool]) -> tuple[Watch, threading.Event]:
    aborted = threading.Event()
    return Watch(failed, aborted.set, every=0.01), aborted


def test_a_peer_that_fails_has_what_waits_for_it_aborted_once(group: None) -> None:
    store = HashStore()
    watch, aborted = watched(lambda: bool(store.check(["failed"])))
    assert not aborted.wait(0.1)
    store.set("failed", "rank 1 failed")
    assert aborted.wait(10)
    watch.thread.join(10)
    assert not watch.thread.is_alive()
    watch.stop()


def test_a_store_that_is_gone_is_a_peer_that_has_failed(group: None) -> None:
    def gone() -> bool:
        raise RuntimeError("Broken pipe")

    _, aborted = watched(gone)
    assert aborted.wait(10)


def test_a_watch_that_was_stopped_aborts_nothing(group: None) -> None:
    there = threading.Event()
    watch, aborted = watched(there.is_set)
    watch.stop()
    there.set()
    assert not watch.thread.is_alive()
    assert not aborted.is_set()


def test_what_was_left_meanwhile_is_not_aborted() -> None:
    watch, aborted = watched(lambda: True)
    watch.thread.join(10)
    assert not aborted.is_set()


def test_a_collective_after_an_abort_is_an_error(group: None) -> None:
    """So a worker whose collective was broken off does not go on with what was in its tensor."""
    watch = Watch(lambda: True, leaving._abort_process_group, every=0.01)
    watch.thread.join(10)
    with refuses(ValueError, field="process group", remedy="init_process_group"):
        dist.all_reduce(torch.ones(1))
