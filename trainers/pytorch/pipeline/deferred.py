"""Deferred tensors: the output of a model that a pipeline computes later, and all that is computed of it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from trainers.errors import TrialError
from trainers.pytorch.pipeline import trees

_NEED_VALUES = {
    "item",
    "tolist",
    "numpy",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "__array__",
    "__contains__",
    "__format__",
}
_ON_A_DEVICE = {"to", "cpu", "cuda"}
_SHAPED = {"view", "reshape", "expand"}
_APPLY = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]  # A method of the class.
_KNOWN = {"requires_grad": True, "is_leaf": False, "grad": None, "grad_fn": None, "is_meta": False}
"""Properties that are not those of the tensor without data."""


class Call:
    """One call of a model with gradients: the source of deferred tensors.

    Args:
        rows: of its input, along dimension 0.
        device: that the model is trained on.
    """

    def __init__(self, rows: int, device: torch.device) -> None:
        self.rows = rows
        self.device = device
        self.fetch: Callable[[], Sequence[Tensor]] | None = None
        """Gives the model's outputs once they are computed; all workers of the pipeline call it."""
        self.is_over = False
        self._made: list[weakref.ref[Tensor]] = []

    def output(self, index: int) -> Tensor:
        """An output of the model, once it is computed."""
        if self.fetch is None:
            raise TrialError(
                "an output of an earlier call of the model; a pipeline keeps those of the latest one, so take what you "
                "need of it before the next"
            )
        return self.fetch()[index]

    def note(self, made: Tensor) -> None:
        """Takes down a deferred tensor that comes of it."""
        self._made.append(weakref.ref(made))

    def others(self, loss: Tensor) -> bool:
        """Whether the function still has a deferred tensor of it beside its loss, whose values it may ask for."""
        alive = [made() for made in self._made]
        return any(made is not None and made is not loss for made in alive)


class Expression:
    """A tensor that is computed of a model's outputs."""

    value: Tensor | None = None
    """It, once it is known."""


class Output(Expression):
    """An output of a call, by its place among the model's outputs."""

    def __init__(self, call: Call, index: int) -> None:
        self.call, self.index = call, index


class Operation:
    """A function of expressions.

    Args:
        function: of torch, or a method of tensors.
        arguments: (positional, keywords), with expressions in place of deferred tensors.
        modes: make the modes in which it was called.
    """

    def __init__(self, function: Callable[..., Any], arguments: Any, modes: Sequence[Callable[[], Any]]) -> None:
        self.function, self.arguments, self.modes = function, arguments, modes


class Result(Expression):
    """A tensor among the results of an operation, which is let go once a value is known."""

    def __init__(self, operation: Operation, index: int) -> None:
        self.operation: Operation | None = operation
        self.index = index


class Deferred(Tensor):
    """A tensor whose shape is known, and whose values are not before `context.step`.

    Functions of it are recorded, and give deferred tensors. Once its call is computed it acts as a tensor with values.
    """

    expression: Expression
    call: Call

    @staticmethod
    def of(shape: Tensor, expression: Expression, call: Call) -> Deferred:
        """A deferred tensor.

        Args:
            shape: a tensor without data.
            expression: what it is.
            call: of the model that it comes of.
        """
        made: Deferred = shape.detach().as_subclass(Deferred)
        made.expression, made.call = expression, call
        call.note(made)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Records `func`, answers what shapes tell, or computes it where values are known."""
        arguments = (tuple(args), dict(kwargs or {}))
        deferred = [part for part in _plain_tensors(arguments) if isinstance(part, Deferred)]
        calls = {id(part.call): part.call for part in deferred}
        name = getattr(func, "__name__", str(func))
        if name == "__get__":
            return _property(func, deferred[0])
        if all(part.expression.value is not None or part.call.is_over for part in deferred):
            return _computed(func, arguments)
        if name in ("__repr__", "__format__", "__str__") and not (name == "__format__" and args[1:] != ("",)):
            return f"deferred tensor of shape {tuple(_shape(deferred[0]).shape)}, computed in context.step()"
        _check(name)
        _check_caller()
        if name == "__iter__":
            return iter(args[0].unbind(0))
        if len(calls) > 1:
            raise TrialError(
                f"{name} takes outputs of two calls of the model; in a pipeline a loss is computed of one call: put "
                "both inputs into one batch"
            )
        return _recorded(func, name, arguments, next(iter(calls.values())))


def contents(expression: Expression) -> tuple[list[Tensor], tuple[str, ...]]:
    """The tensors that an expression takes beside a model's outputs, each once, and the names of its functions.

    Both are in the order of their use.
    """
    found: dict[int, Tensor] = {}
    seen: dict[int, str] = {}

    def visit(part: Any) -> Any:
        if isinstance(part, Result) and part.operation is not None and id(part.operation) not in seen:
            seen[id(part.operation)] = getattr(part.operation.function, "__name__", "")
            trees.replaced(part.operation.arguments, visit)
        elif isinstance(part, Tensor):
            found.setdefault(id(part), part)
        return part

    visit(expression)
    return list(found.values()), tuple(seen.values())


@dataclass
class Values:
    """Values of expressions where the model's outputs are known.

    Args:
        output: gives an output of the model by its place.
        constant: gives what a tensor beside them is here: a part of it, say.
        size: gives what the first size of a shape is here.
    """

    output: Callable[[int], Tensor]
    constant: Callable[[Tensor], Tensor]
    size: Callable[[int], int]
    _results: dict[int, tuple[Operation, list[Tensor]]] = field(default_factory=dict)

    def of(self, expression: Expression) -> Tensor:
        """The value of one."""
        if expression.value is not None:
            return expression.value
        if isinstance(expression, Output):
            return self.output(expression.index)
        assert isinstance(expression, Result)
        operation = expression.operation
        assert operation is not None, "an expression without a value has an operation"
        if id(operation) not in self._results:
            positional, named = trees.replaced(operation.arguments, self._value)
            if getattr(operation.function, "__name__", "") in _SHAPED:
                positional = self._sized(positional)
            with ExitStack() as modes:
                for mode in operation.modes:
                    modes.enter_context(mode())
                results = trees.tensors(_applied(operation.function, positional, named))
            self._results[id(operation)] = operation, results
        return self._results[id(operation)][1][expression.index]

    def _sized(self, positional: Sequence[Any]) -> list[Any]:
        """The arguments of `view(8, 5)` or `reshape(output, (8, 5))` for as many rows as there are here."""
        target, *sizes = positional
        if sizes and isinstance(sizes[0], tuple | list):
            return [target, [self.size(sizes[0][0]), *sizes[0][1:]] if sizes[0] else sizes[0], *sizes[1:]]
        return [target, self.size(sizes[0]), *sizes[1:]] if sizes and isinstance(sizes[0], int) else list(positional)

    def _value(self, part: Any) -> Any:
        if isinstance(part, Expression):
            return self.of(part)
        return self.constant(part) if isinstance(part, Tensor) else part


def settled(loss: Deferred, value: Tensor) -> None:
    """Gives a loss its value; what it was computed of is let go."""
    loss.expression.value = value
    if isinstance(loss.expression, Result):
        loss.expression.operation = None


def _applied(function: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if any(part.is_meta for part in trees.tensors((positional, named))):
        return _without_data(function, getattr(function, "__name__", ""), (tuple(positional), named))
    return function(*positional, **named)


def _plain_tensors(tree: Any) -> list[Tensor]:
    with torch._C.DisableTorchFunctionSubclass():
        return trees.tensors(tree)


def _shape(deferred: Deferred) -> Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        return deferred.as_subclass(Tensor)


def _property(func: Any, deferred: Deferred) -> Any:
    """A property, such as `shape`; one that is a tensor, such as `T`, is recorded."""
    name = getattr(func.__self__, "__name__", "")
    if deferred.expression.value is not None:
        return func(deferred.expression.value)
    if name == "device":
        return deferred.call.device
    if name in ("is_cuda", "is_cpu"):
        return deferred.call.device.type == name.removeprefix("is_")
    if name == "requires_grad":
        return _shape(deferred).is_floating_point()
    if name in _KNOWN:
        return _KNOWN[name]
    found = func(_shape(deferred))
    return _recorded(func, name, ((deferred,), {}), deferred.call) if isinstance(found, Tensor) else found


def _check(name: str) -> None:
    """Refuses what cannot wait."""
    if name in _NEED_VALUES:
        raise TrialError(
            f"{name.strip('_')}() of what a model in a pipeline computes, before it is computed: call it after "
            "context.step(loss, optimizer), or call the model under torch.no_grad() where it is evaluated"
        )
    if name == "backward":
        raise TrialError("loss.backward() in a pipeline; call context.step(loss, optimizer), which computes it")
    if name in ("__setitem__", "requires_grad_", "register_hook", "retain_grad", "copy_", "__set__"):
        raise TrialError(f"{name} of a model's output, which a pipeline computes later; write it as a function of it")


def _check_caller() -> None:
    """Refuses to record within the forward pass of a `torch.autograd.Function`, whose backward pass would be lost."""
    if torch.is_grad_enabled():  # It is not within one.
        return
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code is _APPLY:
            name = getattr(frame.f_locals.get("cls"), "__name__", "a function")
            raise TrialError(
                f"{name}.apply() of what a model in a pipeline computes: the backward pass of a "
                "torch.autograd.Function cannot wait until it is computed; call it in the forward pass of the model, "
                "such as in its last layer"
            )
        frame = frame.f_back


def _computed(func: Any, arguments: Any) -> Any:
    """`func` of values that are known."""

    def value(part: Any) -> Any:
        if not isinstance(part, Deferred):
            return part
        known = part.expression.value
        if known is None:
            with torch.no_grad():
                known = part.expression.value = Values(part.call.output, _same, _same).of(part.expression)
        return known

    positional, named = trees.replaced(arguments, value)
    return func(*positional, **named)


def _same(part: Any) -> Any:
    return part


def _recorded(func: Any, name: str, arguments: Any, call: Call) -> Any:
    in_place = name.endswith("_") and not name.endswith("__")
    if in_place:
        func, name = _out_of_place(name, arguments)
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        found = _without_data(func, name, arguments)
    kept = trees.replaced(arguments, lambda part: part.expression if isinstance(part, Deferred) else part)
    operation, count = Operation(func, kept, _modes(call.device)), 0

    def deferred(part: Any) -> Any:
        nonlocal count
        if not isinstance(part, Tensor):
            return part
        count += 1
        return Deferred.of(part, Result(operation, count - 1), call)

    with torch._C.DisableTorchFunctionSubclass():
        made = trees.replaced(found, deferred)
        if in_place:
            arguments[0][0].expression = made.expression
            return arguments[0][0]
    return made


def _out_of_place(name: str, arguments: Any) -> tuple[Any, str]:
    """The function that computes what a method does in place; for single numbers, which nobody has a view of."""
    target, outer = arguments[0][0], getattr(Tensor, name[:-1], None)
    if not isinstance(target, Deferred) or _shape(target).dim() or outer is None:
        raise TrialError(
            f"{name} changes what a model in a pipeline computes in place; write it as a function that returns the "
            "changed tensor"
        )
    return outer, name[:-1]


def _without_data(func: Any, name: str, arguments: Any) -> Any:
    """The result's shapes."""

    def empty(part: Any) -> Any:
        if isinstance(part, Deferred):
            return part.as_subclass(Tensor)
        if isinstance(part, Tensor):
            return part.to("meta")
        if isinstance(part, torch.device) or (name in _ON_A_DEVICE and isinstance(part, str)):
            return torch.device("meta")
        return part

    if name in ("cpu", "cuda"):
        return empty(arguments[0][0]).clone()
    positional, named = trees.replaced(arguments, empty)
    try:
        return func(*positional, **named)
    except NotImplementedError as error:
        raise TrialError(
            f"{name} of what a model in a pipeline computes has a shape that depends on its values, which are not "
            f"known before context.step(): {error}"
        ) from error


def _modes(device: torch.device) -> list[Callable[[], Any]]:
    """Makers of the modes that are on now."""
    modes: list[Callable[[], Any]] = [] if torch.is_grad_enabled() else [torch.no_grad]
    kind = device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        modes.append(lambda: torch.autocast(kind, dtype=dtype))
    return modes
