"""The rows that samplers draw come as drawn on any number of workers, or the loader is refused."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from tests.support.loaders import NUMBERS, ROWS, Lengths, OddFirst, by_numpy, by_python, by_torch
from tests.support.networks import HERE, assignment, close, run, servers, state
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError


def passes(make, workers: int, tmp_path, *, epochs: int = 2) -> list:
    """By pass: how often each row came, on all workers together, and the batches of each worker."""

    def train(context) -> None:
        batches = context.prepare_data(make(context))
        for _ in context.epochs():
            with torch.no_grad():
                of_rank[context.rank].append([batch[0].tolist() for batch in batches])
            context.report({}, checkpoint={})

    of_rank: list[list] = [[] for _ in range(workers)]
    servers(train, assignment(tmp_path, stop=epochs, num_workers=workers, mode="sync"))
    by_pass = list(zip(*of_rank, strict=True))
    return [(Counter(row for found in ranks for batch in found for row in batch), ranks) for ranks in by_pass]


def order(ranks: list) -> list:
    """The batches of all workers in the order in which one worker alone would have them."""
    return [batch for at in range(max(map(len, ranks))) for found in ranks for batch in found[at : at + 1]]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_rows_of_a_subset_sampler_are_those_that_come(tmp_path, workers):
    def make(context):
        return DataLoader(NUMBERS, batch_size=8, sampler=SubsetRandomSampler(range(80)))

    first, second = passes(make, workers, tmp_path)
    assert first[0] == second[0] == Counter(range(80))
    assert first[1] != second[1]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_weights_of_a_sampler_are_honoured(tmp_path, workers):
    weights = [0.0] * 50 + [1.0] * 40 + [9.0] * 10

    def make(context):
        return DataLoader(NUMBERS, batch_size=8, sampler=WeightedRandomSampler(weights, 600))

    (first, ranks), (second, _) = passes(make, workers, tmp_path)
    assert sum(first.values()) == 600
    assert not any(first[row] for row in range(50))
    heavy = sum(first[row] for row in range(90, 100)) / 600
    assert 0.6 < heavy < 0.78  # 90 of 130; 0.02 is a standard error.
    assert first != second
    # One draw, dealt out: no worker draws what another one draws.
    assert workers == 1 or ranks[0] != ranks[1]


def test_one_seed_draws_the_same_rows_for_any_number_of_workers(tmp_path):
    def make(context):
        return DataLoader(NUMBERS, batch_size=1, sampler=WeightedRandomSampler([1.0] * ROWS, 60))

    one, two, three = (passes(make, workers, tmp_path / str(workers)) for workers in (1, 2, 3))
    for number in range(2):
        assert order(one[number][1]) == order(two[number][1]) == order(three[number][1])


def test_rows_are_drawn_with_replacement_where_the_loader_says_so(tmp_path):
    def make(context):
        return DataLoader(NUMBERS, batch_size=8, sampler=RandomSampler(NUMBERS, replacement=True, num_samples=70))

    [(counts, _)] = passes(make, 2, tmp_path, epochs=1)
    assert sum(counts.values()) == 70
    assert max(counts.values()) > 1


@pytest.mark.parametrize("draw", [by_python, by_numpy, by_torch])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_sampler_of_somebodys_own_says_what_comes(tmp_path, workers, draw):
    def make(context):
        return DataLoader(NUMBERS, batch_size=10, sampler=OddFirst(draw))

    first, second = passes(make, workers, tmp_path)
    for counts, ranks in (first, second):
        assert counts == Counter(range(ROWS))
        for found in ranks:
            rows = [row % 2 for batch in found for row in batch]
            assert rows == [1] * (50 // workers) + [0] * (50 // workers)
    assert first[1] != second[1]


class ByEpoch(Sampler[int]):
    """Draws from a generator of its own, which `set_epoch` sets, as `DistributedSampler` does."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return ROWS

    def __iter__(self) -> Iterator[int]:
        return iter(random.Random(self.epoch).sample(range(ROWS), ROWS))


def test_a_sampler_is_told_of_each_pass(tmp_path):
    [(_, [first]), (_, [second])] = passes(
        lambda context: DataLoader(NUMBERS, batch_size=ROWS, sampler=ByEpoch()), 1, tmp_path
    )
    assert [first[0], second[0]] == [random.Random(epoch).sample(range(ROWS), ROWS) for epoch in (0, 1)]


def test_what_a_batch_sampler_wraps_is_drawn_from_the_trials_seed(tmp_path):
    def make(context):
        weights = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
        drawn = WeightedRandomSampler([1.0] * ROWS, 60, generator=weights)
        return DataLoader(NUMBERS, batch_sampler=BatchSampler(drawn, 7, drop_last=False))

    assert passes(make, 2, tmp_path / "one") == passes(make, 2, tmp_path / "two")


def test_weights_may_be_set_between_passes(tmp_path):
    def train(context) -> None:
        drawing = WeightedRandomSampler([1.0] * ROWS, 50)
        batches = context.prepare_data(DataLoader(NUMBERS, batch_size=10, sampler=drawing))
        for epoch in context.epochs():
            drawing.weights = torch.zeros(ROWS).double().index_fill_(0, torch.tensor([epoch]), 1.0)
            came.append({row for batch in batches for row in batch[0].tolist()})
            context.report({}, checkpoint={})

    came: list = []
    run(TorchTrainer(train, scaling=HERE), assignment(tmp_path, stop=3))
    assert came == [{0}, {1}, {2}]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_batches_of_a_batch_sampler_are_dealt_out_whole(tmp_path, workers):
    one = passes(lambda context: DataLoader(NUMBERS, batch_sampler=Lengths()), 1, tmp_path / "one")
    several = passes(lambda context: DataLoader(NUMBERS, batch_sampler=Lengths()), workers, tmp_path / "several")
    for (counts, ranks), (_, alone) in zip(several, one, strict=True):
        assert counts == Counter(range(ROWS))
        assert order(ranks) == order(alone)
    assert one[0] != one[1]


def test_rows_of_a_batch_samplers_batches_weigh_alike_on_any_number_of_workers(tmp_path):
    """Three batches of 4, 1 and 2 rows: two workers that take two each are one worker that has the batches 5 and 2."""
    features, labels = torch.randn(7, 3, generator=torch.Generator().manual_seed(1)).double(), torch.arange(7) % 2

    def training(parts):
        def train(context) -> None:
            model = context.prepare_model(nn.Linear(3, 2).double())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            batches = context.prepare_data(DataLoader(TensorDataset(features, labels), batch_sampler=parts))
            for _ in context.epochs():
                for rows, numbers in batches:
                    context.step(functional.cross_entropy(model(rows), numbers), optimizer)
                context.report({}, checkpoint={"model": model.state_dict()})

        return train

    [two] = servers(training([[0, 1, 2, 3], [4], [5, 6]]), assignment(tmp_path, name="two", num_workers=2, mode="sync"))
    [one] = servers(training([[0, 1, 2, 3, 4], [5, 6]]), assignment(tmp_path, name="one", mode="sync"))
    close(state(two)["model"], state(one)["model"])


class Stateful(OddFirst):
    """Keeps a generator of its own from pass to pass."""

    def __init__(self) -> None:
        generator = random.Random(3)
        super().__init__(lambda rows: generator.sample(rows, len(rows)))


class Endless(OddFirst):
    def __iter__(self) -> Iterator[int]:
        while True:
            yield 0


class Own(DataLoader):
    def __iter__(self):
        yield from [1, 2, 3]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda _: DataLoader(NUMBERS, sampler=Stateful()), ("Stateful", "PyTorch", "NumPy", "Python", "set_epoch")),
        (lambda _: DataLoader(NUMBERS, sampler=Endless(list)), ("Endless", "100", "len()")),
        (lambda _: DataLoader(NUMBERS, sampler=iter(range(9))), ("range_iterator", "__len__")),
        (
            lambda context: DataLoader(
                NUMBERS, sampler=DistributedSampler(NUMBERS, num_replicas=context.world_size, rank=context.rank)
            ),
            ("DistributedSampler", "prepare_data", "shuffle=True", "sharded=True"),
        ),
        (lambda _: DataLoader(NUMBERS, batch_size=None), ("batch_size", "None", "batch_sampler")),
        (lambda _: Own(NUMBERS), ("Own", "__iter__", "prepare_data")),
        (
            lambda _: DataLoader(NUMBERS, batch_size=60, drop_last=True, sampler=range(50)),
            ("drop_last=True", "batch", "drop_last=False"),
        ),
    ],
)  # fmt: skip
def test_a_loader_that_cannot_be_followed_is_refused(tmp_path, workers, make, names):
    with refuses(TrialError, field=("DataLoader", *names)):
        passes(make, workers, tmp_path)


@pytest.mark.parametrize("workers", [2])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (
            lambda context: DataLoader(NUMBERS, sampler=range(context.rank, ROWS, context.world_size)),
            ("rank 1", "rank 0", "sharded=True"),
        ),
        (
            lambda context: DataLoader(Subset(NUMBERS, range(50 + context.rank))),
            ("rank 1", "rank 0", "sharded=True"),
        ),
        (lambda _: DataLoader(NUMBERS, sampler=[7]), ("1", "2", "workers")),
        (lambda _: DataLoader(NUMBERS, batch_sampler=[[7, 8]]), ("1", "2", "workers")),
    ],
)
def test_workers_that_cannot_share_a_loader_are_told(tmp_path, workers, make, names):
    with refuses(TrialError, field=("DataLoader", *names)):
        passes(make, workers, tmp_path)
