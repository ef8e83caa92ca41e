"""Simulated workers: the same every time, the same as real ones where those are reproducible, and no thread left."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.support.refusals import mentions, refuses
from tests.support.server_workers import (
    FEATURES,
    TARGETS,
    Training,
    alone,
    momentum,
    over_sockets,
    wrapped,
)
from tests.support.trainers.parameter_server.simulation import (
    ASYNC,
    account,
    no_thread_is_left,  # noqa: F401  # Of every test.
)
from trainers.errors import DivergedError, TrialError
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation import virtual_time
from trainers.parameter_server.simulation.virtual_time import Baton
from trainers.parameter_server.simulation.workers import simulate
from trainers.pytorch.distribution import Distribution, MicroBatch, Peers

WORK = Baton._work


@pytest.mark.parametrize("servers", [1, 2])
def test_sync_gives_what_real_workers_over_sockets_give_to_the_last_bit(servers: int) -> None:
    settings, training = Settings.of({"mode": "sync", "num_servers": servers}, 3), Training()
    simulated, real = simulate(training, settings, seed=1), over_sockets(training, settings)
    assert all(torch.equal(one.weights, other.weights) for one, other in zip(simulated, real, strict=True))
    mine, theirs = account(simulated), account(real)
    assert (mine.pop("clock"), theirs.pop("clock")) == ("simulated", "wall")
    assert mine.pop("waiting_seconds") >= 0
    assert theirs.pop("waiting_seconds") >= 0
    assert mine == theirs


def test_a_thread_that_ends_without_a_word_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(Baton, "_work", lambda baton, work, rank: None if rank == 2 else WORK(baton, work, rank))
    with pytest.raises(RuntimeError, match="simulated worker 2"):
        simulate(Training(), Settings.of({"mode": "sync"}, 5), seed=1)


def test_async_on_one_simulated_worker_is_plain_training_to_the_last_bit() -> None:
    [found] = simulate(Training(), Settings.of({"mode": "async"}, 1), seed=0)
    assert torch.equal(found.weights, alone(Training()).weights)


@pytest.mark.parametrize("mode", ["sync", "async", "bounded"])
def test_the_same_seed_gives_the_same_bytes_and_another_one_another_order(mode: str) -> None:
    settings = Settings.of({"mode": mode, "delay_ms": [0, 0, 1, 5]}, 4)
    first, again, other = (simulate(Training(), settings, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first[0].weights, again[0].weights)
    assert first[0].details == again[0].details
    assert torch.equal(first[0].weights, other[0].weights) == (mode == "sync")


def test_bounded_holds_fast_workers_back() -> None:
    counts = {}
    for mode in ("async", "bounded"):
        settings = Settings.of({"mode": mode, "staleness_bound": 1, "delay_ms": [0, 0, 0, 20]}, 4)
        found = account(simulate(Training(passes=1), settings, seed=0))
        counts[mode] = max(map(int, found["staleness"]))
        mentions(found["delay"], "simulated", "ms", "[0.0, 0.0, 0.0, 20.0]")
    # Of the slowest's push: three others make all their five steps in between, or two at most.
    assert counts["async"] > 9
    assert counts["bounded"] <= 6


def test_delays_take_the_virtual_clock_and_no_time() -> None:
    hour = 3_600_000
    found = account(simulate(Training(passes=1), Settings.of({"mode": "sync", "delay_ms": [0, hour]}, 2), seed=0))
    assert found["waiting_seconds"] > 3600


class Halves:
    """Training in two segments, with all that is handed from one to the other."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.starts = [0] * settings.workers
        self.model: dict[str, Any] = {}
        self.optimizer: dict[str, Any] = {}

    def train(self, first: int, last: int) -> Tensor:
        def work(peers: Peers, distribution: Any) -> Tensor:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                model = wrapped(distribution, nn.Linear(6, 6).double())
            optimizer = momentum(model)
            if first:
                model.load_state_dict(self.model)
                optimizer.load_state_dict(self.optimizer)
            for _ in range(first, last):
                for start in range(0, 240, 60):
                    mine = slice(start + peers.rank, start + 60, peers.world_size)
                    nn.functional.mse_loss(model(FEATURES[mine]), TARGETS[mine]).backward()
                    distribution.update(optimizer, MicroBatch(rows=15, update_rows=15, total_rows=60, last=True))
                distribution.synchronize(optimizer)
            self.starts[peers.rank] = distribution.pushes
            if peers.rank == 0:
                self.model, self.optimizer = model.state_dict(), optimizer.state_dict()
            return torch.cat([model.weight.detach(), model.bias.detach()[None]])

        return simulate(work, self.settings, seed=self.seed, starts=list(self.starts))[0]


@pytest.mark.parametrize("mode", ["sync", "async", "bounded"])
def test_pausing_at_the_end_of_a_pass_changes_nothing(mode: str) -> None:
    settings = Settings.of({"mode": mode, "num_servers": 2, "delay_ms": [0, 1, 0, 3]}, 4)
    straight, paused = Halves(settings, 5), Halves(settings, 5)
    paused.train(0, 2)
    assert torch.equal(straight.train(0, 5), paused.train(2, 5))


def test_each_worker_has_random_states_of_its_own_and_the_callers_are_left_alone() -> None:
    def work(peers: Peers, distribution: Distribution) -> list[float]:
        torch.manual_seed(peers.rank)
        np.random.seed(peers.rank)  # noqa: NPY002
        random.seed(peers.rank)
        found = []
        for _ in range(3):
            found += [torch.rand(()).item(), np.random.random(), random.random()]  # noqa: NPY002
            peers.meet("the next draw")
        return found

    torch.manual_seed(9)
    before = torch.get_rng_state()
    together = simulate(work, ASYNC, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert len({tuple(draws) for draws in together}) == 4

    def one(rank: int) -> list[float]:
        class Alone:
            def meet(self, what: str) -> None:
                pass

        peers: Any = Alone()
        peers.rank = rank
        return work(peers, peers)

    assert together == [one(rank) for rank in range(4)]


def test_peers() -> None:
    def work(peers: Peers, distribution: Distribution) -> Any:
        given = torch.tensor([float(peers.rank), 1.0])
        total = peers.sum(given)
        shared = given.clone()
        peers.broadcast(shared)
        return peers.world_size, total.tolist(), given.tolist(), shared.tolist(), peers.gather(peers.rank)

    for rank, found in enumerate(simulate(work, Settings.of({}, 3), seed=0)):
        assert found == (3, [3.0, 3.0], [float(rank), 1.0], [0.0, 1.0], [0, 1, 2])


def test_ctrl_c_comes_out_while_another_worker_than_the_callers_runs() -> None:
    def each(peers: Peers, optimizer: Any) -> None:
        if peers.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)

    # A shell in the background has its children ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            simulate(Training(passes=100, each=each), ASYNC, seed=0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_divergence_comes_out() -> None:
    with refuses(DivergedError, field="parameters"):
        simulate(Training(lambda model: torch.optim.SGD(model.parameters(), lr=1e200)), ASYNC, seed=0)


def test_a_worker_that_ends_early_is_named_and_not_waited_for() -> None:
    def work(peers: Peers, distribution: Distribution) -> None:
        Training(passes=1 if peers.rank == 1 else 2)(peers, distribution)

    with refuses(TrialError, field=("rank 1", "training")):
        simulate(work, Settings.of({"mode": "sync"}, 3), seed=0)


def test_workers_that_do_different_things_are_told_so() -> None:
    def work(peers: Peers, distribution: Distribution) -> None:
        if peers.rank == 1:
            peers.gather(1)
        else:
            peers.meet("report 3")

    with refuses(TrialError, field=("rank 0", "rank 1"), value="report 3"):
        simulate(work, Settings.of({}, 2), seed=0)


def test_waiting_in_vain_is_told_at_once() -> None:
    def work(peers: Peers, distribution: Distribution) -> None:
        if peers.rank != 1:
            peers.meet("report 3")

    with refuses(TrialError, field=("rank 0", "report 3"), value="[1]"):
        simulate(work, Settings.of({}, 3), seed=0)
