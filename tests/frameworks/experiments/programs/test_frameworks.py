"""Programs of frameworks, as their documentation writes them, are trained whole and tuned with pauses, unchanged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import experiments.programs
from experiments.workloads.repeated_trial import RepeatedTrial
from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.record import Store
from tests.support.script_programs import hosts, running
from trainers import ScalingConfig, ScriptTrainer

FOLDER = Path(experiments.programs.__file__).parent
RATE = {"lr": ContinuousParameter(0.01, 0.1, "Logarithmic")}
ACCURACY = "accuracy", "Maximize", r"epoch=(?P<step>\d+) accuracy=(?P<value>\S+)"


@dataclass(frozen=True, kw_only=True)
class Framework:
    """How a framework's program is run.

    Args:
        launcher: of the trainer.
        static: hyperparameters beside the program's length; they make a unit last longer than a pause takes.
        length: the hyperparameter of that.
        units: of a whole trial; the first rung is at a third of them.
        ranges: of the search.
        objective: its name, whether it is to grow, and how the program prints it.
        options: of the trainer, beside.
        scaling: of its gangs.
    """

    launcher: str
    static: dict[str, Any] = field(default_factory=dict)
    length: str = "epochs"
    units: int = 3
    ranges: dict[str, Any] = field(default_factory=lambda: RATE)
    objective: tuple[str, str, str] = ACCURACY
    options: dict[str, Any] = field(default_factory=dict)
    scaling: dict[str, Any] = field(default_factory=lambda: {"num_workers": 2})


FRAMEWORKS = {
    "pytorch_ddp": Framework(launcher="torchrun", static={"hidden": 1536}),
    "lightning_ddp": Framework(launcher="torchrun", static={"hidden": 1536}),
    "transformers_trainer": Framework(
        launcher="torchrun",
        length="num_train_epochs",
        ranges={"learning_rate": ContinuousParameter(0.0005, 0.01, "Logarithmic")},
        objective=("eval_loss", "Minimize", r"epoch=(?P<step>\d+) eval_loss=(?P<value>\S+)"),
    ),
    "accelerate_loop": Framework(launcher="accelerate", static={"hidden": 1536}),
    "deepspeed_zero": Framework(
        launcher="torchrun",
        static={"hidden": 1536},
        ranges={"lr": ContinuousParameter(0.0001, 0.01, "Logarithmic")},
        options={"environment": {"DS_ACCELERATOR": "cpu"}},
    ),
    "tensorflow_workers": Framework(
        launcher="tensorflow",
        static={"hidden": 2048},
        # Keras 3 has no `fit` on several workers; TensorFlow, as JAX, trains on behind SIGTERM: here less than a unit.
        options={"environment": {"TF_USE_LEGACY_KERAS": "1"}, "grace_period_s": 2},
    ),
    "tensorflow_servers": Framework(
        launcher="tensorflow",
        static={"hidden": 2048},
        options={"parameter_servers": 1, "grace_period_s": 2},
        scaling={"num_workers": 3},
    ),
    "lightgbm_sockets": Framework(
        launcher="{program} --machines {machines} --rank {rank}",
        static={"rows": 400_000},
        length="num_boost_round",
        units=30,
        ranges={
            "learning_rate": ContinuousParameter(0.02, 0.5, "Logarithmic"),
            "num_leaves": IntegerParameter(4, 32),
        },
        objective=("loss", "Minimize", r"round=(?P<step>\d+) loss=(?P<value>\S+)"),
    ),
    "jax_processes": Framework(launcher="python", static={"hidden": 3072}, options={"grace_period_s": 2}),
    "mpi_averaging": Framework(
        launcher="mpirun",
        static={"steps": 40_000},
        objective=("loss", "Minimize", r"epoch=(?P<step>\d+) loss=(?P<value>\S+)"),
        scaling={"num_workers": 2, "placement_strategy": "STRICT_PACK"},
    ),
    "sklearn_partial_fit": Framework(
        launcher="python",
        static={"passes": 200},
        ranges={"alpha": ContinuousParameter(1e-6, 1e-2, "Logarithmic")},
        scaling={"num_workers": 1},
    ),
}
KEPT = [name for name, framework in FRAMEWORKS.items() if framework.launcher != "tensorflow"]
"""Those that stay loaded."""
RESUMED = {"Name": "resumed", "Regex": r"resumed after (?:epoch|round) (\d+)"}


def trainer_of(name: str, **options: Any) -> ScriptTrainer:
    framework = FRAMEWORKS[name]
    environment = {**framework.options.get("environment", {}), **options.pop("environment", {})}
    objective, _, regex = framework.objective
    return ScriptTrainer(
        f"{name}.py",
        source_dir=FOLDER,
        launcher=framework.launcher,
        scaling=ScalingConfig(**framework.scaling),
        hyperparameters={framework.length: framework.units, **framework.static},
        metric_definitions=[{"Name": objective, "Regex": regex}, RESUMED],
        **{**framework.options, **options, "environment": environment},
    )


def test_every_program_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} == FRAMEWORKS.keys()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_program_is_trained_whole(name: str, ray_cluster: None, tmp_path: Path) -> None:
    result = trainer_of(name).fit({}, storage_path=str(tmp_path / "runs"))
    objective = FRAMEWORKS[name].objective[0]
    assert [report.step for report in result.reports] == [*range(1, FRAMEWORKS[name].units + 1)]
    assert all(math.isfinite(report.metrics[objective]) for report in result.reports)
    assert result.details.keys() <= {"no_model"}
    assert running(f"{name}.py") == []


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_program_is_tuned_and_goes_on_from_its_checkpoint(name: str, ray_cluster: None, tmp_path: Path) -> None:
    objective, direction, _ = FRAMEWORKS[name].objective
    units = FRAMEWORKS[name].units
    rung = units // 3
    tuner = HyperparameterTuner(
        trainer_of(name),
        objective,
        FRAMEWORKS[name].ranges,
        objective_type=direction,
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=units, min_resource=rung)),
        max_jobs=3,
        random_seed=1,
        store=f"sqlite:///{tmp_path}/store.db",
        console=False,
    )
    tuner.fit(job_name="job")
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        trials = {trial.trial_id: trial for trial in store.trials("job")}
        reports = store.reports("job")
    assert [trial.failure_reason for trial in trials.values()] == [""] * 4
    assert not any(trial.details.keys() - {"no_model"} for trial in trials.values())
    assert all(report.objective is not None and math.isfinite(report.objective) for report in reports)
    assert trials.pop("untuned").resource == units
    assert sorted(trial.resource for trial in trials.values()) == [rung, rung, units]
    best = max if direction == "Maximize" else min
    assert trials[tuner.best_training_job()].objective == best(trial.objective for trial in trials.values())
    # One trial was paused at the first rung; its program says from where it went on.
    resumed = {report.metrics["resumed"] for report in reports if "resumed" in report.metrics}
    assert resumed
    assert resumed <= {*range(rung, units)}  # It may have had more before it was ended.
    assert running(f"{name}.py") == []


@pytest.mark.parametrize("name", KEPT)
def test_a_program_that_stays_loaded_gives_its_values_again(name: str, ray_cluster: None, tmp_path: Path) -> None:
    mine = {"KEPT_BY": str(tmp_path)}
    trainer = trainer_of(name, keep_loaded=True, environment=mine)
    framework = FRAMEWORKS[name]
    turns, processes = [], []
    with trainer.gangs("kept", {}) as gangs:
        folder, objective = str(tmp_path / "models"), framework.objective[0]
        gang = RepeatedTrial(gangs, trainer.hyperparameters, framework.units, folder, objective=objective)
        gang.start(trainer.workers)
        for _ in range(2):
            turns.append(gang.train().segment)
            processes.append(hosts(mine))
    first = turns[0].reports
    assert [report.step for report in first] == [*range(1, framework.units + 1)]
    assert turns[1].reports == first
    assert not any(turn.details.keys() - {"no_model"} for turn in turns)
    assert processes[0]
    assert processes[1] == processes[0]
    assert hosts(mine) == set()
