"""What is taken of a Ray Train trainer, what is refused, and its record."""

from __future__ import annotations

import json

import pytest
import ray.train
from ray.train import DataConfig
from ray.train.torch import TorchConfig, TorchTrainer
from ray.train.xgboost import XGBoostTrainer

from hpo import ContinuousParameter, HyperparameterTuner
from tests.support.ray_train_job import OURS, train, trainer
from tests.support.refusals import refuses, refuses_each
from trainers import (
    ConfigurationError,
    RayTrainTrainer,
    TorchTrainer as OwnTorchTrainer,
    XGBoostTrainer as OwnXGBoostTrainer,
)
from trainers.gangs.messages import WORKERS
from trainers.registry import code_in, trainer_from_json, unit_in

NAME = "tests.support.ray_train_job:OURS"
RANGES = {"lr": ContinuousParameter(0.001, 0.1)}


class Object:
    """What no record keeps."""


def recorded(made: RayTrainTrainer, *, allow_code: bool = True) -> RayTrainTrainer:
    again = trainer_from_json(json.loads(json.dumps(made.to_json())), allow_code=allow_code)
    assert isinstance(again, RayTrainTrainer)
    return again


def test_its_configuration_is_the_static_hyperparameters_and_its_workers_the_gang_s():
    made = RayTrainTrainer(trainer(3, lr=0.5))
    assert made.hyperparameters == {"lr": 0.5, "num_epochs": 4}
    assert (made.workers, made.units, made.unit) == (3, 4, "report")
    assert made.patience > made.report_timeout_s == 1800.0


def test_num_workers_of_its_configuration_is_its_own():
    made = RayTrainTrainer(trainer(2, **{WORKERS: 7}))
    assert WORKERS not in made.hyperparameters
    assert made.workers_for({WORKERS: 7}) == 2
    assert recorded(made).loop.config == {WORKERS: 7}
    with refuses(ConfigurationError, field=WORKERS, value=3, remedy="scaling_config"):
        made.check({WORKERS: 3})


@pytest.mark.parametrize("given", [OURS, NAME])
def test_a_record_makes_the_same_trainer_again(given):
    made = RayTrainTrainer(given).with_hyperparameters({"lr": 0.3})
    again = recorded(made)
    assert again.to_json() == made.to_json()
    assert again.hyperparameters["lr"] == 0.3
    assert again.loop.function is train
    assert unit_in(made.to_json()) == "report"


@pytest.mark.parametrize("given", [OURS, NAME])
def test_code_is_run_with_consent_alone(given):
    state = RayTrainTrainer(given).to_json()
    name = NAME if given is NAME else "tests.support.ray_train_job:train"
    assert set(code_in(state).values()) == {name}
    looked_at = trainer_from_json(state)
    assert isinstance(looked_at, RayTrainTrainer)
    assert looked_at.to_json() == state
    with refuses(ConfigurationError, field="train_loop_per_worker", remedy=("allow_code=True", "--allow-code")):
        looked_at.loop.call({})


def test_what_a_record_does_not_keep_is_said_when_somebody_trains():
    made = RayTrainTrainer(trainer(2, tokenizer=Object()))
    made.program({})
    again = recorded(made)
    with refuses(ConfigurationError, field="train_loop_config['tokenizer']", remedy="RayTrainTrainer('module:name')"):
        again.program({})
    assert again.to_json() == made.to_json()


def test_the_function_gets_all_of_its_configuration():
    heard: list[dict] = []
    made = RayTrainTrainer(trainer(0, lambda config: heard.append(config), tokenizer="t", kind=Object))
    made.loop.call({**made.hyperparameters, "lr": 1})
    [config] = heard
    assert (config["lr"], config["tokenizer"], config["kind"]) == (1, "t", Object)


def test_a_function_without_an_argument_has_no_hyperparameters():
    made = RayTrainTrainer(TorchTrainer(lambda: None))
    made.loop.call({})
    with refuses(ConfigurationError, field="lr", remedy="config"):
        made.check({"lr": 1})


class OwnConfig(DataConfig):
    """Deals datasets out otherwise."""


def test_what_is_refused():
    cases = [
        (lambda: OwnTorchTrainer(train), ("ray_trainer", "a TorchTrainer", "ray.train.torch.TorchTrainer")),
        (lambda: "ours", ("ray_trainer", "'ours'", "ray.train.torch.TorchTrainer", "'module:name'")),
        (
            lambda: "tests.support.ray_train_job:nothing",
            ("ray_trainer", "tests.support.ray_train_job:nothing", "module"),
        ),
        (
            lambda: XGBoostTrainer(train),
            ("ray_trainer", "XGBoostConfig", "ray.train.torch.TorchTrainer", "trainers.XGBoostTrainer"),
        ),
        (
            lambda: TorchTrainer(train, torch_config=TorchConfig(backend="mpi")),
            ("TorchConfig", "backend='mpi'", "gloo", "nccl"),
        ),
        (lambda: TorchTrainer(train, datasets={"train": [1, 2]}), ("datasets['train']", "list")),
    ]
    refuses_each([(lambda make=make: RayTrainTrainer(make()), names) for make, names in cases], ConfigurationError)


def test_a_tuner_takes_it_as_it_is():
    tuner = HyperparameterTuner(OURS, "accuracy", RANGES, max_jobs=2, console=False)
    assert isinstance(tuner.estimator, RayTrainTrainer)
    assert tuner.settings.plan().max_resource == 4
    in_hand = HyperparameterTuner(trainer(0), "accuracy", RANGES, max_jobs=2, console=False)
    with refuses(ConfigurationError, field="train", value="num_workers=0", remedy="num_workers=1"):
        in_hand.fit({"train": ([[1.0]], [1.0])})
    with refuses(ConfigurationError, field="objective_metric_name", value="accuracy", remedy="'validation:auc'"):
        HyperparameterTuner(OwnXGBoostTrainer(), "accuracy", RANGES)


def test_a_data_parallel_trainer_is_taken_too():
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    made = RayTrainTrainer(DataParallelTrainer(train, scaling_config=ray.train.ScalingConfig(num_workers=2)))
    assert (made.workers, made.hyperparameters) == (2, {})
