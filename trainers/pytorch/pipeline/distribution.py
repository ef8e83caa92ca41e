"""`Pipelined`: updates of a model in stages, each of them dealt out like a whole model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor.parallel import parallelize_module
from torch.optim import Optimizer

from trainers.errors import TrialError
from trainers.pytorch.distribution import MicroBatch, SetUp
from trainers.pytorch.gradients import share
from trainers.pytorch.layouts import (
    Parts,
    Sharded,
    blocks_of,
    has_batch_norm,
    in_shards,
    styles_of,
    without_data,
)
from trainers.pytorch.pipeline.cut import by_hand, ranges
from trainers.pytorch.pipeline.deferred import Deferred
from trainers.pytorch.pipeline.measure import best_cuts
from trainers.pytorch.pipeline.model import ModelCall, StagedModel, Staging
from trainers.pytorch.pipeline.schedule import Line
from trainers.pytorch.pipeline.stages import check_separate, keep
from trainers.pytorch.pipeline.structure import sequence_of
from trainers.pytorch.plan import ModelPlan
from trainers.pytorch.state import shards


class Pipelined(Sharded):
    """Stages on the workers of a pipeline; see `Distribution`.

    Args:
        parts: the gang's workers under a layout with a pipeline.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        group = self._mesh.get_group("pipeline")
        kind = self._mesh.device_type
        device = torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
        self._line = Line(rank=dist.get_rank(group), size=parts.layout.pipeline, group=group, device=device)

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """See `Distribution.wrap`: afterwards it has this worker's stages alone, under the names of the whole model.

        Args:
            model: whole, the same on all workers but for its values.
            plan: its sequence, and how it is cut.
            set_up: is called with each of this worker's stages.

        Raises:
            TrialError: the model is no sequence, or cannot be cut so; or the plan does not match it.
        """
        layout, gang, tensor = self._parts.layout, self._parts.gang, self._mesh["tensor"]
        self._check_norms(model, plan)
        self._make_alike([*model.parameters(), *model.buffers()])
        members = sequence_of(model, plan.sequence)
        if plan.cuts:
            cuts = by_hand(plan.cuts, len(members), layout.stages)
        else:
            cuts = best_cuts(model, members, layout, plan.example, gang, self._line.device)
        stages = ranges(cuts, len(members))
        check_separate(model, members, stages)
        blocks, styles = blocks_of(model, plan), styles_of(model, plan, tensor.size()) if tensor.size() > 1 else {}
        mine = [stage for stage in range(layout.stages) if stage % layout.pipeline == self._line.rank]
        staging = Staging(empty=without_data(model), members=members, stages=stages, mine=mine)
        keep(model, members, stages, mine)
        shards.leave_out(model, staging.empty.state_dict().keys() - model.state_dict().keys())
        own = dict(model.named_modules())
        if styles := {name: style for name, style in styles.items() if name in own}:
            parallelize_module(model, tensor, styles)
        model.to(self._line.device)
        staged = StagedModel(model, staging, self._line, layout, self._common, set_up)
        for module in staged.modules.values():
            within = set(module.modules())
            in_shards(module, [block for block in blocks if block in within], self._mesh, self._low())
        self._take(model, staged.modules.values())

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`: the forward passes too, which have waited for it."""
        self.communication.begin(self._line.device)
        if inputs is not None:
            raise TrialError("a pipeline's parameters are trained by one optimizer; the function has stepped several")
        if not isinstance(loss, Deferred) or not isinstance(loss.call, ModelCall):
            raise TrialError(
                "context.step() got a loss that is not computed of what a model of context.prepare_model() returned "
                "with gradients on, which a pipeline trains on"
            )
        if loss.call.is_over:
            raise TrialError("context.step() got a second loss of one call of the model; add them up, and step once")
        self._begin(optimizer)
        weight = micro.rows / micro.total_rows if micro.total_rows else 0.0
        loss.call.staged.step(loss.call, loss, weight, completes=micro.last)

    def _check_norms(self, model: nn.Module, plan: ModelPlan) -> None:
        """Refuses normalisation over all rows where a stage has those of a micro-batch alone."""
        whole = self._parts.layout.micro_batches == 1 and self._parts.data.world_size == 1
        if plan.sync_batch_norm and not whole and has_batch_norm(model):
            raise TrialError(
                f"ModelPlan(sync_batch_norm=True): layout '{self._parts.layout}' passes micro-batches through "
                f"{type(model).__name__}, and its batch normalisation sees the rows of one; leave it out, or give a "
                "layout without a pipeline"
            )

    def _make_alike(self, tensors: Sequence[Tensor]) -> None:
        """Gives all workers rank 0's; on GPUs one after another, since a whole model may not fit there."""
        if self._line.device.type == "cpu":
            share(self._parts.gang, tensors)
            return
        for tensor in tensors:
            moved = tensor.detach().to(self._line.device)
            self._parts.gang.broadcast(moved)
            tensor.detach().copy_(moved)

    def _common(self, rows: int) -> int:
        """The greatest divisor of the rows of all workers that gather a stage together, as often as each other."""
        if self._parts.layout.shard == 1:
            return rows
        group = self._mesh.get_group("shard")
        all_rows = torch.empty(dist.get_world_size(group), dtype=torch.int64, device=self._line.device)
        dist.all_gather_into_tensor(all_rows, torch.tensor([rows], device=self._line.device), group=group)
        return math.gcd(*all_rows.tolist())
