"""Programs that stay loaded, in this process: turns, what stays between them, what does not, and what ends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.script_programs import assignment, values
from trainers import ScriptTrainer
from trainers.script.program import ScriptProgram

pytestmark = pytest.mark.process

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


def processes(segment: object) -> set[float]:
    """The processes that reported."""
    return {report.metrics["process"] for report in segment.reports}  # type: ignore[attr-defined]


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
