"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.external_rows import FRAME, ROWS, SMALL
from trainers import Channel

pytestmark = pytest.mark.usefixtures("scratch")


def test_a_ray_dataset_comes_a_block_at_a_time(ray_cluster: None, scratch: Path) -> None:
    import ray.data

    dataset = ray.data.from_pandas([FRAME[start : start + 500] for start in range(0, ROWS, 500)])
    placed = Channel.of(dataset, target="y", weight="w").place(2)
    shards = [list(placed.blocks(rank, 2, SMALL)) for rank in range(2)]
    for rank, blocks in enumerate(shards):
        assert [len(block.labels) for block in blocks] == [250] * 6
        np.testing.assert_array_equal(
            np.concatenate([block.features for block in blocks]), placed.read(rank, 2).features
        )
    assert sum(len(block.labels) for block in placed.blocks(0, 1, SMALL)) == ROWS
