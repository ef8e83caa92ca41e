"""Transfer of batches to a worker's device: gathered into pinned memory, and copied while the step before computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def gathered(rows: Tensor, chosen: Tensor | slice, device: torch.device) -> Tensor:
    """A copy of some rows, which lies where they do; for another device in pinned memory.

    A copy from pinned memory waits for nobody. PyTorch keeps such blocks for the next batch, and gives none out again
    before the copies from it are done.

    Args:
        rows: (rows, ...).
        chosen: their numbers, int64 (n,) beside them, or a slice.
        device: where they go next.
    """
    if rows.device.type == device.type:
        return rows[chosen].clone() if isinstance(chosen, slice) else rows.index_select(0, chosen)
    if isinstance(chosen, slice):
        part = rows[chosen]
        return pinned(part.shape, part.dtype).copy_(part)
    out = pinned((len(chosen), *rows.shape[1:]), rows.dtype)
    torch.index_select(rows, 0, chosen, out=out)
    return out


def pinned(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Memory of the host that a GPU reads by itself; its values are whatever was there."""
    return torch.empty(shape, dtype=dtype, pin_memory=True)


def sent(batches: Iterator[T], device: torch.device, *, ahead: bool = True) -> Iterator[T]:
    """Batches on a device, in their order. To a GPU each is copied while the one before it is trained on.

    Args:
        batches: tensors, and lists, tuples and dicts of them.
        device: of the worker.
        ahead: whether the batch after the one that is handed out may be taken already. What draws at random for a batch
            in this thread may not: the function's own draws would come in between.
    """
    if device.type != "cuda" or not ahead:
        for batch in batches:
            yield moved(batch, device)
        return
    aside = torch.cuda.Stream(device)
    for batch, copied in one_ahead(_copied(batches, device, aside)):
        now = torch.cuda.current_stream(device)
        now.wait_event(copied)  # Not for the batch behind it, which is on its way as well.
        _each(batch, partial(_used_in, now))
        yield batch


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is taken before one is handed out."""
    none = object()
    current: Any = next(items, none)
    while current is not none:
        following: Any = next(items, none)
        yield current
        current = following


def fetched(calls: Iterator[Callable[[], T]]) -> Iterator[T]:
    """What each call returns, in their order; the next one runs in the background while one's result is used.

    Raises:
        Exception: what a call raises, in its turn.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="fetch-ahead")
    try:
        following = _begun(pool, calls)
        while following is not None:
            result = following.result()
            following = _begun(pool, calls)
            yield result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def moved(batch: Any, device: torch.device) -> Any:
    """A batch on a device: tensors, and lists, tuples and dicts of them."""
    return _each(batch, lambda part: part.to(device, non_blocking=True))


def _begun(pool: ThreadPoolExecutor, calls: Iterator[Callable[[], T]]) -> Future[T] | None:
    call = next(calls, None)
    return None if call is None else pool.submit(call)


def _copied(
    batches: Iterator[T], device: torch.device, aside: torch.cuda.Stream
) -> Iterator[tuple[T, torch.cuda.Event]]:
    for batch in batches:
        with torch.cuda.stream(aside):
            copy = moved(batch, device)
        yield copy, aside.record_event()


def _used_in(stream: torch.cuda.Stream, part: Tensor) -> Tensor:
    """Keeps a tensor's memory, which another stream made it in, until a stream has done with it."""
    part.record_stream(stream)
    return part


def _each(batch: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {name: _each(part, change) for name, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_each(part, change) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
