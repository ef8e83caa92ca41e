"""A process whose tracker hangs ends all the same, and soon."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.support.processes import printed
from tests.support.refusals import mentions

PROGRAM = """
import sys, time
from hpo.trackers import MLflow, WeightsAndBiases, tracker
from tests.support.followed import follow

tracker.CLOSE_SECONDS = 0.5
which, port = sys.argv[1:]
made = MLflow(f"http://127.0.0.1:{port}") if which == "mlflow" else WeightsAndBiases("x", mode="online", folder=".")
_, _, said = follow(made)
print(len(said), *said)
print("left", time.time(), flush=True)
"""


@pytest.mark.parametrize("which", ["mlflow", "wandb"])
def test_a_hanging_server_does_not_keep_the_process(which: str, tmp_path: Path) -> None:
    """A socket that takes connections and says nothing: the job's end waits its seconds, the process no more."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        port = silent.getsockname()[1]
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "WANDB_API_KEY": "0" * 40,
            "WANDB_BASE_URL": f"http://127.0.0.1:{port}",
            "WANDB_ERROR_REPORTING": "false",
        }
        told = printed(PROGRAM, which, str(port), folder=tmp_path, environment=environment)
        ended = time.time()
    said, left = told.splitlines()[-2:]
    assert said.startswith("1 warning: ")
    mentions(said, {"mlflow": "MLflow", "wandb": "Weights & Biases"}[which])
    assert ended - float(left.split()[1]) < 60
