"""Functions that a program calls, such as `report`, without effect where Warmband does not run the program.

The package needs nothing but Python: a job puts it on the path of programs whose environment has no Warmband. An
installation of Warmband has it too, and there it also has the public names of `hpo` and `trainers`, such as
`warmband.HyperparameterTuner`, each loaded when it is first used.
"""

from __future__ import annotations

import argparse
import copy
import functools
import hashlib
import importlib.util
import json
import marshal
import math
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar

__all__ = ["Paused", "hyperparameters", "keep", "report", "session"]

_RANKS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "HOROVOD_RANK",
    "SLURM_PROCID",
)
"""Variables by which launchers tell a process its rank."""
_GIVEN = "WARMBAND_GIVEN_RANKS"
"""The variable with the ranks that the launcher itself was given; see `warmband_rank`."""
_VALUES = 4
"""Values that `keep` has of one function: those of the arguments used last."""

_INSTALLED = ("hpo", "trainers")
"""Packages whose public names are also names of this one."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Paused(BaseException):
    """Ends a trial's turn in a program that is kept loaded, and goes on after `report` said that it stops there."""


def report(metrics: Mapping[str, Any] | None = None, /, *, step: float | None = None, **more: Any) -> bool:
    """Reports metrics, once a unit of training; of several processes the first one's count.

    Args:
        metrics: numbers by name, such as {"validation:accuracy": 0.9}.
        step: the unit that they belong to, from 0 or from 1 on, or a step as the trainer's `step` describes them; None:
            the unit after the last.
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
            line["step"] = _plain(step)
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
    turn.loops()
    while True:
        yield parser.parse_args() if parser else argparse.Namespace(**hyperparameters())
        if not turn.next():
            return


def keep(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates a function whose value stays for the trials to come, such as a data set or the weights to start from.

    In a program that is kept loaded it runs once for the arguments that it is called with; the last four are kept. A
    PyTorch module is handed out as a copy, also within tuples, lists and dicts, so that a trial may train it. Any other
    value is the same for all trials, and made anew where a trial has changed it, which its pickle tells.

    Args:
        function: makes the value; its arguments, and what it closes over, can be pickled.
    """
    name = f"{_named(function, '__module__')}.{_named(function, '__qualname__')}"

    @functools.wraps(function)
    def kept(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        key = digest((function, args, sorted(kwargs.items())), code=True)
        if key is None:
            raise TypeError(
                f"{name} is kept by its arguments and what it closes over, and they cannot be pickled: {args}, {kwargs}"
            )
        values = store.values.setdefault(name, OrderedDict())
        if key not in values:
            values[key] = _Kept.of(name, function(*args, **kwargs))
            while len(values) > _VALUES:
                values.popitem(last=False)
        values.move_to_end(key)
        return values[key].handed()  # type: ignore[no-any-return]  # what the function gave

    return kept


def __getattr__(name: str) -> Any:
    """Return a public name of the packages of `_INSTALLED`.

    Raises:
        AttributeError: there is none, or Warmband is not installed in the program's environment.
        ImportError: a file or folder of the user's hides one of the packages.
    """
    if not name.startswith("__") and installed("hpo") is not None:
        for package in map(importlib.import_module, _INSTALLED):
            if name in package.__all__:
                return getattr(package, name)
    raise AttributeError(
        f"module 'warmband' has no attribute {name!r}; it has {', '.join(__all__)}, and the public names of "
        f"{' and '.join(_INSTALLED)} where Warmband is installed"
    )


def installed(package: str) -> ModuleType | None:
    """Return a package of Warmband's, imported; None where Warmband is not installed beside this module.

    Args:
        package: its name.

    Raises:
        ImportError: Python finds another module of that name first; the message names its file and the remedy.
    """
    here = os.path.realpath(os.path.dirname(__file__))
    roots = [os.path.dirname(here), os.path.abspath(os.path.join(here, *[os.pardir] * 4))]  # Of a wheel, of a checkout.
    own = [os.path.join(root, package) for root in roots if os.path.isfile(os.path.join(root, package, "__init__.py"))]
    if not own:
        return None
    spec = importlib.util.find_spec(package)  # It imports nothing: what is found may be a program of the user's.
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else [package]
    if not any(os.path.realpath(place) in own for place in places):
        place = places[0]
        raise ImportError(
            f"Warmband needs its own package {package!r}, and Python finds {place!r} first, which is not Warmband's; "
            "rename that, or leave its folder out of Python's path: by python -P, or by another PYTHONPATH"
        )
    return importlib.import_module(package)


@dataclass
class Turn:
    """A trial's turn in a program that is kept loaded; that of any other program ends with its process.

    Args:
        objective: the metric whose values are units; empty for the first that is reported.
        stop: the unit that it stops at; None where nobody says.
        seen: the unit before its first.
        first_step: the step of unit 1; None where the first step tells.
        every: steps of a unit.
        next: ends this turn, and waits for the next one; False where there is none.
        loops: is told that the program has come to its loop around trials.
        kept_loaded: whether the program stays for further trials.
    """

    objective: str = ""
    stop: int | None = None
    seen: int = 0
    first_step: float | None = None
    every: float = 1.0
    next: Callable[[], bool] = field(default=lambda: False)
    loops: Callable[[], None] = field(default=lambda: None)
    kept_loaded: bool = False
    stopped: bool = False

    def check(self) -> None:
        """Raises Paused, where the trial has stopped."""
        if self.stopped:
            raise Paused

    def count(self, metrics: Mapping[str, float], step: float | None) -> bool:
        """Counts a unit as the worker does that reads the reports; whether it is the one to stop at."""
        if self.stop is None:
            return False
        self.objective = self.objective or next(iter(metrics), "")
        if self.objective in metrics:
            self.seen = max(self.seen, self.seen + 1 if step is None else self._unit(float(step)))
            self.stopped = self.seen >= self.stop
        return self.stopped

    def _unit(self, step: float) -> int:
        """The unit of a step, as `trainers.script.steps` has it."""
        if self.first_step is None:
            self.first_step = 0.0 if step < self.every / 2 else self.every
        return math.floor((step - self.first_step) / self.every + 0.5) + 1


@dataclass
class _Kept:
    """A value that is kept.

    Args:
        value: as its function made it.
        copied: whether it is a PyTorch module, or holds some in tuples, lists and dicts, of which trials get copies.
        before: its digest, but for these modules; None where nobody will ask, or where it has none.
        earlier: whether it is of a trial before this one, whose program had classes of its own.
    """

    value: Any
    copied: bool
    before: str | None
    earlier: bool = False

    @classmethod
    def of(cls, name: str, value: Any) -> _Kept:
        """A new one, by its function's name."""
        modules = _modules(value)
        before = digest(value, apart=modules) if turn.kept_loaded else None
        if turn.kept_loaded and before is None and isinstance(value, Iterator):
            raise TypeError(f"{name} gives what one trial uses up, {value!r}; return a list, or what can be pickled")
        return cls(value=value, copied=bool(modules), before=before)

    @property
    def changed(self) -> bool:
        """Whether it is not what it was."""
        return self.before is not None and digest(self.value, apart=_modules(self.value)) != self.before

    def handed(self) -> Any:
        """What a trial gets."""
        if self.earlier:
            _renew(self.value)
            self.earlier = False
        return _copied(self.value, {}) if self.copied else self.value


class Store:
    """Values of functions that are kept, by the functions' names and their arguments."""

    def __init__(self) -> None:
        self.values: dict[str, OrderedDict[str, _Kept]] = {}

    def drop_changed(self) -> list[str]:
        """Forgets values that are not what they were; returns their functions' names."""
        changed = []
        for name, values in self.values.items():
            for key, kept in list(values.items()):
                kept.earlier = True
                if kept.changed:
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
    """Pickles classes and functions by their names, also those of a script that ran before.

    Args:
        into: is written to.
        apart: what is passed over, by its `id`.
        code: tell functions that share a name, such as lambdas, by their code and what they close over.
    """

    def __init__(self, into: _Hash, apart: set[int], code: bool) -> None:
        super().__init__(into, protocol=5)
        self._apart, self._code = apart, code

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, type | FunctionType | BuiltinFunctionType) and not self._by_code(value):
            owner = getattr(value, "__self__", None)
            if owner is None or isinstance(owner, ModuleType | type):
                return f"{value.__module__}.{value.__qualname__}"
        return "apart" if id(value) in self._apart else None

    def reducer_override(self, value: Any) -> Any:
        if not self._by_code(value):
            return NotImplemented
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        return exec, (marshal.dumps(value.__code__), cells, value.__defaults__, value.__kwdefaults__)

    def _by_code(self, value: Any) -> bool:
        return self._code and isinstance(value, FunctionType) and "<" in value.__qualname__


def digest(value: Any, *, apart: set[int] | None = None, code: bool = False) -> str | None:
    """Of a value's pickle; None where it has none. See `_Pickler`."""
    into = _Hash()
    try:
        _Pickler(into, apart or set(), code).dump(value)
    except Exception:  # Whatever a class of a user's raises.
        return None
    return into.state.hexdigest()


def _named(function: Any, attribute: str) -> str:
    """Of a function, or of the class of what is called like one."""
    return getattr(function, attribute, None) or str(getattr(type(function), attribute))


def _modules(value: Any) -> set[int]:
    """PyTorch modules, by their `id`, that a value is, or holds in tuples, lists and dicts."""
    if "torch.nn" not in sys.modules:
        return set()
    if _is_module(value):
        return {id(value)}
    found: set[int] = set()
    for each in _elements(value):
        found |= _modules(each)
    return found


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, tuple) or type(value) is list:
        return value
    return value.values() if type(value) is dict else ()


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    if _is_module(value):
        return copy.deepcopy(value, memo)
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value)(*(_copied(each, memo) for each in value))
    if type(value) in (tuple, list):
        return type(value)(_copied(each, memo) for each in value)
    if type(value) is dict:
        return {name: _copied(each, memo) for name, each in value.items()}
    return value


def _renew(value: Any) -> None:
    """Gives objects of classes of an earlier run of the program those of this one: it knows no others."""
    left, seen, classes = [value], {id(value)}, dict[type, type | None]()
    while left:
        each = left.pop()
        kind = type(each)
        if kind not in classes:
            classes[kind] = _current(kind)
        if (current := classes[kind]) is not None:
            with suppress(TypeError):  # They have nothing in common.
                object.__setattr__(each, "__class__", current)
        held = () if isinstance(each, type | FunctionType | ModuleType) else getattr(each, "__dict__", {}).values()
        for other in (*_elements(each), *held):
            if id(other) not in seen:
                seen.add(id(other))
                left.append(other)


def _current(kind: type) -> type | None:
    """The program's class of the same name, where it is another one."""
    module: Any = sys.modules.get(kind.__module__)
    folder = os.path.dirname(getattr(sys.modules["__main__"], "__file__", None) or "")
    if not folder or not (getattr(module, "__file__", None) or "").startswith(os.path.join(folder, "")):
        return None
    for name in kind.__qualname__.split("."):
        module = getattr(module, name, None)
    return module if isinstance(module, type) and module is not kind else None


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch.nn")
    return torch is not None and isinstance(value, torch.Module)


def _plain(step: float) -> float:
    """A step as JSON has it: a whole number without a point."""
    return int(step) if float(step).is_integer() else float(step)


def _rank() -> int:
    ranks = {name: os.environ[name] for name in _RANKS if name in os.environ}
    if _GIVEN in os.environ:  # Those that the launcher was given say nothing of this process.
        given = os.environ[_GIVEN].split()
        own = [rank for name, rank in ranks.items() if f"{name}={rank}" not in given]
        return next((int(rank) for rank in own if rank != "0"), 0)
    return int(next(iter(ranks.values()), "0"))
