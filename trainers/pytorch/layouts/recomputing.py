"""Activations of blocks, computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from trainers.pytorch.state import forward_of

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Layers with running statistics, which a second forward pass would move twice."""


def recompute(blocks: Sequence[nn.Module]) -> None:
    """Lets blocks keep their inputs alone, and run forward again in the backward pass; see `ModelPlan.recompute`.

    Dropout draws as in the first pass, and running statistics move once. Names in `state_dict()` stay as they are.
    """
    for block in blocks:
        block.forward = MethodType(_again(forward_of(block)), block)


def _again(forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(block: nn.Module, *given: Any, **named: Any) -> Any:
        norms = [module for module in block.modules() if isinstance(module, NORMS)]

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            return nullcontext(), _still(norms)

        # Compiled code moves statistics once by itself, and takes no contexts.
        if norms and not torch.compiler.is_compiling():
            named["context_fn"] = contexts
        return checkpoint(forward, block, *given, use_reentrant=False, **named)

    return run


@contextmanager
def _still(norms: Sequence[nn.Module]) -> Iterator[None]:
    """Has copies of running statistics moved meanwhile."""
    before = [(norm, dict(norm.named_buffers(recurse=False))) for norm in norms]
    for norm, buffers in before:
        for name, buffer in buffers.items():
            setattr(norm, name, buffer.clone())
    try:
        yield
    finally:
        for norm, buffers in before:
            for name, buffer in buffers.items():
                setattr(norm, name, buffer)
