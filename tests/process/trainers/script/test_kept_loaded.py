"""Programs that stay loaded, in this process: turns, what stays between them, what does not, and what ends them."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.kept_programs import looping, processes, trained
from tests.support.refusals import mentions, refuses_each
from tests.support.script_programs import assignment, values
from trainers import ConfigurationError, ScriptTrainer, TrialError
from trainers.script import guard
from trainers.script.parts import kept_process
from trainers.script.program import ScriptProgram

HEAD = """
import json, os, sys, warmband
state = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
"""
TRAIN = """
    epoch, weight = json.load(open(state)) if os.path.exists(state) else (0, 0.0)
    while epoch < args.epochs:
        epoch, weight = epoch + 1, weight + args.eta * (1 - weight)
        json.dump([epoch, weight], open(state, "w"))
        if warmband.report({"validation:accuracy": weight, "process": os.getpid()}, step=epoch):
            break
    json.dump(weight, open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w"))
"""
FORMS = {
    "script": HEAD
    + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--epochs', type=int)\n"
    + "parser.add_argument('--eta', type=float)\nargs = parser.parse_args()\nif args:"
    + TRAIN,
    "main": HEAD.replace("state =", "def path(): return") + "def main(args):\n    state = path()" + TRAIN,
    "session": HEAD.replace("state =", "def path(): return")
    + "for args in warmband.session():\n    state = path()"
    + TRAIN,
}
"""A program as a script that is run again, as a function, and as a loop over trials."""


@pytest.mark.parametrize("form", FORMS)
def test_trials_take_turns_in_one_process(opened: Callable[..., ScriptProgram], tmp_path: Path, form: str) -> None:
    program = opened(FORMS[form], keep_loaded=True)
    first = program.train(assignment(tmp_path, 2, eta=0.3, epochs=5), print)
    other = program.train(assignment(tmp_path, 3, eta=0.5, epochs=5), print)
    second = program.train(assignment(tmp_path, 5, first, eta=0.3, epochs=5), print)
    assert [step for step, _ in values(first, second)] == [1, 2, 3, 4, 5]
    assert [value for _, value in values(first, second)] == pytest.approx([1 - 0.7**unit for unit in range(1, 6)])
    assert [value for _, value in values(other)] == [0.5, 0.75, 0.875]
    assert len(processes(first) | processes(other) | processes(second)) == 1
    assert [each.details for each in (first, other, second)] == [{}, {}, {}]
    model = ScriptTrainer("train.py", source_dir=tmp_path / "source").load_model(first.checkpoint)
    assert json.loads((model / "model.json").read_text()) == pytest.approx(1 - 0.7**2)


LEAKS = {
    "environment": ("os.environ['LEAK'] = '1'", "float('LEAK' in os.environ)"),
    "folder": ("os.mkdir('leak')", "float(os.path.exists('leak'))"),
    "working folder": ("os.chdir('/')", "float(os.getcwd() == '/')"),
    "global": ("json.leak = globals().get('leak', 0); leak = 1", "float(json.leak)"),
    "random": (
        "import random, numpy, torch; drawn = random.random(), numpy.random.rand(), float(torch.rand(1))\n"
        "before, json.drawn = getattr(json, 'drawn', drawn), drawn",
        "float(before != drawn)",
    ),
    "switch": (
        "import torch; old = torch.get_default_dtype(); torch.set_default_dtype(torch.float64)",
        "float(old != torch.float32)",
    ),
    "path": ("import sys; sys.path.append('/leak')", "float(sys.path.count('/leak') - 1)"),
    "own module": ("import helper; helper.count += 1", "float(helper.count - 1)"),
    "signals": (
        "import signal; old = signal.getsignal(signal.SIGTERM); signal.signal(signal.SIGTERM, lambda *_: None)",
        "float(old is not signal.SIG_DFL)",
    ),
}
"""What a trial leaves behind, and a value that is above 0 where the next one finds it."""


@pytest.mark.parametrize("leak", LEAKS)
def test_a_trial_finds_nothing_of_the_one_before(
    opened: Callable[..., ScriptProgram], tmp_path: Path, leak: str
) -> None:
    before, value = LEAKS[leak]
    first = leak in ("environment", "folder", "working folder")
    read = f"leaked = {value}\n{before}" if first else f"{before}\nleaked = {value}"
    program = opened(looping("leaked", before=read), keep_loaded=True, files={"helper.py": "count = 0\n"})
    segments = trained(program, tmp_path, 1, 1, 1)
    assert {value for _, value in values(*segments)} == {0.0}
    assert len(set.union(*map(processes, segments))) == 1


def test_a_child_that_a_trial_left_is_ended(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(
        looping(
            before="import subprocess; child = subprocess.Popen(['sleep', '3600']).pid",
            unit="json.dump(child, open(os.environ['SM_MODEL_DIR'] + '/child', 'w'))",
        ),
        keep_loaded=True,
    )
    (segment,) = trained(program, tmp_path, 1)
    model = ScriptTrainer("train.py", source_dir=tmp_path / "source").load_model(segment.checkpoint)
    child = int((model / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_what_is_kept_is_made_once_and_a_change_is_noticed(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    keep = (
        "import torch\n@warmband.keep\ndef rows(scale):\n    return [scale] * 3\n"
        "@warmband.keep\ndef model():\n    return {'net': torch.nn.Linear(1, 1, bias=False), 'made': time.time()}\n"
        "base = model(); first = float(base['net'].weight)\n"
    )
    program = opened(
        looping(
            "rows(2)[0]",
            before=f"{keep}\nbase['net'].weight.data += 1.0",
            unit="rows(2).append(1) if args.get('spoil') else None",
        ).replace(
            '"process": os.getpid()',
            '"process": os.getpid(), "first": first, "made": base["made"], "rows": len(rows(2))',
        ),
        keep_loaded=True,
    )
    clean, spoiled, again = (trained(program, tmp_path, 1, **each)[0] for each in ({}, {"spoil": 1}, {}))
    metrics = [each.reports[0].metrics for each in (clean, spoiled, again)]
    assert [each["first"] for each in metrics] == [metrics[0]["first"]] * 3
    assert [each["made"] for each in metrics] == [metrics[0]["made"]] * 3
    assert [each["rows"] for each in metrics] == [3, 4, 3]
    changed = [each.details.get("kept_values_changed") for each in (clean, spoiled, again)]
    assert changed == [None, ["__main__.rows"], None]


def test_a_trial_that_fails_ends_the_process_and_not_the_gang(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(looping(before="assert not args.get('fails'), 'as asked'"), keep_loaded=True)
    (first,) = trained(program, tmp_path, 2)
    with pytest.raises(TrialError) as failed:
        trained(program, tmp_path, 2, fails=1)
    mentions(str(failed.value).partition("\n")[0], "train.py", 1, "AssertionError: as asked")
    (second,) = trained(program, tmp_path, 2)
    assert values(second) == values(first)
    assert not processes(first) & processes(second)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            "import threading; threading.Thread(target=time.sleep, args=(3600,), name='straggler').start()",
            "straggler",
        ),
        ("time.sleep(3600)", "unit"),
    ],
)
def test_a_trial_that_does_not_let_go_costs_the_next_one_a_start(
    opened: Callable[..., ScriptProgram], tmp_path: Path, after: str, said: str
) -> None:
    program = opened(looping(after=after), keep_loaded=True, grace_period_s=1)
    first, second = trained(program, tmp_path, 2, 2)
    assert values(first) == values(second) == [(1, 0.1), (2, 0.2)]
    assert first.details.keys() - {"no_model"} == {"loaded_anew"}
    mentions(first.details["loaded_anew"], said)
    assert not processes(first) & processes(second)


def test_a_program_that_asks_not_whether_to_stop_is_stopped_at_its_next_report(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(
        looping().replace("if warmband.report", "warmband.report").replace("}):\n        break", "})"), keep_loaded=True
    )
    first, second = trained(program, tmp_path, 2, 3)
    assert values(first, second) == [(1, 0.1), (2, 0.2), (1, 0.1), (2, 0.2), (3, pytest.approx(0.3))]
    assert processes(first) == processes(second)


def test_a_process_that_is_killed_between_trials_is_started_anew(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(looping(), keep_loaded=True)
    (first,) = trained(program, tmp_path, 1)
    (process,) = processes(first)
    psutil.Process(int(process)).kill()
    psutil.wait_procs([psutil.Process(int(process))] if psutil.pid_exists(int(process)) else [], timeout=10)
    (second,) = trained(program, tmp_path, 1)
    assert values(first) == values(second)


def test_output_of_a_trial_is_its_own(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(
        "import warmband\nfor epoch in range(warmband.hyperparameters()['epochs']):\n    print(f'acc=0.{epoch + 1}')\n",
        keep_loaded=True,
    )
    first, second = (program.train(assignment(tmp_path, 3, epochs=3), print) for _ in range(2))
    assert values(first) == values(second) == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_what_cannot_be_kept_loaded_is_refused() -> None:
    refuses_each(
        [
            (lambda: ScriptTrainer("train.sh", keep_loaded=True), ("keep_loaded", "entry_point", "train.sh", "Python")),
            (
                lambda: ScriptTrainer("train.py", launcher="tensorflow", keep_loaded=True),
                ("keep_loaded", "launcher", "'tensorflow'"),
            ),
        ],
        ConfigurationError,
    )


def test_host_and_worker_mean_the_same_names() -> None:
    source = Path(kept_process.HOST).read_text()
    names = {"ADDRESS": kept_process.ADDRESS, "MARK": kept_process.MARK, "TOKEN": guard.TOKEN}
    found = {
        node.targets[0].id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    assert {name: found[name] for name in names} == names
