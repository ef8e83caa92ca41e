"""`StagedModel`: a model of which this worker has its stages, called like the whole one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from trainers.errors import TrialError
from trainers.pytorch.distribution import SetUp
from trainers.pytorch.layouts import Layout
from trainers.pytorch.pipeline import parts, trees
from trainers.pytorch.pipeline.cut import greatest_divisor
from trainers.pytorch.pipeline.deferred import Call, Deferred, Output, settled
from trainers.pytorch.pipeline.schedule import Flow, Line
from trainers.pytorch.pipeline.stages import StageModule
from trainers.pytorch.pipeline.structure import traced
from trainers.pytorch.state import derive, random_state

_FLOWS = 16
"""Shapes of input whose buffers are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """How a model was cut.

    Args:
        empty: the whole model without data.
        members: names of its members in their order.
        stages: the members of each stage.
        mine: the numbers of this worker's stages.
    """

    empty: nn.Module
    members: Sequence[str]
    stages: Sequence[range]
    mine: Sequence[int]


class ModelCall(Call):
    """A call of a staged model with gradients.

    Args:
        staged: that was called.
        flow: of the call.
        arguments: the model's, positional and by keyword.
        rows: of its input.
        device: of this worker.
    """

    def __init__(self, staged: StagedModel, flow: Flow, arguments: Any, rows: int, device: torch.device) -> None:
        super().__init__(rows, device)
        self.staged, self.flow, self.arguments = staged, flow, arguments


class StagedModel:
    """Calls of one model: recorded where gradients are on, computed at once where they are off.

    Args:
        model: with this worker's members alone; its `forward` is replaced.
        staging: how it was cut.
        line: the workers.
        layout: gives the schedule and the number of micro-batches.
        common: gives the greatest divisor of the rows that other workers pass through their copies of the stages.
        set_up: is called with each of this worker's stages.
    """

    def __init__(
        self,
        model: nn.Module,
        staging: Staging,
        line: Line,
        layout: Layout,
        common: Callable[[int], int],
        set_up: SetUp,
    ) -> None:
        self._staging, self._line, self._layout, self._common = staging, line, layout, common
        members = {stage: [staging.members[number] for number in staging.stages[stage]] for stage in staging.mine}
        self.modules = {
            stage: StageModule([model.get_submodule(name) for name in names], staging.stages[stage])
            for stage, names in members.items()
        }
        for module in self.modules.values():
            set_up(module)
        self._flows: dict[Hashable, Flow] = {}
        self._latest: ModelCall | None = None
        original = weakref.ref(model)

        def forward(called: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # A copy, of averaged parameters say, has members of its own.
            mine = self if called is original() else StagedModel(called, staging, line, layout, common, set_up)
            return mine.called(called, args, kwargs)

        model.forward = MethodType(forward, model)

    def called(self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The model's output: deferred where gradients are on, else the real one on every worker."""
        inputs = trees.tensors((args, kwargs))
        if not inputs or not inputs[0].dim() or not inputs[0].shape[0]:
            raise TrialError(
                f"{type(model).__name__} was called without a batch: its first tensor needs rows along dimension 0, "
                "which a pipeline cuts into micro-batches"
            )
        rows = inputs[0].shape[0]
        for tensor in inputs:
            if tensor.dim() and tensor.shape[0] != rows:
                raise TrialError(
                    f"{type(model).__name__} was called with tensors of shapes {tuple(inputs[0].shape)} and "
                    f"{tuple(tensor.shape)}; in a pipeline dimension 0 of each is the rows, which are cut into "
                    "micro-batches: make what is the same for all rows a buffer of the model"
                )
        if not torch.is_grad_enabled():
            with torch.inference_mode(False), torch.no_grad():
                flow = self._flow(model, (args, kwargs), rows, trains=False)
                with self._own_random_states():
                    outputs = flow.run(self._source((args, kwargs), rows, flow.count))
                return trees.filled(flow.trace.output, self._shared(flow, outputs))
        flow = self._flow(model, (args, kwargs), rows, trains=True)
        call = ModelCall(self, flow, (args, kwargs), rows, self._line.device)
        shapes = [_times(value, flow.count) for value in flow.trace.joints[-1].values]
        deferred = [Deferred.of(shape, Output(call, index), call) for index, shape in enumerate(shapes)]
        return trees.filled(flow.trace.output, deferred)

    def step(self, call: ModelCall, loss: Deferred, weight: float, *, completes: bool) -> None:
        """Forward and backward passes of all micro-batches; all workers know the loss afterwards.

        Args:
            call: of this model.
            loss: of the call, a mean over its rows.
            weight: that it has in the gradients.
            completes: it completes an update, for which gradients are reduced.

        Raises:
            TrialError: the loss is none that can be computed by micro-batch.
        """
        flow = call.flow
        losses = parts.LossParts(loss, flow.count, flow.trace.joints[-1].values, flow.found)
        number = 0 if losses.is_new else flow.losses
        compares = flow.count > 1 and (number < parts.CHECKED or number % parts.CHECK_EVERY == 0)
        flow.losses = number + 1
        values: list[Tensor] = []

        def loss_of(outputs: Sequence[Tensor], number: int) -> Tensor:
            value = losses.value(outputs, number).reshape(())
            values.append(value.detach())
            return value * (weight / flow.count)

        keeps = compares or call.others(loss)
        with self._own_random_states():
            outputs = flow.run(
                self._source(call.arguments, call.rows, flow.count), loss_of, keeps=keeps, completes=completes
            )
        said = torch.zeros(2, dtype=torch.float64, device=self._line.device)
        if values:
            said[0] = torch.stack(values).double().mean()
            said[1] = losses.whole(_joined(outputs)).double() if compares else said[0]
        self._line.from_last(said)
        mean, whole = said.tolist()
        if compares and not parts.is_mean(whole, mean, loss.dtype):
            raise parts.no_mean(whole, mean, flow.count)
        if self._latest is not None:
            self._latest.fetch = None
        self._latest, call.arguments = call, ()
        settled(loss, said[0].to(loss.dtype).reshape(loss.shape))
        call.is_over, call.fetch = True, lambda: self._shared(flow, outputs)

    def _flow(self, model: nn.Module, arguments: Any, rows: int, *, trains: bool) -> Flow:
        """The flow of an input's shape."""
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in trees.tensors(arguments))
        wanted = self._layout.micro_batches or len(self._staging.stages)
        count = greatest_divisor(self._common(rows), wanted)
        kind = (trains, model.training, count, shapes, repr(trees.without(arguments)))
        if kind not in self._flows:
            self._staging.empty.train(model.training)
            empty = trees.replaced(
                arguments,
                lambda part: (
                    torch.empty_like(parts.part_of(part, rows, 0, count), device="meta")
                    if isinstance(part, Tensor)
                    else part
                ),
            )
            trace = traced(self._staging.empty, self._staging.members, empty)
            for value in trace.joints[-1].values:
                if not parts.has_rows(value, rows // count):
                    raise TrialError(
                        f"{type(model).__name__} returns a tensor of shape {tuple(value.shape)} for {rows // count} "
                        "rows; in a pipeline dimension 0 of what it returns has to be the rows"
                    )
            if len(self._flows) == _FLOWS:
                self._flows.pop(next(iter(self._flows)))
            self._flows[kind] = Flow(
                self._line,
                self.modules,
                self._staging.stages,
                trace,
                count,
                schedule=self._layout.schedule if trains else None,
                is_even=count == wanted,
            )
        return self._flows[kind]

    def _source(self, arguments: Any, rows: int, count: int) -> Any:
        inputs = trees.tensors(arguments)
        return lambda number: [parts.part_of(tensor, rows, number, count) for tensor in inputs]

    def _shared(self, flow: Flow, outputs: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The last stage's outputs, on all workers."""
        device = self._line.device
        found = _joined(outputs) or [
            torch.empty(_times(value, flow.count).shape, dtype=value.dtype, device=device)
            for value in flow.trace.joints[-1].values
        ]
        for tensor in found:
            self._line.from_last(tensor)
        return found

    @contextmanager
    def _own_random_states(self) -> Iterator[None]:
        """Each worker draws numbers of its own for its stages; outside, all go on with the same ones.

        A function's own draws, of a batch that is mixed say, have to be alike on the first stage and the last.
        """
        seed = int(torch.randint(2**62, ()))
        with random_state.kept(self._line.device):
            random_state.seed_all(derive(seed, "stage", self._line.rank))
            yield


def _times(value: Tensor, count: int) -> Tensor:
    return value.new_empty((value.shape[0] * count, *value.shape[1:]))


def _joined(outputs: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The outputs of all micro-batches, behind each other."""
    return [torch.cat(list(chunks)) for chunks in zip(*outputs, strict=True)]
