"""Owners of optimizer states: the parameters of a worker's prepared models, by their names in the whole models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from trainers.pytorch.state.shards.names import cut, is_optimizer_state, named


class Owners:
    """Names the parameters of optimizers' states, so that workers with different ones put them together."""

    def __init__(self) -> None:
        self.order: list[str] = []
        """Names of all parameters of the whole models, in their order."""
        self._names: dict[nn.Parameter, str] = {}
        self._models = 0

    def add(self, model: nn.Module, names: Sequence[str]) -> None:
        """Takes a prepared model.

        Args:
            model: as this worker has it.
            names: of the parameters of the whole model.
        """
        prefix = f"{self._models}:" if self._models else ""
        self._models += 1
        self.order += [prefix + name for name in names]
        self._names |= {parameter: prefix + name for name, parameter in model.named_parameters()}

    def named(self, state: Any, optimizers: Iterable[Optimizer]) -> Any:
        """A checkpoint in which the states of these optimizers have the names of their parameters."""
        known = [
            (optimizer, [parameter for group in optimizer.param_groups for parameter in group["params"]])
            for optimizer in optimizers
        ]

        def with_names(one: Mapping[str, Any]) -> dict[str, Any]:
            for optimizer, parameters in known:
                if _is_of(one, optimizer, parameters) and all(each in self._names for each in parameters):
                    return named(one, [self._names[parameter] for parameter in parameters])
            return dict(one)

        return _changed(state, with_names)

    def cut(self, state: Any) -> Any:
        """A checkpoint with what of each optimizer's state is of this worker's parameters."""
        mine = set(self._names.values())

        def cut_to_mine(one: Mapping[str, Any]) -> dict[str, Any]:
            # Replicas write no names: their optimizers have the whole models' parameters, as a rule in their order.
            unnamed = not any("param_names" in group for group in one["param_groups"])
            count = sum(len(group["params"]) for group in one["param_groups"])
            return cut(named(one, self.order) if unnamed and count == len(self.order) else one, mine)

        return _changed(state, cut_to_mine)


def _is_of(state: Mapping[str, Any], optimizer: Optimizer, parameters: Sequence[nn.Parameter]) -> bool:
    """Whether a state is of an optimizer: it has the very values that the optimizer has."""
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    if len(numbers) != len(parameters):
        return False
    return all(
        state["state"].get(number, {}).get(name) is value
        for number, parameter in zip(numbers, parameters, strict=True)
        for name, value in optimizer.state.get(parameter, {}).items()
    )


def _changed(state: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """A checkpoint with its optimizer states changed."""
    if is_optimizer_state(state):
        return change(state)
    if type(state) is dict:
        return {name: _changed(value, change) for name, value in state.items()}
    return state
