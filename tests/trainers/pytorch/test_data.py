"""Rows of a training function: its own to change, and those that its samplers draw, on any number of workers."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from tests.support.networks import HERE, assignment, close, data, run, servers, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel

ROWS = 100
NUMBERS = TensorDataset(torch.arange(ROWS), torch.arange(ROWS) % 2)


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


# ---- samplers


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


class OddFirst(Sampler[int]):
    """A sampler of somebody's own: odd rows before even ones, each in an order drawn from a global generator."""

    def __init__(self, draw) -> None:
        self.draw = draw

    def __len__(self) -> int:
        return ROWS

    def __iter__(self) -> Iterator[int]:
        return iter(self.draw(range(1, ROWS, 2)) + self.draw(range(0, ROWS, 2)))


def by_python(rows: range) -> list[int]:
    return random.sample(rows, len(rows))


def by_numpy(rows: range) -> list[int]:
    return np.random.permutation(rows).tolist()  # noqa: NPY002


def by_torch(rows: range) -> list[int]:
    return [rows[at] for at in torch.randperm(len(rows))]


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


class Lengths(Sampler[list[int]]):
    """Batches of its own lengths, which differ from pass to pass."""

    def __len__(self) -> int:
        return ROWS

    def __iter__(self) -> Iterator[list[int]]:
        rows, at = by_torch(range(ROWS)), 0
        while at < ROWS:
            size = random.randint(1, 9)
            yield rows[at : at + size]
            at += size


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


def test_a_batch_sampler_of_another_size_than_the_hyperparameters_is_refused(tmp_path):
    def train(context) -> None:
        context.prepare_data(DataLoader(NUMBERS, batch_sampler=BatchSampler(SequentialSampler(NUMBERS), 7, False)))

    with pytest.raises(TrialError, match="batch_size=7 and the hyperparameters give per_worker_batch_size 8"):
        run(TorchTrainer(train, scaling=HERE), assignment(tmp_path, per_worker_batch_size=8))


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


class Rows(IterableDataset):
    def __iter__(self):
        yield from range(ROWS)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: DataLoader(NUMBERS, sampler=Stateful()), "Stateful draws other rows .* draw from PyTorch's"),
        (lambda _: DataLoader(NUMBERS, sampler=Endless(list)), "Endless gives more than the 100 that it has by len"),
        (lambda _: DataLoader(NUMBERS, sampler=iter(range(9))), "range_iterator has no length; give one with __len__"),
        (
            lambda context: DataLoader(
                NUMBERS, sampler=DistributedSampler(NUMBERS, num_replicas=context.world_size, rank=context.rank)
            ),
            "has a DistributedSampler, and prepare_data\\(\\) deals rows out .* shuffle=True, .* sharded=True",
        ),
        (lambda _: DataLoader(Rows(), batch_size=4), "rows can be numbered; give a map-style"),
        (lambda _: DataLoader(NUMBERS, batch_size=None), "a batch_size or a batch_sampler"),
        (lambda _: Own(NUMBERS), "Own has an __iter__ of its own, .* give a plain DataLoader"),
        (lambda _: DataLoader(NUMBERS, batch_size=60, drop_last=True, sampler=range(50)), "leaves no batch"),
    ],
)  # fmt: skip
def test_a_loader_that_cannot_be_followed_is_refused(tmp_path, workers, make, message):
    with pytest.raises(TrialError, match=message):
        passes(make, workers, tmp_path)


@pytest.mark.parametrize("workers", [2])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda context: DataLoader(NUMBERS, sampler=range(context.rank, ROWS, context.world_size)),
            "other rows on rank 1 than on rank 0.*sharded=True",
        ),
        (lambda context: DataLoader(Subset(NUMBERS, range(50 + context.rank))), "other rows on rank 1 .*sharded=True"),
        (lambda _: DataLoader(NUMBERS, sampler=[7]), "gives 1 rows for 2 workers; use fewer workers"),
        (lambda _: DataLoader(NUMBERS, batch_sampler=[[7, 8]]), "gives 1 batches for 2 workers; use fewer workers"),
    ],
)
def test_workers_that_cannot_share_a_loader_are_told(tmp_path, workers, make, message):
    with pytest.raises(TrialError, match=message):
        passes(make, workers, tmp_path)


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
        with pytest.raises(TrialError, match=r"after shard\('train'\).*sharded=True.*sharded=False"):
            rows_seen(tmp_path, 2000, workers, make, sharded=None)
    assert rows_seen(tmp_path, 2000, workers, of_all, sharded=False) == [Counter(range(2000))] * 2


def test_shards_of_other_lengths_are_never_dealt_out_again(tmp_path):
    def make(context):
        return DataLoader(Transformed(context.shard("train")), batch_size=50)

    with pytest.raises(TrialError, match=r"other rows on rank 1 than on rank 0.*sharded=True"):
        rows_seen(tmp_path, 2001, 2, make, sharded=False)


def test_what_is_said_of_a_channels_rows_is_refused(tmp_path):
    with pytest.raises(TrialError, match="sharded=False is for a DataLoader; a channel's rows are each worker's own"):
        rows_seen(tmp_path, 20, 1, lambda _: "train", sharded=False)


def test_a_workers_own_batches_are_as_large_in_each_pass(tmp_path):
    def fixed(context):
        rows = context.shard("train")
        return DataLoader(Transformed(rows), batch_sampler=BatchSampler(SequentialSampler(rows), 7, drop_last=False))

    def other(context):
        context.shard("train")
        return DataLoader(NUMBERS, batch_sampler=Lengths())

    assert rows_seen(tmp_path, 101, 2, fixed, sharded=True) == [Counter(range(101))] * 2
    with pytest.raises(TrialError, match=r"pass 1 has other batches than before.*sharded=False"):
        rows_seen(tmp_path, ROWS, 2, other, sharded=True)
