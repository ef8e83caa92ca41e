"""The printed command of two workers: each program finds by hand what it found as a trial."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.rows import until
from tests.support.script_gangs import of_two
from tests.support.script_programs import ACCURACY, values
from trainers import Folder, ScalingConfig, ScriptTrainer
from trainers.script.by_hand import together

TELLS = """
import json, os, sys, time
names = '''RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT TF_CONFIG SM_HOSTS
SM_CURRENT_HOST SM_HOST_COUNT SM_CURRENT_HOST_RANK SM_MASTER_ADDR SM_MASTER_PORT SM_RESOURCE_CONFIG SM_CHANNEL_ROWS
SM_CHANNEL_IMAGES SM_CHANNELS SM_NUM_CPUS SM_MODEL_DIR SM_CHECKPOINT_DIR SM_OUTPUT_DATA_DIR SM_USER_ARGS SM_HPS
SM_INPUT_DATA_CONFIG WARMBAND_MACHINES OMP_NUM_THREADS ACCELERATE_USE_CPU OMPI_COMM_WORLD_RANK'''.split()
found = {name: os.environ[name] for name in names if name in os.environ}
found["argv"] = sys.argv
with open(os.path.join(os.environ["SM_INPUT_CONFIG_DIR"], "resourceconfig.json")) as file:
    found["resources"] = json.load(file)
for channel in ("SM_CHANNEL_ROWS", "SM_CHANNEL_IMAGES"):
    found[f"in {channel}"] = sorted(os.listdir(os.environ[channel]))
rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or found["resources"]["current_host"]
place = os.path.join(os.environ["TOLD"], rank)
with open(place + ".new", "w") as file:
    json.dump(found, file)
os.replace(place + ".new", place)
if rank in ("0", "algo-1"):
    while sum("." not in name for name in os.listdir(os.environ["TOLD"])) < 2:  # A server ends with the worker.
        time.sleep(0.01)
    print(f"acc=0.{len(sys.argv)}")
"""
WHOLE = "{program} {rank} {world_size} {processes} {host} {hosts} {machines} {master} {port} {cpus} {data:rows} {model}"


def told(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what each process wrote, by its rank; fixed names replace the ports and the run's own folder."""
    texts = {file.name: file.read_text() for file in sorted(folder.iterdir())}
    checkpoints = json.loads(next(iter(texts.values())))["SM_CHECKPOINT_DIR"]
    # A gang has a folder of its own for each trial.
    root = re.escape(re.sub("(/trial-1)?/checkpoints$", "", checkpoints)) + "(/trial-1)?"
    # Ports are the numbers behind an address; each is the first, the second and so on that somebody says.
    ports: dict[str, str] = {}
    for text in texts.values():
        for port in re.findall(r"127\.0\.0\.1:(\d+)", text):
            ports.setdefault(port, f"port {len(ports)}")
    known = "|".join(ports)
    return {
        name: json.loads(re.sub(rf"\b({known})\b", lambda found: ports[found[0]], re.sub(root, "/run", text)))
        for name, text in texts.items()
    }


def trainer(folder: Path, launcher: str, source: str = TELLS, **options: Any) -> ScriptTrainer:
    """Return the trainer of a program on two workers."""
    (folder / "my source").mkdir()
    (folder / "my source" / "train.py").write_text(source)
    return ScriptTrainer(
        "train.py",
        source_dir=folder / "my source",
        launcher=launcher,
        scaling=ScalingConfig(num_workers=2),
        metric_definitions=[ACCURACY],
        **options,
    )


@pytest.mark.parametrize(
    ("launcher", "options"),
    [
        ("python", {}),
        (WHOLE, {"processes_per_worker": 2}),
        ("tensorflow", {}),
        ("tensorflow", {"parameter_servers": 1}),
    ],
)
def test_a_program_finds_what_it_found_as_a_trial(tmp_path: Path, launcher: str, options: dict[str, Any]) -> None:
    check(tmp_path, launcher, **options)


def check(folder: Path, launcher: str, **options: Any) -> None:
    """Compare what a program finds as a trial with what it finds by its printed command."""
    (folder / "my images").mkdir()
    (folder / "my images" / "a.png").write_text("")
    for name in ("rows.csv", "other.csv"):
        (folder / name).write_text("y,x\n1,2\n0,3\n1,3\n")
    channels = {"rows": str(folder / "rows.csv"), "images": Folder(folder / "my images")}
    (folder / "told").mkdir()
    made = trainer(folder, launcher, environment={"TOLD": str(folder / "told")}, **options)
    given = {"lr": -0.1, "text": 'it\'s "$HOME"\n', "out": "{data:images}"}
    first, _ = of_two(folder, made, units=1, channels=channels, **given)
    as_trial = told(folder / "told")
    command = made.command_line({"epochs": 9, **given}, channels)
    (folder / "told").rename(folder / "told before")
    (folder / "told").mkdir()
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not isinstance(first, Exception), first
    assert float(re.findall(r"acc=(\S+)", done.stdout)[0]) == values(first)[0][1]
    by_hand = told(folder / "told")
    assert by_hand == as_trial
    assert by_hand


def test_one_command_may_name_the_ports_of_all_workers() -> None:
    command = 'echo "$warmband_port_0 $warmband_port_1"'
    done = subprocess.run([sys.executable, together.__file__, command], capture_output=True, text=True, check=True)
    assert len({int(port) for port in done.stdout.split()}) == 2


FAILS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *given: (open(os.environ["TOLD"] + "/ended", "w").close(), sys.exit(0)))
open(os.path.join(os.environ["TOLD"], os.environ["RANK"]), "w").close()
while len(os.listdir(os.environ["TOLD"])) < 2:
    time.sleep(0.01)
if os.environ["RANK"] == os.environ["FAILS"]:
    sys.exit(7)
time.sleep(100)
"""


def started(folder: Path, fails: str) -> subprocess.Popen[bytes]:
    """A command of two workers, of which one may fail."""
    told = folder / "told"
    told.mkdir()
    made = trainer(folder, "python", FAILS, environment={"TOLD": str(told), "FAILS": fails})
    # A background run of the tests ignores SIGINT, and its children would too.
    heeded = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execvp('sh', ['sh', '-c', sys.argv[1]])"
    )
    return subprocess.Popen([sys.executable, "-c", heeded, made.command_line({})], start_new_session=True)


@pytest.mark.parametrize("fails", ["0", "1"])
def test_if_a_worker_fails_the_other_ends_too(tmp_path: Path, fails: str) -> None:
    assert started(tmp_path, fails).wait(60) == 7
    assert (tmp_path / "told" / "ended").exists()


def test_ctrl_c_ends_all_workers(tmp_path: Path) -> None:
    command = started(tmp_path, "none")
    until(lambda: len(os.listdir(tmp_path / "told")) == 2)
    os.killpg(command.pid, signal.SIGINT)  # As a terminal does.
    assert command.wait(60) != 0
    assert (tmp_path / "told" / "ended").exists()
