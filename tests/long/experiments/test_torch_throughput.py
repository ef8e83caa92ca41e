"""What the benchmark of PyTorch on gangs makes of its measurements, and that both of its loops are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from experiments.baselines.pytorch.by_turns import by_turns
from experiments.baselines.pytorch.torchrun import SHARDED, Torchrun
from experiments.baselines.training_loops import layers, plain
from experiments.torch_throughput import QUICK, small
from tests.support.refusals import refuses
from trainers.datasets import load

ROWS = np.random.default_rng(3).normal(size=(90, 6)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.float32)
TRIAL = {"lr": 0.1, "momentum": 0.9, "shuffle": False, "widths": [6, 4, 2], "per_worker_batch_size": 10}


def test_processes_under_torchrun_train_the_mean_over_all_rows_and_say_why_they_fail(tmp_path: Path) -> None:
    torchrun = Torchrun(ROWS, LABELS, 2, tmp_path / "torchrun")
    try:
        torchrun.start()
        seconds = torchrun.train({**TRIAL, "seed": 5}, 2)
        state = torchrun.model()
        torchrun.train({**TRIAL, "seed": 5, "wrapper": SHARDED}, 2)
        again = torchrun.model()
        with refuses(RuntimeError, field=("process 0", "torchrun"), value="KeyError"):
            torchrun.train({"seed": 5}, 1)
    finally:
        torchrun.close()
    assert min(seconds, torchrun.processor_seconds) > 0
    torch.manual_seed(5)
    model = layers(TRIAL["widths"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # Two processes with 10 of their rows each are one with these 20.
    order = np.concatenate(
        [[*range(start, start + 20, 2), *range(start + 1, start + 20, 2)] for start in range(0, 80, 20)]
    )
    order = np.concatenate([order, range(80, 90)])
    rows, labels = torch.from_numpy(ROWS[order]), torch.from_numpy(LABELS[order]).long()
    plain(model, optimizer, rows, labels, batch=20, epochs=2, shuffle=False)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(state[name], value, atol=1e-6, rtol=0)
        torch.testing.assert_close(again[name], value, atol=1e-6, rtol=0)


def test_a_gang_and_torchrun_take_turns_and_come_to_the_same_weights(ray_cluster: None, tmp_path: Path) -> None:
    """With one worker each; what two under torchrun come to: above; what two of a gang: test_torch_allreduce."""
    case = small(load("digits"), replace(QUICK, turns=2))
    turns = by_turns(case, 1, str(tmp_path))
    assert (len(turns.here), len(turns.plain), turns.samples) == (2, 2, 1200)
    assert turns.processor is not None
    assert min(turns.processor) > 0
    assert turns.difference is not None
    assert turns.difference < 1e-6
