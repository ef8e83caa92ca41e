"""Layouts: how the workers of a gang share one model, by replicas, shards, tensors and stages."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.layouts.dealing import LaidOut as LaidOut
    from trainers.pytorch.layouts.layout import (
        LAYOUT as LAYOUT,
        MICRO_BATCHES as MICRO_BATCHES,
        SCHEDULE as SCHEDULE,
        Layout as Layout,
    )
    from trainers.pytorch.layouts.parts import Parts as Parts

load_when_used(__name__)
