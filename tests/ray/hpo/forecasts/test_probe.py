"""What the probe measures in this process, and what it makes of figures; one test trains on Ray."""

from __future__ import annotations

from hpo.forecasts.one_worker import NotMeasured, measure_here
from tests.support.boosting import CHANNELS
from tests.support.hpo.forecasts.probe import trainer
from tests.support.refusals import mentions
from trainers.channels import open_channels


def test_a_ray_dataset_is_not_executed(ray_cluster: None) -> None:
    import ray

    dataset = ray.data.from_pandas(CHANNELS["train"])
    one = measure_here(trainer(), open_channels({**CHANNELS, "train": dataset}))
    assert isinstance(one, NotMeasured)
    mentions(one.reason, "channel", "'train'", "ray.data.Dataset")
