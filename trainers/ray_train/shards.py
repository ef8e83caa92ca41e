"""Datasets of Ray Data, dealt out to the workers of gangs of every size that there may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from trainers.channels import Channel, RayData

TARGET = "target"
"""What the column to predict is called where its channel has no name for it."""


def dataset_of(channel: Channel) -> Any:
    """A channel as a dataset of Ray Data's: itself where it is one, else its rows, read here, with the target first."""
    if isinstance(channel.source, RayData):
        return channel.source.dataset
    import numpy as np
    import pandas as pd
    import ray.data

    table, named = channel.read(0, 1), channel.describe()["target"]
    columns = table.feature_names or [f"f{side}" for side in range(np.shape(table.features)[1])]
    frame = pd.DataFrame(table.features, columns=list(columns))
    frame.insert(0, named if isinstance(named, str) else TARGET, table.labels)
    return ray.data.from_pandas(frame)


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
