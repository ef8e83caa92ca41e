"""Servers and workers over sockets: who may come in, and what the others hear when one is gone."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.refusals import mentions, refuses
from tests.support.server_workers import Training, over_sockets, served, wrapped
from tests.support.trainers.parameter_server.wire import (
    BATCH,
    linked,
    over,
    stack,  # noqa: F401  # Fixtures.
    step,
)
from trainers.errors import DivergedError, GangError, TrialError
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.wire import Address
from trainers.pytorch.distribution import Distribution, Peers


def test_without_the_token_nobody_comes_in_and_nothing_of_theirs_is_read(stack: ExitStack) -> None:
    [listener] = served(1, stack)
    address = listener.address
    wrong = Address(name=address.name, host=address.host, port=address.port, token=bytes(32))
    with refuses(GangError, field="parameter server 0", value=f"127.0.0.1:{address.port}"):
        step(over(linked(stack, wrong)))
    with socket.create_connection((address.host, address.port)) as caller:
        caller.sendall(pickle.dumps({"anything": "else"}) * 10)
        caller.settimeout(30)
        with suppress(ConnectionResetError):
            assert caller.recv(1) == b""
    assert address.token.hex() not in repr(address)
    assert str(address.token) not in repr(address)
    step(over(linked(stack, address)))


def test_a_server_serves_one_training_after_another_over_the_same_connection(stack: ExitStack) -> None:
    [listener] = served(1, stack)
    links = linked(stack, listener.address)
    first = over(links)
    step(first)
    assert first.close()["parameter_server"]["updates"] == 1
    second = over(links)
    for number in range(3):
        step(second) if not number else second.step()
    assert second.close()["parameter_server"]["updates"] == 3
    assert [thread.name for thread in threading.enumerate()].count("parameter server 0 serves") == 1


def test_an_answer_to_something_broken_off_is_not_taken_for_anothers(stack: ExitStack) -> None:
    """As when Ctrl-C comes while a worker waits, and another trial follows."""
    [listener] = served(1, stack)
    links = linked(stack, listener.address)
    first = over(links)
    step(first)
    links[0].push(1, None)  # Nobody hears the answer.
    second = over(links)
    step(second)
    assert second.close()["parameter_server"]["updates"] == 1


class Leaves(BaseException):
    """A worker's process ends."""


@pytest.mark.parametrize("mode", ["sync", "bounded", "async"])
def test_a_worker_that_is_gone_is_named_at_once_by_those_who_wait(mode: str) -> None:
    """Its connections end without a goodbye, as a dead process's do."""

    def each(peers: Peers, optimizer: Any) -> None:
        if peers.rank == 2:
            raise Leaves

    settings = Settings.of({"mode": mode, "num_servers": 2, "staleness_bound": 1}, 3)
    began = time.monotonic()
    results = over_sockets(Training(each=each), settings, patience=60)
    assert time.monotonic() - began < 50
    assert isinstance(results[2], Leaves)
    for error in results[:2]:
        assert isinstance(error, GangError)
        mentions(str(error), "rank 2", "parameter server")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_whose_training_fails_ends_the_others(mode: str) -> None:
    training = Training(each=lambda peers, optimizer: 1 / (peers.rank - 1))

    def work(peers: Peers, distribution: Distribution) -> Any:
        try:
            return training(peers, distribution)
        finally:
            distribution.close()

    results = over_sockets(work, Settings.of({"mode": mode}, 3), patience=60)
    assert isinstance(results[1], ZeroDivisionError)
    for error in (results[0], results[2]):
        assert type(error) is TrialError
        mentions(str(error), "rank 1", "ZeroDivisionError", "division by zero")


@pytest.mark.parametrize(
    ("mode", "what"),
    [("sync", "step"), ("async", "pass")],
)
def test_a_worker_that_does_not_come_is_named_after_the_deadline(mode: str, what: str) -> None:
    others_gave_up = threading.Semaphore(0)
    waited: list[int] = []

    def each(peers: Peers, optimizer: Any) -> None:
        if peers.rank == 1 and not waited:
            waited.append(peers.rank)
            for _ in range(2):
                assert others_gave_up.acquire(timeout=30)

    training = Training(passes=1, batch=120, each=each)

    def work(peers: Peers, distribution: Distribution) -> Any:
        try:
            return training(peers, distribution)
        finally:
            others_gave_up.release()

    results = over_sockets(work, Settings.of({"mode": mode}, 3), patience=0.3)
    for error in (results[0], results[2]):
        assert type(error) is TrialError
        mentions(str(error), "0.3 s", "parameter server 0", what, "[1]")


class Stuck(torch.optim.SGD):
    """An optimizer that cannot be unpickled in another process."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Stuck._refuse, ()

    @staticmethod
    def _refuse() -> Any:
        raise ValueError("not in this process")


def test_every_worker_hears_that_the_training_could_not_begin() -> None:
    training = Training(lambda model: Stuck(model.parameters(), lr=0.1))
    for error in over_sockets(training, Settings.of({"mode": "sync"}, 2)):
        assert type(error) is TrialError
        assert "not in this process" in str(error)


class Locked(torch.optim.SGD):
    """An optimizer whose state cannot be pickled."""

    def step(self, closure: Any = None) -> None:
        self.state[self.param_groups[0]["params"][0]]["lock"] = threading.Lock()


def test_every_worker_hears_that_the_state_cannot_be_sent_back() -> None:
    training = Training(lambda model: Locked(model.parameters(), lr=0.1))
    for error in over_sockets(training, Settings.of({"mode": "sync"}, 2)):
        assert type(error) is TrialError
        mentions(str(error), "parameter server", "state", "Locked")


def test_who_goes_on_after_an_error_has_it_again() -> None:
    def work(peers: Peers, distribution: Distribution) -> Any:
        model = wrapped(distribution, nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=float("inf"))
        said = []
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
            with pytest.raises(DivergedError) as caught:
                distribution.update(optimizer, BATCH)
            said.append(str(caught.value))
        return said, distribution.close()

    [(said, details)] = over_sockets(work, Settings.of({"mode": "async"}, 1))
    assert said[0] == said[1]
    assert details["parameter_server"]["pushes"] == 1
