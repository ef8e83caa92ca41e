"""Nested states: tensors taken out of them and put back by their paths, and those of all workers as one."""

from __future__ import annotations

import json
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainers.pytorch.state.shards.names import by_name, is_optimizer_state, numbered, together

Path = tuple[str | int | float | bool, ...]

INLINE = 1 << 14
"""Bytes of a plain tensor that is kept among the other values, as an optimizer's `step` is."""

_DICTS = (dict, OrderedDict, Counter)


def is_sharded(value: Any) -> bool:
    """Whether a value is a DTensor: where their module was never imported, there is none."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def key_of(path: Path) -> str:
    """The name of a tensor in a checkpoint: its path as JSON, in which 1 and "1" differ."""
    return json.dumps(path)


def leaves(value: Any) -> list[Any]:
    """Everything in a state that holds nothing else."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def split(state: Mapping[str, Any], chosen: Callable[[Any], bool]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A state without its chosen tensors, and those by their keys; optimizers' states that have names are by name."""
    tensors: dict[str, Tensor] = {}

    def taken(value: Any, path: Path) -> Any:
        if not chosen(value):
            return value
        tensors[key_of(path)] = value
        return None

    tree: dict[str, Any] = _mapped(dict(state), (), taken, before=by_name)
    return tree, tensors


def filled(tree: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The state of a tree: `tensors`, by their keys, stand where `split` took them out; parameters are numbered."""

    def put(value: Any, path: Path) -> Any:
        return tensors.get(key_of(path)) if value is None else value

    state: dict[str, Any] = _mapped(dict(tree), (), put, after=numbered)
    return state


def mapped(state: Any, change: Callable[[Any], Any]) -> Any:
    """A state whose values went through `change`."""
    return _mapped(state, (), lambda value, _: change(value))


def merged(trees: Sequence[dict[str, Any]], order: Mapping[str, int]) -> dict[str, Any]:
    """The trees of all workers as one: what several of them have is the first one's.

    Args:
        trees: by rank.
        order: places of parameters' names in the whole model.

    Raises:
        TrialError: see `together`.
    """
    tree: dict[str, Any] = _merged(list(trees), order)
    return tree


def _merged(values: list[Any], order: Mapping[str, int]) -> Any:
    first = values[0]
    if len(values) == 1:
        return first
    if isinstance(first, dict):
        dicts = [value for value in values if isinstance(value, dict)]
        keys = dict.fromkeys(key for value in dicts for key in value)
        items = {key: _merged([value[key] for value in dicts if key in value], order) for key in keys}
        if all(map(is_optimizer_state, dicts)):
            items["param_groups"] = together(dicts, order)
        return _like(first, items, dicts)
    if isinstance(first, list | tuple):
        alike = [value for value in values if type(value) is type(first) and len(value) == len(first)]
        return type(first)(_merged(list(each), order) for each in zip(*alike, strict=True))
    return first


def _mapped(
    value: Any,
    path: Path,
    change: Callable[[Any, Path], Any],
    before: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    after: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Any:
    if isinstance(value, dict):
        optimizer = is_optimizer_state(value)
        given = before(value) if optimizer else value
        items = {key: _mapped(item, (*path, key), change, before, after) for key, item in given.items()}
        return _like(value, after(items) if optimizer else items)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, (*path, at), change, before, after) for at, item in enumerate(value))
    return change(value, path)


def _like(value: dict[Any, Any], items: dict[Any, Any], others: Sequence[Any] = ()) -> Any:
    """A dict of the same type, with its attributes: a model's state_dict has `_metadata`."""
    made = type(value)(items)
    if isinstance(made, OrderedDict):
        for each in (*reversed(others), value):
            for name, attribute in vars(each).items():
                before = vars(made).get(name)
                both = isinstance(before, dict) and isinstance(attribute, dict)
                setattr(made, name, type(attribute)({**before, **attribute}) if both else attribute)  # type: ignore[dict-item]
    return made


def on_host(value: Any) -> Any:
    """A tensor in the host's memory; another worker may not see the device that it is on."""
    return value.detach().cpu() if type(value) in (Tensor, nn.Parameter) and value.device.type == "cuda" else value


def is_large(value: Any) -> bool:
    """Whether a value is a tensor too large to be among the others."""
    return (
        type(value) in (Tensor, nn.Parameter)
        and value.layout == torch.strided
        and not value.is_quantized
        and value.device.type != "meta"
        and value.nbytes > INLINE
    )
