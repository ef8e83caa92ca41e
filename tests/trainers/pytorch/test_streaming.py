import pytest
import torch
from hypothesis import given, strategies as st

from trainers.pytorch.data.batches import BatchSize
from trainers.pytorch.data.loading import Shard
from trainers.pytorch.data.streaming import Stream, stream_batches


class Quiet:
    def begin(self, micro, done):
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


def test_all_pieces_at_once():
    assert stream([3, 4]).whole().labels.tolist() == list(range(7))
