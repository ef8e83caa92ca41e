"""Process-wide settings of PyTorch and NumPy, restored after each trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_BACKENDS: Any = torch.backends
"""Its settings are attributes that PyTorch makes as they are asked for."""


@contextmanager
def kept() -> Iterator[None]:
    """Runs a block whose switches nobody outside notices; only those that it turned are turned back."""
    before = [_read(read) for read, _ in _SWITCHES]
    try:
        with np.errstate():
            yield
    finally:
        for (read, turn), value in zip(_SWITCHES, before, strict=True):
            if _read(read) != value:
                turn(value)


def _read(read: Callable[[], Any]) -> Any:
    """A setting; None where PyTorch does not say, since newer settings contradict it."""
    try:
        return read()
    except RuntimeError:
        return None


def _device() -> torch.device | None:
    """The default device of new tensors; None for the processor, PyTorch's own default."""
    device = torch.get_default_device()
    return None if device == torch.device("cpu") else device


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _anomalies() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _flushed() -> bool:
    """Whether numbers below the least normal one count as zero."""
    return not bool(torch.tensor(1e-310, dtype=torch.float64).mul(1.0))


def _attribute(holder: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    return lambda: getattr(holder, name), lambda value: setattr(holder, name, value)


_PRECISE: list[Any] = [
    *(_BACKENDS, _BACKENDS.cuda.matmul),
    *(_BACKENDS.cudnn, _BACKENDS.cudnn.conv, _BACKENDS.cudnn.rnn),
    *(_BACKENDS.mkldnn, _BACKENDS.mkldnn.conv, _BACKENDS.mkldnn.rnn, _BACKENDS.mkldnn.matmul),
]
"""What has a precision of its own for numbers of 32 bits."""

_SWITCHES: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (torch.get_default_dtype, torch.set_default_dtype),
    (_device, torch.set_default_device),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (_deterministic, lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1])),
    (_anomalies, lambda value: torch.autograd.set_detect_anomaly(*value)),
    # Before those that follow, some of which it turns.
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    *(_attribute(holder, "fp32_precision") for holder in _PRECISE),
    (_flushed, torch.set_flush_denormal),
    _attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
    *(_attribute(_BACKENDS.cudnn, name) for name in ("enabled", "benchmark", "deterministic", "allow_tf32")),
    *(_attribute(_BACKENDS.cuda.matmul, name) for name in ("allow_tf32", "allow_fp16_reduced_precision_reduction")),
    _attribute(_BACKENDS.mkldnn, "enabled"),
]
"""How each is read, and turned."""
