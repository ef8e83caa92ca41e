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
from trainers import RayTrainTrainer, ScalingConfig, ScriptTrainer, SeveralTrainers

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


def test_a_program_that_is_kept_loaded_ends_its_turn_at_a_rung_of_any_scheduler(tmp_path: Path) -> None:
    job = ScriptJob(tmp_path, WITHOUT, trainer={"keep_loaded": True}, scheduler=ASHA)
    (told,) = [each for each in warnings(job.tuner.settings) if PAUSES in each]
    mentions(told, "scheduler")
    assert "ASHAScheduler" not in told


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


def test_a_program_that_knows_of_no_other_workers_is_named_where_it_gets_some(tmp_path: Path) -> None:
    job = ScriptJob(tmp_path, WITHOUT, workers=2, strategy="Random")
    (told,) = [each for each in warnings(job.tuner.settings) if "WORLD_SIZE" in each]
    mentions(told, "train.py", "2 workers", "num_workers")
    assert not [each for each in warnings(ScriptJob(tmp_path, WITHOUT, workers=1).tuner.settings) if "WORLD" in each]
    settings: dict[str, Any] = {"source_dir": tmp_path / "source", "scaling": ScalingConfig(num_workers=2)}
    script = ScriptTrainer("train.py", **settings)
    mentions(SeveralTrainers({"a": script, "b": script}).copies_obstacle(), "trainer 'a'", "train.py")
    assert not ScriptTrainer("train.py", launcher="torchrun", **settings).copies_obstacle()
    for text in ("import torch.distributed as dist", "os.environ['RANK']", "from mpi4py import MPI", "import jax"):
        (tmp_path / "source" / "train.py").write_text(text)
        assert not ScriptTrainer("train.py", **settings).copies_obstacle(), text
