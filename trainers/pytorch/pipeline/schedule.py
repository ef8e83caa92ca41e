"""Schedules: the micro-batches of one shape of input through the stages of a worker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)

from trainers.pytorch.pipeline.stages import StageModule
from trainers.pytorch.pipeline.structure import Trace

Source = Callable[[int], Sequence[Tensor]]
"""Gives the model's inputs of a micro-batch, by its number."""
Loss = Callable[[Sequence[Tensor], int], Tensor]
"""Gives the loss of a micro-batch, by the model's outputs and its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The workers of one pipeline, as one of them sees it.

    Args:
        rank: of this worker in it.
        size: how many there are.
        group: of processes.
        device: of this worker.
    """

    rank: int
    size: int
    group: dist.ProcessGroup
    device: torch.device

    def from_last(self, tensor: Tensor) -> None:
        """Gives all the tensor of the last worker, in place."""
        dist.broadcast(tensor, dist.get_global_rank(self.group, self.size - 1), group=self.group)


class Flow:
    """Micro-batches through the stages, for one shape of input; kept, with its buffers.

    Args:
        line: the workers.
        modules: this worker's stages.
        stages: the members of all stages.
        trace: of the model, for one micro-batch.
        count: of micro-batches.
        schedule: see `Layout`; None: forward alone.
        is_even: the batch is cut into as many micro-batches as the layout says.
    """

    def __init__(
        self,
        line: Line,
        modules: Mapping[int, StageModule],
        stages: Sequence[range],
        trace: Trace,
        count: int,
        *,
        schedule: str | None,
        is_even: bool,
    ) -> None:
        self.trace, self.count = trace, count
        self.found: dict[Hashable, tuple[int, ...]] = {}
        """See `LossParts`."""
        self.losses = 0
        """Since one of another kind."""
        self._modules = modules
        self._loss: Loss | None = None
        self._failure: Exception | None = None
        self._numbers = torch.arange(count)
        self._stages = [
            _Stage(
                _Plain(modules[number]),
                number,
                len(stages),
                line.device,
                input_args=_boundary(trace, stages[number].start, schedule is not None),
                output_args=_boundary(trace, stages[number].stop, schedule is not None),
                group=line.group,
            )
            for number in sorted(modules)
        ]
        made = _class_of(schedule, len(self._stages), line.size, count, is_even)
        first = self._stages if len(self._stages) > 1 else self._stages[0]
        self._schedule: Any = made(first, count, loss_fn=self._loss_of if schedule else None, scale_grads=False)

    def run(
        self, source: Source, loss: Loss | None = None, *, keeps: bool = True, completes: bool = False
    ) -> list[tuple[Tensor, ...]]:
        """Passes the micro-batches through; where there is a loss, parameters have gradients afterwards.

        Args:
            source: is called on the first stage.
            loss: is called on the last stage; None where the flow has no schedule.
            keeps: the outputs are asked for.
            completes: gradients are reduced over the copies of a stage.

        Returns:
            On the last stage the outputs by micro-batch; elsewhere nothing.
        """
        outputs: list[tuple[Tensor, ...]] = []
        self._loss, self._failure = loss, None
        for stage in self._stages:
            stage.completes = completes
        with self._set_up(source, outputs if keeps else None):
            failure: Exception | None = None
            try:
                self._schedule.step(
                    *([self._numbers] if self._stages[0].is_first else []),
                    target=self._numbers if loss else None,
                    return_outputs=False,
                )
            except Exception as error:
                # PyTorch's own error shows the stage's tensors in place of what went wrong.
                failures = [self._failure, *(module.error for module in self._modules.values())]
                cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
                failure = next(filter(None, failures), cause)
            for stage in self._stages:
                stage.clear_runtime_states()
        if failure is not None:
            raise failure  # Outside, since it is the cause of PyTorch's, which would be its context.
        return outputs

    @contextmanager
    def _set_up(self, source: Source, sink: list[tuple[Tensor, ...]] | None) -> Iterator[None]:
        for stage in self._stages:
            module = self._modules[stage.stage_index]
            module.trace, module.error = self.trace, None
            module.source = (lambda number: source(int(number))) if stage.is_first else None
            module.sink = sink if stage.is_last else None
        try:
            yield
        finally:
            for module in self._modules.values():
                module.source = module.sink = None

    def _loss_of(self, outputs: Sequence[Tensor], number: Tensor) -> Tensor:
        assert self._loss is not None, "a schedule with backward passes has a loss"
        try:
            return self._loss(outputs, int(number))
        except Exception as error:
            self._failure = error
            raise


class _Plain(nn.Module):
    """Hides that a stage is sharded, since `PipelineStage` would reduce gradients in every step."""

    def __init__(self, stage: StageModule) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, *given: Tensor) -> Any:
        """The stage's output."""
        return self.stage(*given)


class _Stage(PipelineStage):
    """A stage whose gradients are reduced with the last micro-batch of an update alone.

    `backward_one_chunk` is called by PyTorch's schedules, and documented nowhere. Tested with torch 2.13.0;
    test_pipelined.py's layouts with shards find out where it changes.
    """

    completes = False

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Tensor | None = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """See `PipelineStage`."""
        module = self.submod.stage
        if isinstance(module, FSDPModule):
            module.set_is_last_backward(last_backward)
            module.set_requires_gradient_sync(last_backward and self.completes)
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)


def _boundary(trace: Trace, number: int, with_gradients: bool) -> tuple[Tensor, ...]:
    """What comes to a member, without data; to the first one, the number of a micro-batch."""
    if number == 0:
        return (torch.empty(1, dtype=torch.int64, device="meta"),)
    return tuple(
        # Whatever a function freezes in its own stage, workers expect gradients of all numbers from each other.
        torch.empty(
            value.shape, dtype=value.dtype, device="meta", requires_grad=with_gradients and value.is_floating_point()
        )
        for value in trace.joints[number - 1].values
    )


def _class_of(schedule: str | None, own: int, workers: int, count: int, is_even: bool) -> Any:
    rounds = max(1, count // workers)
    if own > 1:
        # Breadth first: what GPipe is with several stages a worker (Lamy-Poirier, MLSys 2023).
        return ScheduleInterleaved1F1B if schedule and is_even and count % rounds == 0 else ScheduleLoopedBFS
    if schedule in (None, "GPipe") or not is_even or count < workers:
        return ScheduleGPipe
    return Schedule1F1B
