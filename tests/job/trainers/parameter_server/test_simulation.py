"""Simulated workers: the same every time, the same as real ones where those are reproducible, and no thread left."""

from __future__ import annotations

import bdb
from typing import Any

import pytest

from tests.support.server_workers import (
    Training,
)
from tests.support.trainers.parameter_server.simulation import (
    ASYNC,
    account,
    no_thread_is_left,  # noqa: F401  # Of every test.
)
from trainers.parameter_server.simulation.workers import simulate
from trainers.pytorch.distribution import Distribution, Peers


def test_four_equal_workers_are_mostly_three_updates_stale() -> None:
    found = account(simulate(Training(passes=10), ASYNC, seed=0))
    assert found["pushes"] == 200
    assert found["staleness"]["3"] > 100
    assert found["clock"] == "simulated"


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, bdb.BdbQuit])
def test_what_one_worker_raises_ends_all_and_comes_out(rank: int, error: type[BaseException]) -> None:
    ended = []

    def each(peers: Peers, optimizer: Any) -> None:
        if peers.rank == rank:
            raise error("of the user's own")

    training = Training(each=each)

    def work(peers: Peers, distribution: Distribution) -> None:
        try:
            training(peers, distribution)
        finally:
            distribution.close()
            ended.append(peers.rank)

    with pytest.raises(error):
        simulate(work, ASYNC, seed=0)
    assert sorted(ended) == [0, 1, 2, 3]
