"""Where a channel's data comes from, and which rows each worker holds.

Row i belongs to rank `i % world_size`, whatever the source: shards are balanced within one row, a sorted file stays
mixed, and a worker can pick its rows out of a stream. Of several files some are read whole instead, and of large
Parquet files some row groups, as many as leave shards balanced; so not every worker reads everything.
"""

from trainers.channels.channel import Channel, PlacedChannel
from trainers.channels.files import Files
from trainers.channels.labels import LabelRule
from trainers.channels.memory import Memory
from trainers.channels.ray_data import RayData
from trainers.channels.table import Table

__all__ = ["Channel", "Files", "LabelRule", "Memory", "PlacedChannel", "RayData", "Table"]
