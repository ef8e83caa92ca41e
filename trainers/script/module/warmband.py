"""What a program says to Warmband; without dependencies, and without effect where Warmband does not run the program."""

from __future__ import annotations

import argparse
import copy
import functools
import hashlib
import json
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import Any, ParamSpec, TypeVar

__all__ = ["Paused", "hyperparameters", "keep", "report", "session"]

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Variables by which launchers tell a process its rank."""
_VALUES = 4
"""Values that `keep` has of one function: those of the arguments used last."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Paused(BaseException):
    """Ends a trial's turn in a program that is kept loaded, and goes on after `report` said that it stops there."""


def report(metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> bool:
    """Reports metrics, once a unit of training; of several processes the first one's count.

    Args:
        metrics: numbers by name, such as {"validation:accuracy": 0.9}.
        step: the unit that they belong to, from 1; None: the one after the last.
        **more: further metrics, whose names are Python's.

    Returns:
        Whether the trial stops here, for now or for good: end the loop, and return. Only a program that is kept loaded
        is told so, on all processes at the same unit, if all of them report; any other one is ended from outside.

    Raises:
        TypeError, ValueError: a value is no number.
        Paused: the call before this one has returned True.
    """
    turn.check()
    line: dict[str, Any] = {name: float(value) for name, value in {**(metrics or {}), **more}.items()}
    stops = turn.count(line, step)
    path = os.environ.get("WARMBAND_REPORTS")
    if path and _rank() == 0:
        if step is not None:
            line["step"] = int(step)
        # One write of a whole line: the reader takes what ends in a newline.
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return stops


def hyperparameters() -> dict[str, Any]:
    """The trial's hyperparameters with their types; empty where Warmband does not run the program."""
    path = os.environ.get("WARMBAND_HYPERPARAMETERS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file))


def session(parser: argparse.ArgumentParser | None = None) -> Iterator[argparse.Namespace]:
    """Goes once around the training loop for each trial: `for args in warmband.session(parser):`.

    A program that is kept loaded gets all trials of its gang, one after the other, and what it made before the loop is
    there for all of them. Any other one goes around once.

    Args:
        parser: of the program's arguments; None for the trial's hyperparameters as they are.

    Yields:
        A trial's arguments.
    """
    while True:
        yield parser.parse_args() if parser else argparse.Namespace(**hyperparameters())
        if not turn.next():
            return


def keep(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates a function whose value stays for the trials to come, such as a data set or the weights to start from.

    In a program that is kept loaded it runs once for the arguments that it is called with; the last four are kept. A
    PyTorch module is handed out as a copy, also within a tuple, list or dict, so that a trial may train it. Any other
    value is the same for all trials, and made anew where a trial has changed it, which its pickle tells.

    Args:
        function: makes the value; its arguments can be pickled.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def kept(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        key = digest((args, sorted(kwargs.items())))
        if key is None:
            raise TypeError(f"{name} is kept by its arguments, and they cannot be pickled: {args}, {kwargs}")
        values = store.values.setdefault(name, OrderedDict())
        if key not in values:
            value = function(*args, **kwargs)
            values[key] = (value, digest(value) if turn.kept_loaded else None)
            while len(values) > _VALUES:
                values.popitem(last=False)
        values.move_to_end(key)
        return _handed(values[key][0])  # type: ignore[no-any-return]  # what the function gave

    return kept


@dataclass
class Turn:
    """A trial's turn in a program that is kept loaded; that of any other program ends with its process.

    Args:
        objective: the metric whose values are units; empty for the first that is reported.
        stop: the unit that it stops at; None where nobody says.
        seen: the unit before its first.
        next: ends this turn, and waits for the next one; False where there is none.
        kept_loaded: whether the program stays for further trials.
    """

    objective: str = ""
    stop: int | None = None
    seen: int = 0
    next: Callable[[], bool] = field(default=lambda: False)
    kept_loaded: bool = False
    stopped: bool = False

    def check(self) -> None:
        """Raises Paused, where the trial has stopped."""
        if self.stopped:
            raise Paused

    def count(self, metrics: Mapping[str, float], step: int | None) -> bool:
        """Counts a unit as the worker does that reads the reports; whether it is the one to stop at."""
        if self.stop is None:
            return False
        self.objective = self.objective or next(iter(metrics), "")
        if self.objective in metrics:
            self.seen = max(self.seen, self.seen + 1 if step is None else int(step))
            self.stopped = self.seen >= self.stop
        return self.stopped


class Store:
    """Values of functions that are kept, by the functions' names and their arguments."""

    def __init__(self) -> None:
        self.values: dict[str, OrderedDict[str, tuple[Any, str | None]]] = {}

    def drop_changed(self) -> list[str]:
        """Forgets values that are not what they were; returns their functions' names."""
        changed = []
        for name, values in self.values.items():
            for key, (value, before) in list(values.items()):
                if before is not None and digest(value) != before:
                    del values[key]
                    changed.append(name)
        return changed


turn = Turn()
"""Of this process."""
store = Store()
"""Of this process."""


class _Hash:
    """A file that is only hashed."""

    def __init__(self) -> None:
        self.state = hashlib.blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        self.state.update(data)
        return memoryview(data).nbytes


class _Pickler(pickle.Pickler):
    """Pickles classes and functions by their names, also those of a script that ran before; and no modules."""

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            return f"{value.__module__}.{value.__qualname__}"
        return "module" if _is_module(value) else None


def digest(value: Any) -> str | None:
    """Of a value's pickle; None where it has none."""
    into = _Hash()
    try:
        _Pickler(into, protocol=5).dump(value)
    except Exception:  # Whatever a class of a user's raises.
        return None
    return into.state.hexdigest()


def _handed(value: Any) -> Any:
    if _is_module(value):
        return copy.deepcopy(value)
    if type(value) in (tuple, list) and any(map(_is_module, value)):
        return type(value)(map(_handed, value))
    if type(value) is dict and any(map(_is_module, value.values())):
        return {name: _handed(each) for name, each in value.items()}
    return value


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch.nn")
    return torch is not None and isinstance(value, torch.Module)


def _rank() -> int:
    return int(next((os.environ[name] for name in _RANKS if name in os.environ), "0"))
