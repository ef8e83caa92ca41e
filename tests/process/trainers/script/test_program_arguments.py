"""What real programs receive, of hyperparameters in every form, and what their command lines do by hand."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.refusals import mentions, refuses
from tests.support.script_programs import ACCURACY, assignment
from trainers import ScriptTrainer
from trainers.errors import ConfigurationError, TrialError
from trainers.script.program import ScriptProgram

Opened = Callable[..., ScriptProgram]

TELL = """
import json, os, sys
def tell(received):
    folder = os.environ.get("SM_CHECKPOINT_DIR", ".")
    with open(os.path.join(folder, "received.json"), "w") as file:
        user = os.environ.get("SM_USER_ARGS")
        json.dump({"received": received, "argv": sys.argv[1:], "cwd": os.getcwd(), "user": user}, file)
    print("acc=0.5")
"""
SWITCHES = (
    TELL
    + """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--epochs", type=int)
p.add_argument("--nesterov", action="store_true")
p.add_argument("--ema", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--amp", type=bool, default=True)
p.add_argument("--layers", nargs="+", type=int)
p.add_argument("--out")
tell(vars(p.parse_known_args()[0]))
"""
)


def received(program: ScriptProgram, folder: Path, **hyperparameters: Any) -> dict[str, Any]:
    """What a program says that it got, from the checkpoint's archive."""
    segment = program.train(assignment(folder, 1, **hyperparameters), print)
    [part] = Path(segment.checkpoint).rglob("*.tar")
    with tarfile.open(fileobj=io.BytesIO(part.read_bytes())) as archive:
        file = archive.extractfile("checkpoints/received.json")
        assert file is not None
        found: dict[str, Any] = json.load(file)
    return found


@pytest.mark.parametrize("truth", [True, False])
def test_a_program_receives_the_configuration(opened: Opened, tmp_path: Path, truth: bool) -> None:
    given = {"nesterov": truth, "ema": truth, "amp": truth, "layers": [64, 32]}
    found = received(opened(SWITCHES), tmp_path, **given, out="{output}/{hp:epochs}")
    assert {name: found["received"][name] for name in given} == given
    assert found["received"]["out"].endswith("/output/data/9")
    assert json.loads(found["user"]) == found["argv"]


def test_a_file_and_a_working_directory(opened: Opened, tmp_path: Path) -> None:
    text = TELL + "given = json.load(open(sys.argv[sys.argv.index('--config') + 1]))\ntell(given)"
    arguments = {"style": "file", "file": {"name": "config.json", "option": "--config"}}
    data = tmp_path / "elsewhere"
    data.mkdir()
    program = opened(text, arguments=arguments, working_dir=data)
    found = received(program, tmp_path, lr=0.1, **{"opt.name": "adam"})
    assert found["received"] == {"epochs": 9, "lr": 0.1, "opt": {"name": "adam"}}
    assert found["cwd"] == str(data)


def test_variables_alone(opened: Opened, tmp_path: Path) -> None:
    text = TELL + "tell([float(os.environ['LEARNING_RATE']), int(os.environ['EPOCHS']), sys.argv[1:]])"
    found = received(opened(text, arguments="environment"), tmp_path, LEARNING_RATE=0.25)
    assert found["received"] == [0.25, 9, []]


def test_a_launcher_s_placeholders(opened: Opened, tmp_path: Path) -> None:
    program = opened(TELL + "tell(sys.argv[1:])", launcher="{program} --at {checkpoints} --lr={hp:lr} --d={data:train}")
    found = received(program, tmp_path, lr=0.25)
    *_, at, rate, data = found["received"]
    assert at.endswith("/checkpoints")
    assert (rate, data.endswith("/train")) == ("--lr=0.25", True)


def test_a_program_that_stays_loaded_receives_the_same(opened: Opened, tmp_path: Path) -> None:
    text = SWITCHES.replace('print("acc=0.5")', 'import warmband; warmband.report({"validation:accuracy": 0.5})')
    program = opened(text, keep_loaded=True, metric_definitions=None, launcher="python")
    for number, truth in enumerate((True, False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = received(program, folder, nesterov=truth, layers=[1])["received"]
        assert (found["nesterov"], found["layers"]) == (truth, [1])


def test_a_placeholder_without_a_value_fails_the_trial(opened: Opened, tmp_path: Path) -> None:
    program = opened(TELL + "tell(1)")
    with refuses((ConfigurationError, TrialError), field="'x'", value="{hp:lr}", remedy="{hp:epochs}"):
        program.train(assignment(tmp_path, 1, x="{hp:lr}"), print)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "got 1e-05 True True None"),
        ({"arguments": "--name=value"}, "got 1e-05 True True None"),
        ({"arguments": "environment"}, "got 1e-05 True False None"),
        ({"arguments": {"style": "file", "file": {"name": "config.json"}}}, "got 1e-05 True False None"),
        ({"environment": {"MORE": "a b"}}, "got 1e-05 True True a b"),
    ],
)
def test_the_printed_command_runs_by_hand(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    source = tmp_path / "my source"
    source.mkdir()
    text = """
import argparse, json, os, sys
p = argparse.ArgumentParser()
p.add_argument("config", nargs="?")
p.add_argument("--lr", type=float, default=os.environ.get("LR"))
p.add_argument("--nesterov", action="store_true")
p.add_argument("--out", default=os.environ.get("OUT"))
a = p.parse_args()
given = json.load(open(a.config)) if a.config else {"lr": float(a.lr), "out": a.out}
open(os.path.join(os.environ["SM_MODEL_DIR"], "model"), "w").close()
told = ("got", given["lr"], os.path.isdir(given["out"]), a.nesterov, os.environ.get("MORE"))
os.write(1, (" ".join(map(str, told)) + "\\n").encode())  # In one piece: two workers write here.
"""
    (source / "train.py").write_text(text)
    trainer = ScriptTrainer(
        "train.py",
        source_dir=source,
        scaling=ScalingConfig(num_workers=2),
        metric_definitions=[ACCURACY],
        **options,
    )
    line = trainer.command_line({"out": "{model}", "lr": 1e-05, "nesterov": True})
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    mentions(done.stdout + done.stderr, told)
    assert done.returncode == 0
