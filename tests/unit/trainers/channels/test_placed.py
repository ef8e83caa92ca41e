"""What the driver placed is small, and workers read it, on Ray too."""

from __future__ import annotations

import pickle
from pathlib import Path

from tests.support.refusals import refuses
from tests.support.tables import frame, same, write
from trainers.errors import ConfigurationError


def test_placed_files_are_small_and_read_without_ray(tmp_path: Path) -> None:
    channel = write(frame(50), tmp_path)["parquet"]
    message = pickle.dumps(channel.place(3))
    assert len(message) < 4096
    placed = pickle.loads(message)
    same(placed.read(2, 3), channel.read(2, 3))
    same(placed.read_whole(), channel.read_whole())
    with refuses(ConfigurationError, field="workers", value=3, remedy="4"):
        placed.read(0, 4)
