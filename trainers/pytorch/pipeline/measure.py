"""Costs of a model's members, measured on a batch or by their parameters, and the cut that balances them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainers.errors import TrialError, in_words
from trainers.pytorch.distribution import Peers
from trainers.pytorch.layouts import Layout, without_data
from trainers.pytorch.pipeline import trees
from trainers.pytorch.pipeline.cut import Fits, balanced, greatest_divisor
from trainers.pytorch.pipeline.parts import part_of
from trainers.pytorch.pipeline.structure import traced
from trainers.pytorch.state import random_state

_ROUNDS = 3
"""Measurements, of which the fastest counts; one before them warms up."""
_COPIES = 4
"""What a trained parameter takes of a worker's memory: itself, its gradient and two numbers of Adam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one member, for one micro-batch.

    Args:
        seconds: forward and backward.
        kept: bytes that the backward pass needs of the forward pass.
    """

    seconds: float
    kept: int


def best_cuts(
    model: nn.Module, members: Sequence[str], layout: Layout, example: Tensor | None, gang: Peers, device: torch.device
) -> tuple[int, ...]:
    """The balanced cut of a whole model; with an example, rank 0 measures for all.

    Raises:
        TrialError: no cut is possible.
    """
    modules = [model.get_submodule(name) for name in members]
    sizes = [sum(parameter.numel() for parameter in module.parameters()) for module in modules]
    if example is None:
        return balanced(sizes, layout.stages, _with_parameters(sizes))
    answer: tuple[int, ...] | str = ()
    if gang.rank == 0:
        try:
            answer = _measured_cuts(model, members, layout, example, device)
        except Exception as error:  # The others wait for an answer.
            answer = in_words(error)
    answer = gang.gather(answer)[0]
    if isinstance(answer, str):
        raise TrialError(f"the pipeline's stages could not be measured on ModelPlan.example: {answer}")
    return answer


def costs(
    model: nn.Module, members: Sequence[str], example: Tensor, device: torch.device, clock: Callable[[], float]
) -> list[Cost]:
    """Measures each member on the values that it gets in a forward pass.

    Args:
        model: whole; its parameters are left as they are.
        members: names in their order.
        example: the model's input for one micro-batch.
        device: to measure on.
        clock: seconds.
    """
    trace = traced(without_data(model), members, ((torch.empty_like(example, device="meta"),), {}))
    values: list[Tensor] = [example.to(device)]
    found = []
    before = [buffer.clone() for buffer in model.buffers()]
    for name, joint in zip(members, trace.joints, strict=True):
        module = model.get_submodule(name)
        home = next((parameter.device for parameter in module.parameters()), device)
        module.to(device)
        try:
            cost, values = _cost(module, joint.taken, values, clock)
        finally:
            module.to(home)
        found.append(cost)
    for buffer, kept in zip(model.buffers(), before, strict=True):
        buffer.copy_(kept)  # Running means have seen the example.
    return found


def _cost(
    module: nn.Module, taken: Any, values: Sequence[Tensor], clock: Callable[[], float]
) -> tuple[Cost, list[Tensor]]:
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    best, kept, outputs = float("inf"), 0, list[Tensor]()
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}

    def note(tensor: Tensor) -> Tensor:
        nonlocal kept
        if tensor.untyped_storage().data_ptr() not in own:
            kept += tensor.numel() * tensor.element_size()
        return tensor

    for _ in range(1 + _ROUNDS):
        kept = 0
        inputs = [value.detach().clone().requires_grad_(value.is_floating_point()) for value in values]
        _wait(inputs)
        began = clock()
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            # What a member changes in place may not be what gradients are asked of.
            positional, named = trees.filled(taken, [value.view_as(value).clone() for value in inputs])
            outputs = trees.tensors(module(*positional, **named))
        ends = [output for output in outputs if output.requires_grad]
        sources = [*parameters, *(value for value in inputs if value.requires_grad)]
        if ends and sources:
            torch.autograd.grad(ends, sources, [torch.ones_like(end) for end in ends], allow_unused=True)
        _wait(inputs)
        best = min(best, clock() - began)
    return Cost(seconds=best, kept=kept), [output.detach() for output in outputs]


def fits_in(
    memory: int, parameters: Sequence[int], kept: Sequence[int], stages: int, micro_batches: int, *, keeps_all: bool
) -> Fits:
    """Says which stages a worker's memory holds.

    Args:
        memory: bytes for a stage.
        parameters: bytes of each member's.
        kept: bytes of each member's activations for one micro-batch.
        stages: how many there are.
        micro_batches: of a step.
        keeps_all: a stage holds those of all micro-batches (GPipe); else of as many as it is stages from the end.
    """

    def fits(stage: int, first: int, end: int) -> bool:
        held = micro_batches if keeps_all else min(micro_batches, stages - stage)
        return _COPIES * sum(parameters[first:end]) + held * sum(kept[first:end]) <= memory

    return fits


def _measured_cuts(
    model: nn.Module, members: Sequence[str], layout: Layout, example: Tensor, device: torch.device
) -> tuple[int, ...]:
    rows = example.shape[0]
    count = greatest_divisor(rows, layout.micro_batches or layout.stages)
    with random_state.kept(device):  # The others draw nothing meanwhile.
        found = costs(model, members, part_of(example, rows, 0, count), device, time.perf_counter)
    sizes = [
        sum(parameter.numel() * parameter.element_size() for parameter in model.get_submodule(name).parameters())
        for name in members
    ]
    trains = _with_parameters(sizes)
    room = _room(device)
    holds = None
    if room is not None:
        share = room // layout.stages_per_worker
        kept = [cost.kept for cost in found]
        holds = fits_in(share, sizes, kept, layout.stages, count, keeps_all=layout.schedule == "GPipe")
    return balanced(
        [cost.seconds for cost in found],
        layout.stages,
        lambda *stage: trains(*stage) and (holds is None or holds(*stage)),
    )


def _with_parameters(sizes: Sequence[int]) -> Fits:
    return lambda stage, first, end: sum(sizes[first:end]) > 0


def _room(device: torch.device) -> int | None:
    """Bytes that a stage may take of a device; None for the host, whose memory workers share."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def _wait(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if tensor.device.type == "cuda":
            torch.cuda.synchronize(tensor.device)
