"""Programs that treat their folders, processes, steps and links as nobody expects: none hangs, and errors say why."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import python
from tests.support.refusals import mentions, refuses, refuses_each
from tests.support.rows import until
from tests.support.script_gangs import of_two
from tests.support.script_programs import ACCURACY, PROGRAMS, assignment, values
from trainers import ConfigurationError, ScriptTrainer, TrialError
from trainers.gangs import Report, Segment
from trainers.script.launchers import Start
from trainers.script.process import Guard, ProgramProcess
from trainers.script.program import ScriptProgram

STEPPED = {"Name": "validation:accuracy", "Regex": r"step=(?P<step>\S+) acc=(?P<value>\S+)"}
FOLDER = "import os, shutil, time\nck = os.environ['SM_CHECKPOINT_DIR']\nfile = os.environ['WARMBAND_REPORTS']\n"
TWO = "print('acc=0.1', flush=True)\ntime.sleep(0.3)\nprint('acc=0.2', flush=True)\n"
SUBREAPER = 36
"""Of prctl: this process gets orphans, as a container's first one does, and asks for nobody's exit code."""

Opened = Callable[..., ScriptProgram]


@pytest.mark.parametrize("removed", ["ck", "os.environ['SM_MODEL_DIR']", "os.getcwd()", "os.path.dirname(ck)"])
def test_a_program_may_remove_its_folders(opened: Opened, tmp_path: Path, removed: str) -> None:
    program = opened(f"{FOLDER}shutil.rmtree({removed})\n{TWO}")
    assert values(program.train(assignment(tmp_path, 2), print)) == [(1, 0.1), (2, 0.2)]


@pytest.mark.parametrize("made", ["os.mkfifo(file)", "os.mkdir(file)"])
def test_reports_that_are_no_file_are_refused(opened: Opened, tmp_path: Path, made: str) -> None:
    with refuses(TrialError, field="WARMBAND_REPORTS", value="reports.jsonl"):
        opened(f"{FOLDER}{made}\n{TWO}").train(assignment(tmp_path, 2), print)


def test_the_last_report_needs_no_end(opened: Opened, tmp_path: Path) -> None:
    lines = '{"validation:accuracy": 0.1}\\n{"validation:accuracy": 0.2}'
    program = opened(f"{FOLDER}open(file, 'w').write('{lines}')")
    assert values(program.train(assignment(tmp_path, 2), print)) == [(1, 0.1), (2, 0.2)]


def test_an_error_names_what_came_without_the_objective(opened: Opened, tmp_path: Path) -> None:
    program = opened("import warmband\nwarmband.report(val_acc=0.5)")
    with refuses(TrialError, field="validation:accuracy", value="val_acc"):
        program.train(assignment(tmp_path, 2), print)


def test_a_step_far_beyond_the_rung_costs_nothing_and_counts_later(opened: Opened, tmp_path: Path) -> None:
    program = opened(
        "for step, acc in ((1, 0.1), (2, 0.2), (10**15, 0.3)): print(f'step={step} acc={acc}')",
        metric_definitions=[STEPPED],
    )
    first = program.train(assignment(tmp_path, 2), print)
    second = program.train(assignment(tmp_path, 4, first), print)
    assert values(first, second) == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.3)]


SAVES = """
import os, sys, time
print("acc=0.5", flush=True)
time.sleep({seconds})
open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write("saved")
"""


def test_one_that_saves_its_model_for_longer_than_it_may_take_to_end_is_waited_for(
    opened: Opened, tmp_path: Path
) -> None:
    made = opened(SAVES.format(seconds=3), grace_period_s=1).train(assignment(tmp_path, 1, epochs=1), print)
    assert values(made) == [(1, 0.5)]
    model = ScriptTrainer("train.py", source_dir=tmp_path / "source").load_model(made.checkpoint)
    assert (model / "weights").read_text() == "saved"


def test_one_that_does_not_end_behind_its_last_unit_ends_where_its_job_stops(opened: Opened, tmp_path: Path) -> None:
    reports: list[Report] = []
    program = opened(SAVES.format(seconds=3600), grace_period_s=1, report_timeout_s=3600)
    made = program.train(assignment(tmp_path, 1, epochs=1), reports.append, lambda: bool(reports))
    assert values(made) == [(1, 0.5)]


def test_one_that_trains_on_behind_its_epochs_is_ended(opened: Opened, tmp_path: Path) -> None:
    program = opened("import time\nfor _ in range(600):\n    print('acc=0.1', flush=True)\n    time.sleep(0.1)\n")
    began = time.monotonic()
    assert program.train(assignment(tmp_path, 2, epochs=2), print).reached == 2
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("checkpoints", [True, False])
def test_one_that_has_nothing_left_to_train_has_ended(
    opened: Opened,
    tmp_path: Path,
    checkpoints: bool,
) -> None:
    program = opened(
        f"{FOLDER}first = len(os.listdir(ck))\nfor epoch in range(first, 2):\n    time.sleep(0.2)\n"
        f"    if {checkpoints}: open(f'{{ck}}/{{epoch}}', 'w').close()\n    print(f'acc=0.{{epoch + 1}}', flush=True)\n"
        "time.sleep(1 if first else 600)"
    )
    first = program.train(assignment(tmp_path, 2), print)
    second = program.train(assignment(tmp_path, 4, first), print) if checkpoints else None
    assert values(*filter(None, (first, second)))[:2] == [(1, 0.1), (2, 0.2)]
    assert second is None or values(second) == [(3, 0.2), (4, 0.2)]


@pytest.mark.parametrize("link", ["ck + '/a'", "'a'", "os.environ['SM_MODEL_DIR'] + '/a'", "os.path.abspath('b')"])
def test_links_among_checkpoints_lead_to_the_same_files_later(
    opened: Opened,
    tmp_path: Path,
    link: str,
) -> None:
    program = opened(
        f"{FOLDER}model = os.environ['SM_MODEL_DIR']\nif os.listdir(ck):\n    assert open(ck + '/last').read() == 'x'\n"
        "else:\n    for each in (ck + '/a', model + '/a', 'b'): open(each, 'w').write('x')\n"
        f"    os.symlink({link}, ck + '/last')\n    os.symlink('/nowhere', ck + '/nowhere')\n"
        "for _ in range(9):\n    print('acc=0.1', flush=True)\n    time.sleep(0.5)\n"
    )
    first = program.train(assignment(tmp_path, 1), print)
    assert program.train(assignment(tmp_path, 2, first), print).reached == 2


def test_a_checkpoint_is_whole_however_slowly_it_is_written(opened: Opened, tmp_path: Path) -> None:
    program = opened(
        f"{FOLDER}path = ck + '/state'\nif os.path.exists(path): assert os.path.getsize(path) == 4\n"
        "for epoch in range(3):\n    print(f'acc=0.{epoch}', flush=True)\n    with open(path, 'wb', 0) as file:\n"
        "        for _ in range(4):\n            file.write(b'x')\n            time.sleep(0.6)\n"
    )
    first = program.train(assignment(tmp_path, 1), print)
    assert program.train(assignment(tmp_path, 2, first), print).reached == 2


def test_a_halted_program_that_ended_has_no_more_units(opened: Opened, tmp_path: Path) -> None:
    program = opened("print('acc=0.1')")
    reports: list[Report] = []
    made = program.train(assignment(tmp_path, 9, epochs=1), reports.append, lambda: True)
    assert [report.step for report in (*made.reports, *reports)] == [1, 1]


def test_processes_that_nobody_reaps_are_not_waited_for(opened: Opened, tmp_path: Path) -> None:
    program = opened("import os, time\nif not os.fork(): time.sleep(60)\nprint('acc=0.1', flush=True)\n")
    libc = ctypes.CDLL(None)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        began = time.monotonic()
        program.train(assignment(tmp_path, 1, epochs=1), print)
        assert time.monotonic() - began < 9
    finally:
        libc.prctl(SUBREAPER, 0, 0, 0, 0)


def test_output_is_read_by_a_process_of_many_files(opened: Opened, tmp_path: Path) -> None:
    program = opened("print('acc=0.1')")
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1030)]
    try:
        assert values(program.train(assignment(tmp_path, 1), print)) == [(1, 0.1)]
    finally:
        for file in files:
            os.close(file)


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """A suite that was started in the background ignores SIGINT, as its shell has it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_the_program_and_a_second_one_at_once(
    opened: Opened, tmp_path: Path, hears_ctrl_c: None, times: int
) -> None:
    pid = tmp_path / "pid"
    program = opened(
        "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: os.kill(os.getppid(), signal.SIGINT) if "
        f"{times} == 2 else os._exit(0))\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\nprint('acc=0.1', flush=True)"
        "\nwhile True: time.sleep(0.1)\n",
        grace_period_s=30,
    )

    def interrupted(report: Report) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        program.train(assignment(tmp_path, 3), interrupted)
    assert time.monotonic() - began < 20
    assert not Path("/proc", pid.read_text()).exists()


def test_the_last_words_are_read_of_a_program_that_ends_as_nothing_had_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, real, came = Guard(), select.poll, threading.Event()

    class Late:
        """Says that nothing came, and has its caller wait until the program is over."""

        def __init__(self) -> None:
            self.poll_, self.waits = real(), True

        def register(self, file: int, events: int) -> None:
            self.poll_.register(file, events)

        def poll(self, milliseconds: int) -> object:
            if not self.waits:
                return self.poll_.poll(milliseconds)
            self.waits = False
            came.wait(10)
            return []

    monkeypatch.setattr(select, "poll", Late)
    start = Start(command=(sys.executable, "-c", "print('bye')"), environment={})
    process = ProgramProcess(start, environment={}, folder=tmp_path, guard=guard, read=lambda line: ())
    try:
        process._process.wait(10)
        threading.Timer(0.2, came.set).start()
        process.drain()
        assert list(process.tail) == ["bye"]
    finally:
        process.end(0)
        guard.close()


def test_a_guard_ends_although_a_fork_of_its_worker_lives() -> None:
    guard = Guard()
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    began = time.monotonic()
    guard.close()
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert time.monotonic() - began < 9


@pytest.mark.parametrize("entry_point", ["../up.py", "{folder}/up.py", ".git/up.py", "no.py"])
def test_an_entry_point_outside_its_folder_is_refused(tmp_path: Path, entry_point: str) -> None:
    (tmp_path / "up.py").write_text("")
    (tmp_path / "code" / ".git").mkdir(parents=True)
    (tmp_path / "code" / ".git" / "up.py").write_text("")
    entry_point, source = entry_point.format(folder=tmp_path), tmp_path / "code"
    made = ScriptTrainer(entry_point, source_dir=source)
    with refuses(ConfigurationError, field="entry_point", value=entry_point, remedy=("source_dir", str(source))):
        made.program({})


def test_an_entry_point_that_is_none_is_refused() -> None:
    refuses_each(
        [
            (lambda given=given: ScriptTrainer(given), ("entry_point", repr(given), "source_dir"))
            for given in (None, "", 5)
        ],
        ConfigurationError,
    )


def test_links_of_a_source_folder_are_followed(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "part.py").write_text("acc = 0.5")
    program_folder = tmp_path / "code"
    program_folder.mkdir()
    for name, target in (("lib", tmp_path / "lib"), ("again", "."), ("nowhere", "no"), ("text", "../lib/part.py")):
        (program_folder / name).symlink_to(target)
    os.mkfifo(program_folder / "pipe")
    (program_folder / "train.py").write_text("import lib.part\nopen('text')\nprint(f'acc={lib.part.acc}')")
    program = opened(None, source_dir=program_folder)
    assert values(program.train(assignment(tmp_path, 1), print)) == [(1, 0.5)]


def test_a_name_that_no_program_can_have_is_refused() -> None:
    refuses_each(
        [
            (lambda name=name: ScriptTrainer("train.py").check({name: 1}), (repr(name), "argument", "'='"))
            for name in ("", "a=b", "a\0b")
        ],
        ConfigurationError,
    )


@pytest.mark.parametrize("epochs", ["ten", float("nan"), -1, True, "2"])
def test_a_length_that_is_no_number_of_units_is_none(opened: Opened, tmp_path: Path, epochs: object) -> None:
    program = opened("print('acc=0.1')\nprint('acc=0.2')")
    assert values(program.train(assignment(tmp_path, 2, epochs=epochs), print)) == [(1, 0.1), (2, 0.2)]


@pytest.mark.parametrize(
    ("hyperparameters", "names"),
    [
        ({"mode": "stubborn", "epochs": 6}, ("ranks.py", "worker 1", "ValueError: no third epoch")),
        ({"mode": "x" * 200_000}, ("worker 0", os.strerror(errno.E2BIG), "128 kB")),
    ],
)
def test_all_workers_say_at_once_why_a_part_failed(
    tmp_path: Path, hyperparameters: dict[str, object], names: tuple[str, ...]
) -> None:
    outcomes = of_two(tmp_path, ranks(grace_period_s=8), **hyperparameters)
    for outcome in outcomes:
        assert isinstance(outcome, TrialError), outcomes
        mentions(str(outcome).partition("\n")[0], *names)


def test_two_workers_go_on_with_the_last_value_of_a_program_that_ends_early(tmp_path: Path) -> None:
    first, second = of_two(tmp_path, ranks(), epochs=2)
    assert isinstance(first, Segment)
    assert isinstance(second, Segment)
    assert values(first)[1:] == [(step, 0.2) for step in range(2, 7)]


def ranks(**options: float) -> ScriptTrainer:
    """Of programs/ranks.py."""
    return ScriptTrainer("ranks.py", source_dir=PROGRAMS, metric_definitions=[ACCURACY], **options)  # type: ignore[arg-type]


AS_RAY_ENDS_A_WORKER = """
import os, signal, sys, time
from pathlib import Path
import psutil
from ray.train import ScalingConfig
from tests.support.script_gangs import of_two
from tests.support.script_programs import ACCURACY, assignment
from trainers import ScriptTrainer
from trainers.gangs.in_process import alone

folder = Path(sys.argv[1])
program = ScriptTrainer("train.py", source_dir=folder, metric_definitions=[ACCURACY]).program({})
program.open(alone(1))

def end(report):
    for child in psutil.Process().children():  # Ray kills the children of a worker that it ends, and no others.
        child.kill()
    os._exit(1)

program.train(assignment(folder, 9), end)
"""


def test_a_worker_whose_children_are_killed_with_it_leaves_no_process_and_no_port(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, socket, time\n"
        "for number in range(3):\n"
        "    if not os.fork():\n"
        "        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(each, signal.SIG_IGN)\n"
        "        os.setsid()\n"
        "        server = socket.create_server(('127.0.0.1', 0))\n"
        "        open('%s', 'a').write(f'{os.getpid()} {server.getsockname()[1]}\\n')\n"
        "        time.sleep(600)\n"
        "while len(open('%s').readlines()) < 3: time.sleep(0.01)\n"
        "print('acc=0.5', flush=True)\n"
        "time.sleep(600)\n".replace("%s", str(tmp_path / "children"))
    )
    (tmp_path / "children").touch()
    python("-c", AS_RAY_ENDS_A_WORKER, str(tmp_path))
    children = [tuple(map(int, line.split())) for line in (tmp_path / "children").read_text().splitlines()]
    assert len(children) == 3
    for pid, port in children:
        until(lambda: not Path("/proc", str(pid), "exe").exists())  # noqa: B023
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
