"""A gang's worker: serving of assignments, halting, output and log records."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.gangs.worker.halting import Halts as Halts
    from trainers.gangs.worker.holdings import device as device
    from trainers.gangs.worker.output import found as found
    from trainers.gangs.worker.serving import (
        AGREE_SECONDS as AGREE_SECONDS,
        PROGRESS_SECONDS as PROGRESS_SECONDS,
        serve as serve,
    )

load_when_used(__name__)
