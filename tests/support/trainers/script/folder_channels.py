"""A folder of files, and a script that reports the files it finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.script_programs import ACCURACY
from trainers import ScriptTrainer

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
    """Run a script on each worker; return its findings by rank."""
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
