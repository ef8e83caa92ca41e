"""Programs whose length has a name of its own, or none: what a job plans, prints, keeps and reproduces."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.tune.schedulers import ASHAScheduler, HyperBandScheduler

from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.observers.summary import show_code
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.script_job import ScriptJob
from trainers import Folder
from trainers.errors import CheckpointError, ConfigurationError

EPOCHS = """
import argparse, os

parser = argparse.ArgumentParser()
parser.add_argument("--num-epochs", type=int, default=6)
parser.add_argument("--eta", type=float, default=0.1)
args = parser.parse_args()
weight = 0.0
for epoch in range(1, args.num_epochs + 1):
    weight += args.eta / args.num_epochs * (1 - weight)
    print(f"epoch={epoch} accuracy={weight:.6f}", flush=True)
with open(os.path.join(os.environ.get("SM_MODEL_DIR", "."), "model.txt"), "w") as file:
    file.write(str(weight))
"""
"""Its values depend on the length that it is given; it saves a model at its end."""

ITERATIONS = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--max_iters", type=int, default=400)
parser.add_argument("--eta", type=float, default=0.1)
args = parser.parse_args()
weight = 0.0
for iteration in range(args.max_iters + 1):
    weight += args.eta / args.max_iters * (1 - weight)
    if iteration % 100 == 0:
        print(f"accuracy={weight:.6f}", flush=True)
"""
"""Reports every 100 iterations, and leaves no model."""

LINES = [{"Name": "accuracy", "Regex": r"accuracy=(?P<value>[-+0-9.e]+)"}]
RUNGS = StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1))
WAYS: dict[str, dict[str, Any]] = {
    "Random": {"strategy": "Random"},
    "Bayesian": {"strategy": "Bayesian"},
    "Hyperband": {"strategy": "Hyperband"},
    "ASHA": {"strategy": "ASHA"},
    "scheduler": {"scheduler": (ASHAScheduler, {"grace_period": 1})},
}


def job(folder: Path, source: str, static: dict[str, Any], **options: Any) -> ScriptJob:
    trainer = {"metric_definitions": LINES, **options.pop("trainer", {})}
    return ScriptJob(folder, source, static={"epochs": None, **static}, trainer=trainer, max_jobs=3, **options)


def printed_command(made: ScriptJob) -> str:
    """The command that `hpo describe` shows."""
    summary = made.tuner.describe()["Summary"]
    command: str = summary["best"]["command"]
    assert command in show_code("job", summary).plain
    return command


def by_hand(command: str) -> list[float]:
    """The values that a command prints."""
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    return [float(value) for value in re.findall(r"accuracy=(\S+)", ran.stdout)]


@pytest.mark.parametrize("way", WAYS)
def test_a_length_by_name_is_that_of_trials_under_every_strategy(tmp_path: Path, way: str) -> None:
    made = job(tmp_path, EPOCHS, {"num-epochs": 4}, trainer={"length": "num-epochs"}, **WAYS[way])
    assert made.tuner.plan().max_resource == 4
    made.fit()
    best = made.tuner.describe()["Summary"]["best"]
    assert by_hand(printed_command(made))[best["resource"] - 1] == pytest.approx(best["value"])
    assert made.tuner.best_estimator().hyperparameters["num-epochs"] == 4
    assert not re.search(r"(?<![-\w])epochs: \d", made.printed)
    folder = made.tuner.best_estimator().model()
    assert float((folder / "model.txt").read_text()) == pytest.approx(best["value"], abs=1e-6)


def test_the_command_of_the_summary_has_the_channels(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "scale").write_text("0.5")
    source = EPOCHS.replace("weight = 0.0", "weight = float(open(os.environ['SM_CHANNEL_TRAIN'] + '/scale').read())")
    made = job(tmp_path, source, {"num-epochs": 2}, trainer={"length": "num-epochs"}, strategy="Random")
    made.tuner.fit({"train": Folder(tmp_path / "data")}, job_name="job")
    best = made.tuner.describe()["Summary"]["best"]
    assert best["value"] > 0.5
    assert by_hand(printed_command(made))[-1] == pytest.approx(best["value"])


@pytest.mark.parametrize("way", WAYS)
def test_a_length_that_nothing_names_is_asked_for(tmp_path: Path, way: str) -> None:
    with refuses(ConfigurationError, field="length", remedy="'num-epochs'") as refused:
        job(tmp_path, EPOCHS, {"num-epochs": 4}, **WAYS[way])
    assert "num_round" not in str(refused.value)


def test_a_number_of_reports_does_it_and_the_configuration_stays_whole(tmp_path: Path) -> None:
    made = job(tmp_path, ITERATIONS, {"max_iters": 400}, trainer={"length": 5}, strategy="Bayesian")
    made.fit()
    best = made.tuner.describe()["Summary"]["best"]
    assert (best["resource"], best["max_resource"]) == (5, 5)
    assert by_hand(printed_command(made))[4] == pytest.approx(best["value"])
    mentions(made.printed, "unit 5 of 5")
    code = show_code("job", made.tuner.describe()["Summary"]).plain
    mentions(code, "max_iters: 400", "length: 5")
    assert not re.search(r"epochs: \d", code)


def test_what_is_printed_of_a_rationed_program_is_what_it_got(tmp_path: Path) -> None:
    made = job(tmp_path, ITERATIONS, {"max_iters": 400}, strategy="Hyperband", strategy_config=RUNGS)
    made.fit()
    best = made.tuner.describe()["Summary"]["best"]
    assert best["trainer"]["hyperparameters"]["max_iters"] == 400
    assert best["trainer"]["options"]["length"] == 4
    assert by_hand(printed_command(made))[best["resource"] - 1] == pytest.approx(best["value"])


@pytest.mark.parametrize(
    "scheduler", [(ASHAScheduler, {"max_t": 4, "grace_period": 1}), HyperBandScheduler(max_t=4, reduction_factor=2)]
)
def test_the_end_that_a_scheduler_was_told_is_a_length(tmp_path: Path, scheduler: Any) -> None:
    assert job(tmp_path, EPOCHS, {}, scheduler=scheduler).tuner.plan().max_resource == 4
    with refuses(ConfigurationError, field="length", remedy="max_t"):
        job(tmp_path, EPOCHS, {}, scheduler=ASHAScheduler())


def test_a_winner_without_a_model_is_said_everywhere(tmp_path: Path) -> None:
    made = job(tmp_path, ITERATIONS, {"max_iters": 400}, strategy="Hyperband", strategy_config=RUNGS)
    made.fit()
    assert made.tuner.describe()["Summary"]["best"]["details"]["no_model"] is True
    assert sum("has no model" in line for line in made.printed.splitlines()) == 1, "warned once as it runs"
    assert not missing_names(made.printed, "no model", "SM_MODEL_DIR")
    assert "best_estimator().model()" not in made.printed
    with refuses(CheckpointError, remedy=("SM_MODEL_DIR", "length")):
        made.tuner.best_estimator().model()
    with refuses(CheckpointError, remedy="SM_MODEL_DIR"):
        made.tuner.deployable(model_fn="json:loads")
    with refuses(CheckpointError, remedy="SM_MODEL_DIR"):
        HyperparameterTuner.attach("job", store=made.store).best_estimator().model()


def test_the_printed_keys_train_the_winner_again(tmp_path: Path) -> None:
    from hpo import TrainingJob
    from hpo.observers.snippets import as_yaml
    from trainers import ScalingConfig, ScriptTrainer

    made = job(tmp_path, ITERATIONS, {"max_iters": 400}, strategy="Hyperband", strategy_config=RUNGS)
    made.fit()
    best = made.tuner.describe()["Summary"]["best"]
    keys = yaml.safe_load(as_yaml(best["trainer"]))
    trainer = ScriptTrainer(
        "train.py",
        source_dir=tmp_path / "source",
        scaling=ScalingConfig(num_workers=0),
        metric_definitions=LINES,
        environment={"STARTS": str(tmp_path / "starts")},
        **keys,
    )
    again = TrainingJob(trainer, storage_path=str(tmp_path / "again"), store=made.store, console=False)
    again.fit(None, job_name="again")
    assert again.curve()["accuracy"].iloc[-1] == pytest.approx(best["value"])


def test_a_program_without_a_model_is_not_told_to_give_a_length_that_is_known(tmp_path: Path) -> None:
    made = job(tmp_path, ITERATIONS, {"max_iters": 400}, trainer={"length": 5}, strategy="Random")
    made.fit()
    assert made.tuner.describe()["Summary"]["best"]["details"]["no_model"] == "length known"
    assert not missing_names(made.printed, "no model", "SM_MODEL_DIR")
    assert "trainer's length" not in made.printed
