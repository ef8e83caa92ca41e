"""The opening of a session at one server: parameter values, optimizer and rules."""

from __future__ import annotations

import copy
import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from ray import cloudpickle
from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from trainers.errors import ConfigurationError
from trainers.parameter_server.flat import Layout
from trainers.parameter_server.hooks import has_step_hooks
from trainers.parameter_server.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a worker's pushes.

    Args:
        groups: what an optimizer's parameter groups say beside their parameters, such as the learning rate.
        max_norm: what the gradient of an update is scaled down to if it is longer; None leaves it as it is.
    """

    groups: list[dict[str, Any]]
    max_norm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a server begins to train its part of a model.

    Args:
        session: names the training; one assignment of one gang.
        settings: how pushes become updates.
        patience: seconds that one worker waits for another.
        optimizer: holds `parameters` alone, with what state it has of them.
        groups: which of the whole optimizer's parameter groups this one has.
        layouts: how the parameters lie in buffers.
        parameters: of all layouts, in their order; stand-ins that are empty until the server gives them their place.
        values: the buffer of each layout.
    """

    session: str
    settings: Settings
    patience: float
    optimizer: Optimizer
    groups: tuple[int, ...]
    layouts: tuple[Layout, ...]
    parameters: list[nn.Parameter]
    values: list[Tensor]

    def pack(self) -> bytes:
        """As bytes; classes of the user's own script travel along."""
        return _pack(self)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """The opening that `pack` packed, on the processor."""
        opening: Self = _unpack(packed)
        return opening


def check(optimizer: Optimizer) -> None:
    """Refuses what cannot train on servers.

    Raises:
        ConfigurationError: the optimizer evaluates the loss itself, or has hooks, which are not where servers step.
    """
    if isinstance(optimizer, LBFGS):
        raise ConfigurationError(
            "optimizer LBFGS evaluates the loss itself, several times a step, which parameter servers cannot; "
            "use another, such as SGD or Adam, or train over AllReduce"
        )
    if has_step_hooks(optimizer):
        raise ConfigurationError(
            f"optimizer {type(optimizer).__name__} has hooks on its steps, which parameter servers make, where the "
            "hooks are not; clip with context.step(loss, optimizer, max_norm=...), do what comes after a step behind "
            "context.step(), or train over AllReduce"
        )


def restricted(
    optimizer: Optimizer, parameters: Sequence[Tensor]
) -> tuple[Optimizer, tuple[int, ...], list[nn.Parameter]]:
    """A copy of an optimizer for some of its parameters, with their state.

    Returns:
        The copy; which parameter groups it has; and the empty stand-ins for the parameters, in their order.
    """
    stand_ins = {parameter: nn.Parameter(torch.empty(0, dtype=parameter.dtype)) for parameter in parameters}
    groups = [
        {**group, "params": [stand_ins[parameter] for parameter in group["params"] if parameter in stand_ins]}
        for group in optimizer.param_groups
    ]
    kept = tuple(index for index, group in enumerate(groups) if group["params"])
    part = copy.copy(optimizer)
    part.param_groups = [groups[index] for index in kept]
    part.state = defaultdict(
        dict, {stand_ins[parameter]: state for parameter, state in optimizer.state.items() if parameter in stand_ins}
    )
    return part, kept, list(stand_ins.values())


def groups_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The options of its parameter groups; a tensor of one element as a number."""
    return [
        {name: _plain(value) for name, value in group.items() if name != "params"} for group in optimizer.param_groups
    ]


def pack_state(optimizer: Optimizer, parameters: Sequence[Tensor]) -> bytes:
    """An optimizer's state of some parameters, packed."""
    return _pack([optimizer.state.get(parameter, {}) for parameter in parameters])


def take_state(optimizer: Optimizer, parameters: Sequence[Tensor], packed: bytes) -> None:
    """Gives an optimizer what `pack_state` packed, for the same parameters."""
    for parameter, state in zip(parameters, _unpack(packed), strict=True):
        if state:
            # Counters of steps have no dimensions, and stay on the processor.
            optimizer.state[parameter] = {
                name: value.to(parameter.device) if isinstance(value, Tensor) and value.ndim else value
                for name, value in state.items()
            }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def _pack(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, pickle_module=cloudpickle)
    return stream.getvalue()


def _unpack(packed: bytes) -> Any:
    # It comes from a worker of the same gang, which showed the token that only they have.
    return torch.load(io.BytesIO(packed), map_location="cpu", weights_only=False)
