"""Residence of a worker's rows: on its GPU while there is room, else in the host's memory, copied batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from trainers.channels import PlacedChannel, PlacedExamples, Streamed, Table, interleave
from trainers.errors import DataError
from trainers.pytorch.data.examples import ExampleSet
from trainers.pytorch.data.loading import Shard
from trainers.pytorch.data.ray_streams import RayStream
from trainers.pytorch.data.streaming import Stream
from trainers.pytorch.data.worker import Held

RESIDENT = 0.5
"""The part of a GPU's free memory that a gang's data may fill, all channels together."""


def held(channels: Mapping[str, PlacedChannel], ranks: Sequence[int], world_size: int, room: Room) -> dict[str, Held]:
    """The rows of each channel: whole, or in pieces where they come from a Ray Dataset of several blocks; or examples.

    Args:
        channels: placed for the gang.
        ranks: whose rows: this worker's, and of those who share a model with it.
        world_size: workers of the gang.
        room: where they go, as long as there is any.

    Raises:
        DataError: a column holds categories, or values are missing.
    """
    # What is trained on is read most often; then as the channels were given.
    order = sorted(channels, key=lambda name: name != "train")
    placed = {name: _held(channels[name], ranks, world_size, room) for name in order}
    return {name: placed[name] for name in channels}


class Room:
    """Room that is left for rows on a device; who asks first gets it.

    Args:
        device: of the worker.
        nbytes: of all channels that lie on it; None where it is no GPU, and rows stay where they are.
    """

    def __init__(self, device: torch.device, nbytes: int | None) -> None:
        self.device = device
        self._left = nbytes

    @classmethod
    def of(cls, device: torch.device) -> Room:
        """As large a part of the memory as is free now as data may fill."""
        if device.type != "cuda":
            return cls(device, None)
        free, _ = torch.cuda.mem_get_info(device)
        return cls(device, int(RESIDENT * free))

    def rest(self) -> Room:
        """What is left, for rows that are let go of again."""
        return Room(self.device, self._left)

    def put(self, shard: Shard) -> Shard:
        """Rows on the device if they fit into what is left, else as they are."""
        nbytes = shard.features.nbytes + shard.labels.nbytes
        if self._left is None or nbytes > self._left:
            return shard
        self._left -= nbytes
        return Shard(features=shard.features.to(self.device), labels=shard.labels.to(self.device))


def shard_of(name: str, table: Table) -> Shard:
    """A worker's rows as tensors, in the host's memory.

    Raises:
        DataError: a column holds categories, or values are missing.
    """
    if not isinstance(table.features, np.ndarray):
        raise DataError(f"channel {name!r} has columns of categories; encode them as numbers (pandas.get_dummies, say)")
    if np.isnan(table.features.sum()) and (missing := int(np.isnan(table.features).sum())):
        raise DataError(
            f"channel {name!r} lacks {missing} values (NaN), and a network takes no missing ones; fill them in, or "
            "drop their rows"
        )
    with warnings.catch_warnings():
        # Arrays in Ray's object store are read-only, and nothing here writes to them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return Shard(features=torch.from_numpy(table.features), labels=torch.from_numpy(table.labels))


def _held(channel: PlacedChannel, ranks: Sequence[int], world_size: int, room: Room) -> Held:
    if isinstance(channel.source, PlacedExamples):
        form = channel.source.form
        return RayStream(channel.name, form) if isinstance(form, Streamed) else ExampleSet(channel.name, channel.source)
    if channel.replicated:
        ranks = ranks[:1]
    pieces = [piece for rank in ranks for piece in channel.pieces(rank, world_size)]
    if len(pieces) == len(ranks):
        return room.put(shard_of(channel.name, interleave([piece() for piece in pieces])))

    def fetch(piece: Callable[[], Table]) -> Callable[[], Shard]:
        return lambda: shard_of(channel.name, piece())

    return Stream(fetch=[fetch(piece) for piece in pieces], rows=[len(piece().labels) for piece in pieces])
