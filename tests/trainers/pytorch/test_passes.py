"""A pass goes on where it was left, and draws the same after a pause, in a loader's worker processes too."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, WeightedRandomSampler, get_worker_info

from tests.support.loaders import NUMBERS, ROWS, Lengths, OddFirst, by_numpy
from tests.support.networks import HERE, assignment, run, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel

# ---- going on


def test_a_pass_over_any_sampler_goes_on_where_it_was_left(tmp_path):
    samplers = {
        "subset": lambda: {"batch_size": 7, "sampler": SubsetRandomSampler(range(80))},
        "weighted": lambda: {"batch_size": 7, "sampler": WeightedRandomSampler([1.0] * ROWS, 90)},
        "own": lambda: {"batch_size": 7, "sampler": OddFirst(by_numpy)},
        "batches": lambda: {"batch_sampler": Lengths()},
    }

    def train(context) -> None:
        """An epoch of it is three batches of each, wherever its pass stands; `next` draws from no generator."""
        prepared = [context.prepare_data(DataLoader(NUMBERS, **make())) for make in samplers.values()]
        streams = [iter(()) for _ in prepared]
        came = [*context.checkpoint["came"]] if context.checkpoint else []
        for _ in context.epochs():
            for at, batches in enumerate(prepared):
                for _ in range(3):
                    batch = next(streams[at], None)
                    if batch is None:
                        streams[at] = iter(batches)
                        batch = next(streams[at])
                    came.append(batch[0].tolist())
            context.report({}, checkpoint={"came": came})

    straight, *parts = run(
        TorchTrainer(train, scaling=HERE),
        assignment(tmp_path, stop=24, name="straight"),
        *[assignment(tmp_path, start=start, stop=start + 3, name="paused") for start in range(0, 24, 3)],
    )
    assert state(straight)["came"] == state(parts[-1])["came"]


@pytest.mark.parametrize("prepare", ["shuffled", "in order", "loader"])
@pytest.mark.parametrize("last", [3, 10])
def test_a_pass_that_is_left_is_over(tmp_path, prepare, last):
    """Also at its last batch, the tenth; and taking a batch before the epochs leaves nothing out."""

    def train(context) -> None:
        data = DataLoader(NUMBERS, batch_size=10, shuffle=True) if prepare == "loader" else "train"
        batches = context.prepare_data(data, shuffle=prepare == "shuffled")
        came = [*context.checkpoint["came"]] if context.checkpoint else []
        next(iter(batches))
        for epoch in context.epochs():
            rows = []
            for number, batch in enumerate(batches, 1):
                rows.append(batch[1].tolist() if prepare != "loader" else batch[0].tolist())
                if epoch != 1 and number == last:
                    break
            came.append(rows)
            context.report({}, checkpoint={"came": came})

    words = {"per_worker_batch_size": 10}
    channel = Channel.of((np.ones((ROWS, 2), np.float32), np.arange(ROWS, dtype=np.float32)), name="train")
    straight, *parts = serve_alone(
        TorchTrainer(train, scaling=HERE).program({"train": channel.place(0)}),
        assignment(tmp_path, stop=4, name="straight", **words),
        *[assignment(tmp_path, start=start, stop=start + 1, name="paused", **words) for start in range(4)],
    )
    first, second, third, _ = state(straight)["came"]
    assert [len(first), len(second), len(third)] == [last, 10, last]
    assert sorted(row for batch in second for row in batch) == list(range(ROWS))
    # A pass begins at its beginning.
    assert (first == third) == (prepare == "in order")
    assert state(straight)["came"] == state(parts[-1])["came"]


# ---- worker processes of a loader


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


@pytest.mark.process
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
