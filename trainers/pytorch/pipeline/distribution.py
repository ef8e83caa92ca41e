"""`Pipelined`: updates of a model in stages, one behind the other, and of replicas of the whole pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.errors import DivergedError, TrialError
from trainers.pytorch.distribution import MicroBatch, Peers, trained
from trainers.pytorch.gradients import share
from trainers.pytorch.layouts import Layout, ModelPlan
from trainers.pytorch.pipeline.cut import by_hand, ranges
from trainers.pytorch.pipeline.deferred import Deferred
from trainers.pytorch.pipeline.measure import best_cuts
from trainers.pytorch.pipeline.model import ModelCall, StagedModel, Staging
from trainers.pytorch.pipeline.schedule import Line
from trainers.pytorch.pipeline.stages import check_separate, keep, only_own
from trainers.pytorch.pipeline.structure import sequence_of, without_data

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

LOOK_EVERY = 16
"""Updates between two looks at whether gradients are finite."""


class Pipelined:
    """Stages on the workers of a pipeline; see `Distribution`.

    Args:
        gang: all workers, whatever rows they see.
        mesh: with the dimensions "pipeline", "replicate", "shard" and "tensor".
        layout: of as many workers as the mesh has.
        device: of this worker.
    """

    def __init__(self, gang: Peers, mesh: DeviceMesh, layout: Layout, device: torch.device) -> None:
        self._gang, self._layout, self._device = gang, layout, device
        group = mesh.get_group("pipeline")
        self._line = Line(rank=dist.get_rank(group), size=layout.pipeline, group=group, device=device)
        self._replicas = [mesh.get_group(name) for name in ("replicate", "shard") if mesh[name].size() > 1]
        self._workers = mesh["replicate"].size() * mesh["shard"].size()
        self._models: list[nn.Module] = []
        self._names: WeakKeyDictionary[nn.Module, tuple[str, ...]] = WeakKeyDictionary()
        self._updates: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()

    @property
    def workers_an_update(self) -> int:
        """See `Distribution.workers_an_update`: a pipeline counts as one."""
        return self._workers

    @property
    def takes_own_steps(self) -> bool:
        """See `Distribution.takes_own_steps`."""
        return False

    def names(self, model: nn.Module) -> tuple[str, ...]:
        """The parameters of a whole model that was wrapped, in their order, whichever worker has them."""
        return self._names[model]

    def wrap(self, model: nn.Module, plan: ModelPlan | None = None) -> None:
        """See `Distribution.wrap`: afterwards it has this worker's stages alone, under the names of the whole model.

        Args:
            model: whole, the same on all workers but for its values.
            plan: its sequence, and how it is cut.

        Raises:
            TrialError: the model is no sequence, or cannot be cut so.
        """
        plan = plan or ModelPlan()
        share(self._gang, [*model.parameters(), *model.buffers()])
        members, count = sequence_of(model, plan.sequence), self._layout.stages
        if plan.cuts:
            cuts = by_hand(plan.cuts, len(members), count)
        else:
            cuts = best_cuts(model, members, self._layout, plan.example, self._gang, self._device)
        stages = ranges(cuts, len(members))
        check_separate(model, members, stages)
        mine = [stage for stage in range(count) if stage % self._layout.pipeline == self._line.rank]
        staging = Staging(empty=without_data(model), members=members, stages=stages, mine=mine)
        self._names[model] = tuple(name for name, _ in staging.empty.named_parameters())
        keep(model, members, stages, mine)
        only_own(model, staging.empty.state_dict())
        model.to(self._device)
        StagedModel(model, staging, self._line, self._layout)
        self._models.append(model)

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`: the forward passes too, which have waited for it."""
        if inputs is not None:
            raise TrialError("a pipeline's parameters are trained by one optimizer; the function has stepped several")
        if not isinstance(loss, Deferred) or not isinstance(loss.call, ModelCall):
            raise TrialError(
                "context.step() got a loss that is not computed of what a model of context.prepare_model() returned "
                "with gradients on, which a pipeline trains on"
            )
        if loss.call.is_over:
            raise TrialError("context.step() got a second loss of one call of the model; add them up, and step once")
        weight = micro.rows / micro.total_rows if micro.total_rows else 0.0
        loss.call.staged.step(loss.call, loss, weight)

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """See `Distribution.update`."""
        parameters = trained(optimizer)
        self._add_up(parameters)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        updates = self._updates.get(optimizer, 0)
        self._updates[optimizer] = updates + 1
        if updates % LOOK_EVERY == 0:
            self._check_finite(gradients, updates)
        if max_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, self._norm(gradients))
        optimizer.step()
        optimizer.zero_grad()

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`: replicas get the buffers of the first; each worker has its own stages'."""
        self._gang.meet("synchronize")
        bad = None
        for model in self._models:
            for group in self._replicas:
                for buffer in model.buffers():
                    dist.broadcast(buffer, dist.get_global_rank(group, 0), group=group)
            for name, parameter in model.named_parameters():
                if bad is None and not torch.isfinite(parameter.detach().sum()):
                    bad = name
        for name in self._gang.gather(bad):
            if name is not None:
                raise DivergedError(f"parameter {name!r} is not finite any more")

    def close(self) -> dict[str, Any]:
        """See `Distribution.close`: nothing that the metrics do not show."""
        return {}

    def _add_up(self, parameters: Sequence[nn.Parameter]) -> None:
        """Gradients of the replicas of this worker's stages, added up."""
        if not self._replicas:
            return
        kinds: dict[torch.dtype, list[nn.Parameter]] = {}
        for parameter in parameters:
            kinds.setdefault(parameter.dtype, []).append(parameter)
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for kind in kinds.values():
            together = torch.cat([parameter.grad.reshape(-1) for parameter in kind if parameter.grad is not None])
            for group in self._replicas:
                dist.all_reduce(together, group=group)
            for parameter, part in zip(kind, together.split([p.numel() for p in kind]), strict=True):
                parameter.grad = part.view_as(parameter)

    def _check_finite(self, gradients: Sequence[Tensor], updates: int) -> None:
        bad = torch.zeros((), device=self._device)
        for gradient in gradients:
            bad += ~torch.isfinite(gradient.sum())
        dist.all_reduce(bad, group=self._line.group)
        if bad:
            raise DivergedError(f"gradients are not finite after {updates} updates of this segment")

    def _norm(self, gradients: Sequence[Tensor]) -> Tensor:
        """Of the gradients of all stages."""
        squares = nn.utils.get_total_norm(gradients).double().square().to(self._device)
        dist.all_reduce(squares, group=self._line.group)
        return squares.sqrt()
