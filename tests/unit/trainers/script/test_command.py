"""The command line that trains a configuration by hand, for each launcher."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from trainers import ScalingConfig, ScriptTrainer


def trainer(folder: Path, source: str = "", workers: int = 0, **options: Any) -> ScriptTrainer:
    (folder / "train.py").write_text(source)
    scaling = ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 3})
    return ScriptTrainer("train.py", source_dir=folder, scaling=scaling, **options)


def test_it_has_what_the_program_received(tmp_path: Path) -> None:
    values = {"lr": 0.2737043842726249, "num-epochs": 4, "name": "a b", "skipped": None, "eps": -1e-05}
    words = shlex.split(trainer(tmp_path).command_line(values))
    assert words[:4] == ["cd", str(tmp_path), "&&", "OMP_NUM_THREADS=3"]
    assert Path(words[4]).name == Path(sys.executable).name
    given = ["--lr", "0.2737043842726249", "--num-epochs", "4", "--name", "a b", "--eps=-1e-05"]
    assert words[5:] == ["train.py", *given]


def test_it_has_the_variables_that_the_program_names(tmp_path: Path) -> None:
    source = "import os\nos.environ['SM_MODEL_DIR'], os.environ.get('SM_HP_LR')\nimport warmband\n"
    command = trainer(tmp_path, source, environment={"MODE": "a b"}).command_line({"lr": 0.1, "epochs": 3})
    words = shlex.split(command)
    assert {"SM_HP_LR=0.1", "MODE=a b"} <= set(words)
    assert "run=$(mktemp -d)" in command
    assert 'SM_MODEL_DIR="$run"/model' in command
    assert any(word.startswith("PYTHONPATH=") and Path(word[11:], "warmband.py").exists() for word in words)
    assert not any(word.startswith(("SM_HP_EPOCHS", "SM_CHECKPOINT_DIR")) for word in words)
    every = trainer(tmp_path, "os.environ['SM_HP_' + name.upper()]").command_line({"lr": 0.1, "epochs": 3})
    assert {"SM_HP_LR=0.1", "SM_HP_EPOCHS=3"} <= set(shlex.split(every))


def test_each_worker_has_a_line(tmp_path: Path) -> None:
    first, *lines, wait, last = trainer(tmp_path, workers=2).command_line({"lr": 0.1}).splitlines()
    assert (first, wait, last) == (f"cd {tmp_path} && (", "wait", ")")
    assert [line.endswith("train.py --lr 0.1 &") for line in lines] == [True, True]
    for rank, line in enumerate(lines):
        assert {f"RANK={rank}", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1"} <= set(line.split())


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("torchrun", "--nproc-per-node 4"),
        ("accelerate --mixed_precision bf16", "--num_processes 4"),
        ("mpirun --bind-to core", "mpirun -np 4"),
        ("run -n {processes} {script}", "run -n 4 train.py"),
    ],
)
def test_a_launcher_starts_the_processes_of_all_workers(tmp_path: Path, launcher: str, expected: str) -> None:
    command = trainer(tmp_path, workers=2, launcher=launcher, processes_per_worker=2).command_line({"lr": 0.1})
    assert expected in command
    assert command.endswith("train.py --lr 0.1")
    assert "\n" not in command
