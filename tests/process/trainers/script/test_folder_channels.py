"""Folders as channels of programs: what a program finds of them, in this process and on gangs of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.script.folder_channels import (
    FILES,
    found,
    images,  # noqa: F401  # Fixtures.
)
from trainers import Folder, storage


@pytest.mark.parametrize("distribution", ["FullyReplicated", "ShardedByS3Key"])
def test_a_worker_alone_finds_all(images: Path, tmp_path: Path, distribution: Any) -> None:
    (alone,) = found({"images": Folder(images, distribution)}, tmp_path, 0)
    assert alone["channels"]["images"]["files"] == FILES
    assert alone["distributions"] == {"images": distribution}
    assert (alone["channels"]["images"]["folder"] == str(images)) == (distribution == "FullyReplicated")


def test_a_stored_folder_beside_rows(images: Path, tmp_path: Path, s3: str) -> None:
    storage.check_writable(s3)
    place, mark, options = s3.partition("?")
    for name, text in (("a", "1"), ("b", "2")):
        storage.write(f"{place}/beside/{name}{mark}{options}", text.encode())
    (tmp_path / "rows.csv").write_text("y,x\n1,2\n3,4\n")
    channels = {"train": str(tmp_path / "rows.csv"), "validation": Folder(f"{place}/beside{mark}{options}")}
    (alone,) = found(channels, tmp_path, 0)
    assert alone["channels"]["validation"]["files"] == {"a": "1", "b": "2"}
    assert alone["channels"]["train"]["files"] == {"rows.csv": "y,x\n1,2\n3,4\n"}
    assert set(alone["distributions"].values()) == {"FullyReplicated"}
