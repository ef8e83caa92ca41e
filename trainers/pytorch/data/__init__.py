"""Batches of a worker's rows, drawn alike after every pause."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.data.batches import (
        ACCUMULATION as ACCUMULATION,
        GLOBAL as GLOBAL,
        PER_WORKER as PER_WORKER,
        BatchSize as BatchSize,
        unplanned as unplanned,
    )
    from trainers.pytorch.data.loading import Batches as Batches, Shard as Shard
    from trainers.pytorch.data.prepared import PreparedData as PreparedData
    from trainers.pytorch.data.residence import Room as Room, held as held
    from trainers.pytorch.data.streaming import Stream as Stream
    from trainers.pytorch.data.worker import Held as Held, Worker as Worker

load_when_used(__name__)
