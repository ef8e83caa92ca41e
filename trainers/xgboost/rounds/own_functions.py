"""An objective and metrics of the user's own: functions as `xgboost.train` takes them, or their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trainers.errors import ConfigurationError, TrialError
from trainers.process import load, name_of

OBJECTIVE, METRICS = "objective_function", "metric_functions"
"""What the trainer takes them as."""

_NUMBERS = "fiubO"
"""NumPy's kinds of arrays whose elements may be real numbers."""
_SHORT = Repr()
"""Shows what a function returned: in a line, also where it is long or has no `repr`."""
_SHORT.maxother = _SHORT.maxstring = 80

Function = Callable[[Any, Any], Any]
"""Takes predictions and their `xgboost.DMatrix`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """The workers of a gang, which hear of what one of them found.

    Args:
        rank: of this worker.
        world_size: how many there are.
    """

    rank: int = 0
    world_size: int = 1

    def first(self, error: str) -> str:
        """The error of the first worker that has one; empty if none has. Every worker calls it."""
        if self.world_size == 1:
            return error
        from xgboost import collective

        flags = np.zeros(self.world_size, np.int64)
        flags[self.rank] = bool(error)
        (failed,) = np.nonzero(collective.allreduce(flags, collective.Op.SUM))
        return collective.broadcast(error, int(failed[0])) if len(failed) else ""

    def of_first(self, value: Any) -> Any:
        """Rank 0's value; every worker calls it."""
        if self.world_size == 1:
            return value
        from xgboost import collective

        return collective.broadcast(value, 0)

    def greatest(self, array: NDArray[Any]) -> NDArray[Any]:
        """The greatest of all workers' arrays, number by number; every worker calls it."""
        if self.world_size == 1:
            return array
        from xgboost import collective

        return collective.allreduce(array, collective.Op.MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFunctions:
    """The functions of a trainer.

    Args:
        objective: returns gradients and second derivatives, of the shape of the margins that it is given; None: the
            hyperparameter `objective`.
        metrics: each returns a name and a number, of predictions, or of margins where there is an objective.
    """

    objective: Function | None = None
    metrics: tuple[Function, ...] = ()

    @classmethod
    def of(cls, objective: Any, metrics: Any) -> Self:
        """The functions out of what a user gave.

        Raises:
            ConfigurationError: one is no function, or is not found.
        """
        if metrics is not None and (isinstance(metrics, str) or not isinstance(metrics, list | tuple)):
            raise ConfigurationError(f"{METRICS} is {metrics!r}; give a list of functions, or of names 'module:name'")
        return cls(
            objective=None if objective is None else _resolved(OBJECTIVE, objective),
            metrics=tuple(_resolved(f"{METRICS}[{at}]", metric) for at, metric in enumerate(metrics or ())),
        )

    def __bool__(self) -> bool:
        return self.objective is not None or bool(self.metrics)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the trainer takes, without what is left out."""
        objective = {} if self.objective is None else {OBJECTIVE: self.objective}
        return {**objective, **({METRICS: list(self.metrics)} if self.metrics else {})}

    @property
    def names(self) -> dict[str, Any]:
        """The same by names, for the record."""
        return {
            name: [name_of(each) for each in value] if isinstance(value, list) else name_of(value)
            for name, value in self.arguments.items()
        }

    def update(self, booster: Any, matrix: Any, peers: Peers, iteration: int) -> None:
        """Boosts one round; each worker hands in the gradients of its own rows.

        Raises:
            TrialError: the function raised, or did not return what it has to; on every worker, if it is on one.
        """
        booster.update(matrix, iteration, None if self.objective is None else self._checked_gradients(peers))

    def measured(self, booster: Any, matrices: Mapping[str, Any], peers: Peers) -> dict[str, float]:
        """The metrics of all rows, by "channel:metric": rank 0 computes them, and all workers have its numbers.

        Raises:
            TrialError: as of `update`.
        """
        found: dict[str, float] | str = {}
        if peers.rank == 0:
            try:
                found = self._measured_on_all(booster, matrices)
            except Exception as error:  # Of any kind: the others wait for what is broadcast.
                if peers.world_size == 1:
                    raise
                found = str(error) if isinstance(error, TrialError) else _described(error)
        found = peers.of_first(found)
        if isinstance(found, str):
            raise TrialError(found)
        return found

    def _measured_on_all(self, booster: Any, matrices: Mapping[str, Any]) -> dict[str, float]:
        found: dict[str, float] = {}
        for channel, matrix in matrices.items():
            for metric in self.metrics:
                name, number = self._measured(metric, booster, channel, matrix)
                if name in found:
                    raise TrialError(
                        f"{METRICS} {name_of(metric)!r} returned the name {name.partition(':')[2]!r}, which another "
                        "of them has; give each its own"
                    )
                found[name] = number
        return found

    def _measured(self, function: Function, booster: Any, channel: str, matrix: Any) -> tuple[str, float]:
        predicted = booster.predict(matrix, output_margin=self.objective is not None)
        answer = _called(METRICS, function, predicted, matrix)
        who = f"{METRICS} {name_of(function)!r}"
        if not isinstance(answer, tuple | list) or len(answer) != 2 or not isinstance(answer[0], str):
            raise TrialError(f"{who} returned {_SHORT.repr(answer)}; return a name and a number, such as ('cost', 0.3)")
        name, value = answer
        if not name or not name.isprintable():
            raise TrialError(f"{who} returned the name {_SHORT.repr(name)}; return one of letters, such as 'cost'")
        number = _number(value)
        if number is None:
            raise TrialError(f"{who} returned {_SHORT.repr(value)} as {name!r}; return a number")
        return f"{channel}:{name}", number

    def _checked_gradients(self, peers: Peers) -> Function:
        assert self.objective is not None, "without one, nothing is called"
        objective = self.objective

        def gradients(margins: Any, matrix: Any) -> tuple[Any, Any]:
            error, cause, found = "", None, (margins, margins)
            try:
                found = _pair(name_of(objective), _called(OBJECTIVE, objective, margins, matrix), margins)
            except TrialError as raised:
                error, cause = str(raised), raised
            if first := peers.first(error):  # Before any of them waits for others' histograms.
                raise cause if cause is not None and first == error else TrialError(first)
            return found

        return gradients


def unallowed(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a record whose code may not be imported: functions that say so once they are called."""
    shown = dict(options)
    if OBJECTIVE in shown:
        shown[OBJECTIVE] = _refusing(OBJECTIVE, str(shown[OBJECTIVE]))
    if METRICS in shown:
        shown[METRICS] = [_refusing(METRICS, str(name)) for name in shown[METRICS]]
    return shown


def _refusing(argument: str, name: str) -> Function:
    def refused(predictions: Any, matrix: Any) -> Any:
        raise ConfigurationError(
            f"{argument} {name!r} was named by a record, which runs no code unless that is allowed: look at it, and "
            "give allow_code=True to attach(), or --allow-code to hpo resume, if you trust it"
        )

    refused.__module__, _, refused.__qualname__ = name.partition(":")
    return refused


def _resolved(argument: str, given: Any) -> Function:
    if callable(given):
        return given  # type: ignore[no-any-return]  # what is called may take anything
    if not isinstance(given, str) or not all(given.partition(":")):
        raise ConfigurationError(
            f"{argument} is {given!r}; give a function of predictions and a DMatrix, or its name as 'module:name'"
        )
    function = load(given, argument, "function")
    if not callable(function):
        raise ConfigurationError(f"{argument} {given!r} is a {type(function).__name__}; give a function")
    return function  # type: ignore[no-any-return]  # as above


def _called(argument: str, function: Function, predictions: Any, matrix: Any) -> Any:
    try:
        return function(predictions, matrix)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Panics of libraries in Rust, and sys.exit, are no `Exception`.
        raise TrialError(f"{argument} {name_of(function)!r} raised {_described(error)}") from error


def _described(error: BaseException) -> str:
    """An exception of code that is not ours, whose text may be an exception in turn."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which has no text"


def _number(value: Any) -> float | None:
    """A metric's value; None if it is no number."""
    if isinstance(value, str | bytes) or np.iscomplexobj(value):  # A text of digits may be anything next time.
        return None
    try:
        return float(value)
    except Exception:  # What is no number says what it likes.
        return None


def _pair(name: str, answer: Any, margins: Any) -> tuple[Any, Any]:
    """The two arrays that an objective returned, of float32 and of the margins' shape."""
    who, shape = f"{OBJECTIVE} {name!r}", margins.shape
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TrialError(
            f"{who} returned a {type(answer).__name__}; return two arrays, gradients and second derivatives"
        )
    arrays = []
    for what, values in zip(("gradients", "second derivatives"), answer, strict=True):
        try:
            raw = np.asarray(values)
            if raw.dtype.kind not in _NUMBERS:
                raise TypeError(f"they are of {raw.dtype}")
            with np.errstate(over="ignore"):  # What no float32 holds is said below.
                array = raw.astype(np.float32, copy=False)
        except Exception as error:  # What is no array says what it likes, on one worker perhaps.
            raise TrialError(
                f"{who} returned {what} that are no numbers ({_described(error)}); return a NumPy array"
            ) from None
        if array.shape != shape and array.shape != (*shape, 1):
            raise TrialError(f"{who} returned {what} of shape {array.shape}; return those of the margins, {shape}")
        if not np.isfinite(array).all():
            (at, *_) = np.argwhere(~np.isfinite(array))[0]
            raise TrialError(f"{who} returned {what} that are no finite numbers, the first of row {at} of a worker's")
        arrays.append(array.reshape(shape))
    return arrays[0], arrays[1]
