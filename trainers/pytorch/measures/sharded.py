"""Communication of a model whose parameters FSDP2 shards, counted in its own collectives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from trainers.pytorch.measures.communication import Communication


def count_collectives(model: nn.Module, communication: Communication, replicas: int = 1) -> None:
    """Counts from now on what the sharded parts of a model gather and reduce, and what steps wait for it.

    Between CPUs these collectives are waited for where they are called. Between GPUs they run on streams of their own,
    and FSDP2 tells nobody when the model waits for one: there bytes are counted, and no seconds.

    Args:
        model: whose submodules `fully_shard` was called on.
        communication: where it is counted.
        replicas: how many there are of each piece, over which its gradients are added up.
    """
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_custom_all_gather(_AllGather(communication))  # type: ignore[arg-type]  # its base is not public
            reduces = _ReduceScatter(communication)
            module.set_custom_reduce_scatter(reduces)  # type: ignore[arg-type]
            if replicas > 1:
                module.set_all_reduce_hook(reduces.replicated)


class _Counted:
    """As FSDP2's default collectives, and counted."""

    def __init__(self, communication: Communication) -> None:
        self._communication = communication

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """A buffer for one collective."""
        return torch.empty(*size, dtype=dtype, device=device)

    def _counted(self, sent: Tensor) -> Any:
        self._communication.bytes += sent.nbytes
        return self._communication.waiting if sent.is_cpu else nullcontext()


class _AllGather(_Counted):
    """Parameters of a block, from all workers' pieces."""

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False) -> Any:
        """Gathers."""
        with self._counted(output_tensor):
            return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=async_op)


class _ReduceScatter(_Counted):
    """Gradients of a block, added up, of which each worker keeps its piece."""

    def __init__(self, communication: Communication) -> None:
        super().__init__(communication)
        self._reduced_at: Any = None

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """The piece that a reduction ends in."""
        buffer = super().allocate(size, dtype=dtype, device=device)
        self._reduced_at = self._communication.mark()  # A single shard is copied, and not reduced.
        return buffer

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        """Reduces."""
        with self._counted(input_tensor):
            work = dist.reduce_scatter_tensor(output_tensor, input_tensor, group=group, op=op, async_op=async_op)
        self._reduced_at = self._communication.mark()
        return work

    def replicated(self, reduced: Tensor) -> None:
        """A piece was added up over replicas, which FSDP2 itself does just after the reduction."""
        self._communication.bytes += reduced.nbytes
        if reduced.is_cpu:
            self._communication.waited_since(self._reduced_at)
