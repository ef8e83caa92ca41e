"""What `backend` and `ray_params` may be, and that a trainer keeps them wherever it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from ray.train import ScalingConfig

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.job_file.trainer_models import XGBoostSpec
from hpo.record.store import JobRow, Store
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, XGBoostTrainer
from trainers.registry import trainer_from_json
from trainers.xgboost.ray_backend.options import FIELDS

ELASTIC = {"elastic_training": True, "max_failed_actors": 1, "max_actor_restarts": 2}


def make(workers: int = 3, backend: str = "xgboost_ray", **ray_params: Any) -> XGBoostTrainer:
    return XGBoostTrainer(
        scaling=ScalingConfig(num_workers=workers),
        hyperparameters={"eval_metric": "auc", "num_round": 9},
        backend=backend,
        ray_params=ray_params,
    )


@pytest.mark.parametrize("given", ["xgbost_ray", "xgboost-ray", "ray"])
def test_a_backend_that_is_not_there_names_the_nearest(given: str) -> None:
    with refuses(ConfigurationError, field="backend", value=f"'{given}'", remedy=("native", "xgboost_ray")) as no:
        make(backend=given)
    if given != "ray":
        assert str(no.value).count("xgboost_ray") >= 2, "once among all backends, and once as the nearest"


def test_ray_params_that_cannot_be_right() -> None:
    def given(**ray_params: Any) -> Callable[[], object]:
        return lambda: make(**ray_params)

    elastic, failed, restarts = "elastic_training", "max_failed_actors", "max_actor_restarts"
    cases: list[tuple[Callable[[], object], tuple[object, ...]]] = [
        (given(max_actor_restart=1), ("max_actor_restart", restarts)),
        (given(num_actors=3), ("num_actors", *FIELDS)),
        (given(max_actor_restarts=-2), (restarts, -2, -1)),
        (given(max_actor_restarts=1.0), (restarts, 1.0, -1)),
        (given(max_actor_restarts=True), (restarts, True, -1)),
        (given(checkpoint_frequency=0), ("checkpoint_frequency", 0, 1)),
        (given(elastic_training=1), (elastic, 1, "True", "False")),
        (given(elastic_training=True), (elastic, failed, restarts, 0, 1)),
        (given(elastic_training=True, max_failed_actors=1), (elastic, failed, 1, restarts, 0)),
        (given(max_failed_actors=1), (failed, 1, "elastic_training=True")),
        (given(**{**ELASTIC, failed: 3}), (failed, 3, "num_workers")),
    ]
    refuses_each([(call, ("ray_params", *names)) for call, names in cases], ConfigurationError)


@given(st.dictionaries(st.sampled_from([*FIELDS, "other"]), st.none() | st.booleans() | st.integers(-3, 3)))
def test_ray_params_are_taken_as_they_are_or_refused_with_a_name(ray_params: dict[str, Any]) -> None:
    try:
        outcome = str(make(**ray_params).ray_params)
    except ConfigurationError as error:
        outcome = str(error)
    assert outcome == str(ray_params) or any(name in outcome for name in ray_params)


def test_native_gangs_take_no_ray_params() -> None:
    with refuses(ConfigurationError, field=("ray_params", "max_actor_restarts"), remedy=("backend", "xgboost_ray")):
        make(backend="native", max_actor_restarts=1)


def test_actors_have_no_process_of_the_users_own() -> None:
    remedy = ("num_workers=1", "xgboost_ray", "native")
    with refuses(ConfigurationError, field="num_workers", value=0, remedy=remedy):
        make(workers=0)


@pytest.mark.parametrize("resources", [{"CPU": 0.5}, {"CPU": 1.5}, {"GPU": 1}])
def test_actors_need_whole_cpus(resources: dict[str, float]) -> None:
    scaling = ScalingConfig(num_workers=2, resources_per_worker=resources, use_gpu="GPU" in resources)
    cpus = f"{resources.get('CPU', 0):g}"
    with refuses(ConfigurationError, field="xgboost_ray", value=cpus, remedy=("resources_per_worker", "CPU", "1")):
        XGBoostTrainer(scaling=scaling, backend="xgboost_ray")


@pytest.mark.parametrize("workers", [1, 3])
def test_exact_is_refused_for_any_number_of_workers(workers: int) -> None:
    field = ("tree_method", "backend", "xgboost_ray")
    with refuses(ConfigurationError, field=field, value="exact", remedy=("hist", "native")):
        make(workers).with_hyperparameters({"tree_method": "exact"})


def test_a_trainer_keeps_its_backend_wherever_it_goes() -> None:
    trainer = make(**ELASTIC)
    again = trainer_from_json(json.loads(json.dumps(trainer.to_json())))
    for same in (again, trainer.with_hyperparameters({"eta": 0.1}), trainer.trained("/somewhere")):
        assert isinstance(same, XGBoostTrainer)
        assert (same.backend, same.ray_params) == ("xgboost_ray", ELASTIC)
    assert again.to_json() == trainer.to_json()
    assert "backend='xgboost_ray'" in repr(trainer)


def test_a_record_from_before_there_were_backends_is_native() -> None:
    state = make(backend="native").to_json()
    del state["options"]
    again = trainer_from_json(state)
    assert isinstance(again, XGBoostTrainer)
    assert (again.backend, again.ray_params) == ("native", {})


def test_attach_restores_the_backend() -> None:
    made = HyperparameterTuner(
        make(**ELASTIC), "validation:auc", {"eta": ContinuousParameter(0.01, 1)}, strategy="Random", max_jobs=2
    )
    spec = made.settings.to_json({}, 5)
    with Store() as store:
        store.create_job(JobRow(name="kept", created_at=0.0, spec=spec, plan=made.plan().to_json()))
    attached = HyperparameterTuner.attach("kept").estimator
    assert isinstance(attached, XGBoostTrainer)
    assert (attached.backend, attached.ray_params) == ("xgboost_ray", ELASTIC)


def test_a_job_file_names_the_backend() -> None:
    spec = XGBoostSpec(type="xgboost", num_workers=2, backend="xgboost_ray", ray_params={"max_actor_restarts": 1})
    trainer = spec.trainer()
    assert (trainer.backend, trainer.ray_params) == ("xgboost_ray", {"max_actor_restarts": 1})
    assert XGBoostSpec(type="xgboost").trainer().backend == "native"
    with refuses(ValueError, field="backend", value="xgbost_ray", remedy=("'native'", "'xgboost_ray'")):
        XGBoostSpec(type="xgboost", backend="xgbost_ray")  # type: ignore[arg-type]
