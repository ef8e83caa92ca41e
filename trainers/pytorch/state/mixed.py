"""State of a trial's precision: the scale of its losses, and low copies of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainers.errors import DivergedError, TrialError
from trainers.pytorch.state.precision import Precision

GROWTH, BACKOFF = 2.0, 0.5
LEAST = 1e-4
"""A scale below it says that gradients are not finite at any scale; as fairseq's `min_loss_scale`."""

_NORMS = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    *(nn.LayerNorm, nn.GroupNorm, nn.RMSNorm),
)
"""Layers that compute with parameters in full precision."""


@dataclass(slots=True)
class LossScale:
    """A factor on losses that keeps small gradients above the least number of fp16, as `torch.amp.GradScaler` does.

    Args:
        scale: the factor.
        good: updates since it changed last.
        interval: so many updates without an overflow, and it is doubled.
    """

    scale: float = 65536.0
    good: int = 0
    interval: int = 2000

    def update(self, finite: bool) -> None:
        """Takes down whether the gradients of an update were finite.

        Raises:
            DivergedError: they were not at any scale.
        """
        if not finite:
            self.scale, self.good = self.scale * BACKOFF, 0
            if self.scale < LEAST:
                raise DivergedError(f"gradients are not finite at a loss scale of {self.scale / BACKOFF:.1e} either")
        elif self.good + 1 == self.interval:
            self.scale, self.good = self.scale * GROWTH, 0
        else:
            self.good += 1


class Mixed:
    """A trial's precision on one worker: forward passes, gradients and updates in it.

    Args:
        precision: which.
        scale: of losses, and updates since it changed last, as a checkpoint has them; None at the beginning.
    """

    def __init__(self, precision: Precision | None = None, scale: tuple[float, int] | None = None) -> None:
        self.precision = precision or Precision()
        self._scale: LossScale | None = None
        if self.precision.scales:
            self._scale = LossScale(*scale) if scale else LossScale()
        self._copies: dict[nn.Parameter, nn.Parameter] = {}
        self._places: dict[tuple[nn.Module, str], _Place] = {}
        self._places_of: dict[nn.Module, list[_Place]] = {}
        self._hooks: list[Any] = []
        self._stepping = False
        self.gathers = False
        """Whether low copies are made as a model's shards are gathered (FSDP2), and not here."""

    @property
    def state(self) -> tuple[float, int] | None:
        """The scale for a checkpoint; None without one."""
        return (self._scale.scale, self._scale.good) if self._scale else None

    @property
    def scales(self) -> bool:
        """Whether losses are scaled, and updates left out where gradients are not finite."""
        return self._scale is not None

    def leaves(self, parameters: Sequence[nn.Parameter]) -> list[nn.Parameter]:
        """What gets the gradients of these parameters: their low copies, where they have some."""
        return [self._copies.get(parameter, parameter) for parameter in parameters]

    def scaled(self, loss: Tensor) -> Tensor:
        """A loss to go backward from."""
        return loss * self._scale.scale if self._scale else loss

    @contextmanager
    def computing(self, model: nn.Module) -> Iterator[None]:
        """Runs a forward pass of a model in its low copy."""
        if not self.precision.copies or self.gathers:
            yield
            return
        if model not in self._places_of:
            self._places_of[model] = self._copied(model)
        places = self._places_of[model]
        for place in places:
            place.enter()
        try:
            yield
        finally:
            for place in places:
                place.leave()

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Runs a backward pass of `context.step`, in which blocks may run forward again."""
        self._stepping = True
        for place in self._places.values():
            place.enter(refresh=False)
        try:
            yield
        finally:
            self._stepping = False
            for place in self._places.values():
                place.leave()

    @contextmanager
    def handed_over(self, parameters: Sequence[nn.Parameter]) -> Iterator[None]:
        """Has the gradients of low copies in the parameters themselves meanwhile, in these' own precision.

        Raises:
            TrialError: the parameters have gradients of their own.
        """
        if not self._copies:  # As in most trials, at every update.
            yield
            return
        pairs = [(parameter, self._copies[parameter]) for parameter in parameters if parameter in self._copies]
        for parameter, low in pairs:
            if parameter.grad is not None and parameter.grad.count_nonzero():
                raise TrialError(
                    f"precision {self.precision.name!r}: parameters have gradients beside those of the model's forward "
                    "passes, of a backward() outside context.step() or of a penalty on the parameters themselves; call "
                    f"optimizer.zero_grad() before it, or give precision {self.precision.name.partition('-')[0]!r}"
                )
            parameter.grad = None if low.grad is None else low.grad.to(parameter.dtype)
        try:
            yield
        finally:
            for parameter, _ in pairs:
                parameter.grad = None

    def clear(self, parameters: Iterable[nn.Parameter]) -> None:
        """Gives up the gradients of low copies."""
        for parameter in parameters if self._copies else ():
            if parameter in self._copies:
                self._copies[parameter].grad = None

    def unscaled(
        self, gradients: Iterable[Tensor | None], finite: Callable[[Sequence[Tensor]], bool] | None = None
    ) -> bool:
        """Takes the scale out of an update's gradients, in place; whether they are finite, and the update counts.

        Args:
            gradients: all that the update is made of.
            finite: finds out whether they are, where workers have different ones; alike on all.

        Raises:
            DivergedError: they are not at any scale.
        """
        if self._scale is None:
            return True
        present = [gradient for gradient in gradients if gradient is not None]
        for gradient in present:
            gradient.mul_(1.0 / self._scale.scale)
        counts = (finite or _finite)(present)
        self._scale.update(counts)
        return counts

    def close(self) -> None:
        """Lets go of the low copies, whose hooks Python's garbage collector does not see."""
        for handle in self._hooks:
            handle.remove()
        self._hooks.clear()

    def _copied(self, model: nn.Module) -> list[_Place]:
        places = []
        for module in model.modules():
            if isinstance(module, _NORMS):
                continue
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.dtype is torch.float32:  # Doubles stay doubles, as in autocast.
                    place = _Place(module, name, parameter, self._copy(parameter))
                    places.append(self._places.setdefault((module, name), place))
        return places

    def _copy(self, parameter: nn.Parameter) -> nn.Parameter:
        """The low copy of a parameter, which may be in several places."""
        if parameter not in self._copies:
            low = nn.Parameter(parameter.detach().to(self.precision.low), requires_grad=parameter.requires_grad)

            def arrived(low: Tensor) -> None:
                if not self._stepping:
                    _add(parameter, low)

            hook: Any = low.register_post_accumulate_grad_hook
            self._hooks.append(hook(arrived))
            self._copies[parameter] = low
        return self._copies[parameter]


@dataclass(slots=True)
class _Place:
    """A parameter in a module, whose place its low copy takes."""

    module: nn.Module
    name: str
    parameter: nn.Parameter
    low: nn.Parameter
    depth: int = 0
    """Forward passes under way that go through it, one within the other."""

    def enter(self, *, refresh: bool = True) -> None:
        """Puts the low copy in."""
        self.depth += 1
        if self.depth > 1:
            return
        if refresh:
            self.low.requires_grad_(self.parameter.requires_grad)
            # Past the version counter: an earlier forward pass, whose loss is still to go backward, had the same.
            self.low.data.copy_(self.parameter.data)
        setattr(self.module, self.name, self.low)

    def leave(self) -> None:
        """Puts the parameter back."""
        self.depth -= 1
        if not self.depth:
            setattr(self.module, self.name, self.parameter)


def _add(parameter: nn.Parameter, low: Tensor) -> None:
    """Adds the gradient of a function's own backward pass to the parameter, where that function looks for it."""
    if low.grad is not None:
        gradient = low.grad.to(parameter.dtype)
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        low.grad = None


def _finite(gradients: Sequence[Tensor]) -> bool:
    sums = [gradient.sum(dtype=_summed(gradient)) for gradient in gradients]
    return all(bool(torch.isfinite(one)) for one in sums)


def _summed(gradient: Tensor) -> torch.dtype:
    """The type to add a gradient up in, which no sum of finite numbers leaves."""
    return torch.float64 if gradient.device.type == "cpu" else torch.promote_types(gradient.dtype, torch.float32)
