"""Channels: sources of data, and the rows of each worker.

Row i belongs to rank `i % world_size`, whatever the source: shards are balanced within one row, a sorted file stays
mixed, and a worker can pick its rows out of a stream. Of several files some are read whole instead, and of large
Parquet files some row groups, as many as leave shards balanced; so not every worker reads everything.

A `Folder` has no rows, but files as they are; `Examples` are datasets of PyTorch, with items of any shape.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.blocks import in_blocks as in_blocks, joined as joined
    from trainers.channels.channel import Channel as Channel
    from trainers.channels.distribution import SHARDED as SHARDED, WHOLE as WHOLE, Distribution as Distribution
    from trainers.channels.examples import (
        KINDS as KINDS,
        Examples as Examples,
        OpenedExamples as OpenedExamples,
        PlacedExamples as PlacedExamples,
        Streamed as Streamed,
    )
    from trainers.channels.files import (
        LIBSVM as LIBSVM,
        Files as Files,
        LibsvmFiles as LibsvmFiles,
        is_heading as is_heading,
    )
    from trainers.channels.folder import (
        FETCH_SECONDS as FETCH_SECONDS,
        Folder as Folder,
        OpenedFolder as OpenedFolder,
        PlacedFolder as PlacedFolder,
    )
    from trainers.channels.inputs import (
        Reads as Reads,
        agree as agree,
        check_channels as check_channels,
        check_train as check_train,
        gathered as gathered,
        open_channels as open_channels,
        refuse_unread as refuse_unread,
    )
    from trainers.channels.label_counts import LabelCounts as LabelCounts, count_labels as count_labels
    from trainers.channels.labels import (
        LabelRule as LabelRule,
        label_name as label_name,
        label_summary as label_summary,
        predicts as predicts,
        prepared as prepared,
        separated_number as separated_number,
    )
    from trainers.channels.memory import Memory as Memory
    from trainers.channels.placed import PlacedChannel as PlacedChannel, about as about
    from trainers.channels.ray_data import RayData as RayData
    from trainers.channels.rows import (
        BASE_MARGIN as BASE_MARGIN,
        LOWER as LOWER,
        QID as QID,
        ROLES as ROLES,
        WEIGHT as WEIGHT,
        Coding as Coding,
        framed as framed,
        unframed as unframed,
        with_days as with_days,
    )
    from trainers.channels.sparse import (
        from_parts_of as from_parts_of,
        is_sparse as is_sparse,
        parts_of as parts_of,
    )
    from trainers.channels.table import Table as Table, interleave as interleave

load_when_used(__name__)
