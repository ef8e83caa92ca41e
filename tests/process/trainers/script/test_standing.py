"""Programs whose trials go on from a rung at once: they stand there meanwhile, and are started once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.refusals import mentions, refuses
from tests.support.rows import until
from tests.support.script_programs import assignment, values
from trainers import ScriptTrainer, TrialError
from trainers.errors import DivergedError
from trainers.gangs import Assignment, Segment
from trainers.gangs.in_process import alone
from trainers.script import standing
from trainers.script.program import ScriptProgram

PROGRAM = """
import argparse, json, os, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--seconds", type=float, default=0.2)
parser.add_argument("--fail_at", type=int, default=0)
parser.add_argument("--waits_for", default=".")
args = parser.parse_args()
with open(os.environ["STARTS"], "a") as file:
    file.write(f"{os.getpid()}\\n")
for epoch in range(1, args.epochs + 1):
    time.sleep(args.seconds)
    if epoch == args.fail_at:
        raise ValueError("no such epoch")
    print(f"acc={epoch / 10}", flush=True)
while not os.path.exists(args.waits_for):
    time.sleep(0.01)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w") as file:
    json.dump(args.epochs, file)
"""


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[], list[int]]:
    """Process ids of all starts of the program so far."""
    return lambda: [int(line) for line in (tmp_path / "starts").read_text().split()]


@pytest.fixture
def program(opened: Callable[..., ScriptProgram], tmp_path: Path) -> Callable[..., ScriptProgram]:
    """Opens a program without checkpoints."""
    return lambda **options: opened(PROGRAM, environment={"STARTS": str(tmp_path / "starts")}, **options)


def rung(folder: Path, stop: int, before: Segment | None = None, **hyperparameters: Any) -> Assignment:
    """An assignment whose trial may go on at once."""
    return replace(assignment(folder, stop, before, **hyperparameters), goes_on=True)


def test_a_program_without_checkpoints_is_started_once_and_stands_at_its_rungs(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    made = program()
    first = made.train(rung(tmp_path, 1, epochs=7), print)
    (pid,) = starts()
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    second = made.train(rung(tmp_path, 3, first, epochs=7), print)
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    third = made.train(assignment(tmp_path, 7, second, epochs=7), print)
    assert values(first, second, third) == [(step, step / 10) for step in range(1, 8)]
    assert [each.reached for each in (first, second, third)] == [1, 3, 7]
    assert starts() == [pid]
    assert not psutil.pid_exists(pid)
    assert not any(value for each in (first, second, third) for value in each.details.values())
    model = ScriptTrainer("train.py", source_dir=tmp_path / "source").load_model(third.checkpoint)
    assert json.loads((model / "model.json").read_text()) == 7
    assert list(Path(made._opened().root).glob("trial-*")) == []


def test_a_program_that_is_ahead_of_all_its_rungs_is_not_lost(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    """It has reported many units, and perhaps ended, before it is seen that it came to its first rung."""
    made = program()
    segments: list[Segment] = []
    for stop in (1, 2, 4, 900):
        segments.append(
            made.train(rung(tmp_path, stop, segments[-1] if segments else None, epochs=1000, seconds=0.001), print)
        )
    last = assignment(tmp_path, 1000, segments[-1], epochs=1000, seconds=0.001)
    assert values(*segments, made.train(last, print)) == [(step, step / 10) for step in range(1, 1001)]
    assert len(starts()) == 1


def test_one_that_stands_ahead_of_its_last_rung_still_saves_its_model(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    made, ready = program(), tmp_path / "ready"
    first = made.train(rung(tmp_path, 1, epochs=2, waits_for=str(ready)), print)
    held = made._opened().standing
    assert held is not None
    assert [report.step for report in held.noted.ahead] == [2]
    ready.touch()
    second = made.train(assignment(tmp_path, 2, first, epochs=2, waits_for=str(ready)), print)
    assert values(first, second) == [(1, 0.1), (2, 0.2)]
    model = ScriptTrainer("train.py", source_dir=tmp_path / "source").load_model(second.checkpoint)
    assert json.loads((model / "model.json").read_text()) == 2
    assert len(starts()) == 1


@pytest.mark.parametrize("difference", ["trial", "hyperparameters", "units", "checkpoint"])
def test_another_assignment_ends_it_and_its_own_trial_then_begins_again(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path, difference: str
) -> None:
    made = program()
    first = made.train(rung(tmp_path, 2, epochs=4), print)
    (pid,) = starts()
    own = assignment(tmp_path, 4, first, epochs=4)
    other = {
        "trial": replace(own, trial_id="other", start=0, checkpoint=None, save_to=str(tmp_path / "job" / "other")),
        "hyperparameters": replace(own, hyperparameters={**own.hyperparameters, "seconds": 0.1}),
        "units": replace(own, start=0, checkpoint=None),
        "checkpoint": replace(own, checkpoint=None, start=2),
    }[difference]
    assert made.train(other, print).reached == 4
    assert not psutil.pid_exists(pid)
    assert len(starts()) == 2
    if difference == "trial":
        second = made.train(own, print)
        assert values(first, second) == [(step, step / 10) for step in range(1, 5)]
        assert second.details["units_trained_again"] >= 2
        assert len(starts()) == 3


def test_a_gang_that_is_let_go_ends_it(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    made = program()
    made.train(rung(tmp_path, 1), print)
    (pid,) = starts()
    root = made._opened().root
    made.close()
    assert not psutil.pid_exists(pid)
    assert not root.exists()
    made.open(alone(2))


def test_one_that_nobody_asks_for_is_ended_and_started_again_where_somebody_does(
    program: Callable[..., ScriptProgram],
    starts: Callable[[], list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standing, "STAND_SECONDS", 0.1)
    made = program()
    first = made.train(rung(tmp_path, 2, epochs=4), print)
    (pid,) = starts()
    until(lambda: not psutil.pid_exists(pid))
    second = made.train(assignment(tmp_path, 4, first, epochs=4), print)
    assert values(first, second) == [(step, step / 10) for step in range(1, 5)]
    assert second.details["units_trained_again"] >= 2


def test_a_stop_ends_it_at_its_rung(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    program().train(rung(tmp_path, 1), print, lambda: True)
    (pid,) = starts()
    assert not psutil.pid_exists(pid)


def test_ctrl_c_ends_it(program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path) -> None:
    made = program()
    first = made.train(rung(tmp_path, 1), print)

    def interrupted(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.train(rung(tmp_path, 3, first), interrupted)
    (pid,) = starts()
    assert not psutil.pid_exists(pid)


def test_one_that_is_killed_where_it_stands_or_fails_behind_it_fails_its_trial(
    program: Callable[..., ScriptProgram], starts: Callable[[], list[int]], tmp_path: Path
) -> None:
    made = program()
    first = made.train(rung(tmp_path, 1, fail_at=3), print)
    second = made.train(rung(tmp_path, 2, first, fail_at=3), print)
    with pytest.raises(TrialError) as failed:
        made.train(rung(tmp_path, 4, second, fail_at=3), print)
    mentions(str(failed.value).partition("\n")[0], "train.py", 1, "ValueError: no such epoch")
    first = made.train(rung(tmp_path, 1), print)
    psutil.Process(starts()[-1]).kill()
    with refuses(TrialError, field="train.py", value="SIGKILL"):
        made.train(rung(tmp_path, 3, first), print)
    assert len(starts()) == 2


def test_a_number_that_is_not_finite_ends_one_that_stands_ahead_of_it(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    source = """
import os, time
open(os.environ["STARTS"], "a").write(str(os.getpid()))
for value in ("0.1", "nan", "0.3"):
    time.sleep(0.1)
    print(f"acc={value}", flush=True)
time.sleep(60)
"""
    made = opened(source, environment={"STARTS": str(tmp_path / "starts")})
    first = made.train(rung(tmp_path, 1), print)
    with refuses(DivergedError, field=("validation:accuracy", "2"), value="nan"):
        made.train(rung(tmp_path, 3, first), print)
    assert not psutil.pid_exists(int((tmp_path / "starts").read_text()))
    assert made._opened().standing is None
    assert made.train(replace(assignment(tmp_path, 1), trial_id="other"), print).reached == 1


def test_one_with_checkpoints_has_one_of_each_rung_from_which_it_goes_on_elsewhere(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    made = opened()  # programs/train.py
    given = {"eta": 0.5, "seconds": 1.2, "epochs": 8}  # Five epochs are left, on a busy machine too.
    first = made.train(rung(tmp_path, 1, **given), print)
    second = made.train(rung(tmp_path, 3, first, **given), print)
    assert made._opened().standing is not None
    made.close()
    made.open(alone(2))
    third = made.train(assignment(tmp_path, 8, second, **given), print)
    assert values(first, second, third) == [(step, pytest.approx(1 - 0.5**step, abs=1e-6)) for step in range(1, 9)]
    assert not any(value for each in (first, second, third) for value in each.details.values())


def test_it_is_asked_to_end_where_it_stands(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    source = """
import os, signal, sys, time
def end(number, frame):
    open(os.environ["ENDED"], "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, end)
for epoch in range(1, 10):
    time.sleep(0.05)
    print(f"acc={epoch / 10}", flush=True)
time.sleep(60)
"""
    made = opened(source, environment={"ENDED": str(tmp_path / "ended")}, grace_period_s=20)
    made.train(rung(tmp_path, 2), print)
    began = time.monotonic()
    made.train(replace(assignment(tmp_path, 1), trial_id="other"), print)
    assert (tmp_path / "ended").exists()
    assert time.monotonic() - began < 15
