"""Rows that are a trial's or a worker's own: changed for nobody else, and dealt out no second time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, TensorDataset

from tests.support.loaders import NUMBERS, ROWS, Lengths
from tests.support.networks import HERE, assignment, data, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel

# ---- rows of the trial's own


@pytest.mark.parametrize("writeable", [True, False], ids=["the user's array", "as of Ray's object store"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_what_a_trial_does_to_its_rows_nobody_else_sees(tmp_path, writeable, shuffle):
    features, labels = data()
    before = features.copy(), labels.copy()
    means = []

    def train(context) -> None:
        rows = context.shard("train")
        again = context.shard("train")
        means.append((rows.features.mean().item(), rows.labels.mean().item()))
        rows.features.sub_(1)
        rows.labels.sub_(1)
        rows.features.numpy()[:] *= 2
        assert again.features.mean().item() == means[-1][0]
        for _ in context.epochs():
            total, came = 0.0, 0.0
            for part, numbers in context.prepare_data("train", shuffle=shuffle):
                total += part.sum().item()
                came += numbers.sum().item()
                part.sub_(1)
                numbers.sub_(1)
            assert total == pytest.approx(before[0].sum(), abs=1e-3)
            assert came == before[1].sum()
            context.report({}, checkpoint={})

    features.flags.writeable = labels.flags.writeable = writeable
    program = TorchTrainer(train, scaling=HERE).program(
        {"train": Channel.of((features, labels), name="train").place(0)}
    )
    trials = [assignment(tmp_path, name=name, per_worker_batch_size=10) for name in ("first", "second", "third")]
    for segment in serve_alone(program, *trials):
        state(segment)
    assert len(set(means)) == 1
    np.testing.assert_array_equal(features, before[0])
    np.testing.assert_array_equal(labels, before[1])


# ---- rows of this worker's own


class Transformed(Dataset):
    """Rows of a shard, as somebody would transform them: twice as many, one of two drawn."""

    def __init__(self, shard) -> None:
        self.features, self.labels = shard.features * 2, shard.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int):
        return self.labels[row].long(), self.features[row]


def numbered(rows: int) -> dict:
    channel = (np.ones((rows, 2), np.float32), np.arange(rows, dtype=np.float32))
    return {"train": Channel.of(channel, name="train").place(0)}


def rows_seen(tmp_path, rows: int, workers: int, make, *, sharded, epochs: int = 2) -> list[Counter]:
    """By pass, how often each row of a channel came through a DataLoader over a shard's rows."""
    from trainers import ParameterServerTrainer

    found: list[Counter] = [Counter() for _ in range(epochs)]

    def train(context) -> None:
        batches = context.prepare_data(make(context), sharded=sharded)
        for epoch in context.epochs():
            with torch.no_grad():
                for batch in batches:
                    found[epoch].update(batch[0].tolist())
            context.report({}, checkpoint={})

    [segment] = serve_alone(
        ParameterServerTrainer(train, scaling=HERE).program(numbered(rows)),
        assignment(tmp_path, stop=epochs, num_workers=workers, mode="sync", name=f"of-{workers}"),
    )
    state(segment)
    return found


@pytest.mark.parametrize("rows", [2000, 2001])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_rows_of_a_shard_that_are_transformed_all_come_once(tmp_path, rows, workers):
    def make(context):
        return DataLoader(Transformed(context.shard("train")), batch_size=50, shuffle=True)

    assert rows_seen(tmp_path, rows, workers, make, sharded=True) == [Counter(range(rows))] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loader_after_a_shard_has_to_say_whose_rows_it_has(tmp_path, workers):
    def of_shard(context):
        return DataLoader(Transformed(context.shard("train")), batch_size=50)

    def of_all(context):
        context.shard("train")
        return DataLoader(TensorDataset(torch.arange(2000)), batch_size=50)

    for make in (of_shard, of_all):
        with refuses(TrialError, field=("DataLoader", "shard", "train"), remedy=("sharded=True", "sharded=False")):
            rows_seen(tmp_path, 2000, workers, make, sharded=None)
    assert rows_seen(tmp_path, 2000, workers, of_all, sharded=False) == [Counter(range(2000))] * 2


def test_shards_of_other_lengths_are_never_dealt_out_again(tmp_path):
    def make(context):
        return DataLoader(Transformed(context.shard("train")), batch_size=50)

    with refuses(TrialError, field=("DataLoader", "rank 1", "rank 0"), remedy="sharded=True"):
        rows_seen(tmp_path, 2001, 2, make, sharded=False)


def test_what_is_said_of_a_channels_rows_is_refused(tmp_path):
    with refuses(TrialError, field=("sharded", "channel"), value=False, remedy="DataLoader"):
        rows_seen(tmp_path, 20, 1, lambda _: "train", sharded=False)


def test_a_workers_own_batches_are_as_large_in_each_pass(tmp_path):
    def fixed(context):
        rows = context.shard("train")
        return DataLoader(Transformed(rows), batch_sampler=BatchSampler(SequentialSampler(rows), 7, drop_last=False))

    def other(context):
        context.shard("train")
        return DataLoader(NUMBERS, batch_sampler=Lengths())

    assert rows_seen(tmp_path, 101, 2, fixed, sharded=True) == [Counter(range(101))] * 2
    with refuses(TrialError, field=("DataLoader", "pass 1"), remedy=("sharded=True", "sharded=False")):
        rows_seen(tmp_path, ROWS, 2, other, sharded=True)
