"""Iterable data sets, and functions that collect or count their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tests.support.allreduce import alone, only, program
from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang, serve_alone


class Numbers(IterableDataset):
    """Rows (six features, a class) numbered from `start`; shuffled in a small buffer by every generator there is."""

    def __init__(self, start: int = 0, stop: int = 50, step: int = 1, shuffled: bool = True) -> None:
        self.range, self.shuffled, self.epoch = range(start, stop, step), shuffled, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        info = get_worker_info()
        rows = [*self.range][info.id :: info.num_workers] if info else [*self.range]
        buffer: list[int] = []
        for row in rows:
            buffer.append(row)
            if len(buffer) == 8 or row == rows[-1]:
                if self.shuffled:
                    random.shuffle(buffer)
                    np.random.shuffle(buffer)  # noqa: NPY002
                    buffer = [buffer[at] for at in torch.randperm(len(buffer))]
                for one in buffer:
                    yield torch.full((6,), float(one)), one % 2
                buffer = []


def collects(make, *, sharded: bool | None = None, per_unit: int | None = None):
    """A function that notes the rows that this worker trained with, and draws from every generator meanwhile."""

    def train(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 2)).double())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        batches = context.prepare_data(make(context), sharded=sharded)
        came, draws = [], []
        if context.checkpoint is not None:
            model.load_state_dict(context.checkpoint["model"])
            came, draws = [*context.checkpoint["came"]], [*context.checkpoint["draws"]]
        for _ in context.epochs():
            for rows, labels in context.steps(batches) if per_unit else batches:
                noise = random.random() + np.random.random() + float(torch.rand(()))  # noqa: NPY002
                came.append(rows[:, 0].int().tolist())
                draws.append(noise)
                context.step(functional.cross_entropy(model(rows.double()), labels), optimizer)
            context.report({}, checkpoint={"model": model.state_dict(), "came": came, "draws": draws})

    return train


def loader(context, workers: int = 0, **options) -> DataLoader:
    return DataLoader(Numbers(**options), batch_size=4, num_workers=workers)


def check_pause(tmp_path, workers):
    make = program(collects(lambda context: loader(context, workers), per_unit=5), steps_per_report=5)
    [whole] = serve_alone(make(), assignment(tmp_path, 0, 6, "whole"))
    *_, parts = serve_alone(make(), *(assignment(tmp_path, at, at + 1, "parts") for at in range(6)))
    one, other = state(whole), state(parts)
    assert one["came"] == other["came"]
    assert one["draws"] == other["draws"]
    close(one["model"], other["model"], 0.0)
    rows = [row for batch in one["came"] for row in batch]
    assert sorted(rows[:50]) == sorted(rows[50:100]) == [*range(50)]
    assert rows[:50] != rows[50:100]


def gathered(context, rows: list[int]) -> list[list[int]]:
    """Every worker's rows, out of sums."""
    table = torch.zeros(context.world_size, 64, dtype=torch.int64)
    table[context.rank, : len(rows)] = torch.tensor(rows, dtype=torch.int64) + 1
    return [[row - 1 for row in mine if row] for mine in context.sum(table).tolist()]


def trains(context) -> None:
    words = context.hyperparameters
    rows = words.get("rows", 50)
    made = Numbers(context.rank, rows, context.world_size, False) if words["sharded"] else Numbers(0, rows, 1, False)
    batches = context.prepare_data(DataLoader(made, batch_size=words["size"]), sharded=words["sharded"])
    model = context.prepare_model(nn.Linear(6, 2).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


class Said(Numbers):
    """Says that it has other rows than it gives."""

    said = 50

    def __len__(self) -> int:
        return self.said


def counts(context) -> None:
    words = context.hyperparameters
    made = Said(shuffled=False)
    made.said = words["said"]
    batches = context.prepare_data(DataLoader(made, batch_size=4), sharded=words["sharded"])
    for _ in context.epochs():
        with torch.no_grad():
            came = [row for rows, _ in batches for row in rows[:, 0].int().tolist()]
        context.report({}, checkpoint={"all": [row for rows in gathered(context, came) for row in rows]})


def check_whole_batch(gang: ProcessGang, tmp_path, *, sharded: bool, rows: int) -> None:
    """Three workers with a third of the batch each, and one with all of it, come to the same model."""
    words = {"sharded": sharded, "rows": rows}
    [first, *_] = only(gang.run(program(trains), assignment(tmp_path, **words, size=4)))
    [one] = alone(trains, 96, assignment(tmp_path, name="one", **words, size=12))
    close(state(first)["model"], state(one)["model"])
