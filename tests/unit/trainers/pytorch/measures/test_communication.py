"""Communication of steps: bytes and seconds by worker, whatever the distribution."""

from __future__ import annotations

import pytest
import torch

from tests.support.allreduce import program
from tests.support.networks import assignment, servers, train_exactly
from tests.support.process_gang import serve_alone
from trainers.gangs.messages import merged
from trainers.pytorch.gradients import Alone
from trainers.pytorch.measures import Communication, HostClock

CPU = torch.device("cpu")


class Hand:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Two:
    """Two workers, the other of which has the same figures."""

    rank, world_size = 1, 2

    def sum(self, values):
        return values + values.flip(0)


class Late:
    """A GPU's clock: its moments come when they are waited for."""

    def __init__(self) -> None:
        self.now, self.read = 0.0, 0

    def mark(self) -> float:
        return self.now

    def seconds(self, start: float, end: float) -> float:
        self.read += 1
        return end - start


def test_a_step_lasts_from_the_end_of_the_one_before_it():
    hand = Hand()
    communication = Communication(HostClock(hand))
    for _ in range(2):  # Passes, between which an evaluation takes long.
        for _ in range(3):
            hand.now += 2.0  # Loading and forward pass, which the first step of a pass lacks.
            communication.begin(CPU)
            hand.now += 1.0
            with communication.waiting:
                hand.now += 0.5
            communication.bytes += 100
            communication.end()
        communication.pause()
        hand.now += 1000.0
    assert communication.seconds == (2 * (1.5 + 3.5 + 3.5), 6 * 0.5)
    [(name, details)] = communication.details(Two()).items()
    assert name == "communication"
    assert details["steps"] == {"0": 6, "1": 6}
    assert details["bytes"] == {"0": 600, "1": 600}
    assert details["step_seconds"]["0"] == details["step_seconds"]["1"] == 17.0
    assert merged({name: details}, {name: details})[name]["waiting_seconds"] == {"0": 6.0, "1": 6.0}


def test_accumulation_steps_are_one_step():
    hand = Hand()
    communication = Communication(HostClock(hand))
    for _ in range(4):
        communication.begin(CPU)
        hand.now += 1.0
    communication.end()
    assert (communication.steps, communication.seconds) == (1, (4.0, 0.0))


def test_what_is_called_after_a_step_is_no_step_s_time():
    hand = Hand()
    communication = Communication(HostClock(hand))

    def look() -> None:
        hand.now += 100.0

    communication.on_step = look
    communication.begin(CPU)
    hand.now += 1.0
    communication.end()
    hand.now += 1.0
    communication.begin(CPU)
    communication.end()
    assert communication.seconds == (2.0, 0.0)


def test_a_gpu_s_moments_are_read_late_and_all():
    clock = Late()
    communication = Communication(clock)
    communication.begin(CPU)
    for step in range(100):
        clock.now += 1.0
        with communication.waiting:
            clock.now += 0.25
        communication.end()
        assert clock.read <= 2 * max(0, step - 30)
    assert communication.seconds == (125.0, 25.0)
    assert clock.read == 200


def test_one_worker_communicates_nothing_and_no_steps_are_no_details():
    assert Communication().details(Alone()) == {}
    assert Communication().details(Two()) == {}


def test_one_worker_has_no_details(tmp_path):
    [segment] = serve_alone(program(train_exactly)(), assignment(tmp_path, per_worker_batch_size=8))
    assert segment.details == {}


def test_simulated_servers_tell_the_same_on_their_clock(tmp_path):
    def once(folder):
        [segment] = servers(train_exactly, assignment(folder, num_workers=2, per_worker_batch_size=8, delay_ms=[0, 5]))
        return segment.details

    details = once(tmp_path / "a")
    assert details == once(tmp_path / "b")
    said, account = details["communication"], details["parameter_server"]
    assert sum(said["waiting_seconds"].values()) == pytest.approx(account["waiting_seconds"])
    assert said["waiting_seconds"]["0"] > 10 * said["waiting_seconds"]["1"]
    assert sum(said["bytes"].values()) <= account["bytes_pushed"] + account["bytes_pulled"]
    assert said["steps"] == {"0": 12, "1": 12}
