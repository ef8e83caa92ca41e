"""Memory of a device between trials: what one held is free before the next begins."""

from __future__ import annotations

import gc
import traceback
from contextlib import suppress

import torch

MOST_COLLECTIONS = 5
"""In a row: each second finds what the one before let go of, and other threads make garbage meanwhile."""


def forget(error: BaseException) -> None:
    """Frees the variables in the frames of an error, and of those behind it: a model, its gradients, its batches.

    They would lie beside the next trial's as long as anybody holds the error, and longer where objects refer to each
    other, as an optimizer and its hooks do; and with a model its groups of workers, so that peers would wait for an
    answer on their connections. The traceback's text stays, as a note: a frame that is cleared still has its function's
    closure.
    """
    waiting, done = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in done:
            continue
        done.add(id(each))
        if each.__traceback__ is not None:
            each.add_note("Where it was raised:\n" + "".join(traceback.format_tb(each.__traceback__)).rstrip())
            traceback.clear_frames(each.__traceback__)
            each.__traceback__ = None
        waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
        waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    gc.collect()


def collect() -> None:
    """Frees all that nobody holds, where one collection may not be enough.

    A graph of gradients may hold what the collector does not see, such as the hooks of a model in shards; once the
    graph was freed, the next collection finds that.
    """
    for _ in range(MOST_COLLECTIONS):
        if not gc.collect():
            return


def tidy(device: torch.device) -> None:
    """Gives back what a trial held on a GPU, the blocks that PyTorch keeps for it included.

    A prepared model refers to itself, and Python looks for such rings when it has made many objects, however large.
    """
    if device.type == "cuda":
        collect()
        with suppress(RuntimeError):  # A broken device has nothing to give back.
            torch.cuda.empty_cache()
