"""Folders as channels of programs: what a program finds of them, in this process and on gangs of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.refusals import mentions
from tests.support.script_programs import ACCURACY
from trainers import DataError, Folder, GangError, ScriptTrainer, storage

FINDS = """
import json, os, pathlib
found = {"rank": os.environ["RANK"], "channels": {}}
for name in json.loads(os.environ["SM_CHANNELS"]):
    folder = pathlib.Path(os.environ["SM_CHANNEL_" + name.upper()])
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    found["channels"][name] = {"folder": str(folder), "files": files}
config = json.load(open(os.path.join(os.environ["SM_INPUT_CONFIG_DIR"], "inputdataconfig.json")))
assert config == json.loads(os.environ["SM_INPUT_DATA_CONFIG"])
found["distributions"] = {name: each["S3DistributionType"] for name, each in config.items()}
name = "found-" + os.environ["RANK"] + ".json"
with open(os.path.join(os.environ["SM_CHECKPOINT_DIR"], name + ".new"), "w") as file:
    json.dump(found, file)
os.rename(file.name, file.name[:-4])
"""
"""Notes what it finds, each rank in a file of the checkpoints."""

WAITS = """
import time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
while len(list(folder.glob("found-*.json"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.02)
if os.environ["RANK"] == "0":
    for file in folder.glob("found-*.json"):
        (pathlib.Path(os.environ["SM_MODEL_DIR"]) / file.name).write_text(file.read_text())
    print("acc=0.5")
"""

FILES = {f"{kind}/{number} ü.txt": f"{kind}{number}" for kind in ("cats", "dogs") for number in range(5)}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_text(text)
    return tmp_path / "images"


def found(channels: dict[str, Any], tmp_path: Path, workers: int) -> list[dict[str, Any]]:
    """What each worker's program found, by rank."""
    (tmp_path / "source").mkdir(exist_ok=True)
    (tmp_path / "source" / "train.py").write_text(FINDS + WAITS)
    trainer = ScriptTrainer(
        "train.py",
        source_dir=tmp_path / "source",
        launcher="python",
        scaling=ScalingConfig(num_workers=workers),
        hyperparameters={"epochs": 1},
        metric_definitions=[ACCURACY],
        report_timeout_s=60,
    )
    result = trainer.fit(channels, storage_path=str(tmp_path / "runs"))
    folder = result.trainer.model()
    return [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(workers or 1)]


@pytest.mark.process
@pytest.mark.parametrize("distribution", ["FullyReplicated", "ShardedByS3Key"])
def test_a_worker_alone_finds_all(images: Path, tmp_path: Path, distribution: Any) -> None:
    (alone,) = found({"images": Folder(images, distribution)}, tmp_path, 0)
    assert alone["channels"]["images"]["files"] == FILES
    assert alone["distributions"] == {"images": distribution}
    assert (alone["channels"]["images"]["folder"] == str(images)) == (distribution == "FullyReplicated")


@pytest.mark.process
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


@pytest.mark.ray
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


@pytest.mark.ray
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
