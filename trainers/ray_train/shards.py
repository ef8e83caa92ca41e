"""Datasets of Ray Data, dealt out to the workers of gangs of every size that there may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def dealt(
    datasets: Mapping[str, Any], split: Collection[str], sizes: Iterable[int]
) -> dict[int, tuple[dict[str, Any], ...]]:
    """The datasets of each worker, by the gang's size: executed once, and kept in Ray's object store for all trials.

    As in Ray Train each worker gets as many rows of a dataset that is split.

    Args:
        datasets: by name.
        split: names of those that are split; each worker gets the others whole.
        sizes: workers of a gang.
    """
    held = {name: dataset.materialize() for name, dataset in datasets.items()}
    shards = {}
    for workers in sizes:
        parts = {
            name: dataset.split(workers, equal=True) if name in split else [dataset] * workers
            for name, dataset in held.items()
        }
        shards[workers] = tuple({name: parts[name][rank] for name in parts} for rank in range(workers))
    return shards
