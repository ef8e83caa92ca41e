"""Folders as channels of programs: what a program finds of them, in this process and on gangs of two."""

from __future__ import annotations

from pathlib import Path

from tests.support.trainers.script.folder_channels import (
    FILES,
    found,
    images,  # noqa: F401  # Fixtures.
)
from trainers import Folder


def test_two_workers_find_parts_of_one_folder_and_all_of_another(
    ray_cluster: None, images: Path, tmp_path: Path
) -> None:
    channels = {"train": Folder(images, "ShardedByS3Key"), "test": Folder(images)}
    first, second = found(channels, tmp_path, 2)
    one, other = (each["channels"]["train"] for each in (first, second))
    assert one["files"] | other["files"] == FILES
    assert (len(one["files"]), len(other["files"])) == (5, 5)
    assert one["folder"] != other["folder"]
    for each in (first, second):
        assert {name.partition("/")[0] for name in each["channels"]["train"]["files"]} == {"cats", "dogs"}
        assert each["channels"]["test"] == {"folder": str(images), "files": FILES}
        assert each["distributions"] == {"train": "ShardedByS3Key", "test": "FullyReplicated"}
