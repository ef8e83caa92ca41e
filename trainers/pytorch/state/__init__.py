"""The state of a paused trial: all that it takes to reach the same end."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.state import random_state as random_state, shards as shards, switches as switches
    from trainers.pytorch.state.best import BestReport as BestReport
    from trainers.pytorch.state.checkpoint import IN_SHARDS as IN_SHARDS, TorchCheckpoint as TorchCheckpoint
    from trainers.pytorch.state.mixed import Mixed as Mixed
    from trainers.pytorch.state.models import Models as Models, forward_of as forward_of
    from trainers.pytorch.state.precision import (
        PRECISION as PRECISION,
        PRECISIONS as PRECISIONS,
        Precision as Precision,
    )
    from trainers.pytorch.state.random_state import derive as derive, seed_all as seed_all

load_when_used(__name__)
