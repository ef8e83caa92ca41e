"""Samplers of DataLoaders: rows of each pass drawn from a seed, so that any worker can draw any pass again."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler

from trainers.errors import TrialError
from trainers.pytorch.state import random_state


class Draws:
    """Draws of a DataLoader's sampler in each pass: rows, or batches of rows where it is a batch sampler.

    Before a pass is drawn, the global generators of Python, NumPy and PyTorch, and a sampler's `generator`, are seeded,
    and `set_epoch`, where the sampler has it, is called. So a pass depends on the seed and its number alone.

    Args:
        loader: the user's.
        seed: of all passes.
        device: that the worker trains on, whose generator a draw leaves as it was.
    """

    def __init__(self, loader: DataLoader[Any], seed: int, device: torch.device) -> None:
        self.batch_size = loader.batch_size
        """None: the sampler gives batches."""
        sampler: Any = loader.batch_sampler if loader.batch_size is None else loader.sampler
        self._sampler = sampler
        self._parts: list[Any] = [part for part in (sampler, getattr(sampler, "sampler", None)) if part is not None]
        self._seed = seed
        self._device = device

    @property
    def distributed(self) -> bool:
        """Whether the sampler deals rows out by itself."""
        return any(isinstance(part, DistributedSampler) for part in self._parts)

    def of(self, number: int) -> list[Any]:
        """The sampler's draws in pass `number`, counted from 0.

        Raises:
            TrialError: it has no length, or gives more than that.
        """
        with self._seeded(random_state.derive(self._seed, number)):
            for part in self._parts:
                if callable(getattr(part, "set_epoch", None)):
                    part.set_epoch(number)
            most = self._length()
            drawn = list(islice(self._sampler, most + 1))
        if len(drawn) > most:
            raise TrialError(
                f"the DataLoader's {self._name} gives more than the {most} that it has by len(); give one that ends, "
                "and whose length is right"
            )
        if self.batch_size is None:
            batches = [[_plain(row) for row in batch] for batch in drawn]
            return [batch for batch in batches if batch]  # One without rows is nothing to train on.
        return [_plain(row) for row in drawn]

    def checked(self, number: int) -> list[Any]:
        """As `of`, drawn twice.

        Raises:
            TrialError: it comes out differently, so that a trial that was paused could not go on with it.
        """
        drawn = self.of(number)
        if self.of(number) != drawn:
            raise TrialError(
                f"the DataLoader's {self._name} draws other rows each time, from a state of its own, with which a "
                "paused trial could not go on; let it draw from PyTorch's, NumPy's or Python's global generator, or "
                "from what set_epoch(number) tells it"
            )
        return drawn

    @property
    def _name(self) -> str:
        return type(self._sampler).__name__

    def _length(self) -> int:
        try:
            return len(self._sampler)
        except (TypeError, NotImplementedError):
            raise TrialError(
                f"the DataLoader's {self._name} has no length; give one with __len__, which says how much makes a pass"
            ) from None

    @contextmanager
    def _seeded(self, seed: int) -> Iterator[None]:
        """All that samplers draw from, seeded; afterwards it is as it was."""
        before = [(part, part.generator) for part in self._parts if _has_generator(part)]
        with random_state.kept(self._device):
            random_state.seed_all(seed)
            try:
                for part, generator in before:
                    device = generator.device if generator is not None else _weights_device(part)
                    part.generator = torch.Generator(device).manual_seed(seed)
                yield
            finally:
                for part, generator in before:
                    part.generator = generator


def _has_generator(sampler: Any) -> bool:
    return hasattr(sampler, "generator") and isinstance(sampler.generator, torch.Generator | None)


def _weights_device(sampler: Any) -> torch.device:
    """The device of a draw without a generator: that of the weights."""
    weights = getattr(sampler, "weights", None)
    return weights.device if isinstance(weights, torch.Tensor) else torch.device("cpu")


def _plain(row: Any) -> Any:
    """A row's number as Python's, so that draws compare; a key that is no number as it is."""
    try:
        return operator.index(row)
    except TypeError:
        return row
