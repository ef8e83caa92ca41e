"""What workers learn through parameter servers, held against plain training."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.support.refusals import mentions, refuses
from tests.support.server_workers import FEATURES, Trained, Training, alone, over_sockets, weights, wrapped
from trainers.errors import ConfigurationError, DivergedError, TrialError
from trainers.parameter_server.settings import Settings
from trainers.pytorch.distribution import Distribution, MicroBatch, Peers


def trained(training: Callable[[Peers, Distribution], Any], workers: int = 1, **settings: Any) -> list[Any]:
    """What the workers of a gang return; the first error of one is raised."""
    results = over_sockets(training, Settings.of(settings, workers))
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def two_groups(model: nn.Module) -> Optimizer:
    weight, bias, *others = model.parameters()
    groups = [{"params": [weight, bias], "lr": 0.01, "weight_decay": 0.1}, {"params": others}]
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)


OPTIMIZERS = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    "momentum": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01),
    "groups": two_groups,
    "Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
    "AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1, amsgrad=True),
    "fused": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, fused=True),
    "Adagrad": lambda model: torch.optim.Adagrad(model.parameters(), lr=0.1),
    "RMSprop": lambda model: torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, centered=True),
    "NAdam": lambda model: torch.optim.NAdam(model.parameters(), lr=0.01),
    "Rprop": lambda model: torch.optim.Rprop(model.parameters()),
}


def same(found: Any, expected: Any) -> bool:
    """Whether two states of optimizers are the same to the last bit."""
    if isinstance(expected, Tensor):
        return torch.equal(found, expected)
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_async_on_one_worker_is_plain_training_to_the_last_bit(optimizer: Callable[[nn.Module], Optimizer]) -> None:
    training = Training(optimizer)
    [found], expected = trained(training, mode="async", num_servers=2), alone(training)
    assert torch.equal(found.weights, expected.weights)
    assert same(found.state, expected.state)
    assert found.details["parameter_server"]["staleness"] == {"0": 10}


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("rows", [240, 230])
def test_sync_is_one_worker_with_the_whole_batch(servers: int, rows: int) -> None:
    """230 rows: the last batch has 38 rows, which four workers share unevenly."""
    training = Training(OPTIMIZERS["Adam"], rows=rows)
    expected = alone(training)
    results = trained(training, workers=4, mode="sync", num_servers=servers)
    for result in results:
        torch.testing.assert_close(result.weights, expected.weights, rtol=0, atol=1e-6)
        assert torch.equal(result.weights, results[0].weights)
    found = results[0].details["parameter_server"]
    assert found["updates"] == 10
    assert found["staleness"] == {"0": 40}
    assert len(found["servers"]) == servers


@pytest.mark.parametrize("settings", [{"mode": "sync"}, {"mode": "sync", "num_servers": 3}, {"mode": "async"}], ids=str)
def test_clipping_on_one_worker_is_plain_clipping_to_the_last_bit(settings: dict[str, Any]) -> None:
    training = Training(max_norm=0.05)
    [found], expected = trained(training, **settings), alone(training)
    assert torch.equal(found.weights, expected.weights)
    assert not torch.allclose(expected.weights, alone(Training()).weights)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("batch", [48, 79])
def test_servers_clip_the_gradient_of_all_workers_by_its_whole_norm(servers: int, batch: int) -> None:
    """240 rows in batches of 79 end in one of 3 rows, of which the fourth worker has none."""
    training = Training(max_norm=0.05, batch=batch)
    results = trained(training, workers=4, mode="sync", num_servers=servers)
    torch.testing.assert_close(results[0].weights, alone(training).weights, rtol=0, atol=1e-12)
    assert results[0].details["parameter_server"]["updates"] == 2 * -(-240 // batch)


def test_a_worker_without_rows_takes_a_step_that_changes_nothing() -> None:
    """240 rows in batches of 79 end in one of 3 rows: the fourth worker has none of them."""
    training = Training(batch=79)
    expected = alone(training)
    results = trained(training, workers=4, mode="sync")
    torch.testing.assert_close(results[3].weights, expected.weights, rtol=0, atol=1e-6)
    assert results[0].details["parameter_server"]["pushes"] == 30


def test_several_servers_give_what_one_gives_to_the_last_bit() -> None:
    one, three = (trained(Training(two_groups), workers=3, num_servers=number) for number in (1, 3))
    assert torch.equal(one[0].weights, three[0].weights)
    assert same(one[0].state, three[0].state)


@pytest.mark.parametrize("mode", ["async", "bounded"])
def test_after_a_pass_all_hold_the_same_parameters(mode: str) -> None:
    results: list[Trained] = trained(Training(passes=3), workers=4, mode=mode, num_servers=2)
    for result in results[1:]:
        assert all(map(torch.equal, result.passes, results[0].passes))
    found = results[0].details["parameter_server"]
    assert found["pushes"] == found["updates"] == sum(found["staleness"].values()) == 60
    assert found["mode"] == mode
    assert results[1].details == {}


def test_what_happened_is_counted() -> None:
    found = trained(Training(passes=1), workers=2, mode="sync", delay_ms=[0, 1])[0].details["parameter_server"]
    buffers = 8 * sum(-(-elements // 8) * 8 for elements in (48, 8, 48, 6))
    assert found["waiting_seconds"] > 0
    del found["waiting_seconds"]
    mentions(found.pop("delay"), "simulated", "ms", "[0.0, 1.0]")
    assert found == {
        "mode": "sync",
        "servers": [110],
        "updates": 5,
        "pushes": 10,
        "dropped": 0,
        "staleness": {"0": 10},
        "bytes_pushed": 10 * buffers,
        "bytes_pulled": 12 * buffers,
        "clock": "wall",
        "server_placement": "one",
    }


def test_a_backup_workers_late_push_is_dropped() -> None:
    third_has_pulled, others_are_through = threading.Event(), threading.Event()

    def work(peers: Peers, distribution: Distribution) -> Trained:
        model = wrapped(distribution, nn.Linear(6, 6).double())
        nn.init.ones_(model.weight)
        nn.init.ones_(model.bias)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        distribution.update(optimizer, MicroBatch(rows=0, update_rows=0, total_rows=0, last=True))
        if peers.rank == 2:
            third_has_pulled.set()
        assert third_has_pulled.wait(30)
        rows = slice(0, 30) if peers.rank < 2 else slice(30, 60)
        nn.functional.mse_loss(model(FEATURES[rows]), FEATURES[rows]).backward()
        if peers.rank == 2:
            assert others_are_through.wait(30)
        distribution.update(optimizer, MicroBatch(rows=30, update_rows=30, total_rows=90, last=True))
        others_are_through.set()
        distribution.synchronize(optimizer)
        return Trained([weights(model)], {}, distribution.close())

    results = trained(work, workers=3, mode="sync", backup_workers=1)
    found = results[0].details["parameter_server"]
    assert (found["updates"], found["pushes"], found["dropped"]) == (1, 3, 1)
    assert found["staleness"] == {"0": 2, "1": 1}
    model = nn.Linear(6, 6).double()
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    nn.functional.mse_loss(model(FEATURES[:30]), FEATURES[:30]).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    for result in results:
        torch.testing.assert_close(result.weights, weights(model))


# ---- what user code does


def test_the_learning_rate_that_a_schedule_sets_is_the_servers() -> None:
    schedules: dict[int, Any] = {}

    def scheduled(model: nn.Module) -> Optimizer:
        optimizer = two_groups(model)
        schedules[id(optimizer)] = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
        return optimizer

    def each(peers: Peers, optimizer: Optimizer) -> None:
        schedules[id(optimizer)].step()

    training = Training(scheduled, each=each)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [found], expected = trained(training, mode="async"), alone(training)
    assert torch.equal(found.weights, expected.weights)


def test_gradients_that_user_code_throws_away_are_found_again() -> None:
    def each(peers: Peers, optimizer: Optimizer) -> None:
        optimizer.zero_grad(set_to_none=True)

    [found], expected = trained(Training(each=each), mode="async"), alone(Training(each=each))
    assert torch.equal(found.weights, expected.weights)


class Mixed(nn.Module):
    """Parameters of two types, one frozen, one that the loss does not use, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.second = nn.Linear(8, 6).double()
        self.frozen = nn.Parameter(torch.ones(6, dtype=torch.float64), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = self.second(self.norm(self.first(features.float())).double()) * self.frozen
        return found


def test_types_may_be_mixed_and_parameters_frozen_or_unused() -> None:
    training = Training(model=Mixed)
    [found], expected = trained(training, mode="async", num_servers=2), alone(training)
    assert torch.equal(found.weights, expected.weights)
    two = trained(training, workers=2, num_servers=2)
    assert torch.equal(two[0].weights, two[1].weights)
    with refuses(ConfigurationError, field=("parameter servers", "num_servers"), value=9, remedy="7"):
        trained(training, mode="async", num_servers=9)


def test_an_unused_parameter_is_decayed_as_if_its_gradient_were_zero() -> None:
    def decaying(model: nn.Module) -> Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5)

    [found] = trained(Training(decaying, model=Mixed, passes=1), mode="async")
    torch.testing.assert_close(found.weights[6:9], torch.full((3,), 0.95**5, dtype=torch.float64))


def test_batch_normalisation_is_that_of_rank_0_everywhere() -> None:
    def work(peers: Peers, distribution: Distribution) -> Tensor:
        model = wrapped(distribution, nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).double())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(FEATURES[peers.rank :: 2]).sum().backward()
        distribution.update(optimizer, MicroBatch(rows=120, update_rows=120, total_rows=240, last=True))
        distribution.synchronize(optimizer)
        return torch.cat([buffer.double().reshape(-1) for buffer in model.buffers()])

    first, second = trained(work, workers=2)
    assert torch.equal(first, second)


class Halving(torch.optim.Optimizer):
    """A user's own optimizer."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"factor": 0.5})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.mul_(group["factor"])
                self.state[parameter]["halved"] = self.state[parameter].get("halved", 0) + 1


def test_a_users_own_optimizer_runs_on_the_servers() -> None:
    [found] = trained(Training(lambda model: Halving(model.parameters()), passes=1), mode="async")
    expected = alone(Training(lambda model: Halving(model.parameters()), passes=1))
    assert torch.equal(found.weights, expected.weights)
    assert found.state["state"][0] == {"halved": 5}


def test_training_goes_on_from_an_optimizers_state() -> None:
    """As at a rung: everything is begun again from what rank 0 holds."""
    state: dict[str, Any] = {}

    def half(peers: Peers, distribution: Distribution) -> Tensor:
        model = wrapped(distribution, nn.Linear(6, 6).double())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        if "model" in state:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        else:
            nn.init.ones_(model.weight)
            nn.init.ones_(model.bias)
        for _ in range(5):
            loss = nn.functional.mse_loss(model(FEATURES), FEATURES)
            loss.backward()
            distribution.update(optimizer, MicroBatch(rows=240, update_rows=240, total_rows=240, last=True))
        distribution.synchronize(optimizer)
        state["next"] = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        return weights(model)

    trained(half, mode="async")
    state |= state.pop("next")
    [resumed] = trained(half, mode="async")
    model = nn.Linear(6, 6).double()
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(FEATURES), FEATURES).backward()
        optimizer.step()
    assert torch.equal(resumed, weights(model))


# ---- what goes wrong


def everyone(training: Callable[[Peers, Distribution], Any], workers: int, **settings: Any) -> list[Any]:
    return over_sockets(training, Settings.of(settings, workers))


@pytest.mark.parametrize("mode", ["sync", "async", "bounded"])
def test_parameters_that_are_not_finite_end_it_on_every_worker(mode: str) -> None:
    wild = Training(lambda model: torch.optim.SGD(model.parameters(), lr=1e200, momentum=0.9), passes=50)
    for error in everyone(wild, 3, mode=mode, num_servers=2):
        assert isinstance(error, DivergedError)
        mentions(str(error), "parameters")


def test_an_optimizer_that_asks_for_the_loss_is_refused() -> None:
    for error in everyone(Training(lambda model: torch.optim.LBFGS(model.parameters())), 2):
        assert isinstance(error, ConfigurationError)
        mentions(str(error), "optimizer", "LBFGS", "SGD", "Adam", "AllReduce")


class Broken(Halving):
    def step(self, closure: Any = None) -> None:
        raise ValueError("no step today")


def test_an_optimizer_that_fails_on_the_server_fails_the_trial_everywhere() -> None:
    for error in everyone(Training(lambda model: Broken(model.parameters())), 2):
        assert isinstance(error, TrialError)
        mentions(str(error), "parameter server 0", "Broken", "no step today")


def test_a_second_optimizer_is_refused() -> None:
    def work(peers: Peers, distribution: Distribution) -> None:
        model = wrapped(distribution, nn.Linear(2, 2))
        for _ in range(2):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            distribution.update(optimizer, MicroBatch(rows=1, update_rows=1, total_rows=1, last=True))

    with refuses(TrialError, field=("optimizers", "parameter servers"), remedy="parameter groups"):
        trained(work)


def test_a_parameter_that_is_moved_while_it_trains_is_refused() -> None:
    def work(peers: Peers, distribution: Distribution) -> None:
        model = wrapped(distribution, nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            distribution.update(optimizer, MicroBatch(rows=1, update_rows=1, total_rows=1, last=True))
            model.weight.data = model.weight.data.clone()

    with refuses(TrialError, field=("parameter", "parameter servers"), remedy="model.to()"):
        trained(work)
