"""A program with stubborn children, stopped in three ways, many times: `python -m tests.support.program_rounds`.

Its children ignore SIGTERM and SIGINT, leave their session and listen on ports. After one Ctrl-C, two, or a SIGKILL of
the driver, at the default grace period, no process and no open port may stay.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import yaml_text
from tests.support.terminals import CTRL_C, left_behind, processes_of, terminal_of

ROOT = Path(__file__).parents[2]
SECONDS = 300.0
"""That a moment, and the end, are waited for."""
GONE_SECONDS, RAY_SECONDS = 20.0, 180.0
"""How long the program's processes may take to be gone once the driver is, and Ray's: its agents wait for a minute."""
WAYS = ("one Ctrl-C", "two Ctrl-Cs", "killed driver")
CHILDREN = 3
PORTS = "ROUND_PORTS"
"""The variable with the file that each child adds its port to."""

PROGRAM = """
import argparse, multiprocessing, os, signal, socket, subprocess, sys, time

def child(number):
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    if number:
        os.setsid()
    if number == 2 and os.fork():
        os._exit(0)
    server = socket.create_server(("127.0.0.1", 0))
    with open(os.environ["ROUND_PORTS"], "a") as file:
        file.write(f"{server.getsockname()[1]}\\n")
    while True:
        time.sleep(1)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--epochs", type=int)
    given = parser.parse_args()
    for number in range(3):
        multiprocessing.Process(target=child, args=(number,)).start()
    subprocess.Popen(["sh", "-c", "nohup setsid sleep 987 >/dev/null 2>&1 &"])
    for epoch in range(1, given.epochs + 1):
        time.sleep(1)
        print(f"epoch {epoch} val_acc {given.lr * epoch:.4f}", flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one round came to."""

    way: str
    seconds: float
    left: list[str]
    ports: list[int]
    wrong: str = ""

    @property
    def good(self) -> bool:
        return not self.left and not self.ports and not self.wrong


def job(folder: Path, workers: int) -> Path:
    """Write a job of the program, and return its file."""
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(PROGRAM)
    given = {
        "trainer": {
            "type": "script",
            "entry_point": "train.py",
            "source_dir": str(folder / "code"),
            "num_workers": workers,
            "hyperparameters": {"epochs": 60},
            "environment": {PORTS: str(folder / "ports")},
            "metric_definitions": [{"Name": "acc", "Regex": r"epoch (?P<step>\d+) val_acc (?P<value>\S+)"}],
        },
        "tuning": {
            "objective_metric_name": "acc",
            "strategy": "Hyperband",
            "hyperband": {"max_resource": 60, "min_resource": 20},
            "max_jobs": 3,
            "max_parallel_jobs": 1,
            "random_seed": 1,
            "ranges": {"lr": {"type": "continuous", "min": 0.05, "max": 0.5}},
        },
    }
    file = folder / "job.yaml"
    file.write_text(yaml_text.dump(given))
    return file


def play(way: str, workers: int) -> Outcome:
    """Run the job on a terminal of its own until its children listen, and stop it."""
    with tempfile.TemporaryDirectory(prefix="wb", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        home, scratch = folder / "home", folder / "tmp"
        scratch.mkdir()
        environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "NO_COLOR")}
        environment |= {"TMPDIR": str(scratch), "WARMBAND_HOME": str(home), "TERM": "dumb", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "hpo", "tune", str(job(folder, workers)), "--allow-code"]
        with terminal_of(command, environment, folder) as terminal:
            ports = _await_ports(folder / "ports")
            began = time.monotonic()
            if way == "killed driver":
                terminal.process.send_signal(signal.SIGKILL)
            else:
                terminal.press(CTRL_C)
            if way == "two Ctrl-Cs":
                terminal.read_until("Ctrl-C again", SECONDS)
                terminal.press(CTRL_C)
            terminal.read_until(None, SECONDS)
            terminal.process.wait(60)
            seconds = time.monotonic() - began
        left = own(home, GONE_SECONDS) or left_behind(home, folder / "none", RAY_SECONDS)
        return Outcome(way=way, seconds=seconds, left=left, ports=[port for port in ports if listens(port)])


def own(home: Path, seconds: float) -> list[str]:
    """Return the program's processes that are there after so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := [each for each in processes_of(home) if "train.py" in each or "sleep" in each]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.2)
    return left


def listens(port: int) -> bool:
    """Return whether a process listens on a port of this machine."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _await_ports(file: Path) -> list[int]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ports = [int(line) for line in file.read_text().splitlines()] if file.exists() else []
        if len(ports) >= CHILDREN:
            return ports
        time.sleep(0.2)
    raise AssertionError(f"waited {SECONDS:.0f} s for {CHILDREN} children to listen")


def _tried(way: str, workers: int) -> Outcome:
    try:
        return play(way, workers)
    except Exception:
        return Outcome(way=way, seconds=SECONDS, left=[], ports=[], wrong=traceback.format_exc())


def main() -> int:
    """Play the rounds, a line each, and print how many of each way left nothing; exit with 0 if all did."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.program_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of every way")
    parser.add_argument("--workers", type=int, default=1, help="of the gang; 0 trains in the driver's process")
    parser.add_argument("--at-once", type=int, default=1, help="jobs side by side")
    parser.add_argument("--only", default="", help="ways that have this in their name")
    given = parser.parse_args()
    chosen = [way for way in WAYS if given.only in way] * given.rounds
    good, played = Counter[str](), Counter[str]()
    with ThreadPoolExecutor(given.at_once) as pool:
        for future in as_completed([pool.submit(_tried, way, given.workers) for way in chosen]):
            outcome = future.result()
            good[outcome.way] += outcome.good
            played[outcome.way] += 1
            line = f"{outcome.way:14} {outcome.seconds:6.1f} s  left {len(outcome.left)}  ports {len(outcome.ports)}"
            print(line, *(each.strip()[:80] for each in outcome.left), outcome.wrong, flush=True)  # noqa: T201
    for way in dict.fromkeys(chosen):
        print(f"{way}: nothing left in {good[way]} of {played[way]}")  # noqa: T201
    return 0 if sum(good.values()) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
