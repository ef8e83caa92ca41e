"""Ray Train's trainer without the processes that a gang does not use: one of two that take what Ray keeps private.

Tested with ray 2.60; `tests/long/trainers/gangs/test_controller.py` counts the processes.
"""

from __future__ import annotations

from typing import Any

from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

UNUSED = (DatasetsCallback, PlacementGroupCleanerCallback)


class GangTrainer(DataParallelTrainer):
    """Ray Train's trainer, which starts two processes fewer than Train's own and has no public way to.

    One hands out datasets, of which a gang has none; the other removes what a controller held that died, which `Gang`
    does itself. Each takes 1.2 to 2 s of a processor while the gang starts and 110 MB for as long as it lives, and the
    other stays on a cluster whose driver was killed.
    """

    def _create_default_callbacks(self) -> list[Any]:
        return [each for each in super()._create_default_callbacks() if not isinstance(each, UNUSED)]
