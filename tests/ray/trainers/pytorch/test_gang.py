"""PyTorch gangs on a real Ray cluster that lacks what they need."""

from __future__ import annotations

from ray.train import ScalingConfig

from tests.support.refusals import refuses
from trainers import ResourcesError
from trainers.gangs.capacity import check_capacity


def test_a_gpu_that_no_node_has_is_refused_with_what_to_do(ray_cluster: None) -> None:
    with refuses(ResourcesError, field=("2", "workers", "1 GPU"), value="0 GPU", remedy=("1 node", "use_gpu=False")):
        check_capacity(ScalingConfig(num_workers=2, use_gpu=True))
