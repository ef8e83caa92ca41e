"""A server's link that carries one transfer after another: by hand, as a property, and in both kinds of training."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from tests.support.refusals import mentions
from tests.support.server_workers import Trained, Training, over_sockets
from trainers.errors import TrialError
from trainers.parameter_server.server.line import Line
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation.workers import JITTER, STEP_SECONDS, simulate

BUFFERS = 8 * sum(-(-elements // 8) * 8 for elements in (48, 8, 48, 6))
"""Bytes of the test network's parameters, as they are sent."""


def account(results: list[Trained]) -> dict[str, Any]:
    found: dict[str, Any] = results[0].details["parameter_server"]
    return found


def test_by_hand() -> None:
    line = Line(100.0)
    # Alone: 0.5 s. While that is under way, two more: they wait for 0.4 and 1.3 s. Later, the line is free again.
    assert line.carry(50, 1.0) == pytest.approx(1.5)
    assert line.carry(100, 1.1) == pytest.approx(2.5)
    assert line.carry(10, 1.2) == pytest.approx(2.6)
    assert line.carry(0, 1.3) == 1.3
    assert line.carry(100, 4.0) == pytest.approx(5.0)
    assert line.seconds == pytest.approx(0.5 + 1.4 + 1.4 + 1.0)
    line.clear()
    assert line.carry(100, 0.0) == pytest.approx(1.0)


def test_without_a_limit_nothing_takes_time() -> None:
    line = Line(None)
    assert [line.carry(10**12, now) for now in (0.0, 3.0)] == [0.0, 3.0]
    assert line.seconds == 0


@given(
    st.floats(1.0, 1e9),
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 10**9)), min_size=1, max_size=30),
)
def test_it_is_never_idle_while_something_waits_and_carries_no_more_than_it_can(
    rate: float, coming: list[tuple[float, int]]
) -> None:
    """Arrivals rise, each takes its own bytes' time at least, and the last one is the end of a busy time."""
    line, now, before, work = Line(rate), 0.0, 0.0, 0.0
    for gap, size in coming:
        now += gap
        arrived = line.carry(size, now)
        work = max(0.0, work - gap) + size / rate  # What the line still has to do, as seen from outside.
        assert arrived >= before
        assert arrived >= now + size / rate * (1 - 1e-9)
        assert arrived == pytest.approx(now + work, rel=1e-9, abs=1e-6)
        before = arrived


def test_four_workers_share_a_simulated_link() -> None:
    """A push takes a second and a step a thousandth: the link is what they wait for, one after another."""
    given = {"mode": "async", "link_bytes_per_second": float(BUFFERS)}
    found = account(simulate(Training(passes=1), Settings.of(given, 4), seed=0))
    pushes, step = 4 * 5, STEP_SECONDS * JITTER
    assert found["pushes"] == pushes
    # The first four pushes arrive after 1, 2, 3 and 4 s. From then on a push comes when the link up has two others to
    # carry first, 3 s with its own; answers find the link down free, 1 s each.
    up = 1 + 2 + 3 + 4 + (pushes - 4) * 3
    assert found["link_seconds"] == pytest.approx(up + pushes * 1, abs=2 * pushes * (STEP_SECONDS + step))
    mentions(found["link"], "simulated", str(BUFFERS))
    # Late in seconds; in updates they are as late as without it, since each of the others makes one in the same time.
    free = account(simulate(Training(passes=1), Settings.of({"mode": "async"}, 4), seed=0))
    assert mean(found["staleness"]) == pytest.approx(mean(free["staleness"]), abs=0.3)
    assert "link" not in free
    assert "link_seconds" not in free


def mean(staleness: dict[str, int]) -> float:
    return sum(int(old) * pushes for old, pushes in staleness.items()) / sum(staleness.values())


def test_pushes_arrive_in_the_order_in_which_the_link_takes_them_on() -> None:
    """Of two workers, one is delayed by an hour: all that the other sends arrives before."""
    hour = 3_600_000
    given = {"mode": "async", "delay_ms": [0, hour], "link_bytes_per_second": BUFFERS}
    found = account(simulate(Training(passes=1), Settings.of(given, 2), seed=0))
    assert found["staleness"] == {"0": 9, "5": 1}


def test_real_workers_wait_for_it_as_simulated_ones_do() -> None:
    """Synchronous workers give the same bytes with it, and the server's clock is what takes longer."""
    rate = BUFFERS / 0.01
    training = Training(passes=1)
    settings = Settings.of({"mode": "sync", "link_bytes_per_second": rate}, 2)
    real = over_sockets(training, settings)
    simulated = simulate(training, settings, seed=0)
    assert torch.equal(real[0].weights, simulated[0].weights)
    # Of the ten pushes, and the ten answers, none takes less than its own 10 ms.
    assert account(real)["link_seconds"] >= 20 * 0.01
    assert account(real)["waiting_seconds"] >= 20 * 0.01
    # By hand: at first both push at once, 10 + 20 ms; then answers, 10 + 20 ms each time, have set them apart.
    assert account(simulated)["link_seconds"] == pytest.approx(0.26, abs=0.01)


def test_several_real_servers_have_a_link_each() -> None:
    settings = Settings.of({"mode": "sync", "num_servers": 2, "link_bytes_per_second": BUFFERS / 0.01}, 2)
    real = over_sockets(Training(passes=1), settings)
    assert torch.equal(real[0].weights, real[1].weights)
    assert account(real)["link_seconds"] >= 20 * 0.01 * (1 - 1e-6)


def test_a_link_that_carries_nothing_in_time_is_named() -> None:
    settings = Settings.of({"mode": "async", "link_bytes_per_second": 1.0}, 2)
    for error in over_sockets(Training(passes=1), settings, patience=5.0):
        assert isinstance(error, TrialError)
        mentions(str(error), "link_bytes_per_second", "1", "5 s")
