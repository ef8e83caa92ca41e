"""Folders of files as channels: how they are dealt out, listed, digested and laid out on a disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.folders import contents, opened
from trainers.channels import PlacedFolder

SHARDED: Any = "ShardedByS3Key"


def test_ten_thousand_files(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    for number in range(10_000):
        (folder / f"{number % 100:02}").mkdir(parents=True, exist_ok=True)
        (folder / f"{number % 100:02}" / f"{number}.txt").write_bytes(b"x" * (number % 7))
    channel = opened(folder, SHARDED)
    assert channel.describe()["count"] == 10_000
    placed = channel.place(4).source
    assert isinstance(placed, PlacedFolder)
    found: set[str] = set()
    for rank in range(4):
        placed.lay_out(tmp_path / "laid" / str(rank), rank, 4)
        own = set(contents(tmp_path / "laid" / str(rank)))
        assert len(own) == 2500
        assert not own & found
        found |= own
    assert len(found) == 10_000
    json.dumps(channel.describe())
    assert len(channel.files_to_see()) == 64
