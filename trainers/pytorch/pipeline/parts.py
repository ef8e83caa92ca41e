"""Parts of a loss: an expression computed for each micro-batch, and for the whole batch to compare."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from trainers.errors import TrialError
from trainers.pytorch.pipeline.deferred import Deferred, Values, contents

CHECKED, CHECK_EVERY = 3, 16
"""The first losses of a kind are compared with the whole batch's, and every so many after them."""


def part_of(tensor: Tensor, rows: int, index: int, count: int) -> Tensor:
    """A micro-batch's part of a tensor that has rows of the batch along dimension 0, or several for each; else it.

    Args:
        tensor: any.
        rows: of the batch.
        index: of the micro-batch.
        count: of the micro-batches, which divides `rows`.
    """
    if not has_rows(tensor, rows):
        return tensor
    size = tensor.shape[0] // count
    return tensor[index * size : (index + 1) * size]


def has_rows(tensor: Tensor, rows: int) -> bool:
    """Whether dimension 0 of a tensor may be the batch's."""
    return tensor.dim() > 0 and tensor.shape[0] > 0 and tensor.shape[0] % rows == 0


class LossParts:
    """A loss by micro-batch.

    Args:
        loss: what `context.step` was given.
        count: of micro-batches.
        shapes: the outputs of the model for one micro-batch, without data.
        found: which constants of earlier losses were not cut, by functions and shapes; this one's are added.

    Raises:
        TrialError: it is no single number, or cannot be computed of a part of the batch.
    """

    def __init__(
        self, loss: Deferred, count: int, shapes: Sequence[Tensor], found: dict[Hashable, tuple[int, ...]]
    ) -> None:
        self._expression = loss.expression
        self._rows, self._count = loss.call.rows, count
        if loss.numel() != 1:
            raise TrialError(f"context.step() got a loss of shape {tuple(loss.shape)}; give the mean over the rows")
        beside, names = contents(self._expression)
        if any(tensor.requires_grad for tensor in beside):
            raise TrialError(
                "the loss is computed of parameters beside the model's output; in a pipeline each worker has those of "
                "its own stage alone: use weight_decay, or move it into the model"
            )
        kind = (names, tuple(tensor.shape for tensor in beside))
        self.is_new = kind not in found
        """Whether no loss of its functions and shapes was there before."""
        if self.is_new:
            found[kind] = self._not_cut(beside, shapes)
        self._whole = {id(beside[index]) for index in found[kind]}

    def value(self, outputs: Sequence[Tensor], index: int) -> Tensor:
        """The loss of a micro-batch.

        Args:
            outputs: of the model, for its rows.
            index: of the micro-batch.
        """
        return self._values(outputs, index, self._whole).of(self._expression)

    def whole(self, outputs: Sequence[Tensor]) -> Tensor:
        """The loss of the whole batch, of its outputs."""
        with torch.no_grad():
            return Values(outputs.__getitem__, lambda tensor: tensor, lambda size: size).of(self._expression)

    def _values(self, outputs: Sequence[Tensor], index: int, whole: set[int]) -> Values:
        return Values(
            outputs.__getitem__,
            lambda tensor: tensor if id(tensor) in whole else part_of(tensor, self._rows, index, self._count),
            lambda size: size // self._count if size > 0 and size % self._rows == 0 else size,
        )

    def _not_cut(self, beside: Sequence[Tensor], shapes: Sequence[Tensor]) -> tuple[int, ...]:
        """The place of the tensor that only looks like the batch's, if there is one: it is not cut with the rows."""
        if self._count == 1:
            return ()
        alike = [index for index, tensor in enumerate(beside) if has_rows(tensor, self._rows)]
        failure: Exception | None = None
        for whole in ((), *((index,) for index in alike)):
            try:
                self._of_shapes(shapes, {id(beside[index]) for index in whole})
            except Exception as error:  # Of any kind: shapes are checked by each function in its own way.
                failure = failure or error
            else:
                return whole
        raise TrialError(
            f"a pipeline computes the loss for 1 of {self._count} micro-batches at a time, and it failed: {failure}; "
            f"these tensors were cut with the batch's {self._rows} rows: "
            f"{', '.join(str(tuple(beside[index].shape)) for index in alike)}"
        ) from failure

    def _of_shapes(self, shapes: Sequence[Tensor], whole: set[int]) -> None:
        values = self._values(shapes, 0, whole)
        with torch.no_grad():
            if values.of(self._expression).numel() != 1:
                raise ValueError("it is no single number")


def is_mean(whole: float, parts: float, dtype: torch.dtype) -> bool:
    """Whether a loss of the whole batch is the mean of its micro-batches', but for rounding."""
    if not math.isfinite(whole) or not math.isfinite(parts):
        return True  # Divergence is found by others.
    return abs(whole - parts) <= math.sqrt(torch.finfo(dtype).eps) * max(1e-3, abs(whole), abs(parts))


def no_mean(whole: float, parts: float, count: int) -> TrialError:
    """The error where it is not."""
    return TrialError(
        f"the loss is {whole:.6g} for the whole batch, and {parts:.6g} in the mean over its {count} micro-batches, and "
        "a pipeline can only follow a mean over rows: classes with weights, ignored rows and sums are none, nor "
        "is a tensor with as many entries as the batch that does not belong to its rows; give a mean over all rows, or "
        "micro_batches=1"
    )
