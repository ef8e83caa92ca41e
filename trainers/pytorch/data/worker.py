"""`Worker`: parts of a gang's worker that every trial uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainers.pytorch.data.examples import ExampleSet
from trainers.pytorch.data.loading import Shard
from trainers.pytorch.data.ray_streams import RayStream
from trainers.pytorch.data.streaming import Stream
from trainers.pytorch.state import Models

if TYPE_CHECKING:
    import torch


Held = Shard | Stream | ExampleSet | RayStream
"""A worker's part of a channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Parts of a worker that every trial uses.

    Args:
        device: that it trains on.
        shards: its rows by channel.
        shard_rows: by channel, how many rows each worker holds, by rank.
        models: how they run.
        neighbours: workers of the gang on its node, itself included.
        elastic: whether a trial may go on with another number of workers.
        steps: updates in a unit of resource; None: as many as the function makes in an epoch.
    """

    device: torch.device
    shards: Mapping[str, Held]
    shard_rows: Mapping[str, Sequence[int]]
    models: Models
    neighbours: int = 1
    elastic: bool = False
    steps: int | None = None

    @property
    def unit(self) -> str:
        """The word for a unit of resource, in messages to the function's author."""
        return "epoch" if self.steps is None else "step" if self.steps == 1 else "unit"
