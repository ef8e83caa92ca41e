"""Placing of a checkpoint's tensors: in a model as it loads its state, in an optimizer before its first step."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from trainers.pytorch.state.shards.stored import Stored, put
from trainers.pytorch.state.shards.tree import is_sharded


def hook(model: nn.Module, *, others: Collection[str] = ()) -> Callable[[], None]:
    """Lets `load_state_dict` of a model read this worker's slices, and cut whole tensors into them.

    Args:
        model: its parameters may be DTensors.
        others: names of parameters and buffers that other workers have, and a state of the whole model too; they are
            no unexpected ones.

    Returns:
        Takes the hooks away again.
    """
    # Scripted modules take no hooks, and are never cut into slices.
    modules = (module for module in model.modules() if not isinstance(module, torch.jit.ScriptModule))
    handles = [_registered(module, _take) for module in modules]
    if others:
        handles.append(leave_out(model, others))

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def leave_out(model: nn.Module, others: Collection[str]) -> RemovableHandle:
    """Lets `load_state_dict` of a part of a model take a whole model's state; `others` are what it has not itself."""
    return _registered(model, _without(frozenset(others)))


def _registered(module: nn.Module, take: Callable[..., None]) -> RemovableHandle:
    handle: RemovableHandle = module.register_load_state_dict_pre_hook(take)
    return handle


def place(optimizer: Optimizer) -> None:
    """Puts an optimizer's loaded state where its parameters are: slices where they are DTensors; scalars stay whole.

    Raises:
        CheckpointError: a file is missing, cut short or changed; it names file and trial.
        StorageError: it cannot be read.
    """
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, Tensor) and isinstance(state, dict):
            for name, value in state.items():
                if isinstance(value, Tensor):
                    state[name] = _like(value, parameter)


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """A tensor of a state, placed as its parameter is if it has its shape."""
    if is_sharded(parameter) and not is_sharded(value) and value.shape == parameter.shape:
        made = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False)
        put(value, made)
        return made
    return value.whole() if isinstance(value, Stored) else value


def _take(module: nn.Module, state: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *_: Any) -> None:
    """Reads the module's own tensors, here since `load_state_dict` makes another error of what is raised later."""
    assigned = local_metadata.get("assign_to_params_buffers", False)
    for name, own in _own(module):
        value = state.get(prefix + name)
        if not isinstance(value, Tensor) or value.shape != own.shape:
            continue
        if not isinstance(value, Stored) and (is_sharded(value) or not is_sharded(own)):
            continue
        if assigned or own.is_meta:
            state[prefix + name] = _assigned(value, own)
        else:
            put(value, own)
            state[prefix + name] = own.detach()


def _own(module: nn.Module) -> list[tuple[str, Tensor]]:
    """A module's parameters and buffers, without those of its children."""
    parameters = module.named_parameters(recurse=False, remove_duplicate=False)
    return [*parameters, *module.named_buffers(recurse=False, remove_duplicate=False)]


def _assigned(value: Tensor, own: Tensor) -> Tensor:
    """A tensor of its own, to be put in the place of the model's."""
    if not is_sharded(own):
        return value.whole() if isinstance(value, Stored) else value
    made = torch.empty_like(own, dtype=value.dtype, requires_grad=False)
    put(value, made)
    return made


def _without(others: frozenset[str]) -> Callable[..., None]:
    def drop(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        for name in others:
            state.pop(prefix + name, None)

    return drop
