"""The command that trains a configuration by hand: its words, variables, workers and channels."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.properties import examples
from tests.support.refusals import mentions
from trainers import Folder, ScalingConfig, ScriptTrainer
from trainers.channels import Channel, OpenedFolder
from trainers.channels.folder.listing import Found, Listing
from trainers.script.by_hand import together

READS = "import os\nos.environ['SM_CHANNEL_TRAIN']\n"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0{}"))


def trainer(folder: Path, source: str = "", workers: int = 0, **options: Any) -> ScriptTrainer:
    (folder / "train.py").write_text(source)
    scaling = ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 3})
    return ScriptTrainer("train.py", source_dir=folder, scaling=scaling, **options)


def lines_of(command: str) -> list[str]:
    """The commands of workers that are started together."""
    *_, last = command.partition(shlex.quote(together.__file__))
    return [word for word in shlex.split(last.replace("\\\n", "")) if word != together.SERVER]


def test_it_has_what_the_program_received(tmp_path: Path) -> None:
    values = {"lr": 0.2737043842726249, "num-epochs": 4, "name": "a b", "skipped": None, "eps": -1e-05}
    words = shlex.split(trainer(tmp_path).command_line(values))
    assert words[:4] == ["cd", str(tmp_path), "&&", "OMP_NUM_THREADS=3"]
    assert Path(words[4]).name == Path(sys.executable).name
    given = ["--lr", "0.2737043842726249", "--num-epochs", "4", "--name", "a b", "--eps=-1e-05"]
    assert words[5:] == ["train.py", *given]


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, more=st.lists(TEXTS), workers=st.sampled_from([1, 2]))
def test_a_shell_gives_the_program_its_words(tmp_path: Path, text: str, more: list[str], workers: int) -> None:
    folder = tmp_path / 'it\'s "my" $source'
    folder.mkdir(exist_ok=True)
    made = trainer(folder, workers=workers, arguments={"style": "--name=value", "lists": "repeated"})
    command = made.command_line({"text": text, "more": more})
    assert shlex.split(command)[:3] == ["cd", str(folder), "&&"]
    for line in [command] if workers == 1 else lines_of(command):
        words = shlex.split(line)
        assert words[words.index("train.py") + 1 :] == [f"--text={text}", *(f"--more={each}" for each in more)]


def test_it_has_the_variables_that_the_program_names(tmp_path: Path) -> None:
    source = "import os\nos.environ['SM_MODEL_DIR'], os.environ.get('SM_HP_LR')\nimport warmband\n"
    command = trainer(tmp_path, source, environment={"MODE": "a b"}).command_line({"lr": 0.1, "epochs": 3})
    words = shlex.split(command)
    assert {"SM_HP_LR=0.1", "MODE=a b"} <= set(words)
    assert "warmband_run=$(mktemp -d)" in command
    assert 'SM_MODEL_DIR="${warmband_run}"/model' in command
    [modules] = [word.removeprefix("PYTHONPATH=") for word in words if word.startswith("PYTHONPATH=")]
    assert Path(modules.split(":")[0], "warmband", "__init__.py").exists()
    assert not any(word.startswith(("SM_HP_EPOCHS", "SM_CHECKPOINT_DIR")) for word in words)
    every = trainer(tmp_path, "os.environ['SM_HP_' + name.upper()]").command_line({"lr": 0.1, "epochs": 3})
    assert {"SM_HP_LR=0.1", "SM_HP_EPOCHS=3"} <= set(shlex.split(every))


def test_a_name_that_a_shell_does_not_assign_to(tmp_path: Path) -> None:
    words = shlex.split(trainer(tmp_path, arguments="environment").command_line({"batch-size": 3, "größe $x": "a"}))
    assert {"env", "batch-size=3", "größe $x=a"} <= set(words)


@pytest.mark.parametrize("source", ["", "import torch.distributed"])
def test_one_process_has_a_rank_where_its_program_knows_of_others(tmp_path: Path, source: str) -> None:
    command = trainer(tmp_path, source, workers=1).command_line({"lr": 0.1})
    assert ("MASTER_PORT=" in command) == ("WORLD_SIZE=1" in command) == bool(source)


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("python", "RANK={rank} WORLD_SIZE=2"),
        ("torchrun", "--nnodes 2 --nproc-per-node 2 --node-rank {rank}"),
        ("accelerate --mixed_precision bf16", "--num_processes 4 --machine_rank {rank}"),
        ("run -n {processes} --at {rank} {script}", "run -n 2 --at {rank} train.py"),
        ("tensorflow", '"index": {rank}'),
    ],
)
def test_each_worker_has_a_line_and_a_free_port_of_the_moment(tmp_path: Path, launcher: str, expected: str) -> None:
    processes = 1 if launcher in ("python", "tensorflow") else 2
    made = trainer(tmp_path, workers=2, launcher=launcher, processes_per_worker=processes)
    command = made.command_line({"lr": 0.1})
    for rank, line in enumerate(lines_of(command)):
        assert expected.replace("{rank}", str(rank)) in line
        assert line.endswith("train.py --lr 0.1")
        assert "${warmband_port_0}" in line
    assert len(lines_of(command)) == 2
    assert "29500" not in command


def test_each_worker_is_a_host_with_gpus_of_its_own(tmp_path: Path) -> None:
    source = "import os\nos.environ['SM_CURRENT_HOST'], os.environ['SM_HOSTS'], os.environ['SM_MODEL_DIR']"
    made = trainer(tmp_path, source, launcher="torchrun")
    scaling = ScalingConfig(num_workers=2, use_gpu=True, resources_per_worker={"GPU": 2})
    made = ScriptTrainer("train.py", source_dir=tmp_path, launcher="torchrun", scaling=scaling)
    first, second = map(shlex.split, lines_of(made.command_line({})))
    assert {"SM_CURRENT_HOST=algo-1", "CUDA_VISIBLE_DEVICES=0,1", 'SM_HOSTS=["algo-1","algo-2"]'} <= set(first)
    assert {"SM_CURRENT_HOST=algo-2", "CUDA_VISIBLE_DEVICES=2,3", 'SM_HOSTS=["algo-1","algo-2"]'} <= set(second)


def test_mpirun_starts_the_processes_of_all_workers(tmp_path: Path) -> None:
    made = trainer(tmp_path, workers=2, launcher="mpirun --bind-to core", processes_per_worker=2)
    command = made.command_line({"lr": 0.1})
    assert "mpirun -np 4" in command
    assert command.endswith("train.py --lr 0.1")
    assert "\n" not in command


def test_a_parameter_server_ends_with_the_others(tmp_path: Path) -> None:
    command = trainer(tmp_path, workers=2, launcher="tensorflow", parameter_servers=1).command_line({})
    assert command.count(together.SERVER) == 1


def test_local_files_are_found_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "my images").mkdir()
    (tmp_path / "my images" / "a.png").write_text("")
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n")
    channels = {"train": Folder(tmp_path / "my images"), "rows": str(tmp_path / "rows.csv")}
    made = trainer(tmp_path, READS + "os.environ['SM_CHANNEL_ROWS']")
    command = made.command_line({"data": "{data:train}"}, channels)
    words = shlex.split(command)
    assert f"SM_CHANNEL_TRAIN={tmp_path / 'my images'}" in words
    assert words[-2:] == ["--data", str(tmp_path / "my images")]
    assert f"ln -s {tmp_path / 'rows.csv'} " + '"${warmband_run}"/data/rows/rows.csv' in command
    assert 'SM_CHANNEL_ROWS="${warmband_run}"/data/rows' in command


def test_a_channel_that_the_program_does_not_read_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1], "x": [1, 2]})
    assert "CHANNEL" not in trainer(tmp_path).command_line({}, {"train": frame})


def test_rows_in_memory_have_to_be_put_into_a_folder(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1], "a b": [1, 2]})
    note, command = trainer(tmp_path, READS).command_line({}, {"train": frame}).splitlines()
    mentions(note, "#", "export SM_CHANNEL_TRAIN=FOLDER", "train.csv", "'target', 'a b'")
    assert 'SM_CHANNEL_TRAIN="${SM_CHANNEL_TRAIN:?}"' in command
    unnamed = trainer(tmp_path, READS).command_line({}, {"train": np.eye(2, 3)})
    mentions(unnamed.splitlines()[0], "'target', 'f0', 'f1'")


def test_each_worker_s_part_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name in ("a.png", "b c.png", "d.png"):
        (tmp_path / "images" / name).write_text("")
    channels = {"train": Folder(tmp_path / "images", distribution="ShardedByS3Key")}
    first, second, command = trainer(tmp_path, READS, workers=2).command_line({}, channels).split("\n", 2)
    mentions(first, "export SM_CHANNEL_TRAIN_0=FOLDER", "2 of the 3 files", str(tmp_path / "images"), "a.png d.png")
    mentions(second, "export SM_CHANNEL_TRAIN_1=FOLDER", "1 of the 3 files", "'b c.png'")
    for rank, line in enumerate(lines_of(command)):
        assert f'SM_CHANNEL_TRAIN="${{SM_CHANNEL_TRAIN_{rank}:?}}"' in line


def test_a_folder_of_an_object_store_has_to_be_copied(tmp_path: Path) -> None:
    listing = Listing(where="s3://bucket/data", files=(Found("a", 1, 1),), filesystem=object(), inside="bucket/data")
    channel = Channel(name="train", source=OpenedFolder(listing=listing, distribution="FullyReplicated"))
    note, command = trainer(tmp_path, READS).command_line({}, {"train": channel}).splitlines()
    mentions(note, "export SM_CHANNEL_TRAIN=FOLDER", "s3://bucket/data")
    assert 'SM_CHANNEL_TRAIN="${SM_CHANNEL_TRAIN:?}"' in command


def test_files_about_the_trial_are_there_where_the_program_reads_them(tmp_path: Path) -> None:
    command = trainer(tmp_path, "os.environ['SM_INPUT_CONFIG_DIR']", workers=2).command_line({"lr": 0.1})
    for rank in range(2):
        place = f'"${{warmband_run}}"/worker-{rank}/input/config'
        assert f"> {place}/resourceconfig.json" in command
        assert f"SM_INPUT_CONFIG_DIR={place}" in lines_of(command)[rank]
