"""Models in mixed precision, or compiled once for all trials with the same architecture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from trainers.pytorch.state.mixed import Mixed
from trainers.pytorch.state.precision import Precision

Forward = Callable[..., Any]

_KEPT = 16
"""Kinds of models that stay compiled at once; what a gang compiled for others before is given up."""

_SHAPES = 16
"""Forms of input that a kind is compiled for: batches, the last one of a pass, training or not. PyTorch gives up on a
function after 256 compilations, so that `_KEPT` times this is the most."""


class Models:
    """Preparation of models on a gang's worker.

    A model's numbers do not depend on what the gang served before: each kind of model has compiled code of its own, and
    each shape of its input is compiled by itself, where PyTorch would make the second shape's code fit them all.

    Args:
        precision: of trials whose hyperparameters give none.
        compile: whether models are compiled.
    """

    def __init__(self, *, precision: str = "fp32", compile: bool = False) -> None:
        self._precision = Precision(precision)
        self._compile = compile
        self._compiled: dict[Hashable, Forward] = {}

    def precision(self, hyperparameters: Mapping[str, Any], device: torch.device) -> Precision:
        """The precision of a trial.

        Raises:
            ConfigurationError: there is no such precision, or the device lacks it.
        """
        precision = self._precision.under(hyperparameters)
        precision.check(device)
        return precision

    def set_up(self, model: nn.Module, device: torch.device, hyperparameters: Mapping[str, Any], mixed: Mixed) -> None:
        """Gives a model the forward pass that was asked for; its copies have it too, over their own parameters.

        Args:
            model: on `device`.
            device: that it is trained on.
            hyperparameters: the trial's.
            mixed: its precision.
        """
        low = mixed.precision.low
        if low is None and not self._compile:
            return
        forward = forward_of(model)
        if self._compile:
            forward = self._compiled_of(model, forward, hyperparameters)
        if low is not None:
            forward = _low(forward, device.type, low, mixed)
        model.forward = MethodType(forward, model)

    def _compiled_of(self, model: nn.Module, forward: Forward, hyperparameters: Mapping[str, Any]) -> Forward:
        kind = (forward, *_kind(model, hyperparameters))
        if kind not in self._compiled:
            if len(self._compiled) == _KEPT:
                self._compiled.clear()
                torch.compiler.reset()
            compiled: Any = torch.compile  # Its overloads lack two of its arguments.
            self._compiled[kind] = compiled(forward, dynamic=False, isolate_recompiles=True, recompile_limit=_SHAPES)
        return self._compiled[kind]


def forward_of(model: nn.Module) -> Forward:
    """A model's forward pass as a function of the model, so that it does not belong to this very object."""
    own = vars(model).get("forward")
    if own is None:
        return type(model).forward
    if isinstance(own, MethodType) and own.__self__ is model:
        return own.__func__
    return lambda _, *given, **named: own(*given, **named)


def _kind(model: nn.Module, hyperparameters: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """The key of compiled code: the layers, their shapes, and hyperparameters that may set the batch size."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return (
        repr(model),
        tuple(name for name, module in model.named_modules() if "forward" in vars(module)),  # Recomputed ones, say.
        tuple((name, tensor.shape, tensor.dtype, tensor.requires_grad) for name, tensor in tensors),
        tuple((name, repr(value)) for name, value in sorted(hyperparameters.items()) if not isinstance(value, float)),
    )


def _low(forward: Forward, device: str, dtype: torch.dtype, mixed: Mixed) -> Forward:
    @wraps(forward)
    def low(model: nn.Module, *given: Any, **named: Any) -> Any:
        with mixed.computing(model), torch.autocast(device, dtype=dtype):
            output = forward(model, *given, **named)
        return _float32(output)

    return low


def _float32(output: Any) -> Any:
    """A model's outputs, in full precision for the loss."""
    if isinstance(output, Tensor):
        return output.float() if output.is_floating_point() else output
    if isinstance(output, dict):
        made = copy.copy(output)
        for name, part in output.items():
            made[name] = _float32(part)
        return made
    if isinstance(output, list | tuple):
        parts = [_float32(part) for part in output]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
    return output
