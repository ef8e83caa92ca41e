"""Iterable datasets: dealt out batch by batch or a worker's own, of any number of batches, and exact after a pause."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tests.support.allreduce import alone, only, only_errors, program
from tests.support.networks import assignment, close, servers, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions, missing_names
from trainers.errors import TrialError


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


def test_a_pause_in_the_middle_of_a_pass_changes_nothing(tmp_path):
    check_pause(tmp_path, workers=0)


@pytest.mark.process
def test_a_pause_in_the_middle_of_a_pass_of_processes_changes_nothing(tmp_path):
    check_pause(tmp_path, workers=2)


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


def rows_of(context) -> None:
    words = context.hyperparameters
    made = Numbers(context.rank, 50, 3, shuffled=False) if words["sharded"] else Numbers()
    batches = context.prepare_data(DataLoader(made, batch_size=4), sharded=words["sharded"])
    for _ in context.epochs():
        with torch.no_grad():
            evaluated = [row for rows, _ in batches for row in rows[:, 0].int().tolist()]
        context.report({}, checkpoint={"all": [row for rows in gathered(context, evaluated) for row in rows]})


def gathered(context, rows: list[int]) -> list[list[int]]:
    """Every worker's rows, out of sums."""
    table = torch.zeros(context.world_size, 64, dtype=torch.int64)
    table[context.rank, : len(rows)] = torch.tensor(rows, dtype=torch.int64) + 1
    return [[row - 1 for row in mine if row] for mine in context.sum(table).tolist()]


@pytest.mark.process
@pytest.mark.parametrize("sharded", [False, True])
def test_each_row_is_one_workers(gang: ProcessGang, tmp_path, sharded):
    [first, *_] = only(gang.run(program(rows_of), assignment(tmp_path, sharded=sharded)))
    assert sorted(state(first)["all"]) == [*range(50)]


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


@pytest.mark.process
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("rows", [50, 49, 26])
def test_workers_together_are_one_with_the_whole_batch(gang: ProcessGang, tmp_path, sharded, rows):
    """Of 49 and 26 rows some workers have none of the last update's."""
    words = {"sharded": sharded, "rows": rows}
    [first, *_] = only(gang.run(program(trains), assignment(tmp_path, **words, size=4)))
    [one] = alone(trains, 96, assignment(tmp_path, name="one", **words, size=12))
    close(state(first)["model"], state(one)["model"])


def test_it_accumulates_over_its_batches(tmp_path):
    words = {"sharded": False, "rows": 50}
    [whole] = alone(trains, 96, assignment(tmp_path, name="whole", **words, size=8))
    halves = {"per_worker_batch_size": 4, "gradient_accumulation_steps": 2}
    [parts] = alone(trains, 96, assignment(tmp_path, name="parts", **words, size=4, **halves))
    close(state(whole)["model"], state(parts)["model"])
    [both] = servers(trains, assignment(tmp_path, name="both", **words, size=4, num_workers=2, mode="sync"))
    close(state(whole)["model"], state(both)["model"])


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


@pytest.mark.parametrize("sharded", [False, True])
def test_a_length_that_is_too_small_leaves_no_row_out(tmp_path, sharded):
    """PyTorch warns of it."""
    [segment] = serve_alone(program(counts)(), assignment(tmp_path, sharded=sharded, said=8))
    assert sorted(state(segment)["all"]) == [*range(50)]


@pytest.mark.process
def test_on_workers_neither_does_it_and_one_that_is_too_large_is_an_error(gang: ProcessGang, tmp_path):
    small, large = (assignment(tmp_path, name=str(said), sharded=False, said=said) for said in (8, 500))
    answers = gang.run(program(counts), small, large)
    assert sorted(state(answers[0][0])["all"]) == [*range(50)]
    for _, error in answers:
        mentions(str(error), "DataLoader", "Said", "13", "125", "len()")


# ---- what is refused


def differs(context) -> None:
    batches = context.prepare_data(DataLoader(Numbers(context.rank, 50, context.world_size), batch_size=4))
    for _ in context.epochs():
        for _ in batches:
            pass


@pytest.mark.process
def test_rows_that_are_dealt_out_twice_are_refused(gang: ProcessGang, tmp_path):
    errors = only_errors(gang.run(program(differs), assignment(tmp_path)))
    mentions(str(errors[0]), "DataLoader", "Numbers", "rank 1", "rank 0", "prepare_data", "sharded=True")


@pytest.mark.process
def test_fewer_batches_than_workers_are_refused(gang: ProcessGang, tmp_path):
    errors = only_errors(gang.run(program(trains), assignment(tmp_path, sharded=False, rows=8, size=4)))
    said = [str(error) for error in errors]
    assert any(not missing_names(text, "DataLoader", "rank 2", "3", "batch", "workers") for text in said), said


def test_an_empty_dataset_ends_steps(tmp_path):
    make = program(collects(lambda context: loader(context, stop=0), per_unit=5), steps_per_report=5)
    [error] = serve_alone(make(), assignment(tmp_path))
    assert isinstance(error, TrialError)
    mentions(str(error), "context.steps()", "batch")


def test_a_length_is_that_of_the_dataset_or_none(tmp_path):
    def asks(context) -> None:
        for _ in context.epochs():
            with pytest.raises(TypeError):
                len(context.prepare_data(loader(context)))
            context.report({}, checkpoint={})

    only([serve_alone(program(asks)(), assignment(tmp_path, stop=1))])
