"""Hooks of optimizer steps, read from private attributes of PyTorch in this one place."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer


def has_step_hooks(optimizer: Optimizer) -> bool:
    """Whether `register_step_pre_hook` or `register_step_post_hook` was called on it, and not undone since.

    Private attributes, as PyTorch 2.13 has them; `tests/unit/trainers/parameter_server/test_hooks.py` notices a change.
    """
    private: Any = optimizer
    return bool(private._optimizer_step_pre_hooks or private._optimizer_step_post_hooks)
