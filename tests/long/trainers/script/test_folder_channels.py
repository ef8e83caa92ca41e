"""Folders as channels of programs: what a program finds of them, in this process and on gangs of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import mentions
from tests.support.trainers.script.folder_channels import (
    found,
    images,  # noqa: F401  # Fixtures.
)
from trainers import DataError, Folder, GangError, ScriptTrainer


def test_a_file_that_goes_as_a_gang_starts_is_named(
    ray_cluster: None, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = ScriptTrainer.checked

    def then_gone(self: ScriptTrainer, *arguments: Any, **options: Any) -> Any:
        (images / "cats" / "3 ü.txt").unlink()
        return checked(self, *arguments, **options)

    monkeypatch.setattr(ScriptTrainer, "checked", then_gone)
    with pytest.raises((DataError, GangError)) as raised:
        found({"train": Folder(images, "ShardedByS3Key")}, tmp_path, 2)
    mentions(str(raised.value), "'train'", "3 ü.txt", "5 bytes")
