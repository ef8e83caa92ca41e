"""Checks of a function's metrics, norms and checkpoints, such as values that `torch.load(weights_only=True)` takes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from trainers.errors import TrialError
from trainers.metrics import flat
from trainers.pytorch.state import shards

_NUMBERS = (bool, int, float, complex, str, bytes)
_ATOMS = (*_NUMBERS, bytearray, type(None), torch.Size, torch.dtype, torch.device)
_TENSORS = (torch.Tensor, nn.Parameter)
_DICTS = (dict, OrderedDict, Counter)
_LISTS = (list, tuple, set)
_BASES = (dict, list, tuple, set, str, bytes, int, float)
"""Types that users derive from: what is of a derived type says which of them to give in its place."""


def plain(value: Any, where: str) -> Any:
    """A value as a checkpoint holds it: NumPy's numbers become Python's; what is plain already stays the same object.

    Types are compared exactly: one that is derived from a plain type is saved, but never read again.

    Args:
        value: any.
        where: names it in errors.

    Raises:
        TrialError: it could not be read back safely.
    """
    kind = type(value)
    if kind in _ATOMS:
        if value == b"" and kind is bytes:  # PyTorch's pickles have it as a call of `bytes`, which it does not load.
            raise TrialError(f"report(checkpoint=...): {where} is b''; give None or bytearray()")
        return value
    if kind in _TENSORS:
        _check_attributes(value, where)
        return value
    if kind in _DICTS:
        _check_attributes(value, where)
        return _plain_dict(value, where)
    if kind in _LISTS:
        items = [plain(item, f"{where}[{at}]") for at, item in enumerate(value)]
        return value if all(map(_is, items, value)) else kind(items)
    if shards.is_sharded(value):
        if any(placement.is_partial() for placement in value.placements):
            raise TrialError(
                f"report(checkpoint=...): {where} is a DTensor of partial sums, {value.placements}; give its "
                "redistribute(placements=[...]) or full_tensor()"
            )
        return value
    if isinstance(value, shards.Stored):
        return value
    if isinstance(value, np.generic) and type(item := value.item()) in _NUMBERS:
        return plain(item, where)
    raise TrialError(
        f"report(checkpoint=...): {where} is a {kind.__module__}.{kind.__qualname__}; give {_instead(value)}"
    )


def plain_state(state: object, report: str) -> dict[str, Any]:
    """A report's checkpoint as it will be read back; checked in every report, so that the first says what is wrong.

    Args:
        state: what the function handed in.
        report: names the report, as in "epoch 3".

    Raises:
        TrialError: it is no dict, or could not be read back.
    """
    if not isinstance(state, Mapping):
        raise no_state(state, report)
    found: dict[str, Any] = plain(dict(state), "checkpoint")
    return found


def other_workers(trained: int, here: int) -> TrialError:
    """The error about a checkpoint of so many workers, which a gang of another number cannot go on from."""
    return TrialError(
        f"the checkpoint was trained by {trained} workers, and this gang has {here}; go on with as many, or train from "
        "the beginning"
    )


def no_state(state: object, report: str) -> TrialError:
    """The error of a report that needs a checkpoint and has none, or with what is none."""
    return TrialError(
        f"the report of {report} came with checkpoint={state!r}; give report(metrics, checkpoint="
        "{'model': model.state_dict(), 'optimizer': optimizer.state_dict()})"
    )


def never_reported(objective: str, metrics: Mapping[str, float], units: str) -> TrialError:
    """The error of a function that never reports the objective."""
    names = ", ".join(map(repr, metrics)) or "nothing"
    return TrialError(f"it reported {names} in {units} and never {objective!r}, which is the objective; report it, too")


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """A report's metrics, nested ones as "val/loss"; None is no metric.

    Raises:
        TrialError: one is no number.
    """
    return {name: _number(name, value) for name, value in flat(metrics).items() if value is not None}


def _number(name: object, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TrialError(f"report: metric {name!r} is {value!r}; give a number") from error
    except OverflowError as error:
        raise TrialError(
            f"report: metric {name!r} is an integer too large for a float; give a smaller number"
        ) from error


def norm(value: Any) -> float | None:
    """The norm to clip to, if any.

    Raises:
        TrialError: it is no number above 0.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0:
        raise TrialError(f"context.step(max_norm={value!r}): give a number above 0, or None")
    return float(value)


def _plain_dict(value: Mapping[Any, Any], where: str) -> Mapping[Any, Any]:
    items = {}
    for own, item in value.items():
        key = own.item() if isinstance(own, np.generic) else own
        if type(key) not in (str, bool, int, float):
            raise TrialError(f"report(checkpoint=...): {where} has the key {own!r}; give text or numbers as keys")
        items[key] = plain(item, f"{where}[{key!r}]")
    if all(map(_is, items, value)) and all(map(_is, items.values(), value.values())):
        return value
    made = type(value)(items)  # type: ignore[call-arg]  # it is one of `_DICTS`
    if isinstance(made, OrderedDict):
        vars(made).update(vars(value))
    return made


def _check_attributes(value: Any, where: str) -> None:
    """Attributes that somebody gave a tensor or a state_dict are saved with it, and cannot be replaced in it."""
    for name, attribute in getattr(value, "__dict__", {}).items():
        if plain(attribute, f"{where}.{name}") is not attribute:
            raise TrialError(
                f"report(checkpoint=...): {where}.{name} is {attribute!r}, of NumPy's; give Python's numbers and text"
            )


def _instead(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "torch.from_numpy(...) of it"
    if isinstance(value, torch.Tensor):
        return "a plain tensor, such as its detach().as_subclass(torch.Tensor)"
    for base in _BASES:
        if isinstance(value, base):
            return f"{base.__name__}(...) of it, since checkpoints hold no derived types"
    return "tensors, numbers, text, lists and dicts of them, such as a state_dict()"


def _is(one: object, other: object) -> bool:
    return one is other


def unreported(rank: int, now: str, unit: str) -> TrialError:
    """The error of a function that ends a unit without a report."""
    return TrialError(f"rank {rank} ended {now} without a report; call report() in every {unit}, on every rank")


def returned_early(rank: int, reported: int, stop: int, unit: str) -> TrialError:
    """The error of a function that comes back before its last report."""
    return TrialError(
        f"the training function returned on rank {rank} after the reports of {reported} of {stop} {unit}s; loop over "
        f"context.epochs() and call report() in every {unit}, or end the trial early with report(..., final=True)"
    )
