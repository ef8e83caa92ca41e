"""What nodes have to see of the driver's machine.

On nodes that really see something else: tests/long/cluster. A gang's worker that does not see it: test_gang.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.refusals import mentions, missing_names
from trainers import Channel
from trainers.cluster.shared_paths import reaching

CPU = {"CPU": 1.0}
MARKERS = ".warmband-reach-*"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.cluster.reach.PATIENCE_SECONDS", 0.0)


def told(text: str) -> None:
    raise AssertionError(f"nobody had to be told {text!r}")


def test_a_marker_is_there_for_the_block_and_leaves_no_folder_behind(ray_cluster: None, tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "one"
    with reaching(CPU, {}, str(folder), told) as reach:
        assert [str(path) for path in folder.glob(MARKERS)] == [reach.marker]
        assert reach.unseen() == ""
    assert list(tmp_path.iterdir()) == []


def test_what_a_job_wrote_beside_it_stays(ray_cluster: None, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / ".warmband-reach-of-a-driver-that-was-killed").touch()
    (folder / ".warmband-job.json").touch()
    with reaching(CPU, {}, f"file://{folder}", told) as reach:
        assert reach.unseen() == ""
        (folder / "model").touch()
    assert {path.name for path in folder.iterdir()} == {".warmband-job.json", "model"}


def test_places_that_every_node_reaches_alike_have_no_marker(ray_cluster: None) -> None:
    memory = Channel.of(np.ones((4, 2), dtype="float32"), name="train")
    for storage_path in ("", "s3://bucket/jobs"):
        with reaching(CPU, {"train": memory}, storage_path, told) as reach:
            assert reach.empty


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
