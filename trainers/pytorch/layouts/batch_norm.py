"""Batch normalisation over the rows of all workers."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from trainers.errors import TrialError

_LAYERS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def synchronize_norms(model: nn.Module, group: dist.ProcessGroup, counts: Callable[[], bool]) -> None:
    """Lets a model's batch normalisation take its statistics over the rows of all workers, in training.

    As `torch.nn.SyncBatchNorm` does on GPUs alone: forward and backward pass are those of one worker with all rows, for
    shards of any lengths. Each layer talks to the other workers once in each pass. Without gradients, and in
    evaluation, it does not. Means and variances of the workers are combined as by Chan, Golub and LeVeque, "Algorithms
    for Computing the Sample Variance", 1983.

    Args:
        model: its layers stay the same objects.
        group: the workers.
        counts: whether this worker's rows of the batch count, or it has none left.
    """
    for layer in model.modules():
        if isinstance(layer, _LAYERS):
            layer.forward = MethodType(_over(group, counts), layer)  # type: ignore[method-assign]


def has_batch_norm(model: nn.Module) -> bool:
    """Whether a model has layers that `synchronize_norms` is for."""
    return any(isinstance(layer, _LAYERS) for layer in model.modules())


def _over(group: dist.ProcessGroup, counts: Callable[[], bool]) -> Callable[..., Tensor]:
    def forward(layer: Any, rows: Tensor) -> Tensor:
        if not layer.training or not torch.is_grad_enabled():
            return type(layer).forward(layer, rows)  # type: ignore[no-any-return]
        if rows.dim() < 2 or rows.shape[1] != layer.num_features:
            raise TrialError(
                f"{type(layer).__name__}({layer.num_features}) got rows of shape {tuple(rows.shape)}; give (rows, "
                f"{layer.num_features}, ...)"
            )
        normalised, mean, variance = _Normalised.apply(rows, layer.weight, layer.bias, layer.eps, counts(), group)  # type: ignore[no-untyped-call]
        if layer.track_running_stats and layer.running_mean is not None:
            _track(layer, mean, variance)
        return normalised  # type: ignore[no-any-return]

    return torch.compiler.disable(forward)  # type: ignore[no-any-return]


@torch.no_grad()
def _track(layer: Any, mean: Tensor, variance: Tensor) -> None:
    """Moves the running statistics."""
    layer.num_batches_tracked.add_(1)
    momentum = layer.momentum if layer.momentum is not None else 1.0 / float(layer.num_batches_tracked)
    layer.running_mean.mul_(1 - momentum).add_(mean.to(layer.running_mean.dtype), alpha=momentum)
    layer.running_var.mul_(1 - momentum).add_(variance.to(layer.running_var.dtype), alpha=momentum)


class _Normalised(torch.autograd.Function):
    """Normalised rows, with the mean and the unbiased variance of all workers' rows, by channel."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, counts: bool, group: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
        mean, variance, total = _statistics(wide, counts, group)
        scale = (variance + eps).rsqrt()
        shape = (1, -1, *[1] * (rows.dim() - 2))
        ctx.save_for_backward(rows, weight, mean, scale)
        ctx.total, ctx.counts, ctx.group, ctx.biased = total, counts, group, bias is not None
        found = (wide - mean.view(shape)) * scale.view(shape)
        if weight is not None:
            found = found * weight.view(shape)
        if bias is not None:
            found = found + bias.view(shape)
        unbiased = variance * (total / (total - 1))
        ctx.mark_non_differentiable(mean, unbiased)
        return found.to(rows.dtype), mean, unbiased

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        rows, weight, mean, scale = ctx.saved_tensors
        wide, gradient = rows.to(mean.dtype), gradient.to(mean.dtype)
        axes, shape = [0, *range(2, rows.dim())], (1, -1, *[1] * (rows.dim() - 2))
        normalised = (wide - mean.view(shape)) * scale.view(shape)
        own, with_rows = gradient.sum(axes), (gradient * normalised).sum(axes)
        everywhere = torch.stack([own, with_rows])
        dist.all_reduce(everywhere, group=ctx.group)
        inner = gradient
        if ctx.counts:  # Rows that repeat others are in no statistics.
            first, second = (everywhere / ctx.total).unbind()
            inner = gradient - first.view(shape) - normalised * second.view(shape)
        factor = scale if weight is None else scale * weight
        return (
            (inner * factor.view(shape)).to(rows.dtype),
            None if weight is None else with_rows.to(weight.dtype),
            own.to(mean.dtype if weight is None else weight.dtype) if ctx.biased else None,
            *[None] * 3,
        )


def _statistics(rows: Tensor, counts: bool, group: Any) -> tuple[Tensor, Tensor, float]:
    """Mean and biased variance by channel over all workers, and the number of values in each."""
    axes, channels = [0, *range(2, rows.dim())], rows.shape[1]
    number = rows.numel() // channels if counts else 0
    mine = rows.new_zeros(2 * channels + 1)
    if number:
        mean = rows.mean(axes)
        mine[:channels] = mean
        mine[channels:-1] = (rows - mean.view(1, -1, *[1] * (rows.dim() - 2))).square().sum(axes)
        mine[-1] = number
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, mine, group=group)
    gathered = torch.stack(parts)
    numbers = gathered[:, -1:]
    total = float(numbers.sum())
    if total < 2:
        raise TrialError("batch normalisation got a batch of one value for each channel, over all workers; give more")
    means = gathered[:, :channels]
    mean = (means * numbers).sum(0) / total
    squares = gathered[:, channels:-1].sum(0) + (numbers * (means - mean).square()).sum(0)
    return mean, squares / total, total
