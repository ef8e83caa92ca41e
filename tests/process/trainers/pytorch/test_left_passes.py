"""Passes that a pause leaves, whose batches processes load: the processes end with the pause."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
import torch
from torch.utils.data import DataLoader

from tests.support.allreduce import program
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.iterables import Numbers, collects, loader

ROWS = [(torch.full((6,), float(row)), row % 2) for row in range(50)]


def of_rows(context: Any, *, persistent: bool) -> DataLoader[Any]:
    return DataLoader(ROWS, batch_size=4, num_workers=1, persistent_workers=persistent)


MAKE: dict[str, Callable[[Any], DataLoader[Any]]] = {
    "rows": lambda context: of_rows(context, persistent=False),
    "rows, processes kept": lambda context: of_rows(context, persistent=True),
    "iterable": lambda context: loader(context, workers=1),
}


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Python's garbage collection would find the passes, and wait 5 s for each of their processes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("of", MAKE)
def test_no_process_of_a_pass_is_left_after_a_pause(tmp_path, of):
    before = psutil.Process().children(recursive=True)
    make = program(collects(MAKE[of], per_unit=5), steps_per_report=5)  # Thirteen steps make a pass.
    serve_alone(make(), *(assignment(tmp_path, unit, unit + 1) for unit in range(3)))
    assert psutil.Process().children(recursive=True) == before


class Waiting(Numbers):
    """Rows that do not come before they may."""

    may, asked = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        self.asked.set()
        assert self.may.wait(60.0)
        yield from super().__iter__()


def test_a_pass_that_a_thread_still_reads_fails_no_trial(tmp_path, caplog):
    def train(context) -> None:
        batches = context.prepare_data(DataLoader(Waiting(), batch_size=4))
        threading.Thread(target=next, args=[iter(batches)], daemon=True).start()
        assert Waiting.asked.wait(60.0)
        for _ in context.epochs():
            context.report({})

    try:
        [segment] = serve_alone(program(train)(), assignment(tmp_path, 0, 1))
    finally:
        Waiting.may.set()
    assert not isinstance(segment, Exception), segment
    mentions(caplog.text, "pass", "ValueError", "generator")
