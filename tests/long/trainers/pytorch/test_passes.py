"""A pass goes on where it was left, and draws the same after a pause, in a loader's worker processes too."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from tests.support.networks import HERE, assignment, run
from trainers import TorchTrainer


class Drawn(Dataset):
    """Rows with a number from each generator, and the process that drew them."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, row: int):
        drawn = torch.rand(()).item(), random.random(), np.random.random()  # noqa: NPY002
        return row, os.getpid(), torch.tensor(drawn, dtype=torch.float64), get_worker_info().dataset.opened


def open_files(worker: int) -> None:
    """What many a `worker_init_fn` does: opens for its worker what the dataset reads from."""
    get_worker_info().dataset.opened = worker


@pytest.mark.parametrize("persistent", [False, True])
def test_worker_processes_stay_if_they_are_to_and_draw_the_same_after_a_pause(tmp_path, persistent):
    came: dict[str, list] = {}
    processes: dict[str, list] = {}

    def train(context) -> None:
        name = context.hyperparameters["way"]
        loader = DataLoader(
            Drawn(),
            batch_size=4,
            shuffle=True,
            num_workers=2,
            persistent_workers=persistent,
            worker_init_fn=open_files,
        )
        batches = context.prepare_data(loader)
        assert context.checkpoint in (None, {})  # One that does not ask for its checkpoint begins again.
        stream: Iterator = iter(())
        for _ in context.epochs():
            for _ in range(8):  # Ten make a pass.
                batch = next(stream, None)
                if batch is None:
                    stream = iter(batches)
                    batch = next(stream)
                came.setdefault(name, []).append((batch[0].tolist(), batch[2].tolist()))
                processes.setdefault(name, []).append((batches.place.position[0], batch[1][0].item()))
                assert set(batch[3].tolist()) <= {0, 1}
            context.report({}, checkpoint={})

    run(
        TorchTrainer(train, scaling=HERE),
        assignment(tmp_path, stop=4, name="straight", way="straight"),
        assignment(tmp_path, stop=2, name="paused", way="paused"),
        assignment(tmp_path, start=2, stop=4, name="paused", way="paused"),
    )
    assert came["straight"] == came["paused"]
    by_pass: dict[int, set] = {}
    for number, process in processes["straight"]:
        by_pass.setdefault(number, set()).add(process)
    assert (len(set.union(*by_pass.values())) == 2) == persistent
    for process in {process for _, process in processes["straight"]}:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
