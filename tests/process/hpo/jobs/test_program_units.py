"""Jobs of programs that count, print, end and save in their own ways: what the record and the summary say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import CategoricalParameter, HyperbandStrategyConfig, StrategyConfig
from tests.support.hpo.jobs.program_units import HEAD, definition, true_value
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.script_job import ScriptJob
from trainers import WarmbandError


@pytest.mark.parametrize(("first", "steps"), [(0, ""), (0, "step: 10"), (1, "")])
def test_steps_count_from_zero_and_by_tens(tmp_path: Path, first: int, steps: str) -> None:
    scale = 10 if steps else 1
    source = (
        f"{HEAD}for epoch in range(a.epochs):\n    weight += a.eta * (1 - weight)\n"
        f"    print(f'step {{(epoch + {first}) * {scale}}}: acc {{weight:.6f}}', flush=True)\n"
    )
    trainer = definition(r"step (?P<step>\d+): acc (?P<value>\S+)")
    trainer |= {"step": {"first": 0, "every": 10}} if steps else {}
    job = ScriptJob(tmp_path, source, trainer=trainer, strategy="Hyperband")
    trials = job.fit()
    assert max(trial.resource for trial in trials) == 9
    for trial in trials:
        assert trial.objective == true_value(trial, trial.resource)


def test_steps_that_jump_are_said_once_with_the_counter_to_give(tmp_path: Path) -> None:
    source = (
        f"{HEAD}for step in range(a.max_steps + 1):\n    weight += a.eta * (1 - weight) / 100\n"
        "    if step % 100 == 0: print(f'step {step}: acc {weight:.6f}', flush=True)\n"
    )
    job = ScriptJob(
        tmp_path,
        source,
        static={"epochs": None, "max_steps": 400},
        trainer=definition(r"step (?P<step>\d+): acc (?P<value>\S+)") | {"length": "max_steps"},
        strategy="Hyperband",
    )
    job.fit()
    (line,) = [line for line in job.printed.splitlines() if not missing_names(line, "warning", "every: 100")]
    mentions(line, "step: {first: 0, every: 100}")


def test_far_fewer_reports_than_the_length_are_said(tmp_path: Path) -> None:
    source = (
        f"{HEAD}for step in range(a.max_steps + 1):\n    weight += a.eta * (1 - weight) / 100\n"
        "    if step % 100 == 0: print(f'acc {weight:.6f}', flush=True)\n"
    )
    job = ScriptJob(
        tmp_path,
        source,
        static={"epochs": None, "max_steps": 400},
        trainer=definition(r"acc (\S+)") | {"length": "max_steps"},
        strategy="Hyperband",
    )
    job.fit()
    assert sum(not missing_names(line, "warning", 5, 400) for line in job.printed.splitlines()) == 1


def test_a_part_of_a_number_ends_the_job_and_the_whole_one_finds_the_best(tmp_path: Path) -> None:
    source = f"{HEAD}for e in range(1, 4): print(f'epoch {{e}} val_loss: {{a.eta / e}}', flush=True)\n"
    rates = [0.5, 9.5e-5, 0.02, 8.5e-5]

    def job(folder: str, regex: str) -> ScriptJob:
        return ScriptJob(
            tmp_path / folder,
            source,
            static={"epochs": 3},
            trainer=definition(regex),
            ranges={"eta": CategoricalParameter(rates)},
            objective_type="Minimize",
            strategy="Grid",
            max_jobs=4,
        )

    cut = job("cut", r"val_loss: ([0-9.]+)")
    with refuses(WarmbandError, field="'accuracy'", value="9.5e-05", remedy=r"val_loss: (\S+)"):
        cut.fit()
    assert cut.tuner.describe()["HyperParameterTuningJobStatus"] == "Failed"
    assert [trial.status for trial in cut.trials()] == ["Completed", "Failed"]
    mentions(cut.printed, "9.5e-05", r"val_loss: (\S+)")
    whole = job("whole", r"val_loss: (\S+)")
    best = min(whole.fit(), key=lambda trial: trial.objective or 0.0)
    assert best.objective == pytest.approx(8.5e-5 / 3)


def test_a_program_saves_its_model_whatever_its_length_is_called(tmp_path: Path) -> None:
    source = (
        f"{HEAD}for epoch in range(1, a.num_epochs + 1):\n    weight += a.eta * (1 - weight)\n"
        "    print(f'epoch {epoch} acc {weight:.6f}', flush=True)\n"
        "time.sleep(1.5)\n"
        "open(os.path.join(os.environ['SM_MODEL_DIR'], 'model.txt'), 'w').write(str(weight))\n"
    )
    job = ScriptJob(
        tmp_path,
        source,
        static={"epochs": None, "num-epochs": 4},
        trainer=definition(r"epoch (?P<step>\d+) acc (?P<value>\S+)"),
        max_jobs=3,
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1)),
    )
    job.fit()
    assert [path.name for path in job.tuner.best_estimator().model().iterdir()] == ["model.txt"]


CRASHES = (
    HEAD
    + """
for epoch in range(1, a.epochs + 1):
    weight += a.eta * (1 - weight)
    print(f'epoch {epoch} acc {weight:.6f}', flush=True)
    if epoch == CRASH: raise SystemExit('cannot write the checkpoint: disk quota exceeded')
    time.sleep(0.3)
"""
)


@pytest.mark.parametrize("crash", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "Hyperband"},
        {"strategy": "Random", "early_stopping_type": "Off"},
        {"strategy": "Bayesian", "early_stopping_type": "Off"},
        {"strategy": "ASHA"},
    ],
)
def test_a_program_that_fails_behind_its_last_report_fails_its_trial(
    tmp_path: Path, options: dict[str, Any], crash: int
) -> None:
    job = ScriptJob(
        tmp_path,
        CRASHES.replace("CRASH", str(crash)),
        static={"epochs": 4},
        trainer=definition(r"epoch (?P<step>\d+) acc (?P<value>\S+)"),
        max_jobs=3,
        **options,
    )
    try:
        job.fit()
    except Exception as error:  # All trials have failed.
        mentions(str(error), "disk quota exceeded")
    statuses = {trial.status for trial in job.trials()}
    assert "Failed" in statuses
    assert "Completed" not in statuses
