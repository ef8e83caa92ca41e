"""`hpo check`: one trial of a program is tried, stopped, and started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpo.record.store import Store
from tests.support.command import run
from tests.support.refusals import mentions

JOB = """
name: checked
trainer:
  type: script
  entry_point: train.py
  num_workers: 0
  hyperparameters: {epochs: 9}
  metric_definitions: [{Name: acc, Regex: 'val_acc (\\S+)'}]
tuning:
  objective_metric_name: acc
  strategy: Hyperband
  max_jobs: 9
  ranges:
    lr: {type: continuous, min: 0.05, max: 0.5, scaling: Logarithmic}
    flat: {type: continuous, min: 0, max: 1}
"""
BEGINNING = """
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--flat", type=float)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
state = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
epoch, acc = {start}
while epoch < args.epochs:
    epoch, acc = epoch + 1, acc + args.lr * (1 - acc)
    with open(state + ".new", "w") as file:
        json.dump([epoch, acc], file)
    os.replace(state + ".new", state)
    print(f"val_acc {{acc:.6f}}", flush=True)
    time.sleep(0.7)
open(os.path.join(os.environ["SM_MODEL_DIR"], "model.txt"), "w").close()
"""
GOES_ON = BEGINNING.format(start="json.load(open(state)) if os.path.exists(state) else (0, 0.0)")
BEGINS_AGAIN = BEGINNING.format(start="0, 0.0")


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path) -> Any:
    """Runs `hpo check` on a program; its exit code, findings and errors."""

    def checked(program: str, job: str = JOB) -> tuple[int, dict[str, Any]]:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "train.py").write_text(program)
        (tmp_path / "job.yaml").write_text(job)
        code = run(monkeypatch, "check", "job.yaml", "--allow-code", "--json")
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if printed.out else {"error": printed.err}

    return checked


def test_a_program_that_goes_on_from_its_checkpoint(check: Any, home: Path) -> None:
    code, found = check(GOES_ON)
    assert code == 0, found
    rate = found["hyperparameters"]["lr"]
    assert rate == pytest.approx((0.05 * 0.5) ** 0.5)
    last = found["units"][-1]["number"]
    assert [unit["number"] for unit in found["units"]] == [*range(1, last + 1)]
    assert 3 <= last < 9
    assert found["units"][-1]["metrics"]["acc"] == pytest.approx(1 - (1 - rate) ** last, abs=1e-5)
    assert found["units"][-1]["restarted"]
    mentions(found["restart"], last)
    assert found["matched"]["acc"].startswith("val_acc 0.")
    assert found["trial_worker_seconds"] > 0
    assert str(rate) in found["command"]
    assert not [*(home / "checks").iterdir()]
    with Store() as store:
        assert store.jobs() == []


def test_a_program_that_begins_again_is_a_problem_of_a_job_that_pauses(check: Any) -> None:
    code, found = check(BEGINS_AGAIN)
    assert code == 1
    mentions(" ".join(found["problems"]), "SM_CHECKPOINT_DIR")
    values = [unit["metrics"]["acc"] for unit in found["units"]]
    rate = found["hyperparameters"]["lr"]
    assert values == pytest.approx([1 - (1 - rate) ** unit for unit in range(1, len(values) + 1)], abs=1e-5)


def test_a_job_that_never_pauses_has_no_problem_with_it(check: Any) -> None:
    code, found = check(BEGINS_AGAIN, JOB.replace("Hyperband", "Random"))
    assert code == 0, found


def test_a_program_that_prints_no_metric_fails_the_check_with_its_last_lines(check: Any) -> None:
    code, found = check("print('nothing of use')")
    assert code == 1
    [problem] = found["problems"]
    mentions(problem, "acc", "nothing of use")
    assert "Traceback" not in problem
    assert Path(problem.rpartition(" is in ")[2].partition(":")[2]).read_text().endswith("nothing of use\n")


def test_findings_are_a_table_for_people(monkeypatch, capsys, tmp_path: Path, home: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(GOES_ON)
    (tmp_path / "job.yaml").write_text(JOB)
    assert run(monkeypatch, "check", "job.yaml", "--allow-code") == 0
    mentions(capsys.readouterr().out, "command", "train.py", "restart", "worker-seconds", "no problem")
