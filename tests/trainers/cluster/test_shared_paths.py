"""What nodes have to see of the driver's machine.

On nodes that really see something else: tests/cluster. A gang's worker that does not see it: test_gang.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.refusals import mentions, missing_names, refuses
from trainers import Channel, ConfigurationError
from trainers.cluster.reach import Reach
from trainers.cluster.shared_paths import reaching

CPU = {"CPU": 1.0}
MARKERS = ".warmband-reach-*"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.cluster.reach.PATIENCE_SECONDS", 0.0)


def told(text: str) -> None:
    raise AssertionError(f"nobody had to be told {text!r}")


@pytest.mark.ray
def test_a_marker_is_there_for_the_block_and_leaves_no_folder_behind(ray_cluster: None, tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "one"
    with reaching(CPU, {}, str(folder), told) as reach:
        assert [str(path) for path in folder.glob(MARKERS)] == [reach.marker]
        assert reach.unseen() == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ray
def test_what_a_job_wrote_beside_it_stays(ray_cluster: None, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / ".warmband-reach-of-a-driver-that-was-killed").touch()
    (folder / ".warmband-job.json").touch()
    with reaching(CPU, {}, f"file://{folder}", told) as reach:
        assert reach.unseen() == ""
        (folder / "model").touch()
    assert {path.name for path in folder.iterdir()} == {".warmband-job.json", "model"}


@pytest.mark.ray
def test_places_that_every_node_reaches_alike_have_no_marker(ray_cluster: None) -> None:
    memory = Channel.of(np.ones((4, 2), dtype="float32"), name="train")
    for storage_path in ("", "s3://bucket/jobs"):
        with reaching(CPU, {"train": memory}, storage_path, told) as reach:
            assert reach.empty


@pytest.mark.ray
def test_files_of_channels_are_looked_for_by_path_and_size(ray_cluster: None, hasty: None, tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("1,2\n3,4\n")
    with reaching(CPU, {"train": Channel.of(path, name="train")}, "", told) as reach:
        assert dict(reach.files) == {("train", str(path)): 8}
        assert reach.unseen() == ""
        path.write_text("1,2\n")
        said = mentions(reach.unseen(), "train", str(path), "s3://")
        mentions(said.replace(str(path), ""), "4", "8")
        path.unlink()
        said = mentions(reach.unseen(), "train", str(path), "s3://")
        assert missing_names(said.replace(str(path), ""), "4", "8") == ["4", "8"]


def test_another_folder_and_one_that_cannot_be_written_are_told_apart(hasty: None, tmp_path: Path) -> None:
    lost = Reach(marker=str(tmp_path / "other" / ".warmband-1"))
    with refuses(ConfigurationError, field="storage_path", value=str(tmp_path / "other"), remedy=("10.0.0.2", "s3://")):
        lost.check_here("10.0.0.2")
    # A folder in /proc refuses files whoever asks, root too.
    said = mentions(
        Reach(marker=f"/proc/{os.getpid()}/status").unseen(), "storage_path", f"/proc/{os.getpid()}", "s3://"
    )
    assert any(os.strerror(code) in said for code in (errno.ENOENT, errno.EACCES, errno.EPERM))
