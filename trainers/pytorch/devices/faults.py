"""Faults of a device: a trial's error that leaves its worker's process of no use, told from one that does not."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

SECONDS = 30.0
"""How long a device may take to answer."""


def breaks(error: BaseException, device: torch.device) -> bool:
    """Whether a trial's error has broken its worker: CUDA answers every later call with it, whoever calls.

    A device-side assertion and an access to memory that is not there do; being out of memory does not.

    Args:
        error: that the trial ended with.
        device: that it was trained on.
    """
    if device.type != "cuda" or isinstance(error, torch.OutOfMemoryError):
        return False
    return not within(SECONDS, lambda: torch.cuda.synchronize(device))


def within(seconds: float, call: Callable[[], object]) -> bool:
    """Runs a call that may never come back, in a thread of its own.

    Returns:
        Whether it came back in time, without an error.
    """
    over: list[bool] = []

    def run() -> None:
        try:
            call()
        except Exception:
            return
        over.append(True)

    thread = threading.Thread(target=run, name="device-call", daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(over)
