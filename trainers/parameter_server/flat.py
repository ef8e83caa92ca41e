"""Tensors of one type in one flat buffer, sent and received as it lies in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainers.errors import TrialError

_ALIGNMENT = 64
"""Bytes; as PyTorch aligns tensors of their own, so that its kernels take the same paths and give the same bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where in a buffer the tensors lie that one server holds of one type."""

    dtype: torch.dtype
    shapes: tuple[torch.Size, ...]

    @property
    def elements(self) -> int:
        """Of the tensors, without the gaps between them."""
        return sum(shape.numel() for shape in self.shapes)

    @property
    def bytes(self) -> int:
        """Of the buffer."""
        return self._offsets()[-1] * self.dtype.itemsize

    def buffer(self, device: torch.device | str = "cpu") -> Tensor:
        """A buffer of zeros."""
        return torch.zeros(self._offsets()[-1], dtype=self.dtype, device=device)

    def views(self, buffer: Tensor) -> list[Tensor]:
        """The tensors, as parts of the buffer."""
        offsets = self._offsets()
        return [
            buffer[offset : offset + shape.numel()].view(shape)
            for offset, shape in zip(offsets, self.shapes, strict=False)
        ]

    def _offsets(self) -> list[int]:
        step = _ALIGNMENT // self.dtype.itemsize
        offsets = [0]
        for shape in self.shapes:
            offsets.append(offsets[-1] + math.ceil(shape.numel() / step) * step)
        return offsets


class Block:
    """Parameters of one type on one device, made parts of one buffer, and their gradients parts of another.

    The parameters stay the same objects. What the worker itself writes into them is overwritten by the next pull.

    Args:
        parameters: of one dtype, on one device, that require gradients.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        first = parameters[0]
        self.layout = Layout(dtype=first.dtype, shapes=tuple(parameter.shape for parameter in parameters))
        self._parameters = list(parameters)
        self._values = self.layout.buffer(first.device)
        self._gradients = self.layout.buffer(first.device)
        self._places = self.layout.views(self._values)
        self._slots = self.layout.views(self._gradients)
        for parameter, place in zip(parameters, self._places, strict=True):
            place.copy_(parameter.detach())
            parameter.data = place
        # On a GPU they pass through the processor's memory.
        self.values = self._values if first.is_cpu else self.layout.buffer().pin_memory()
        self.gradients = self._gradients if first.is_cpu else self.layout.buffer().pin_memory()
        self.collect()

    def collect(self) -> None:
        """Brings the gradients into `gradients`, wherever they are now.

        User code that calls `zero_grad(set_to_none=True)` makes PyTorch put new ones elsewhere. A parameter that has
        none gets zeros, as if its gradient were zero: momentum and weight decay go on.

        Raises:
            TrialError: a parameter lies elsewhere, so that pulls would not reach it.
        """
        for parameter, place, slot in zip(self._parameters, self._places, self._slots, strict=True):
            gradient = parameter.grad
            if gradient is not slot:
                if gradient is None:
                    slot.zero_()
                else:
                    slot.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
                parameter.grad = slot
            if parameter.data_ptr() != place.data_ptr():
                raise TrialError(
                    "a parameter was moved while it is trained on parameter servers; call model.to(), and whatever "
                    "else replaces a parameter's data, before the first step"
                )
        if self.gradients is not self._gradients:
            self.gradients.copy_(self._gradients)

    def current(self) -> Tensor:
        """The values as they are now, on the processor; a copy of a GPU's."""
        return self._values.cpu()

    def zero(self) -> None:
        """Makes all gradients zero."""
        self._gradients.zero_()

    def spread(self) -> None:
        """Brings what was received in `values` into the parameters."""
        if self.values is not self._values:
            self._values.copy_(self.values)


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a buffer, without a copy."""
    array: Any = tensor.view(torch.uint8).numpy()
    return memoryview(array)
