import threading

import pytest
import torch
from hypothesis import given, strategies as st

from trainers.pytorch.data.batches import BatchSize
from trainers.pytorch.data.loading import Shard
from trainers.pytorch.data.streaming import Stream, stream_batches


class Quiet:
    def begin(self, micro, number, done):
        pass

    def absent(self, batches):
        pass

    def end(self):
        pass


def stream(pieces: list[int]) -> Stream:
    starts = [sum(pieces[:at]) for at in range(len(pieces))]

    def fetch(start: int, rows: int):
        numbers = torch.arange(start, start + rows, dtype=torch.float32)
        return lambda: Shard(features=numbers[:, None], labels=numbers)

    return Stream(fetch=[fetch(*piece) for piece in zip(starts, pieces, strict=True)], rows=pieces)


def batches(pieces: list[int], size: int, others: int = 0, *, shuffle: bool = True, labels=torch.int64):
    return stream_batches(
        stream(pieces),
        [sum(pieces), sum(pieces) + others],
        0,
        BatchSize(workers=2, per_worker_batch_size=size),
        shuffle=shuffle,
        labels=labels,
        seed=3,
        device=torch.device("cpu"),
        passes=Quiet(),
    )


def numbers(some) -> list[list[int]]:
    for features, labels in (found := list(some)):
        assert torch.equal(features[:, 0].long(), labels)
    return [labels.tolist() for _, labels in found]


@given(pieces=st.lists(st.integers(1, 30), min_size=2, max_size=6), size=st.integers(1, 40), more=st.integers(0, 50))
def test_every_row_comes_once_a_pass_and_a_pass_goes_on_where_it_was_left(pieces, size, more):
    whole = batches(pieces, size, more)
    with torch.no_grad():
        rows = [row for batch in numbers(whole) for row in batch]
    assert sorted(rows) == list(range(sum(pieces)))
    training = batches(pieces, size, more)
    first = numbers(training)
    assert len(first) == len(training) == -(-(sum(pieces) + more) // size)
    later = batches(pieces, size, more)
    later.place.position = (0, len(first) // 2)
    assert numbers(later) == first[len(first) // 2 :]
    assert numbers(later) == numbers(training)


def test_passes_come_in_different_orders():
    of = batches([20, 20, 20], 7)
    assert numbers(of) != numbers(of)


@pytest.mark.parametrize("shuffle", [True, False])
def test_what_is_done_to_a_batch_the_next_pass_does_not_see(shuffle):
    """Also to the row that is repeated where others have more."""
    of = batches([7, 4], 3, 5, shuffle=shuffle, labels=torch.float32)
    with torch.no_grad():
        for _ in range(2):
            assert sorted(row for batch in numbers(of) for row in batch) == list(range(11))
    for features, labels in of:
        features.fill_(-1)
        labels.fill_(-1)
    with torch.no_grad():
        assert sorted(row for batch in numbers(of) for row in batch) == list(range(11))


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_next_piece_is_fetched_while_one_is_trained_on(shuffle):
    got, wanted = [], threading.Condition()
    of = stream([8, 8, 8])

    def noting(fetch):
        def noted():
            with wanted:
                got.append(fetch)
                wanted.notify()
            return fetch()

        return noted

    of = Stream(fetch=[noting(fetch) for fetch in of.fetch], rows=of.rows)
    size = BatchSize(workers=1, per_worker_batch_size=4)
    words = {"shuffle": shuffle, "labels": torch.int64, "seed": 3, "device": torch.device("cpu"), "passes": Quiet()}
    batches = iter(stream_batches(of, [24], 0, size, **words))
    for needed in (2, 2, 3, 3, 3, 3):
        next(batches)
        with wanted:
            assert wanted.wait_for(lambda needed=needed: len(got) >= needed, 10)
            assert len(got) == needed
    assert next(batches, None) is None
    assert len({id(fetch) for fetch in got}) == 3


def test_all_pieces_at_once():
    assert stream([3, 4]).whole().labels.tolist() == list(range(7))
