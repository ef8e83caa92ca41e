"""The live view: what it shows, that it stays within the terminal, and what drawing it costs."""

from __future__ import annotations

import time

import pytest

from hpo.observers.live_view import LiveProgress
from hpo.strategies.hyperband import Plan, lay_out
from tests.support.hpo.observers.live_view import Drawn, watch
from tests.support.simulated import PLAN, simulate


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 24), (40, 10), (200, 60), (80, 5), (20, 3)])
@pytest.mark.parametrize("plan", [PLAN, lay_out(150, 1, 243)], ids=["30 trials", "150 trials"])
def test_it_stays_within_the_terminal(plan: Plan, width: int, height: int) -> None:
    record = watch(Drawn(plan, width, height))
    for frame in record.frames:
        assert len(frame.splitlines()) < height
        assert max(len(line) for line in frame.splitlines()) < max(width, 21)


def test_drawing_does_not_look_at_all_trials() -> None:
    """Processor seconds of a frame, of 30 trials and of 3,000 with as many lines: no more than a few times as much."""

    def cost(trials: int) -> float:
        record = Drawn(lay_out(trials, 1, 30), height=12)
        watcher = record.watcher
        record.progress = lambda state: None  # type: ignore[method-assign]
        controller, _, _ = simulate(record=record, plan=watcher.goal.plan)
        assert isinstance(watcher, LiveProgress)
        times = []
        for _ in range(5):
            started = time.process_time()
            for _ in range(10):
                watcher.view(controller.state)
            times.append(time.process_time() - started)
        return min(times)

    assert cost(3000) < 5 * cost(30)
