"""Batches of a worker's rows, drawn alike after every pause."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.data.batches import (
        GLOBAL as GLOBAL,
        PER_WORKER as PER_WORKER,
        BatchSize as BatchSize,
        unplanned as unplanned,
    )
    from trainers.pytorch.data.loaders import loader_batches as loader_batches
    from trainers.pytorch.data.loading import (
        Batches as Batches,
        Place as Place,
        Shard as Shard,
        shard_batches as shard_batches,
    )
    from trainers.pytorch.data.streaming import Stream as Stream, stream_batches as stream_batches

load_when_used(__name__)
