"""Roles of columns: weights, margins and bounds come with their rows from every source, and wrong ones are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.support.refusals import refuses
from trainers import Channel, ConfigurationError, DataError

ROWS = 23
RANDOM = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "y": RANDOM.integers(0, 2, ROWS).astype(np.float32),
        "x": RANDOM.normal(size=ROWS).astype(np.float32),
        "w": RANDOM.gamma(1.0, size=ROWS).astype(np.float32),
        "z": RANDOM.normal(size=ROWS).astype(np.float32),
        "m0": RANDOM.normal(size=ROWS).astype(np.float32),
        "m1": RANDOM.normal(size=ROWS).astype(np.float32),
    }
)
SAID: dict[str, Any] = {"weight": "w", "base_margin": ["m0", "m1"]}


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


QUERIES = pd.DataFrame({"y": np.arange(20.0), "q": np.repeat([7, 3, 90_000_001, 5, 90_000_000], [3, 1, 8, 2, 6])})
QUERIES = QUERIES.assign(x=QUERIES["y"] * 2)


def test_a_ray_dataset_has_no_queries(ray_cluster: None) -> None:
    import ray

    with refuses(ConfigurationError, field=("qid", "ray.data.Dataset", "queries"), value="q", remedy="Parquet"):
        Channel.of(ray.data.from_pandas(QUERIES), qid="q")
