"""What the benchmark of XGBoost on gangs makes of its measurements, and how it measures; no Ray."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xgboost

from experiments.baselines.plain_processes import PlainProcesses
from experiments.workloads.memory import MemoryWatch, descendants, held
from trainers import Channel


def test_two_processes_by_hand_learn_one_model(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(301, 4)).astype("float32")
    rows[:, 0] = rows[:, 1] > 0
    channels = {name: Channel.of(rows, name=name) for name in ("train", "validation")}
    parameters = {"objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1, "eta": 0.1}
    hand = PlainProcesses(channels, 2, parameters, rounds=3)
    try:
        hand.start()
        curves = [hand.train(str(tmp_path / "model"))[1] for _ in range(2)]
    finally:
        hand.close()
    assert curves[0] == curves[1]
    assert len(curves[0]) == 3
    model = xgboost.Booster()
    model.load_model(bytearray((tmp_path / "model").read_bytes()))
    assert model.num_boosted_rounds() == 3
    predicted = model.predict(xgboost.DMatrix(rows[:, 1:])).astype(np.float64)
    losses = -np.log(np.where(rows[:, 0] > 0, predicted, 1 - predicted))
    assert curves[0][-1] == pytest.approx(losses.mean(), rel=1e-6), "each evaluates its share, and they add up"


def test_what_processes_hold_is_read_from_the_kernel(tmp_path: Path) -> None:
    before = held()
    more = np.ones(50_000_000, np.uint8)
    assert held() - before > 40_000_000
    del more
    command = "import sys; print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    (tmp_path / str(child.pid)).touch()
    assert child.pid in descendants(os.getpid())
    with MemoryWatch(tmp_path) as watch:
        deadline = time.monotonic() + 30
        while not watch.samples and time.monotonic() < deadline:
            time.sleep(0.05)
    child.communicate()
    sample = watch.samples[0]
    assert sample.workers.keys() == {child.pid}
    assert sample.together >= sample.driver + sample.workers[child.pid] > 0
    assert held(child.pid) == 0
