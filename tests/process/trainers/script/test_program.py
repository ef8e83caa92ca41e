"""Programs as trials, in this process: what they report, how they are paused and go on, and how they fail."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.refusals import mentions, refuses
from tests.support.rows import until
from tests.support.script_programs import PROGRAMS, assignment, values
from trainers import ScriptTrainer, TrialError
from trainers.errors import CheckpointError, DivergedError, StorageError
from trainers.gangs import Report
from trainers.script.program import ScriptProgram

DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
path = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "step")
first = int(open(path).read()) if os.path.exists(path) else 0
for step in range(first + 1, 10):
    time.sleep(0.5)
    print(f"acc={step / 10}")
    with open(path + ".new", "w") as file:
        file.write(str(step))
    os.replace(path + ".new", path)
"""


def expected(eta: float, units: int) -> list[tuple[int, float]]:
    """Those of programs/train.py."""
    weights, weight = [], 0.0
    for step in range(1, units + 1):
        weight += eta * (1 - weight)
        weights.append((step, pytest.approx(weight, abs=1e-6)))
    return weights


@pytest.mark.parametrize("seconds", [0.0, 0.4])
@pytest.mark.parametrize("checkpoints", ["True", "False"])
def test_a_paused_program_goes_on_with_the_values_of_one_that_was_not(
    opened: Callable[..., ScriptProgram], tmp_path: Path, seconds: float, checkpoints: str
) -> None:
    program = opened()
    given = {"eta": 0.3, "seconds": seconds, "checkpoints": checkpoints, "epochs": 5}
    first = program.train(assignment(tmp_path, 2, **given), print)
    second = program.train(assignment(tmp_path, 3, first, **given), print)
    third = program.train(assignment(tmp_path, 5, second, **given), print)
    assert values(first, second, third) == expected(0.3, 5)
    assert [each.reached for each in (first, second, third)] == [2, 3, 5]
    model = ScriptTrainer("train.py", source_dir=PROGRAMS).load_model(third.checkpoint)
    assert json.loads((model / "model.json").read_text()) == pytest.approx(expected(0.3, 5)[-1][1])


def test_a_program_that_goes_on_for_its_grace_period_keeps_the_values_of_its_units(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    """TensorFlow's workers ignore SIGTERM, say."""
    program = opened(DEAF, grace_period_s=2)
    first = program.train(assignment(tmp_path, 2), print)
    second = program.train(assignment(tmp_path, 9, first), print)
    assert values(first, second) == [(step, step / 10) for step in range(1, 10)]


def test_a_program_without_checkpoints_trains_again_and_says_so(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened()
    given = {"eta": 0.3, "seconds": 0.3, "checkpoints": "False", "epochs": 4}
    first = program.train(assignment(tmp_path, 2, **given), print)
    second = program.train(assignment(tmp_path, 4, first, **given), print)
    assert values(first, second) == expected(0.3, 4)
    assert second.details["units_trained_again"] >= 2


def test_a_program_that_ends_early_keeps_its_last_value(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened()
    first = program.train(assignment(tmp_path, 3, epochs=2, eta=0.5), print)
    second = program.train(assignment(tmp_path, 6, first, epochs=2, eta=0.5), print)
    assert values(first, second) == [(1, 0.5), (2, 0.75), (3, 0.75), (4, 0.75), (5, 0.75), (6, 0.75)]


def test_a_fork_with_other_hyperparameters_takes_no_value_that_its_parent_was_ahead(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened()
    parent = program.train(assignment(tmp_path, 2, eta=0.5, epochs=4), print)
    fork = program.train(assignment(tmp_path, 4, parent, eta=0.1, epochs=8), print)
    assert [step for step, _ in values(fork)] == [3, 4]
    assert values(fork)[0][1] > 0.75  # From the parent's weights on.


def test_a_fork_that_has_nothing_left_to_train_has_the_values_of_its_parent_s_checkpoint(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened()
    parent = program.train(assignment(tmp_path, 2, eta=0.5, epochs=4), print)  # It comes to its end meanwhile.
    fork = program.train(assignment(tmp_path, 3, parent, eta=0.1, epochs=4), print)
    again = program.train(assignment(tmp_path, 4, fork, eta=0.1, epochs=4), print)
    assert values(parent, fork, again) == [(1, 0.5), (2, 0.75), (3, 0.9375), (4, 0.9375)]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("raise ValueError('no such layer')", ("train.py", 1, "ValueError: no such layer")),
        ("import sys; print('bye'); sys.exit(3)", ("train.py", 3, "bye")),
        ("print('hello')", ("train.py", 0, "validation:accuracy", "metric_definitions", "warmband.report")),
        ("print('acc=n.a')", ("train.py", "validation:accuracy", "'n.a'")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ("train.py", "SIGKILL", "memory")),
        ("import time; time.sleep(60)", ("train.py", "1 s", "report_timeout_s")),
        (
            "import os\nopen(os.environ['WARMBAND_REPORTS'], 'w').write('acc\\n')",
            (1, "reports.jsonl", "'acc'", "JSON"),
        ),
    ],
)
def test_a_failure_says_why_with_the_last_lines(
    opened: Callable[..., ScriptProgram], tmp_path: Path, source: str, names: tuple[object, ...]
) -> None:
    program = opened(source, report_timeout_s=1)
    with pytest.raises(TrialError) as raised:
        program.train(assignment(tmp_path, 2), print)
    mentions(str(raised.value).partition("\n")[0], *names)


def test_a_value_that_is_not_finite_is_a_divergence(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened("print('acc=nan')")
    with refuses(DivergedError, field=("validation:accuracy", "1"), value="nan"):
        program.train(assignment(tmp_path, 2), print)


def test_reports_by_the_module(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(
        "import warmband, numpy\n"
        "eta = warmband.hyperparameters()['eta']\n"
        "for step in (1, 2, 3):\n"
        "    warmband.report({'validation:accuracy': numpy.float32(eta * step)}, step=step, loss=1)\n",
        metric_definitions=None,
    )
    made = program.train(assignment(tmp_path, 3, eta=0.25), print)
    assert values(made) == [(1, 0.25), (2, 0.5), (3, 0.75)]
    assert made.reports[0].metrics["loss"] == 1


def test_a_halted_program_ends_with_a_report(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened()
    reports: list[Report] = []
    made = program.train(assignment(tmp_path, 9, seconds=0.2, eta=0.5), reports.append, lambda: len(reports) == 2)
    assert made.reached == 2
    assert made.checkpoint.endswith("000002")


def test_commands_beside_python_are_found_without_an_activated_environment(
    opened: Callable[..., ScriptProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    program = opened(
        "import os, sys\n"
        "there = os.environ['PATH'].split(os.pathsep)\n"
        "print(f'acc={1 + there.index(os.path.dirname(sys.executable)) / len(there)}')\n"
    )
    assert values(program.train(assignment(tmp_path, 1), print)) == [(1, 1.0)]


OUTLIVES = """
import os, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", "import time, signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)"],
    start_new_session=True,
)
open({pid!r}, "w").write(str(child.pid))
print("acc=0.5")
print("acc=0.75")
"""


@pytest.mark.parametrize("after", ["", "time.sleep(600)", "raise ValueError"])
def test_nothing_of_a_program_outlives_it(opened: Callable[..., ScriptProgram], tmp_path: Path, after: str) -> None:
    pid = tmp_path / "pid"
    program = opened(OUTLIVES.format(pid=str(pid)) + after, grace_period_s=1)
    try:
        program.train(assignment(tmp_path, 2), print)
    except TrialError:
        assert "raise" in after
    child = int(pid.read_text())

    def gone() -> bool:
        try:
            return bool(psutil.Process(child).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    until(gone)  # It was killed, which takes a busy machine a moment.


def test_output_without_end_is_read_and_not_kept(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(
        "import sys\nline = 'x' * 1023 + '\\n'\n"
        "for epoch in range(2):\n    for _ in range(50_000): sys.stdout.write(line)\n    print(f'acc=0.{epoch}')\n",
        report_timeout_s=60,
    )
    before = psutil.Process().memory_info().rss
    made = program.train(assignment(tmp_path, 2, epochs=2), lambda report: None)
    assert values(made) == [(1, 0.0), (2, 0.1)]
    assert psutil.Process().memory_info().rss - before < 100 << 20


def test_channels_are_folders_and_each_run_has_a_fresh_copy_of_the_code(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(
        "import os, json, pathlib\n"
        "folder = pathlib.Path(os.environ['SM_CHANNEL_TRAIN'])\n"
        "rows = (folder / 'train.csv').read_text().splitlines()\n"
        "assert json.loads(os.environ['SM_CHANNELS']) == ['train']\n"
        "assert not pathlib.Path('left').exists()\n"
        "pathlib.Path('left').write_text('a program that writes into its folder')\n"
        "print(f'acc={len(rows)}')\n"
    )
    for _ in range(2):
        assert values(program.train(assignment(tmp_path, 1, epochs=1), print)) == [(1, 7)]


def test_a_checkpoint_that_is_cut_short_is_said(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened()
    first = program.train(assignment(tmp_path, 2, eta=0.3), print)
    part = Path(first.checkpoint, "worker-0.tar")
    size = len(part.read_bytes())
    part.write_bytes(part.read_bytes()[:-100])
    with refuses(CheckpointError, field=("worker-0.tar", str(size)), value=size - 100):
        program.train(assignment(tmp_path, 4, first, eta=0.3), print)


def test_a_full_disk_of_the_program_s_folders_is_named_with_a_remedy(
    opened: Callable[..., ScriptProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = opened()

    def full(data: bytes, folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("trainers.script.program.unpack", full)
    with refuses(StorageError, field="warmband-program-", value=os.strerror(errno.ENOSPC), remedy="TMPDIR"):
        program.train(assignment(tmp_path, 1), print)
    monkeypatch.undo()
    assert program.train(assignment(tmp_path, 1), print).reached == 1
