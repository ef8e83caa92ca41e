"""Shards partition the rows alike for every source, and no worker reads more than its part needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.refusals import refuses
from tests.support.tables import frame, rows_of, same, write
from trainers.channels import Table
from trainers.errors import DataError


@settings(max_examples=examples(25), deadline=None)
@given(rows=st.integers(1, 40), world_size=st.integers(1, 9), columns=st.integers(2, 5))
def test_shards_partition_the_rows_alike_for_every_source(
    rows: int, world_size: int, columns: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = frame(rows, columns)
    channels = write(data, tmp_path_factory.mktemp("data"))
    whole = Table(features=data.to_numpy()[:, 1:].copy(), labels=data["y"].to_numpy().copy(), feature_names=None)
    for channel in channels.values():
        same(channel.read_whole(), whole)
        if rows < world_size:
            with refuses(DataError, field="rows", remedy="workers"):
                channel.read(world_size - 1, world_size)
            continue
        for rank in range(world_size):
            shard = channel.read(rank, world_size)
            assert rows_of(shard).tolist() == list(range(rank, rows, world_size))
            np.testing.assert_array_equal(shard.labels, whole.labels[rank::world_size])
