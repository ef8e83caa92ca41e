"""Programs without checkpoints in jobs that pause trials: what is said, before and after, and what does not pause."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ray.tune.schedulers import ASHAScheduler, HyperBandScheduler, MedianStoppingRule, PopulationBasedTraining

from hpo.jobs.build import warnings
from tests.support.ray_train_job import trainer
from tests.support.refusals import mentions
from tests.support.script_job import WITH, WITHOUT, ScriptJob
from tests.support.script_programs import started_with
from trainers import RayTrainTrainer, ScriptTrainer, SeveralTrainers

ASHA = (ASHAScheduler, {"max_t": 9, "grace_period": 1})
ASHA_OF_RAY = "ray.tune.schedulers:ASHAScheduler"
PAUSES = "SM_CHECKPOINT_DIR"
"""The warning about pauses is the one with this name."""


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"strategy": "Hyperband"}, ("Hyperband", "33", "26")),
        ({"strategy": "ASHA"}, ("ASHA", "21", "16")),
        ({"strategy": "Bayesian", "early_stopping_type": "Auto"}, ("early_stopping_type", "Auto", "78", "54")),
        ({"scheduler": ASHA}, ()),
        ({"scheduler": ASHA_OF_RAY}, ()),
        ({"scheduler": MedianStoppingRule(grace_period=1)}, ()),
        ({"scheduler": (MedianStoppingRule, {"grace_period": 1, "hard_stop": False})}, ("scheduler",)),
        ({"scheduler": MedianStoppingRule(grace_period=1, hard_stop=False)}, ("scheduler",)),
        ({"scheduler": (HyperBandScheduler, {"max_t": 9})}, ("scheduler",)),
        ({"scheduler": (PopulationBasedTraining, {"perturbation_interval": 2})}, ("scheduler",)),
        ({"strategy": "Random"}, ()),
        ({"strategy": "Bayesian"}, ()),
        ({"searcher": "optuna.samplers:RandomSampler"}, ()),
    ],
)
def test_a_strategy_that_pauses_warns_of_a_program_without_checkpoints(
    tmp_path: Path, options: dict[str, Any], names: tuple[str, ...]
) -> None:
    told = [each for each in warnings(ScriptJob(tmp_path, WITHOUT, **options).tuner.settings) if PAUSES in each]
    assert len(told) == bool(names)
    if names:
        mentions(told[0], *names, "Random", "Bayesian", "early_stopping_type", "Off", ASHA_OF_RAY)
        # Its remedy has the word, too.
        assert "scheduler" not in names or len(re.findall(r"\bscheduler\b", told[0])) > 1
    assert not [each for each in warnings(ScriptJob(tmp_path, WITH, **options).tuner.settings) if PAUSES in each]


@pytest.mark.process
def test_a_strategy_that_pauses_no_trial_starts_each_once_and_another_says_what_it_costs(tmp_path: Path) -> None:
    once = ScriptJob(tmp_path / "once", WITHOUT, strategy="Random")
    trials = once.fit()
    tuned = [start for start in once.starts if start != "0.1"]  # The probe's and the un-tuned run's.
    assert sorted(tuned) == sorted(str(trial.hyperparameters["eta"]) for trial in trials)
    assert not any(trial.details for trial in trials)
    assert "warning: " not in once.printed
    paused = ScriptJob(tmp_path / "paused", WITHOUT, strategy="Hyperband", static={"seconds": 0.3})
    trials = paused.fit()
    again = {trial.trial_id: trial.details.get("units_trained_again", 0) for trial in trials}
    assert any(again.values())
    told = [line for line in paused.printed.splitlines() if "warning: " in line]
    assert len(told) == 2
    mentions(told[0], "Hyperband", PAUSES)
    mentions(told[1], "checkpoint")
    (first,) = [name for name in again if name in told[1]]
    assert again[first]


def test_a_program_that_is_kept_loaded_ends_its_turn_at_a_rung_of_any_scheduler(tmp_path: Path) -> None:
    job = ScriptJob(tmp_path, WITHOUT, trainer={"keep_loaded": True}, scheduler=ASHA)
    (told,) = [each for each in warnings(job.tuner.settings) if PAUSES in each]
    mentions(told, "scheduler")
    assert "ASHAScheduler" not in told


@pytest.mark.process
@pytest.mark.parametrize("options", [{"scheduler": ASHA}, {"early_stopping_type": "Auto", "strategy": "Random"}])
def test_what_only_stops_trials_starts_a_program_without_checkpoints_once_a_trial(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    job = ScriptJob(tmp_path, WITHOUT, static={"seconds": 0.02}, **options)
    trials = job.fit()
    assert {trial.resource for trial in trials} > {9}
    tuned = [start for start in job.starts if start != "0.1"]  # The probe's and the un-tuned run's.
    assert tuned == [str(trial.hyperparameters["eta"]) for trial in trials]
    assert not any(trial.details for trial in trials)


@pytest.mark.ray
def test_on_gangs_of_ray_workers_each_trial_goes_on_where_it_stands(ray_cluster: None, tmp_path: Path) -> None:
    job = ScriptJob(
        tmp_path, WITHOUT, workers=1, static={"seconds": 0.1}, scheduler=ASHA, max_jobs=9, max_parallel_jobs=2
    )
    trials = job.fit()
    assert len(trials) == 9
    assert {trial.resource for trial in trials} > {9}
    tuned = [start for start in job.starts if start != "0.1"]
    assert sorted(tuned) == sorted(str(trial.hyperparameters["eta"]) for trial in trials)
    assert not any(trial.details for trial in trials)
    assert PAUSES not in job.printed
    assert started_with(f"STARTS={job.folder / 'starts'}", "train.py") == []


def test_several_trainers_have_the_obstacle_of_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('acc=1')")
    script = ScriptTrainer("train.py", source_dir=tmp_path)
    mentions(SeveralTrainers({"a": script, "b": script}).pause_obstacle(), "trainer", "'a'", "train.py", PAUSES)
    (tmp_path / "saving.py").write_text("CHECKPOINTS = 1")
    assert not SeveralTrainers({"a": script, "b": script}).pause_obstacle()


def test_a_function_of_ray_train_s_is_looked_at_in_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RayTrainTrainer(trainer(1))
    assert not made.pause_obstacle()
    monkeypatch.setattr("inspect.getsource", lambda module: "def train(config): ...")
    said = mentions(made.pause_obstacle(), "checkpoint", "ray.train.report")
    mentions(said.replace("ray.train.report", ""), "train")
