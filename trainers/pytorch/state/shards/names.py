"""Optimizer states by the names of parameters: put together from workers that have different ones, and cut again.

PyTorch numbers an optimizer's parameters, group after group. A group's `param_names`, which PyTorch keeps in a state
and does not look at, says which they are; a checkpoint has names in place of numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trainers.errors import TrialError

_NAMES = "param_names"


def is_optimizer_state(value: Any) -> bool:
    """Whether a value is what `Optimizer.state_dict` gives."""
    if not isinstance(value, dict) or not {"state", "param_groups"} <= value.keys():
        return False
    groups = value["param_groups"]
    return isinstance(groups, list) and all(isinstance(group, dict) and "params" in group for group in groups)


def named(state: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """An optimizer's state with the names of its parameters.

    Args:
        state: of `Optimizer.state_dict`.
        names: of its parameters by their numbers in it: of each group in turn, fully qualified in the whole model.

    Raises:
        TrialError: there are more or fewer names than parameters, or one stands twice.
    """
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    if len(numbers) != len(names) or len(set(names)) != len(names):
        raise TrialError(
            f"an optimizer of {len(numbers)} parameters got {len(names)} names of parameters, {len(set(names))} of "
            "them different; give each parameter its own"
        )
    name_of = dict(zip(numbers, names, strict=True))
    groups = [{**group, _NAMES: [name_of[number] for number in group["params"]]} for group in state["param_groups"]]
    return {**state, "param_groups": groups}


def by_name(state: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's state with names in place of numbers, where it has names; else as it is."""
    groups = state["param_groups"]
    if not groups or not all(_NAMES in group for group in groups):
        return dict(state)
    name_of = {number: name for group in groups for number, name in zip(group["params"], group[_NAMES], strict=True)}
    return {
        **state,
        "state": {name_of.get(number, number): value for number, value in state["state"].items()},
        "param_groups": [
            {**{key: value for key, value in group.items() if key != _NAMES}, "params": group[_NAMES]}
            for group in groups
        ],
    }


def numbered(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that `by_name` was given: parameters have the numbers of their places, group after group."""
    names = [name for group in state["param_groups"] for name in group["params"]]
    if not any(isinstance(name, str) for name in names):
        return dict(state)
    numbers = {name: number for number, name in enumerate(names)}
    return {
        **state,
        "state": {numbers.get(name, name): value for name, value in state["state"].items()},
        "param_groups": [
            {**group, "params": [numbers[name] for name in group["params"]], _NAMES: group["params"]}
            for group in state["param_groups"]
        ],
    }


def cut(state: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The part of an optimizer's state that is of some parameters, numbered as an optimizer of them numbers them.

    Args:
        state: with names.
        names: of the parameters.

    Raises:
        TrialError: the state has no names.
    """
    whole = by_name(state)
    if any(not isinstance(name, str) for group in whole["param_groups"] for name in group["params"]):
        raise TrialError("an optimizer's state in the checkpoint has no names of parameters, and cannot be cut by them")
    wanted = set(names)
    return numbered(
        {
            **whole,
            "state": {name: value for name, value in whole["state"].items() if name in wanted},
            "param_groups": [
                {**group, "params": [name for name in group["params"] if name in wanted]}
                for group in whole["param_groups"]
            ],
        }
    )


def together(states: Sequence[dict[str, Any]], order: Mapping[str, int]) -> list[dict[str, Any]]:
    """The groups of workers' states by name, as one optimizer of all their parameters has them.

    Args:
        states: by rank.
        order: places of names in the whole model; names that it does not have keep the order of the ranks.

    Raises:
        TrialError: the workers have different numbers of groups.
    """
    counts = [len(state["param_groups"]) for state in states]
    if len(set(counts)) != 1:
        raise TrialError(
            f"the workers' optimizers have different numbers of parameter groups, by rank {counts}; make as many on "
            "each worker, empty ones too"
        )
    groups = []
    for own in zip(*(state["param_groups"] for state in states), strict=True):
        names = list(dict.fromkeys(name for group in own for name in group["params"]))
        if order:
            names.sort(key=lambda name: order.get(name, len(order)))
        groups.append({**own[0], "params": names})
    return groups
