"""Structure of a model for a pipeline: its members in their order, checked on a copy without data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from trainers.checking import did_you_mean
from trainers.errors import TrialError
from trainers.pytorch.pipeline import trees
from trainers.pytorch.state import random_state

MODEL_INPUT = "the model's input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """How a member of the sequence takes what the one before it returned.

    Args:
        taken: the member's (arguments, keywords), with places for tensors of the value before it.
        values: tensors without data that the member returns, in their order.
        changes: it changes a tensor that it takes in place.
    """

    taken: Any
    values: tuple[Tensor, ...]
    changes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One forward pass of a model without data.

    Args:
        joints: by member.
        output: what the model returns, with places for tensors of the last member's.
    """

    joints: tuple[Joint, ...]
    output: Any


def sequence_of(model: nn.Module, named: Sequence[str]) -> tuple[str, ...]:
    """The names of a model's members in the order in which they are computed.

    Args:
        model: whole.
        named: as a `ModelPlan` names them; empty for a model that is a `Sequential`.

    Raises:
        TrialError: a name is no submodule's, or comes twice; or none are given where they are needed.
    """
    if not named:
        if not _is_sequential(model):
            raise TrialError(
                f"a pipeline cannot tell in which order {type(model).__name__} computes its parts; give "
                "context.prepare_model(model, plan=ModelPlan(sequence=('embed', 'blocks', 'head'))), say: names of "
                "submodules, each of which takes what the one before it returns"
            )
        named = [name for name, _ in model.named_children()]
    known = dict(model.named_modules())
    for name in named:
        if name not in known or not name:
            raise TrialError(
                f"ModelPlan.sequence names {name!r}, and {type(model).__name__} has no such submodule"
                f"{did_you_mean(name, known)}; its submodules are {', '.join(n for n, _ in model.named_children())}"
            )
    members = [member for name in named for member in _members(name, known[name])]
    for name in members:
        if members.count(name) > 1:
            raise TrialError(f"ModelPlan.sequence has {name!r} twice; a member of a pipeline is computed once")
    return tuple(members)


def traced(model: nn.Module, members: Sequence[str], arguments: tuple[Any, Mapping[str, Any]]) -> Trace:
    """Runs a model without data, and looks at what each member takes.

    Args:
        model: of `without_data`.
        members: of `sequence_of`.
        arguments: the model's, positional and by keyword, with tensors without data.

    Raises:
        TrialError: its forward pass is not the composition of its members; it says which one takes something else.
    """
    # A cache that the model fills, of positions say, is to have values: it may outlive the trial. What the model makes,
    # and then fills with what has none, cannot.
    failure: Exception | None = None
    for made_on in (nullcontext(), torch.device("meta")):
        try:
            return _traced(model, members, arguments, made_on)
        except TrialError:
            raise
        except Exception as error:  # Its author's code.
            failure = error
    raise TrialError(
        f"a pipeline runs {type(model).__name__} once without data, for the shapes of its parts, and its forward "
        f"pass failed: {type(failure).__name__}: {failure}; it may not look at values of tensors"
    ) from failure


def _traced(model: nn.Module, members: Sequence[str], arguments: Any, made_on: AbstractContextManager[object]) -> Trace:
    watch = _Watch(members, arguments)
    with ExitStack() as stack:
        for number, name in enumerate(members):
            module = model.get_submodule(name)
            stack.callback(module.register_forward_pre_hook(watch.before(number), with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(watch.after(number), with_kwargs=True).remove)
        # Another worker, or a trial that goes on, does not run it at the same moment: its draws are nobody's.
        with (
            random_state.kept(torch.device("cpu")),
            torch.inference_mode(False),
            torch.enable_grad(),
            made_on,
            _Mixing(),
        ):
            output = model(*arguments[0], **arguments[1])
    return watch.trace(output)


class _Mixing(TorchFunctionMode):
    """Lets functions take tensors with data beside those without: what comes of both has none."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls `func`; what it changes in place is left as it is, and it may then fail."""
        given = (tuple(args), dict(kwargs or {}))
        if any(tensor.is_meta for tensor in trees.tensors(given)) and not _changes(func, *given):
            given = trees.replaced(given, _without_values)
        return func(*given[0], **given[1])


def _changes(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function changes a tensor that has data, in place."""
    name = getattr(func, "__name__", "")
    in_place = name in ("__setitem__", "__set__") or name.startswith("__i") or name.rstrip("_") + "_" == name
    changed = trees.tensors((args[:1] if in_place else (), kwargs.get("out")))
    return any(not tensor.is_meta for tensor in changed)


def _without_values(part: Any) -> Any:
    return part.to("meta") if isinstance(part, Tensor) and not part.is_meta else part


class _Watch:
    """Hooks that follow the tensors from one member to the next.

    Args:
        members: their names.
        arguments: the model's.
    """

    def __init__(self, members: Sequence[str], arguments: Any) -> None:
        self._members = members
        self._joints: list[Joint] = []
        self._arguments = arguments
        self._taken: Any = None
        self._source = MODEL_INPUT
        self._open: int | None = None
        self._values = trees.tensors(arguments)
        # PyTorch's own count of changes in place, which has no public name. Tested with torch 2.13.0.
        self._versions = [value._version for value in self._values]

    def before(self, number: int) -> Any:
        """The hook of a member that is about to be computed."""

        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            name = self._members[number]
            if self._open is not None:
                raise TrialError(
                    f"ModelPlan.sequence: {name!r} is computed within {self._members[self._open]!r}; name either"
                )
            if number != len(self._joints):
                raise TrialError(self._disorder(number))
            self._taken, self._open = self._template((args, kwargs), f"{name!r} takes"), number

        return hook

    def after(self, number: int) -> Any:
        """The hook of a member that was computed."""

        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            name = self._members[number]
            if not all(value.is_meta for value in trees.tensors(output)):
                output = trees.replaced(output, _without_values)
            changes = any(value._version != seen for value, seen in zip(self._values, self._versions, strict=True))
            self._values = trees.tensors(output)
            if not self._values:
                raise TrialError(
                    f"{name!r} returns {type(output).__name__} and no tensor; a pipeline passes tensors on"
                )
            self._versions = [value._version for value in self._values]
            values = tuple(value.detach() for value in self._values)
            self._joints.append(Joint(taken=self._taken, values=values, changes=changes))
            self._source, self._open = f"the output of {name!r}", None
            return output

        return hook

    def trace(self, output: Any) -> Trace:
        """All of it, once the model has returned."""
        if len(self._joints) < len(self._members):
            raise TrialError(
                f"ModelPlan.sequence names {self._members[len(self._joints)]!r}, which the model's forward pass does "
                "not compute"
            )
        return Trace(joints=tuple(self._joints), output=self._template(output, "the model returns"))

    def _template(self, tree: Any, who: str) -> Any:
        places = {id(value): trees.Place(index) for index, value in enumerate(self._values)}

        def place(part: Any) -> Any:
            if not isinstance(part, Tensor):
                return part
            if id(part) not in places:
                raise TrialError(
                    f"{who} a tensor of shape {tuple(part.shape)} that is not {self._source}"
                    f"{self._is_input(part)}; in a pipeline each member takes what the one before it returns and "
                    "nothing else: move what is computed between them into one of them, or return a tuple that takes "
                    "it along"
                )
            if part._version != self._versions[places[id(part)].index]:
                raise TrialError(f"{who} {self._source} after it was changed in place; move that into a member")
            return places[id(part)]

        return trees.replaced(tree, place)

    def _is_input(self, part: Tensor) -> str:
        given = any(part is argument for argument in trees.tensors(self._arguments))
        return f", but {MODEL_INPUT}" if given and self._source != MODEL_INPUT else ""

    def _disorder(self, number: int) -> str:
        name = self._members[number]
        if number < len(self._joints):
            return f"ModelPlan.sequence: {name!r} is computed twice; a member of a pipeline is computed once"
        return f"ModelPlan.sequence: {name!r} is computed before {self._members[len(self._joints)]!r}; change the order"


def _is_sequential(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def _members(name: str, module: nn.Module) -> list[str]:
    if isinstance(module, nn.ModuleList) or _is_sequential(module):
        return [member for child, inner in module.named_children() for member in _members(f"{name}.{child}", inner)]
    return [name]
