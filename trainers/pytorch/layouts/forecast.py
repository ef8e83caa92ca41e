"""Forecast of the memory that a model needs on a worker, from a forward pass without data; refused if there is less."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from trainers.errors import TrialError
from trainers.pytorch.state import random_state

_SURELY_SMALL = 0.05
"""The part of the free memory below which nothing is profiled: four times the parameters, and ample activations."""

_AMPLE = 64
"""Bytes of activations that a module may have for each byte of the model's input, where nothing was profiled."""

_CGROUP = Path("/sys/fs/cgroup")

_FIXED = (bool, int, float, complex, str, bytes, NoneType, torch.dtype, torch.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes that training takes on one worker.

    Args:
        parameters: of its pieces.
        gradients: of those that are trained.
        gathered: of the largest block, where parameters are in shards.
        activations: that a backward pass of its batch asks for.
    """

    parameters: int
    gradients: int
    gathered: int
    activations: int

    @property
    def total(self) -> int:
        """All of them: parameters and gradients, a gathered block and its gradient, activations."""
        return self.parameters + self.gradients + 2 * self.gathered + self.activations

    def __str__(self) -> str:
        return (
            f"{_shown(self.total)}: {_shown(self.parameters)} of parameters, {_shown(self.gradients)} of gradients and "
            f"{_shown(self.activations)} of activations"
        )


def without_data(model: nn.Module) -> nn.Module:
    """A copy of a model whose parameters, buffers and other tensors of its modules have shapes and no data.

    Raises:
        Exception: the model, or something that it holds, cannot be copied.
    """
    memo: dict[int, Any] = {}
    # PyTorch copies no tensor that was computed, such as the weight that `weight_norm` leaves in a module.
    for tensor in (value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)):
        memo[id(tensor)] = torch.empty_like(tensor, device="meta")
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
        # What is kept of files that were read counts as used, and is given up as soon as it is asked for.
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        limit += int(stat["inactive_file"]) + int(stat["active_file"])
    except (OSError, ValueError, KeyError):  # There is no such limit.
        limit = free
    return max(0, min(int(free), limit)) // neighbours


def activations(empty: nn.Module, arguments: tuple[tuple[Any, ...], Mapping[str, Any]]) -> int | None:
    """Bytes that a backward pass of a model asks for, counted in a forward pass without data.

    Args:
        empty: of `without_data`.
        arguments: the model's, positional and by keyword.

    Returns:
        None where the model asks for values, or takes what it may change.
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

    try:
        positional, named = _bare(arguments)
        # What a model makes on no device in particular has data: it may keep it, in a cache of its module say.
        with (
            torch.enable_grad(),
            random_state.kept(torch.device("cpu")),
            torch.compiler.set_stance("force_eager"),
            saved_tensors_hooks(note, lambda tensor: tensor),
        ):
            output = empty(*positional, **named)  # noqa: F841  # What it computed is kept as long as it is.
    except Exception:  # Its author's code, on tensors that it was not written for.
        return None
    return sum(kept.values())


class Forecast:
    """Looks at the first forward pass of a model with gradients, before it is computed; not where it cannot be copied.

    Args:
        model: before it is dealt out.
        device: that it is trained on.
        tensor: workers that compute each layer together.
        neighbours: workers on this worker's node.
        low: the type of number that it is computed in; None: its parameters'.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        tensor: int = 1,
        neighbours: int = 1,
        low: torch.dtype | None = None,
    ) -> None:
        # Nothing is cast without data: low activations are half of what is counted.
        self._device, self._neighbours, self._parts = device, neighbours, tensor * (1 if low is None else 2)
        self._empty: nn.Module | None = None
        if isinstance(model, torch.jit.ScriptModule):  # It takes no hooks.
            return
        try:
            self._empty = without_data(model)
        except Exception:  # Locks, generators, parameters without a shape as yet: its author's objects.
            return
        self._modules = sum(1 for _ in model.modules())
        self._largest = max((_bytes(block.parameters()) for block in model.children()), default=0)
        self._whole = _bytes(model.parameters())
        self._hook = model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, model: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        # What a user compiles has no place for it.
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or self._empty is None:
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
            parameters=own,
            gradients=_bytes(parameter for parameter in model.parameters() if parameter.requires_grad),
            gathered=self._largest if own < self._whole else 0,
            activations=kept // self._parts,
        )
        if need.total - own > free:
            raise TrialError(
                f"{type(model).__name__} needs about {need}, and {_shown(free)} are free for this worker; give a "
                "smaller batch, ModelPlan(recompute=True), or a layout that shares more, such as shard=2"
            )


def _bare(value: Any) -> Any:
    """Arguments with tensors that have no data.

    Raises:
        ValueError: there are objects among them, which a forward pass may change: a cache, say.
    """
    if isinstance(value, Tensor):
        return torch.empty_like(value, device="meta")
    if isinstance(value, Mapping):
        return {name: _bare(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [_bare(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if not isinstance(value, _FIXED):
        raise ValueError(f"{type(value).__name__} is not known to stay as it is")
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
