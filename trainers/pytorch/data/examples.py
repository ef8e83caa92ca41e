"""Examples of a channel that is no table: its dataset on a worker, and the batches that its items make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from trainers.channels import PlacedExamples, about
from trainers.errors import DataError, TrialError


class ExampleSet:
    """All examples of a channel, the same on every worker of a gang.

    A map-style dataset is made once a gang: what it gives for a row is taken to depend on the row alone, and on what it
    draws. An iterable dataset is made for each trial, which finds it as the first one did.

    Args:
        name: the channel's.
        placed: makes the dataset.
    """

    def __init__(self, name: str, placed: PlacedExamples) -> None:
        self.name = name
        self._placed = placed
        self._dataset: Dataset[Any] | None = self._made()

    def __len__(self) -> int:
        return self._placed.rows or 0

    def dataset(self) -> Dataset[Any]:
        """The dataset, of this trial."""
        dataset = self._made() if self._dataset is None else self._dataset
        self._dataset = None if isinstance(dataset, IterableDataset) else dataset
        return dataset

    def _made(self) -> Dataset[Any]:
        with about(self.name):
            made: Dataset[Any] = self._placed.dataset()
            return made

    def loader(
        self, batch_size: int, *, shuffle: bool, collate_fn: Callable[[list[Any]], Any] | None, num_workers: int
    ) -> DataLoader[Any]:
        """A DataLoader of all examples, to be dealt out to the workers."""
        dataset = self.dataset()
        return DataLoader(
            dataset,
            batch_size=batch_size,
            shuffle=None if isinstance(dataset, IterableDataset) else shuffle,
            collate_fn=collate_fn or Collate(self.name, self._placed.form.ragged),
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
        )


class Collate:
    """Makes a batch of items: as PyTorch's own `default_collate`, but for columns whose values have various lengths.

    Args:
        channel: its name, for errors.
        ragged: those columns; a batch has a list of theirs.
    """

    def __init__(self, channel: str, ragged: Sequence[str]) -> None:
        self._channel = channel
        self._ragged = frozenset(ragged)

    def __call__(self, items: list[Any]) -> Any:
        """A batch.

        Raises:
            DataError: shapes differ.
        """
        if self._ragged:
            return {name: self._column(name, [item[name] for item in items]) for name in items[0]}
        return self._stacked(items)

    def _column(self, name: str, values: list[Any]) -> Any:
        return values if name in self._ragged else self._stacked(values)

    def _stacked(self, items: list[Any]) -> Any:
        try:
            return default_collate(items)
        except (RuntimeError, TypeError) as error:
            shapes = sorted({tuple(part.shape) for item in items for part in _tensors(item)})
            which = f"tensors of shapes {', '.join(map(str, shapes[:4]))}" if len(shapes) > 1 else str(error)
            raise DataError(
                f"channel {self._channel!r}: a batch has {which}, and makes no tensor; give images a size, or "
                "prepare_data(..., collate_fn=...) a function that makes a batch of a list of items"
            ) from error


def check_loading(collate_fn: Any, num_workers: Any) -> None:
    """Refuses what no DataLoader takes.

    Raises:
        TrialError: naming it.
    """
    if collate_fn is not None and not callable(collate_fn):
        raise TrialError(f"collate_fn is {collate_fn!r}; give a function that makes a batch of a list of items")
    if not isinstance(num_workers, int) or num_workers < 0:
        raise TrialError(f"num_workers is {num_workers!r}; give a number of processes, 0 or more")


def _tensors(item: Any) -> list[Tensor]:
    if isinstance(item, torch.Tensor):
        return [item]
    parts = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list | tuple) else []
    return [tensor for part in parts for tensor in _tensors(part)]
