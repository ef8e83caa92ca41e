"""Noise of a training function's gradients: measured as it trains, or raised to that of fewer rows.

The function is left as it is. The model that it has prepared is watched for its output, of which each row is one
example's: what flows back through a row is that example's gradient, and can be weighed. So it takes a model that is
called once a step and gives one tensor with a row for each example; of others nothing is measured.

The noise scale is the simple one of McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", appendix A:
with the squared lengths of the gradients of a batch and of its parts, drawn at random, come unbiased estimates of the
squared length of the gradient itself (the signal), and of the trace of the covariance of one example's (the noise).

Noise is added as by Wu et al. 2020, "On the Noisy Gradient Descent that Generalizes as SGD", and before them Hoffer et
al. 2017: each example's gradient is multiplied by a random number whose mean is 1. A gradient of n rows then has the
mean that it had and the covariance of a gradient of n/k rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers import TrainContext
from trainers.pytorch import TrainFunction, random_state, trained

PART = 4
"""A measurement compares the gradient of a batch with those of so many parts of it."""

EVERY = 25
"""Steps of a worker between two measurements of an epoch, each of which costs a backward pass a part."""

SIGNAL, NOISE = "gradient:signal", "gradient:noise"
"""What is reported beside the function's own metrics: means over an epoch's measurements, of all workers."""


def watched(function: TrainFunction, times: float = 1.0, *, measured: bool = True) -> TrainFunction:
    """The same training function, whose gradients' noise is measured, or added to.

    Args:
        function: the user's.
        times: what the covariance of each batch's gradient is multiplied by, through noise that is added; 1 adds none,
            and then the function trains to the last bit what it trains by itself.
        measured: whether it is measured.

    Raises:
        ValueError: `times` is below 1, or no finite number.
    """
    if not 1.0 <= times < math.inf:
        raise ValueError(f"times is {times!r}; noise can be added, and not taken away: give 1 or more")

    @functools.wraps(function)
    def watching(context: TrainContext) -> None:
        function(cast("TrainContext", _Watched(context, times, measured)))

    return watching


def multipliers(rows: int, times: float, generator: torch.Generator) -> Tensor:
    """Random numbers to multiply the gradients of a batch's examples by: their mean is exactly 1.

    With the sample covariance S of n examples' gradients, their mean has an added covariance of (times - 1) S / n: the
    numbers' deviations z are Gaussian, less their mean, with variance n (times - 1) / (n - 1) before that.
    """
    if rows < 2:
        return torch.ones(rows)
    drawn = torch.randn(rows, generator=generator)
    return 1 + math.sqrt(rows * (times - 1) / (rows - 1)) * (drawn - drawn.mean())


def parts_of(rows: int, generator: torch.Generator) -> Tensor:
    """What to multiply the gradients of a batch's examples by, so that their mean is that of a part: a line a part.

    Parts are drawn at random and have as many rows each; what is left over is in none.
    """
    size = rows // PART
    weights = torch.zeros(PART, rows)
    for part, chosen in zip(weights, torch.randperm(rows, generator=generator)[: PART * size].split(size), strict=True):
        part[chosen] = rows / size
    return weights


def estimates(rows: int, whole: float, part: float) -> tuple[float, float]:
    """Signal and noise, unbiased.

    Args:
        rows: of all parts together.
        whole: the squared length of their gradient.
        part: that of a part's, in the mean.
    """
    size = rows // PART
    return (rows * whole - size * part) / (rows - size), (part - whole) / (1 / size - 1 / rows)


class _Output:
    """The output of a prepared model in a step, and what its rows' gradients are multiplied by on their way back."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.weights: Tensor | None = None

    def weigh(self, gradient: Tensor) -> Tensor:
        """A tensor's hook."""
        if self.weights is None:
            return gradient
        shape = (self.rows, *[1] * (gradient.dim() - 1))
        return gradient * self.weights.to(gradient.device, gradient.dtype).view(shape)


class _Watched:
    """A `TrainContext` that watches the models it prepares; all else is the context's own."""

    def __init__(self, context: TrainContext, times: float, measured: bool) -> None:
        self._context = context
        self._measured = measured
        self._times = times
        self._generator = torch.Generator().manual_seed(random_state.derive(context.seed, "noise", context.rank))
        self._outputs: list[_Output | None] = []
        self._steps = 0
        self._sums = torch.zeros(3, dtype=torch.float64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def prepare_model(self, model: nn.Module) -> nn.Module:
        """See `TrainContext.prepare_model`."""
        prepared = self._context.prepare_model(model)
        prepared.register_forward_hook(self._seen)
        return prepared

    def step(self, loss: Tensor, optimizer: Optimizer, *, max_norm: float | None = None) -> bool:
        """See `TrainContext.step`."""
        output = self._outputs[0] if len(self._outputs) == 1 else None
        self._outputs.clear()
        if output is not None:
            if self._measured and self._steps % EVERY == 0 and output.rows >= PART:
                self._measure(output, loss, optimizer)
            if self._times > 1:
                output.weights = multipliers(output.rows, self._times, self._generator)
        self._steps += 1
        return self._context.step(loss, optimizer, max_norm=max_norm)

    def report(
        self, metrics: Mapping[str, Any], checkpoint: Mapping[str, Any] | None = None, *, final: bool = False
    ) -> None:
        """See `TrainContext.report`."""
        signal, noise, times = self._context.sum(self._sums).tolist()
        self._sums.zero_()
        self._steps = 0  # However few they are, each epoch has a measurement.
        self._outputs.clear()  # Of rows that were evaluated.
        measured = {SIGNAL: signal / times, NOISE: noise / times} if times else {}
        self._context.report({**metrics, **measured}, checkpoint, final=final)

    def _seen(self, _model: nn.Module, _inputs: Any, output: Any) -> None:
        if not torch.is_grad_enabled():
            return
        seen = None
        if isinstance(output, Tensor) and output.requires_grad and output.dim() and len(output):
            seen = _Output(len(output))
            output.register_hook(seen.weigh)
        self._outputs.append(seen)

    def _measure(self, output: _Output, loss: Tensor, optimizer: Optimizer) -> None:
        found = []
        for weights in parts_of(output.rows, self._generator):
            output.weights = weights
            found.append(_gradient(loss, optimizer))
        output.weights = None
        parts = torch.stack(found)
        whole, part = float(parts.mean(0).square().sum()), float(parts.square().sum(1).mean())
        rows = output.rows // PART * PART
        self._sums += torch.tensor([*estimates(rows, whole, part), 1.0], dtype=torch.float64)


def _gradient(loss: Tensor, optimizer: Optimizer) -> Tensor:
    """Of a loss, in one line; what the loss needs for its own backward pass is kept."""
    found = torch.autograd.grad(loss, trained(optimizer), retain_graph=True, allow_unused=True)
    return torch.cat([gradient.double().reshape(-1) for gradient in found if gradient is not None])
