"""Sharded models: FSDP2 over the data-parallel parts, and tensor parallelism within each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.optim import Optimizer

from trainers.errors import DivergedError, TrialError
from trainers.pytorch.distribution import MicroBatch, SetUp, trained, weighed
from trainers.pytorch.gradients import LOOK_EVERY, share
from trainers.pytorch.layouts.parts import DataPeers, Parts
from trainers.pytorch.layouts.plan import blocks_of, styles_of
from trainers.pytorch.measures import Communication, count_collectives
from trainers.pytorch.plan import ModelPlan
from trainers.pytorch.state import Mixed


def sharded(model: nn.Module, plan: ModelPlan, mesh: DeviceMesh, low: torch.dtype | None = None) -> None:
    """Deals a model out over a mesh, in place: its matrices over "tensor", and all parameters over the rest.

    Args:
        model: whole, alike on every worker; its parameters become DTensors, of which each worker keeps its piece.
        plan: of the model.
        mesh: with the dimensions "replicate", "shard" and "tensor".
        low: the type in which parameters are gathered and gradients are scattered; None: their own.

    Raises:
        TrialError: the plan does not match the model.
    """
    tensor = mesh["tensor"]
    if tensor.size() > 1:
        parallelize_module(model, tensor, styles_of(model, plan, tensor.size()))
    in_shards(model, blocks_of(model, plan), mesh, low)


def in_shards(model: nn.Module, blocks: Iterable[nn.Module], mesh: DeviceMesh, low: torch.dtype | None = None) -> None:
    """Deals a model's parameters out over "replicate" and "shard", in place.

    Args:
        model: is called as a whole.
        blocks: within it, whose parameters are gathered together.
        mesh: with these dimensions.
        low: as for `sharded`.

    Raises:
        TrialError: there are low copies to make, and no shards.
    """
    # A dimension of one worker would cost a collective of each block.
    data = mesh["shard"] if mesh["replicate"].size() == 1 else mesh["replicate", "shard"]
    if data.size() == 1:
        if low is not None:
            raise TrialError(
                "a precision with -master makes low copies as shards are gathered, and the layout has none; give "
                f"{'bf16' if low is torch.bfloat16 else 'fp16'!r}, or shard=2, say"
            )
        return
    policy = MixedPrecisionPolicy(param_dtype=low, reduce_dtype=low)
    for block in blocks:
        fully_shard(block, mesh=data, mp_policy=policy)
    fully_shard(model, mesh=data, mp_policy=policy)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # Gradients are added up: the rows' weights are in the loss.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


class Sharded:
    """Updates of a model in shards; see `trainers.pytorch.distribution.Distribution`.

    Args:
        parts: the gang's workers under their layout.
    """

    def __init__(self, parts: Parts) -> None:
        assert parts.mesh is not None, "a layout of replicas has no shards"
        self.communication = Communication()
        self.mixed = Mixed()
        self._parts = parts
        self._mesh = parts.mesh
        self._models: list[nn.Module] = []
        self._known: set[nn.Parameter] = set()
        """Of the models, as pieces; while a model computes, it has gathered ones in their place."""
        self._updates: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self._forwards = _Forwards()

    @property
    def workers_an_update(self) -> int:
        """The data-parallel parts."""
        return self._parts.data.world_size

    @property
    def together(self) -> dist.ProcessGroup | None:
        """See `Distribution.together`: those at the same place of the other parts."""
        data = self._parts.data
        return data.group if isinstance(data, DataPeers) and data.world_size > 1 else None

    @property
    def takes_own_steps(self) -> bool:
        """See `Distribution.takes_own_steps`: gradients that no `backward` weighed are no update's."""
        return False

    @property
    def takes_wrappers(self) -> bool:
        """See `Distribution.takes_wrappers`: shards are of the layout's own making."""
        return False

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """See `Distribution.wrap`; parameters become DTensors.

        Raises:
            TrialError: the plan does not match the model.
        """
        set_up(model)
        share(self._parts.gang, [*model.parameters(), *model.buffers()])
        sharded(model, plan, self._mesh, self._low())
        self._take(model, [model])

    def _low(self) -> torch.dtype | None:
        """The type of number that parameters are gathered in; None: their own."""
        precision = self.mixed.precision
        self.mixed.gathers = precision.copies
        return precision.low if precision.copies else None

    def _take(self, model: nn.Module, called: Iterable[nn.Module]) -> None:
        """Trains a model whose parameters were dealt out; what is `called` as a whole gathers them."""
        for module in called:
            count_collectives(module, self.communication, self._mesh["replicate"].size())
        self._models.append(model)
        self._known.update(model.parameters())
        if self._parts.layout.shard > 1:
            self._forwards.follow(model)

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`; gradients are reduced with the last micro-batch alone."""
        self.communication.begin(loss.device)
        if inputs is not None:
            raise TrialError(
                f"layout '{self._parts.layout}': the function steps with several optimizers, and shards gather "
                "gradients of a whole model; train with one optimizer of several groups, or with replicas alone"
            )
        self._begin(optimizer)
        for model in self._models:
            if isinstance(model, FSDPModule):
                model.set_requires_gradient_sync(micro.last)
        weighed(loss, micro.rows / micro.total_rows if micro.total_rows else 0.0, None)

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """See `Distribution.update`."""
        gradients = [parameter.grad for parameter in trained(optimizer) if parameter.grad is not None]
        updates = self._updates[optimizer]
        with self.communication.waiting:
            finite = self.mixed.unscaled(gradients, lambda present: math.isfinite(norm_of(present, self._mesh)))
        if not finite:
            self._updates[optimizer] = updates + 1
            optimizer.zero_grad()
            self.communication.end()
            return
        if max_norm is not None or (updates % LOOK_EVERY == 0 and not self.mixed.scales):
            with self.communication.waiting:
                length = norm_of(gradients, self._mesh)
            if not math.isfinite(length):
                raise DivergedError(f"gradients are not finite after {updates} updates of this segment")
            # As `torch.nn.utils.clip_grad_norm_` has it.
            if max_norm is not None and (factor := max_norm / (length + 1e-6)) < 1.0:
                for gradient in gradients:
                    gradient.mul_(factor)
        self._updates[optimizer] = updates + 1
        optimizer.step()
        optimizer.zero_grad()
        self.communication.end()

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`: buffers (running means) become those of the first part."""
        self.communication.pause()
        self._parts.gang.meet("synchronize")
        flawed = []
        for model in self._models:
            if self._parts.data.world_size > 1 and (buffers := list(model.buffers())):
                share(self._parts.data, buffers)
            flawed += [name for name, p in model.named_parameters() if not torch.isfinite(_own(p).sum())]
        # A worker looks at its own pieces alone, and all have to end alike.
        if names := [name for of in self._parts.gang.gather(flawed[:1]) for name in of]:
            raise DivergedError(f"parameter {names[0]!r} is not finite any more")

    def absent(self, batches: int) -> None:
        """See `Distribution.absent`: shards are gathered from all, so that this worker goes along."""
        self._forwards.repeat(batches)

    def batch(self) -> None:
        """See `Distribution.batch`."""
        self._forwards.clear()

    def close(self) -> dict[str, Any]:
        """Nothing happened that the metrics do not show."""
        return {}

    def _begin(self, optimizer: Optimizer) -> None:
        """Looks at an optimizer that it is given for the first time."""
        if optimizer not in self._updates:
            self._updates[optimizer] = 0
            self._check(optimizer)

    def _check(self, optimizer: Optimizer) -> None:
        """Refuses parameters that are not dealt out: each worker would train them for itself."""
        strange = [parameter for parameter in trained(optimizer) if parameter not in self._known]
        if strange:
            raise TrialError(
                f"layout '{self._parts.layout}': {len(strange)} parameters of the optimizer, the first of shape "
                f"{tuple(strange[0].shape)}, are in no prepared model; make it after context.prepare_model(model), of "
                "model.parameters()"
            )


def norm_of(gradients: Iterable[Tensor], mesh: DeviceMesh) -> float:
    """The 2-norm of all gradients as one vector, the same on every worker; all of them ask for it.

    Args:
        gradients: this worker's pieces, of some dimensions of the mesh.
        mesh: of all workers.
    """
    squares = torch.zeros((), dtype=torch.float64, device=mesh.device_type)
    holders = mesh.size() // mesh["pipeline"].size()
    for gradient in gradients:
        pieces = 1
        if isinstance(gradient, DTensor):
            sizes = gradient.device_mesh.shape
            pieces = math.prod(
                size for size, placement in zip(sizes, gradient.placements, strict=True) if not placement.is_replicate()
            )
        squares += torch.linalg.vector_norm(_own(gradient)).double().square() * (pieces / holders)
    dist.all_reduce(squares)
    return math.sqrt(squares.item())


def _own(tensor: Tensor) -> Tensor:
    """This worker's piece."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class _Forwards:
    """Forward passes without gradients since the last batch, which a worker that has fewer batches repeats."""

    def __init__(self) -> None:
        self._latest: list[tuple[nn.Module, tuple[Any, ...], dict[str, Any]]] = []
        self._known: dict[nn.Module, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        """What each model was given last, with gradients or without: a worker may have no batch at all in a pass."""
        self._repeating = False

    def follow(self, model: nn.Module) -> None:
        """Notes what a model is given."""

        def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            if not self._repeating:
                self._known[module] = given, named
                if not torch.is_grad_enabled():
                    self._latest.append((module, given, named))

        model.register_forward_pre_hook(note, with_kwargs=True)

    def clear(self) -> None:
        """Another batch begins."""
        self._latest.clear()

    def repeat(self, times: int) -> None:
        """Gives the models again what they were given for the last batch; without one, each what it had last.

        Raises:
            TrialError: they were given nothing yet.
        """
        calls = self._latest or [(model, *of) for model, of in self._known.items()]
        if not calls:
            raise TrialError(
                "a worker has no rows in an evaluation before the first step, and shards are gathered from all "
                "workers; evaluate after a step, or over more rows"
            )
        self._repeating = True
        try:
            for _ in range(times):
                for model, given, named in calls:
                    model(*given, **named)
        finally:
            self._repeating = False
