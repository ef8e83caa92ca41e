"""Decentralised averaging: nothing is lost between neighbours, and after a pass all hold the mean."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.networks import assignment, servers, train_adam
from tests.support.refusals import mentions, refuses
from tests.support.server_workers import DEADLINE, ThreadPeers, Training, alone, momentum
from trainers.errors import DivergedError, GangError, TrialError
from trainers.parameter_server.ring import Replica, Ring, RingDistribution, beside
from trainers.parameter_server.ring.averaging import average_state
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation import simulate


def plain(model: nn.Module) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.001)


def on_sockets(worker: Any, settings: Settings) -> list[Any]:
    """What workers in threads return or raise, on a ring of real sockets."""
    count = settings.workers
    barrier, slots = threading.Barrier(count), [None] * count
    results: list[Any] = [None] * count
    rings = [Ring(rank, "127.0.0.1") for rank in range(count)]

    def run(rank: int) -> None:
        rings[rank].join([ring.address for ring in rings])
        try:
            peers = ThreadPeers(rank, count, barrier, slots)
            distribution = RingDistribution(
                peers=peers, neighbours=rings[rank].neighbours, publish=rings[rank].publish, settings=settings, seed=3
            )
            results[rank] = worker(peers, distribution)
        except BaseException as error:
            barrier.abort()
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
        assert not thread.is_alive()
    for ring in rings:
        ring.close()
    return results


def ring(workers: int, **words: Any) -> Settings:
    return Settings.of({"mode": "ring", **words}, workers)


@pytest.mark.parametrize(("workers", "expected"), [(1, [[]]), (2, [[1], [0]]), (4, [[1, 3], [0, 2], [1, 3], [0, 2]])])
def test_neighbours_are_the_one_before_and_the_one_behind(workers: int, expected: list[list[int]]) -> None:
    assert [beside(rank, workers) for rank in range(workers)] == expected


def test_averagings_that_overlap_lose_nothing() -> None:
    """A copy under way is old when it arrives; the sum stays, and the copies come together."""
    draws = random.Random(1)
    replicas = [Replica([torch.randn(5, dtype=torch.float64)]) for _ in range(5)]
    total = sum(replica.values[0] for replica in replicas)
    spread = torch.stack([replica.values[0] for replica in replicas]).std(0)
    open_halves: list[Any] = []
    for _ in range(400):
        if open_halves and draws.random() < 0.5:
            replica, mine, theirs = open_halves.pop(draws.randrange(len(open_halves)))
            replica.approach([mine], [theirs])
        else:
            rank = draws.randrange(5)
            mine, theirs = replicas[rank].values[0].clone(), torch.empty(5, dtype=torch.float64)
            replicas[draws.choice(beside(rank, 5))].visit([mine], [theirs])
            if all(replica is not replicas[rank] for replica, _, _ in open_halves):  # A worker makes one at a time.
                open_halves.append((replicas[rank], mine, theirs))
            else:
                replicas[rank].approach([mine], [theirs])
    for replica, mine, theirs in open_halves:
        replica.approach([mine], [theirs])
    torch.testing.assert_close(sum(replica.values[0] for replica in replicas), total, rtol=0, atol=1e-12)
    assert (torch.stack([replica.values[0] for replica in replicas]).std(0) < 0.01 * spread).all()
    assert sum(replica.visits for replica in replicas) > 100


def test_one_worker_is_plain_training_to_the_last_bit() -> None:
    [found] = on_sockets(Training(), ring(1))
    assert torch.equal(found.weights, alone(Training()).weights)


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("way", [on_sockets, lambda worker, settings: simulate(worker, settings, seed=3)])
def test_after_a_pass_all_hold_the_same_and_the_mean_moved_as_that_of_all(way: Any, workers: int) -> None:
    """To first order in the learning rate, the mean of the models is one model with the whole batch."""
    ringed = way(Training(plain, passes=2), ring(workers))
    synced = simulate(Training(plain, passes=2), Settings.of({"mode": "sync"}, workers), seed=3)
    begin = simulate(Training(lambda model: torch.optim.SGD(model.parameters(), lr=0.0)), ring(workers), seed=3)
    for one in ringed[1:]:
        assert all(map(torch.equal, one.passes, ringed[0].passes))
    moved, expected = ringed[0].weights - begin[0].weights, synced[0].weights - begin[0].weights
    assert (moved - expected).norm() < 0.02 * expected.norm()
    found = ringed[0].details["parameter_server"]
    assert found["pushes"] == found["updates"] == sum(found["staleness"].values()) == 2 * 5 * workers
    assert (found["mode"], found["servers"]) == ("ring", [])
    assert all(one.details == {} for one in ringed[1:])


@pytest.mark.parametrize("optimizer", [momentum, lambda model: torch.optim.Adam(model.parameters(), lr=0.01)])
def test_optimizers_hold_the_same_after_a_pass(optimizer: Any) -> None:
    found = on_sockets(Training(optimizer), ring(3))
    for one in found[1:]:
        for mine, first in zip(one.state["state"].values(), found[0].state["state"].values(), strict=True):
            assert all(torch.equal(torch.as_tensor(mine[name]), torch.as_tensor(first[name])) for name in first)


def test_a_worker_without_rows_takes_part() -> None:
    """One row for three workers: two of them never step, and have no state of their own to average."""
    found = on_sockets(Training(rows=1, batch=1, passes=2), ring(3))
    assert torch.equal(found[0].weights, found[2].weights)
    assert not torch.equal(found[0].passes[0], found[0].passes[1])
    assert found[0].details["parameter_server"]["updates"] == 2


def test_a_simulation_depends_on_its_seed_alone() -> None:
    settings = ring(4, delay_ms=[0, 0, 1, 5], link_bytes_per_second=1e6)
    first, again, other = (simulate(Training(), settings, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first[0].weights, again[0].weights)
    assert first[0].details == again[0].details
    assert not torch.equal(first[0].weights, other[0].weights)
    assert first[0].details["parameter_server"]["link_seconds"] > 0


def test_a_straggler_holds_nobody_up() -> None:
    """The others go on while it sleeps: only the end of the pass waits for it."""

    def waited(mode: str) -> float:
        worker = simulate(Steps(), Settings.of({"mode": mode, "delay_ms": [0, 0, 0, 50.0]}, 4), seed=1)
        return max(worker[:3])

    assert waited("ring") < 0.001 < 0.1 < waited("sync")


class Steps(Training):
    """Seconds that a worker's steps stood still."""

    def __call__(self, peers: Any, distribution: Any) -> float:  # type: ignore[override]
        super().__call__(peers, distribution)
        return float(distribution.communication.seconds[1])


def test_a_limited_link_takes_its_time_on_sockets_too() -> None:
    found = on_sockets(Training(passes=1), ring(2, link_bytes_per_second=2e5))
    assert found[0].details["parameter_server"]["link_seconds"] >= 2 * 2 * 5 * 880 / 2e5
    mentions(found[0].details["parameter_server"]["link"], "simulated", "200000")


def test_a_worker_that_fails_is_told_to_its_neighbours() -> None:
    def each(peers: Any, optimizer: Any) -> None:
        if peers.rank == 1:
            raise ValueError("on the way")

    class Failing(Training):
        def __call__(self, peers: Any, distribution: Any) -> Any:
            try:
                return super().__call__(peers, distribution)
            finally:
                distribution.close()

    found = on_sockets(Failing(each=each, passes=50), ring(2))
    assert isinstance(found[1], ValueError)
    assert isinstance(found[0], TrialError | threading.BrokenBarrierError)
    if isinstance(found[0], TrialError):
        mentions(str(found[0]), "rank 1", "on the way")


def test_a_neighbour_that_is_gone_is_the_gang_s_error() -> None:
    one, other = Ring(0, "127.0.0.1"), Ring(1, "127.0.0.1")
    one.join([one.address, other.address])
    port = other.address.port
    [way] = one.neighbours
    mine, theirs = [torch.ones(3)], [torch.zeros(3)]
    way.enter(5.0, mine, theirs)
    with refuses(TrialError, field="rank 1"):
        way.average()
    other.publish(Replica([torch.zeros(4)]))
    with refuses(TrialError, field=("rank 1", "model")):
        way.average()
    other.publish(Replica([torch.full((3,), 3.0)]))
    way.average()
    assert theirs[0].tolist() == [3.0] * 3
    other.close()
    with refuses(GangError, field="rank 1", value=f"127.0.0.1:{port}"):
        way.average()
    one.close()


def test_parameters_that_are_not_finite_end_the_trial_on_all() -> None:
    def steep(model: nn.Module) -> Any:
        return torch.optim.SGD(model.parameters(), lr=1e200)

    found = on_sockets(Training(steep), ring(2))
    assert all(isinstance(error, DivergedError | threading.BrokenBarrierError) for error in found)
    assert any(isinstance(error, DivergedError) for error in found)


def test_states_of_several_kinds_are_averaged_where_they_are() -> None:
    def work(peers: Any, distribution: Any) -> Any:
        parameters = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3, dtype=torch.float64))]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        if peers.rank:
            optimizer.state[parameters[0]] = {"m": torch.full((2,), float(peers.rank)), "step": peers.rank}
            optimizer.state[parameters[1]] = {"v": torch.full((4, 1), float(peers.rank), dtype=torch.float64)}
        average_state(peers, optimizer)
        return {name: value for parameter in parameters for name, value in optimizer.state[parameter].items()}

    for found in simulate(work, ring(4), seed=0):
        assert found["m"].tolist() == [2.0, 2.0]
        assert (found["v"].tolist(), found["v"].dtype) == ([[2.0]] * 4, torch.float64)
        assert found["step"] == 1


def test_a_trial_on_a_ring_learns(tmp_path: Any) -> None:
    [segment] = servers(train_adam, assignment(tmp_path, mode="ring", num_workers=3, per_worker_batch_size=8))
    assert segment.details["parameter_server"]["mode"] == "ring"
    assert segment.details["communication"]["steps"] == {"0": 8, "1": 8, "2": 8}
