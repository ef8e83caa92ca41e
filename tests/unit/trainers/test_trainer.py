"""What a trainer refuses, records and restores, and a segment is trained with; and single trainings on a real gang."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from ray.train import ScalingConfig

from tests.support.assignments import segment
from tests.support.refusals import refuses
from tests.support.trainers.trainer import CHANNELS, STATIC, make
from trainers import TRAINERS, Channel, ConfigurationError, DataError, GangError, TrainingResult, XGBoostTrainer
from trainers.channels import open_channels
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Event, GangLost, GangUp, Report, Served
from trainers.registry import trainer_from_json
from trainers.xgboost.booster import booster_parameters, segment_seed
from trainers.xgboost.parameters import ROUNDS


def assignment(**changes: Any) -> Assignment:
    values: dict[str, Any] = {
        "trial_id": "trial",
        "hyperparameters": {**STATIC, "num_round": 150},
        "seed": 11,
        "start": 0,
        "stop": 3,
        "checkpoint": None,
        "save_to": "/nowhere",
    }
    return Assignment(**{**values, **changes})


def test_exact_is_for_one_worker() -> None:
    with refuses(ConfigurationError, field=("tree_method", "3"), value="exact", remedy=("hist", "num_workers")):
        make(workers=3, tree_method="exact")
    assert make(workers=1, tree_method="exact").workers == 1
    assert make(workers=3, tree_method="approx").workers == 3


def test_a_training_needs_a_length() -> None:
    with refuses(ConfigurationError, field="hyperparameters", remedy=ROUNDS):
        make().fit(CHANNELS)


def test_an_objective_needs_a_metric() -> None:
    with refuses(ConfigurationError, field="eval_metric", remedy="auc"):
        XGBoostTrainer().metrics(["train", "validation"])


def test_metrics_are_by_channel_and_name() -> None:
    channels = ["train", "validation", "test"]
    assert make(eval_metric="auc").metrics(channels) == ["validation:auc", "test:auc", "train:auc"]
    assert make().metrics(["train", "test"]) == ["test:logloss", "test:auc", "train:logloss", "train:auc"]


@pytest.mark.parametrize(
    ("names", "hint"),
    [(["trian", "validation"], "trian"), (["training"], "training")],
)
def test_a_misspelt_train_channel_is_named(names: list[str], hint: str) -> None:
    with refuses(ConfigurationError, field="train", value=hint) as refused:
        open_channels(dict.fromkeys(names, CHANNELS["train"]))
    assert str(refused.value).count(hint) >= 2, "once among all channels, and once as the one that was meant"


def test_there_has_to_be_a_train_channel() -> None:
    with refuses(ConfigurationError, field="channels", value=[], remedy="train"):
        open_channels({})


def test_channels_are_opened_under_their_names() -> None:
    opened = open_channels({**CHANNELS, "test": Channel.of(CHANNELS["validation"], name="elsewhere")})
    assert {name: channel.name for name, channel in opened.items()} == {
        "train": "train",
        "validation": "validation",
        "test": "test",
    }
    with refuses(DataError, field="validation", value="no/such/file.csv"):
        open_channels({"train": CHANNELS["train"], "validation": "no/such/file.csv"})


def test_a_trainer_that_has_trained_nothing_has_no_model() -> None:
    with refuses(ConfigurationError, field="model", remedy=("fit()", "best_estimator()")):
        make().model()


def test_a_model_that_is_gone_is_named(tmp_path: Path) -> None:
    with refuses(DataError, field=str(tmp_path / "gone")):
        make().trained(str(tmp_path / "gone")).model()


@pytest.mark.parametrize("name", ROUNDS)
def test_its_length_goes_by_any_of_its_names(name: str) -> None:
    assert make(**{name: 7}).units == 7
    assert make().units is None


def test_hyperparameters_are_put_over_its_own_in_a_copy() -> None:
    before = make(workers=2, max_depth=3)
    after = before.with_hyperparameters({"max_depth": 5, "alpha": 1.0})
    assert after.hyperparameters == {**STATIC, "max_depth": 5, "alpha": 1.0}
    assert before.hyperparameters == {**STATIC, "max_depth": 3}
    assert (type(after), after.workers) == (XGBoostTrainer, 2)
    with refuses(ConfigurationError, field="tree_method", value="exact"):
        before.with_hyperparameters({"tree_method": "exact"})


def test_the_given_hyperparameters_are_not_held_on_to() -> None:
    given = {"eta": 0.1}
    trainer = XGBoostTrainer(hyperparameters=given)
    given["eta"] = 0.9
    assert trainer.hyperparameters == {"eta": 0.1}


@pytest.mark.parametrize(
    "scaling",
    [
        ScalingConfig(num_workers=3),
        ScalingConfig(num_workers=(2, 4)),
        ScalingConfig(num_workers=2, use_gpu=True),
        ScalingConfig(num_workers=2, resources_per_worker={"CPU": 2, "memory": 1e9}, placement_strategy="SPREAD"),
        ScalingConfig(num_workers=2, use_gpu=True, accelerator_type="A100"),
        ScalingConfig(num_workers=(2, 4), label_selector={"zone": "in(a, b)"}, elastic_resize_monitor_interval_s=5.0),
    ],
)
def test_it_comes_back_from_json_as_it_was(scaling: ScalingConfig) -> None:
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, "num_round": 5})
    again = trainer_from_json(json.loads(json.dumps(trainer.to_json())))
    assert isinstance(again, XGBoostTrainer)
    assert again.to_json() == trainer.to_json()
    assert again.hyperparameters == trainer.hyperparameters
    assert again.scaling == scaling


def test_an_unknown_trainer_names_the_known() -> None:
    with refuses(ConfigurationError, field="trainer", value="OtherTrainer", remedy=(*TRAINERS, "module:name")):
        trainer_from_json({"trainer": "OtherTrainer", "scaling": {}, "hyperparameters": {}})


@given(st.integers(0, 2**31), st.integers(0, 1000))
def test_a_segments_seed_is_one_that_xgboost_takes(trial: int, start: int) -> None:
    assert 0 <= segment_seed(trial, start) < 2**31


def test_a_segments_seed_is_this() -> None:
    """It is on record: a change of this test changes the models of every job that is run again."""
    assert segment_seed(11, 0) == 683_074_876
    assert segment_seed(11, 3) == 664_937_733


def test_segments_of_trials_draw_each_for_themselves() -> None:
    seeds = {segment_seed(trial, start) for trial in range(30) for start in (0, 1, 3, 10, 30)}
    assert len(seeds) == 150


@pytest.mark.parametrize("name", ROUNDS)
def test_xgboost_is_not_told_how_many_rounds(name: str) -> None:
    given = {**STATIC, name: 150}
    parameters = booster_parameters(assignment(hyperparameters=given, start=9, stop=27), cpus=2)
    assert name not in parameters
    assert parameters == {**STATIC, "verbosity": 1, "nthread": 2, "seed": segment_seed(11, 9)}
    assert given[name] == 150


@pytest.mark.parametrize("seed", ["seed", "random_state"])
@pytest.mark.parametrize(("threads", "used"), [({}, 2), ({"nthread": 1}, 1), ({"n_jobs": "1"}, 1), ({"n_jobs": -1}, 2)])
def test_seed_threads_and_verbosity_are_what_was_given(seed: str, threads: dict[str, Any], used: int) -> None:
    given = {**STATIC, seed: 5, "verbosity": 2, **threads}
    parameters = booster_parameters(assignment(hyperparameters=given), cpus=2)
    assert parameters == {**STATIC, "seed": 5, "nthread": used, "verbosity": 2}
    later = booster_parameters(assignment(hyperparameters=given, start=9, stop=27), cpus=2)
    assert later["seed"] == segment_seed(5, 9)


class Scripted:
    """A gang that is up at once, and then says what it is told to, or nothing."""

    starting = 0

    def __init__(self, *answers: Event) -> None:
        self.news: list[Event] = [GangUp(gang="one", incarnation="")]
        self.answers = list(answers)
        self.closed = False

    def held_since(self, gang: str) -> float:
        return time.time()

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> tuple[str, ...]:
        return ()

    def give_back(self) -> tuple[str, ...]:
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        self.news += self.answers

    def events(self, timeout: float) -> list[Event]:
        news, self.news = self.news, []
        time.sleep(0.01)
        return news

    def recycle(self, gang: str, reason: str) -> None:
        pass

    def close(self, *, now: bool = False) -> None:
        self.closed = True


def fit_on(gangs: Scripted, folder: Path, patience: float = 0.2) -> TrainingResult:
    class Waits(XGBoostTrainer):
        patience = 0.0

        @contextmanager
        def gangs(self, name: str, channels: Any, **options: Any) -> Iterator[Any]:
            with closing(gangs):
                yield gangs

    Waits.patience = patience
    try:
        return Waits(hyperparameters={**STATIC, "num_round": 3}).fit(CHANNELS, storage_path=str(folder))
    finally:
        assert gangs.closed


def test_a_gang_that_says_nothing_is_waited_for_no_longer_than_its_trainer_says(tmp_path: Path) -> None:
    with refuses(GangError, field="run-", value=0.2):
        fit_on(Scripted(), tmp_path)


def test_a_training_that_loses_its_workers_again_and_again_says_why(tmp_path: Path) -> None:
    lost = GangLost(gang="one", reason="rank 1 was killed")
    with refuses(GangError, field="workers", value=3, remedy="rank 1 was killed"):
        fit_on(Scripted(lost, GangUp(gang="one", incarnation="")), tmp_path, patience=60.0)


def test_a_training_that_diverged_is_an_error_of_its_own(tmp_path: Path) -> None:
    said = Served(gang="one", trial_id="run", error="the loss is nan", diverged=True)
    with pytest.raises(DivergedError, match="the loss is nan"):
        fit_on(Scripted(said), tmp_path, patience=60.0)


def test_details_of_the_training_are_in_its_result(tmp_path: Path) -> None:
    made = segment(Report(step=3, metrics={"validation:auc": 0.5}), details={"bytes": 7})
    result = fit_on(Scripted(Served(gang="one", trial_id="run", segment=made)), tmp_path, patience=60.0)
    assert result.details == {"bytes": 7}
