"""The busy machine's works in their three ways, with a few rounds each, and what is made of their times."""

import json
import subprocess
from dataclasses import asdict

import pytest

from experiments import busy_machine
from experiments.busy_machine import ARMS, UNITS, Measured, busy_processes, compare, page_tables, ratio, rows, targets
from experiments.shared.benchmark import targets_to_json


def measured(work: str, *, busy: bool, **milliseconds: list[float]) -> list[Measured]:
    return [Measured(work=work, arm=arm, busy=busy, milliseconds=taken) for arm, taken in milliseconds.items()]


def test_ratios_are_of_medians_within_one_state():
    found = [
        *measured("XGBoost", busy=False, spinning=[8.0], here=[8.5], calmed=[8.0]),
        *measured("XGBoost", busy=True, spinning=[300, 90, 400], here=[20, 30, 500], calmed=[75, 60, 90]),
        *measured("job in hand", busy=True, spinning=[20], here=[20], calmed=[5]),
        *measured("job in hand", busy=False, spinning=[20], here=[20], calmed=[5]),
    ]
    assert ratio(found, "XGBoost", "here", busy=True) == 10
    assert [(target.note, target.measured, target.kept) for target in targets(found)] == [
        ("here", 10, True),
        ("calmed", 4, True),
        ("here", 1, False),
        ("calmed", 4, True),
    ]
    assert rows(found)[0] == ("XGBoost", "as it is", "8.00", "8.50", "8.00", "0.94")
    assert [line[:2] for line in rows(found)[2:]] == [("XGBoost", "busy"), ("job in hand", "busy")]
    kept = [{**asdict(each), "median": each.median} for each in found]
    tables = page_tables(json.loads(json.dumps({"measured": kept, "targets": targets_to_json(targets(found))})))
    assert "| XGBoost | busy | 300.00 | 30.00 | 75.00 | 10.00 |" in tables["works"]
    assert tables["promises"].count("missed") == 1


@pytest.mark.process
def test_busy_processes_end_with_the_block(monkeypatch: pytest.MonkeyPatch):
    started, start = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *given: started.append(start(*given)) or started[-1])
    with busy_processes(2):
        assert [process.poll() for process in started] == [None, None]
    assert all(process.returncode for process in started)


@pytest.mark.long
@pytest.mark.process
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
