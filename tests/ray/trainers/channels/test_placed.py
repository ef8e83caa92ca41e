"""What the driver placed is small, and workers read it, on Ray too."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import refuses
from tests.support.tables import frame, same, write
from trainers.channels import Channel, Table
from trainers.errors import ConfigurationError, DataError


def late_first(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Passes a batch on, the first one last."""
    if batch["x1"].min() == 0:
        time.sleep(1.0)
    return batch


@pytest.mark.usefixtures("ray_cluster")
class TestInRay:
    """What needs Ray's object store, or Ray Data."""

    def read_on_workers(self, placed: Any, world_size: int) -> list[tuple[Table, Table]]:
        import ray

        @ray.remote(num_cpus=0.1)
        def work(message: bytes, rank: int) -> tuple[Table, Table]:
            placed = pickle.loads(message)
            return placed.read(rank, world_size), placed.read_whole()

        message = ray.cloudpickle.dumps(placed)
        assert len(message) < 20_000
        return ray.get([work.remote(message, rank) for rank in range(world_size)])

    @pytest.mark.parametrize(
        "kind", ["pandas", "numpy", "pair of frames", "csv with header", "ray.data", "ray.data lazy"]
    )
    def test_workers_read_what_the_driver_placed(self, tmp_path: Path, kind: str) -> None:
        import ray

        data = frame(101)
        channels = write(data, tmp_path)
        if kind == "ray.data":
            rows = ray.data.from_pandas(data).repartition(7)
            channels[kind] = Channel.of(rows.materialize(), target="y")
        elif kind == "ray.data lazy":
            lazy = ray.data.from_pandas([data[:30], data[30:60], data[60:]]).map_batches(late_first, batch_size=None)
            channels[kind] = Channel.of(lazy, target="y")
        channel = channels[kind]
        # Each placement executes a lazy dataset again, which takes seconds.
        for world_size in (3,) if kind == "ray.data lazy" else (1, 3):
            read = self.read_on_workers(channel.place(world_size), world_size)
            for rank, (shard, whole) in enumerate(read):
                same(shard, channels["numpy"].read(rank, world_size))
                same(whole, channels["numpy"].read_whole())

    def test_categories_survive_the_store(self) -> None:
        data = frame(9).assign(colour=pd.Categorical(list("abcabcabc")))
        whole = Channel.of(data).place(4).read_whole()
        assert whole.features["colour"].tolist() == list("abcabcabc")
        assert whole.features.index.tolist() == list(range(9))

    def test_a_dataset_is_checked_before_workers_start(self) -> None:
        import ray

        for data, workers, names in [
            (frame(4).assign(job="nurse"), 2, ("column", "job")),
            (frame(4).assign(y=[1.0, np.nan, 0.0, np.nan]), 2, ("'train'", "row 2", "label", "nan")),
            (frame(2), 3, ("rows", "2", "3", "workers")),
        ]:
            with refuses(DataError, field=names):
                Channel.of(ray.data.from_pandas(data), name="train").place(workers)
        with refuses(ConfigurationError, field="target", value="yy", remedy="'y'"):
            Channel.of(ray.data.from_pandas(frame(4)), target="yy").place(2)

    def test_a_dataset_describes_itself_without_running(self) -> None:
        import ray

        data = ray.data.from_pandas(frame(6))
        described = Channel.of(data.materialize(), target="x2").describe()
        assert (described["kind"], described["rows"], described["target"]) == ("ray.data", 6, "x2")
        assert Channel.of(data.map_batches(lambda batch: batch)).describe()["rows"] is None
        json.dumps(described)
