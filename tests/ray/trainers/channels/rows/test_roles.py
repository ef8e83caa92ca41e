"""Roles of columns: weights, margins and bounds come with their rows from every source, and wrong ones are errors."""

from __future__ import annotations

import numpy as np

from tests.support.refusals import refuses
from tests.support.trainers.channels.rows.roles import FRAME, QUERIES, SAID
from trainers import Channel, ConfigurationError, DataError


def test_a_ray_dataset_has_roles_too(ray_cluster: None) -> None:
    import ray

    channel = Channel.of(ray.data.from_pandas(FRAME), **SAID)
    placed = channel.place(2)
    whole = placed.read_whole()
    np.testing.assert_allclose(whole.said["weight"], FRAME["w"], rtol=1e-6)
    assert whole.feature_names == ("x", "z")
    wrong = FRAME.assign(w=FRAME["w"].where(FRAME.index != 17, -1.0))
    with refuses(DataError, field=("'data'", "row 18", "weight"), value=-1, remedy="0"):
        Channel.of(ray.data.from_pandas([wrong[:9], wrong[9:]]), **SAID).place(2)


def test_a_ray_dataset_has_no_queries(ray_cluster: None) -> None:
    import ray

    with refuses(ConfigurationError, field=("qid", "ray.data.Dataset", "queries"), value="q", remedy="Parquet"):
        Channel.of(ray.data.from_pandas(QUERIES), qid="q")
