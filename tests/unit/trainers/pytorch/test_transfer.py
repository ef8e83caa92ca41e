"""Transfer of batches to a device: what is gathered, fetched and copied ahead; "meta" stands for the GPU."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from trainers.pytorch.data import transfer
from trainers.pytorch.data.batches import BatchSize
from trainers.pytorch.data.loading import Shard, shard_batches
from trainers.pytorch.data.transfer import fetched, gathered, moved, one_ahead, sent

CPU, META = torch.device("cpu"), torch.device("meta")


class Quiet:
    def begin(self, micro: Any, number: int, done: float) -> None:
        pass

    def end(self) -> None:
        pass


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Blocks of pinned memory that were asked for; without a GPU there is none, and ordinary memory stands for it."""
    blocks: list[Tensor] = []

    def block(shape: Any, dtype: torch.dtype) -> Tensor:
        blocks.append(torch.full(tuple(shape), -1, dtype=dtype))
        return blocks[-1]

    monkeypatch.setattr(transfer, "pinned", block)
    return blocks


# ---- gathering


@pytest.mark.parametrize("chosen", [slice(1, 4), slice(None), slice(2, 2), torch.tensor([3, 0, 3])])
@pytest.mark.parametrize("rows", [torch.arange(12.0).reshape(4, 3), torch.arange(4)])
def test_rows_for_a_gpu_are_gathered_into_pinned_memory_alone(
    rows: Tensor, chosen: Tensor | slice, pinned: list[Tensor]
) -> None:
    before = rows.clone()
    got = gathered(rows, chosen, META)
    assert [block is got for block in pinned] == [True]
    assert torch.equal(got, rows[chosen])
    assert got.dtype == rows.dtype
    got.fill_(7)
    assert torch.equal(rows, before)


@pytest.mark.parametrize("chosen", [slice(1, 3), torch.tensor([2, 2])])
def test_rows_that_lie_where_they_are_trained_on_are_copied_there(chosen: Tensor | slice, pinned: list[Tensor]) -> None:
    rows = torch.arange(8.0).reshape(4, 2)
    got = gathered(rows, chosen, CPU)
    assert torch.equal(got, rows[chosen])
    got.fill_(7)
    assert rows.max() == 7
    assert rows.count_nonzero() == 7
    assert pinned == []


def test_a_channel_too_large_for_the_gpu_goes_there_batch_by_batch_in_pinned_blocks(pinned: list[Tensor]) -> None:
    rows = torch.arange(20.0).reshape(10, 2)
    shard = Shard(features=rows, labels=torch.arange(10.0))

    def batches(device: torch.device) -> list[tuple[Tensor, Tensor]]:
        size = BatchSize(workers=1, per_worker_batch_size=4)
        return list(shard_batches(shard, [10], 0, size, shuffle=True, seed=3, device=device, passes=Quiet()))

    here, there = batches(CPU), batches(META)
    assert [part.device for batch in there for part in batch] == [META] * 6
    assert [tuple(part.shape) for part in there[-1]] == [(2, 2), (2,)]
    assert all(torch.equal(block, part) for block, part in zip(pinned, [p for b in here for p in b], strict=True))


# ---- one ahead


def test_the_next_item_is_taken_before_one_is_handed_out() -> None:
    taken = []

    def items() -> Iterator[int | None]:
        for item in (0, None, 2):
            taken.append(item)
            yield item

    seen = []
    for item in one_ahead(items()):
        seen.append((item, list(taken)))
    assert seen == [(0, [0, None]), (None, [0, None, 2]), (2, [0, None, 2])]
    assert list(one_ahead(iter(()))) == []


def test_batches_that_stay_on_the_cpu_are_taken_as_they_are_asked_for() -> None:
    """Else what a dataset draws for the next batch would come before what the function draws for this one."""
    taken = []
    batches = sent(iter(map(taken.append, range(3))), CPU)
    next(batches)
    assert len(taken) == 1


def test_batches_of_any_form_are_moved() -> None:
    pair = namedtuple("pair", "x y")  # as users have them
    batch = {"a": [torch.zeros(1)], "b": (torch.zeros(2), "text"), "c": pair(torch.zeros(3), 4)}
    there = moved(batch, META)
    assert there["a"][0].device == there["b"][0].device == there["c"].x.device == META
    assert (there["b"][1], there["c"].y) == ("text", 4)
    assert isinstance(there["c"], pair)


# ---- fetching in the background


@given(results=st.lists(st.integers() | st.none(), max_size=8))
def test_results_come_in_the_order_of_the_calls(results: list[int | None]) -> None:
    assert list(fetched(iter([lambda each=each: each for each in results]))) == results


def test_the_next_call_runs_while_a_result_is_used_and_no_further_one() -> None:
    begun: list[int] = []
    second = threading.Event()

    def call(number: int) -> Callable[[], int]:
        def run() -> int:
            begun.append(number)
            if number == 1:
                second.set()
            assert threading.current_thread() is not threading.main_thread()
            return number

        return run

    results = fetched(iter(map(call, range(4))))
    assert next(results) == 0
    assert second.wait(10)  # While this one is used.
    assert next(results) == 1
    results.close()
    assert 3 not in begun


def test_an_error_comes_in_its_turn() -> None:
    def fails() -> int:
        raise OSError("the block is lost")

    results = fetched(iter([lambda: 1, fails, lambda: 3]))
    assert next(results) == 1
    with pytest.raises(OSError, match="the block is lost"):
        next(results)
    assert list(results) == []


def test_a_pass_that_is_left_waits_for_no_fetch() -> None:
    gate, entered = threading.Event(), threading.Event()

    def waits() -> int:
        entered.set()
        gate.wait(30)
        return 1

    results = fetched(iter([lambda: 0, waits]))
    assert next(results) == 0
    assert entered.wait(10)
    results.close()  # It would hang here.
    gate.set()


# ---- copies ahead, on a stream that notes what is asked of it


class Event:
    def __init__(self, name: str) -> None:
        self.name = name


class Stream:
    """A GPU's stream as far as `sent` knows one."""

    def __init__(self, device: torch.device, log: list[str]) -> None:
        self.log = log
        self.events = 0

    def record_event(self) -> Event:
        self.events += 1
        self.log.append(f"batch {self.events} is on its way")
        return Event(f"batch {self.events}")

    def wait_event(self, event: Event) -> None:
        self.log.append(f"wait for {event.name}")


def test_a_step_waits_for_its_own_batch_while_the_next_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    now = Stream(META, log)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream(device, log))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: now)
    monkeypatch.setattr(transfer, "moved", lambda batch, device: batch.to(META))
    monkeypatch.setattr(transfer, "_used_in", lambda stream, part: log.append("kept until it is used"))
    for number, batch in enumerate(sent(iter([torch.zeros(1)] * 3), torch.device("cuda", 0)), 1):
        assert batch.device == META
        log.append(f"step {number}")
    assert log == [
        "batch 1 is on its way",
        "batch 2 is on its way",
        "wait for batch 1",
        "kept until it is used",
        "step 1",
        "batch 3 is on its way",
        "wait for batch 2",
        "kept until it is used",
        "step 2",
        "wait for batch 3",
        "kept until it is used",
        "step 3",
    ]
