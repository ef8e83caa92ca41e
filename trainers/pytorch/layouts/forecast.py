"""Forecast of the memory that a model needs on a worker, from a forward pass without data; refused if there is less."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from trainers.errors import TrialError

_SURELY_SMALL = 0.05
"""The part of the free memory below which nothing is profiled: four times the parameters, and ample activations."""

_AMPLE = 64
"""Bytes of activations that a module may have for each byte of the model's input, where nothing was profiled."""

_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes that training takes on one worker.

    Args:
        parameters: of its pieces, and as many of their gradients.
        gathered: of the largest block, where parameters are in shards.
        activations: that a backward pass of its batch asks for.
    """

    parameters: int
    gathered: int
    activations: int

    @property
    def total(self) -> int:
        """All of them: parameters and gradients, a gathered block and its gradient, activations."""
        return 2 * self.parameters + 2 * self.gathered + self.activations

    def __str__(self) -> str:
        return (
            f"{_shown(self.total)}: {_shown(self.parameters)} of parameters and as much of gradients, "
            f"{_shown(self.activations)} of activations"
        )


def without_data(model: nn.Module) -> nn.Module:
    """A copy of a model whose parameters and buffers have shapes and no data."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        empty = torch.empty_like(parameter, device="meta")
        memo[id(parameter)] = nn.Parameter(empty, requires_grad=parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(model, memo)


def free_memory(device: torch.device, neighbours: int = 1) -> int:
    """Bytes that a worker may still take: of its GPU, or its share of what its node, or its container, has left.

    Args:
        device: of the worker.
        neighbours: workers of the gang on its node, itself included.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = psutil.virtual_memory().available
    try:
        limit = int((_CGROUP / "memory.max").read_text()) - int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):  # There is no such limit.
        limit = free
    return max(0, min(int(free), limit)) // neighbours


def activations(empty: nn.Module, arguments: tuple[tuple[Any, ...], Mapping[str, Any]]) -> int | None:
    """Bytes that a backward pass of a model asks for, counted in a forward pass without data.

    Args:
        empty: of `without_data`.
        arguments: the model's, positional and by keyword.

    Returns:
        None where the model asks for values.
    """
    own = {parameter.untyped_storage()._cdata for parameter in empty.parameters()}
    kept: dict[int, int] = {}
    held: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
            held.append(tensor)  # Else another could get its place.
        return tensor

    positional, named = _bare(arguments)
    try:
        with torch.enable_grad(), torch.device("meta"), saved_tensors_hooks(note, lambda tensor: tensor):
            output = empty(*positional, **named)  # noqa: F841  # What it computed is kept as long as it is.
    except Exception:  # Its author's code, on tensors that it was not written for.
        return None
    return sum(kept.values())


class Forecast:
    """Looks at the first forward pass of a model with gradients, before it is computed.

    Args:
        model: before it is dealt out.
        device: that it is trained on.
        tensor: workers that compute each layer together.
        neighbours: workers on this worker's node.
    """

    def __init__(self, model: nn.Module, device: torch.device, *, tensor: int = 1, neighbours: int = 1) -> None:
        self._device, self._tensor, self._neighbours = device, tensor, neighbours
        self._modules = sum(1 for _ in model.modules())
        self._empty: nn.Module | None = without_data(model)
        self._largest = max((_bytes(block.parameters()) for block in model.children()), default=0)
        self._whole = _bytes(model.parameters())
        self._hook = model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, model: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not torch.is_grad_enabled() or self._empty is None:
            return
        empty, self._empty = self._empty, None
        self._hook.remove()
        free = free_memory(self._device, self._neighbours)
        own = _bytes(model.parameters())
        inputs = _bytes(part for part in (*given, *named.values()) if isinstance(part, Tensor))
        if 4 * own + _AMPLE * self._modules * inputs < _SURELY_SMALL * free:
            return
        kept = activations(empty, (given, named))
        if kept is None:
            return
        # The parameters are there by now.
        need = Need(
            parameters=own, gathered=self._largest if own < self._whole else 0, activations=kept // self._tensor
        )
        if need.total - own > free:
            raise TrialError(
                f"{type(model).__name__} needs about {need}, and {_shown(free)} are free for this worker; give a "
                "smaller batch, ModelPlan(recompute=True), or a layout that shares more, such as shard=2"
            )


def _bare(value: Any) -> Any:
    """Arguments with tensors that have no data."""
    if isinstance(value, Tensor):
        return torch.empty_like(value, device="meta")
    if isinstance(value, Mapping):
        return {name: _bare(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_bare(part) for part in value)
    return value


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Of this worker's pieces."""
    local = (tensor.to_local() if hasattr(tensor, "to_local") else tensor for tensor in tensors)
    return sum(tensor.numel() * tensor.element_size() for tensor in local)


def _shown(count: float) -> str:
    """Bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
