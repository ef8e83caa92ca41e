"""The busy machine's works in their three ways, with a few rounds each, and what is made of their times."""

import pytest

from experiments import busy_machine
from experiments.busy_machine import ARMS, UNITS, compare


def test_every_work_and_every_way_is_done(monkeypatch: pytest.MonkeyPatch):
    """Each work once, and each way once, since neither knows of the other; that all are asked for in all ways.

    On the machine as it is; on a busy one a work is the same process: what is beside it, the test above shows.
    """
    asked, once = [], busy_machine.once
    chosen = dict(zip(list(UNITS)[:3], ARMS, strict=True))

    @busy_machine.contextmanager
    def noted(count: int):
        asked.append(count > 0)
        yield

    def chosen_once(work: str, arm: str, units: int, threads: int) -> float:
        return 1.0 if asked[-1] or chosen[work] != arm else once(work, arm, units, threads)

    monkeypatch.setattr(busy_machine, "busy_processes", noted)
    monkeypatch.setattr(busy_machine, "once", chosen_once)
    found = compare(dict.fromkeys(["XGBoost", "job in hand", "small network"], 2), repeats=1, threads=2)
    assert asked == [False, True]
    assert {(each.work, each.arm, each.busy) for each in found} == {
        (work, arm, busy) for work in list(UNITS)[:3] for arm in ARMS for busy in asked
    }
    assert all(each.median > 0 for each in found)
    assert all(each.median != 1 for each in found if not each.busy and chosen[each.work] == each.arm)
