"""What nodes have to see of the driver's machine.

On nodes that really see something else: tests/long/cluster. A gang's worker that does not see it: test_gang.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError
from trainers.cluster.reach import Reach


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.cluster.reach.PATIENCE_SECONDS", 0.0)


def test_another_folder_and_one_that_cannot_be_written_are_told_apart(hasty: None, tmp_path: Path) -> None:
    lost = Reach(marker=str(tmp_path / "other" / ".warmband-1"))
    with refuses(ConfigurationError, field="storage_path", value=str(tmp_path / "other"), remedy=("10.0.0.2", "s3://")):
        lost.check_here("10.0.0.2")
    # A folder in /proc refuses files whoever asks, root too.
    said = mentions(
        Reach(marker=f"/proc/{os.getpid()}/status").unseen(), "storage_path", f"/proc/{os.getpid()}", "s3://"
    )
    assert any(os.strerror(code) in said for code in (errno.ENOENT, errno.EACCES, errno.EPERM))
