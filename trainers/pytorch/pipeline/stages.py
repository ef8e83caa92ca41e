"""Stages of a model: what of it a worker keeps, and the module that computes a stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from torch import Tensor, nn

from trainers.errors import TrialError
from trainers.pytorch.pipeline import trees
from trainers.pytorch.pipeline.structure import Trace


class Elsewhere(nn.Module):
    """A member that another worker's stage has.

    Args:
        name: of the member.
        stage: that has it.
    """

    def __init__(self, name: str, stage: int) -> None:
        super().__init__()
        self._name, self._stage = name, stage

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Never computed."""
        raise TrialError(f"{self._name!r} was called, which stage {self._stage} of the pipeline has")

    def __getattr__(self, name: str) -> Any:
        """Of a member, what others have: parameters, say."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(
                f"{self._name}.{name}: stage {self._stage} of the pipeline has {self._name!r}, on another worker"
            ) from None

    def extra_repr(self) -> str:
        """See `nn.Module.extra_repr`."""
        return f"{self._name!r}, stage {self._stage}"


class StageModule(nn.Module):
    """Computes the members of one stage; its inputs and outputs are tensors.

    Args:
        members: the stage's, in their order.
        numbers: their places in the sequence.
    """

    def __init__(self, members: Sequence[nn.Module], numbers: range) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self._numbers = numbers
        self.trace: Trace | None = None
        """Of the inputs that it is computed on next."""
        self.source: Callable[[Tensor], Sequence[Tensor]] | None = None
        """Of the first stage: gives the model's inputs of the micro-batch whose number it is given."""
        self.sink: list[tuple[Tensor, ...]] | None = None
        """Takes the outputs of the last stage, by micro-batch."""
        self.error: Exception | None = None
        """What its forward pass failed with."""

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """The tensors that the last member returns; those that the member before the stage returned are given."""
        try:
            outputs = self._computed(given)
        except Exception as error:
            self.error = error
            raise
        if self.sink is not None:
            self.sink.append(tuple(output.detach() for output in outputs))
        return outputs

    def _computed(self, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        trace = self.trace
        assert trace is not None, "a schedule sets it"
        values = list(given if self.source is None else self.source(given[0]))
        for number, member in zip(self._numbers, self.members, strict=True):
            joint = trace.joints[number]
            if joint.changes and number == self._numbers.start:
                values = [value.clone() for value in values]  # Autograd lets nobody change what was received in place.
            positional, named = trees.filled(joint.taken, values)
            values = trees.tensors(member(*positional, **named))
        # In mixed precision a member's output may have another type than the one that the next stage waits for.
        return tuple(
            value.to(shape.dtype).contiguous()
            for value, shape in zip(values, trace.joints[self._numbers.stop - 1].values, strict=True)
        )


def check_separate(model: nn.Module, members: Sequence[str], stages: Sequence[range]) -> None:
    """Refuses parameters that belong to no member, or to several stages.

    Raises:
        TrialError: it names them.
    """
    owner: dict[int, tuple[int, str]] = {}
    for stage, numbers in enumerate(stages):
        for number in numbers:
            for name, parameter in model.get_submodule(members[number]).named_parameters(members[number]):
                other, first = owner.setdefault(id(parameter), (stage, name))
                if other != stage:
                    raise TrialError(
                        f"{first!r} of stage {other} and {name!r} of stage {stage} are one parameter, which two "
                        "workers of a pipeline cannot share; give each its own, or cut so that one stage has both"
                    )
    for name, parameter in model.named_parameters():
        if id(parameter) not in owner:
            raise TrialError(
                f"parameter {name!r} belongs to no member of the sequence {', '.join(members)}; move it into one of "
                "them, or name its module in ModelPlan.sequence"
            )


def keep(model: nn.Module, members: Sequence[str], stages: Sequence[range], mine: Collection[int]) -> None:
    """Takes the members of other workers' stages out of a model, in place."""
    gone: dict[nn.Module, Elsewhere] = {}
    for stage, numbers in enumerate(stages):
        if stage not in mine:
            for number in numbers:
                gone[model.get_submodule(members[number])] = Elsewhere(members[number], stage)
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if module in gone:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, gone[module])
