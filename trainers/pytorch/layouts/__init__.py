"""Layouts: how the workers of a gang share one model, by replicas, shards, tensors and stages."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.layouts.batch_norm import has_batch_norm as has_batch_norm
    from trainers.pytorch.layouts.dealing import LaidOut as LaidOut
    from trainers.pytorch.layouts.following import follow as follow
    from trainers.pytorch.layouts.forecast import Forecast as Forecast, without_data as without_data
    from trainers.pytorch.layouts.layout import (
        LAYOUT as LAYOUT,
        MICRO_BATCHES as MICRO_BATCHES,
        SCHEDULE as SCHEDULE,
        Layout as Layout,
    )
    from trainers.pytorch.layouts.parts import Parts as Parts
    from trainers.pytorch.layouts.plan import blocks_of as blocks_of, styles_of as styles_of
    from trainers.pytorch.layouts.sharding import Sharded as Sharded, in_shards as in_shards

load_when_used(__name__)
