"""Training in this very process: no Ray, the calling thread; that its models are a gang's is in test_gang."""

from __future__ import annotations

import pandas

from tests.support.refusals import refuses
from trainers import Channel, ConfigurationError


def test_a_ray_dataset_needs_ray(ray_cluster: None) -> None:
    import ray

    channel = Channel.of(ray.data.from_pandas(pandas.DataFrame({"y": [0, 1], "a": [1, 2]})), name="train")
    with refuses(ConfigurationError, field="train", value="num_workers=0", remedy=("to_pandas()", "num_workers=1")):
        channel.place(0)
