"""What a worker imports of this project: its half of a gang, and nothing of the driver's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ray import cloudpickle
from ray.train import ScalingConfig

from tests.support.trainers.gangs.worker_imports import OF_DRIVERS
from trainers import Channel, TorchTrainer, XGBoostTrainer
from trainers.cluster import Reach
from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.worker import serve

LOADED = "\nimport sys; print(*[name for name in sys.modules if name.partition('.')[0] in ('hpo', 'trainers')])"


def imported(code: str, given: bytes = b"") -> set[str]:
    """The modules of this project that a fresh interpreter has loaded after some code, which reads what is given."""
    done = subprocess.run([sys.executable, "-c", code + LOADED], input=given, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return set(done.stdout.decode().splitlines()[-1].split())


def of_drivers(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if any(f"{name}.".startswith(f"{other}.") for other in OF_DRIVERS))


def test_an_xgboost_worker_imports_none_of_its_driver_s_half(tmp_path: Path) -> None:
    """What `Gang` hands to Ray Train, as cloudpickle sends it; Train's callbacks of the run reach workers as well."""
    file = tmp_path / "rows.csv"
    file.write_text("0,1.5\n1,2.5\n0,3.5\n1,4.5\n")
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    sources = {"train": file, "validation": rows}
    channels = {name: Channel.of(source, name=name).place(0) for name, source in sources.items()}
    program = XGBoostTrainer(scaling=ScalingConfig(num_workers=2)).program(channels)
    config = {"gang": "a-gang", "program": program, "mailbox": MailboxHandle(None, "a-job"), "reach": Reach()}
    unpickle = "import pickle, sys; pickle.load(sys.stdin.buffer); import trainers.gangs.controller"
    modules = imported(unpickle, cloudpickle.dumps((serve, config)))
    assert {"trainers.gangs.worker.serving", "trainers.xgboost.program", "trainers.channels.files.files"} <= modules
    assert not of_drivers(modules), sorted(modules)


def test_a_pytorch_worker_imports_none_of_its_driver_s_half() -> None:
    def train(context: Any) -> None:
        """Sent by value, since it is no module's."""

    program = TorchTrainer(train, scaling=ScalingConfig(num_workers=2)).program({})
    modules = imported("import pickle, sys; pickle.load(sys.stdin.buffer)", cloudpickle.dumps((serve, program)))
    assert {"trainers.gangs.worker.serving", "trainers.pytorch.gradients.allreduce"} <= modules
    assert not of_drivers(modules), sorted(modules)


def test_a_parameter_server_imports_nothing_of_gangs() -> None:
    modules = imported("import trainers.parameter_server.server.actor")
    assert not [name for name in modules if name.startswith("trainers.gangs.")] + of_drivers(modules), sorted(modules)
