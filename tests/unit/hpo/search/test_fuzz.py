"""Whatever the Python API is given, the outcome is a valid plan, or one of our own errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from ray.train import ScalingConfig

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.jobs.build import new_name
from hpo.jobs.checks import check_job_name
from hpo.ranges import range_from_json, search_space
from hpo.record.tables import decode, encode
from tests.support.hpo.search.fuzz import ANYTHING, ARRAYS, KEY, SCALAR, look_and_read, ours, quick
from tests.support.properties import examples
from trainers import XGBoostTrainer
from trainers.channels import Channel, open_channels
from trainers.registry import trainer_from_json
from trainers.xgboost.parameters import ALIASES, CHOICES, METRICS, NUMBERS, OTHERS, ROUNDS


def recorded(state: Any) -> Any:
    """What the record gives back of a state that it was given."""
    return decode(json.loads(json.dumps(encode(state), allow_nan=False)))


@quick
@given(kind=st.sampled_from([ContinuousParameter, IntegerParameter]), low=SCALAR, high=SCALAR, scaling=SCALAR)
def test_ranges_of_numbers(kind: Any, low: Any, high: Any, scaling: Any) -> None:
    made = ours(lambda: kind(low, high, scaling))
    if made is not None:
        assert range_from_json(recorded(made.to_json())) == made
        assert made.is_valid(made.decode(search_space({"x": made})["x"].sample(random_state=np.random.RandomState(1))))


@quick
@given(ANYTHING)
def test_ranges_of_values(values: Any) -> None:
    made = ours(lambda: CategoricalParameter(values))
    if made is not None:
        assert range_from_json(recorded(made.to_json())) == made
        assert made.is_valid(made.decode(search_space({"x": made})["x"].sample(random_state=np.random.RandomState(1))))


@quick
@given(
    st.one_of(
        ANYTHING,
        st.fixed_dictionaries(
            {"type": st.sampled_from(["Integer", "Continuous", "Categorical"])},
            optional={"min_value": SCALAR, "max_value": SCALAR, "scaling_type": SCALAR, "values": ANYTHING},
        ),
    )
)
def test_records_of_ranges(state: Any) -> None:
    ours(lambda: range_from_json(state))


@quick
@given(SCALAR, SCALAR, SCALAR, ANYTHING)
def test_strategy_configurations(longest: Any, least: Any, factor: Any, state: Any) -> None:
    ours(lambda: StrategyConfig(state))
    ours(lambda: StrategyConfig.from_json(state))
    made = ours(lambda: StrategyConfig(HyperbandStrategyConfig(longest, least, reduction_factor=factor)))
    if made is not None:
        assert StrategyConfig.from_json(recorded(made.to_json())).to_json() == made.to_json()


NAMES = st.sampled_from([*NUMBERS, *CHOICES, *OTHERS, *ALIASES, *ROUNDS, "early_stopping_rounds"])
VALUES = ANYTHING | st.sampled_from([*METRICS, *CHOICES["objective"]])


@quick
@given(st.dictionaries(NAMES, VALUES, max_size=4), st.integers(1, 3))
def test_hyperparameters(hyperparameters: dict[Any, Any], workers: int) -> None:
    scaling = ScalingConfig(num_workers=workers)
    made = ours(lambda: XGBoostTrainer(scaling=scaling, hyperparameters=hyperparameters))
    if made is not None:
        again = trainer_from_json(recorded(made.to_json()))
        assert recorded(again.to_json()) == recorded(made.to_json())
        ours(lambda: made.metrics(["train", "validation"]))
        ours(lambda: made.label_rules("validation", "validation:auc"))


@settings(quick, max_examples=examples(10))
@given(ANYTHING | st.dictionaries(st.text(max_size=6) | KEY, SCALAR, max_size=1))
def test_hyperparameters_of_any_name(hyperparameters: Any) -> None:
    ours(lambda: XGBoostTrainer(hyperparameters=hyperparameters))


@quick
@given(
    workers=st.one_of(st.integers(0, 5), st.tuples(st.integers(1, 2), st.integers(2, 3)), st.booleans()),
    gpu=st.booleans() | SCALAR,
    resources=st.none()
    | st.dictionaries(st.sampled_from(["CPU", "GPU", "memory", "a"]), SCALAR, max_size=2)
    | ANYTHING,
    placement=st.sampled_from(["PACK", "SPREAD", "STRICT_PACK"]) | SCALAR,
)
def test_scaling(workers: Any, gpu: Any, resources: Any, placement: Any) -> None:
    try:
        scaling = ScalingConfig(
            num_workers=workers, use_gpu=gpu, resources_per_worker=resources, placement_strategy=placement
        )
    except Exception:
        return  # Ray's own word on what is Ray's own.
    made = ours(lambda: XGBoostTrainer(scaling=scaling))
    if made is not None:
        assert made.logical_cpus(2) >= 0
        again = trainer_from_json(recorded(made.to_json()))
        assert recorded(again.to_json()) == recorded(made.to_json())


@quick
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("trainer", "scaling", "hyperparameters"), ANYTHING)) | ANYTHING
)
@example({"trainer": "XGBoostTrainer", "scaling": {"num_worker": 3}, "hyperparameters": {}})
def test_records_of_trainers(state: Any) -> None:
    ours(lambda: trainer_from_json(state))


RANGE = st.one_of(
    st.builds(lambda low, more: ContinuousParameter(low, low + more), st.floats(0, 2), st.floats(0, 2)),
    st.builds(lambda low, more: IntegerParameter(low, low + more), st.integers(0, 5), st.integers(0, 200)),
    st.lists(st.sampled_from([0, 1, 5, 0.5, "hist", "exact", "auto", None, True]), min_size=1, unique_by=repr).map(
        CategoricalParameter
    ),
)
RANGES = st.dictionaries(NAMES | st.sampled_from(["eta", "max_depth", "num_round"]), RANGE, min_size=1, max_size=3)
STATIC = st.fixed_dictionaries(
    {}, optional={"num_round": st.integers(1, 300), "n_estimators": st.integers(1, 300), "eta": st.floats(0, 1)}
)
CONFIGS = st.builds(
    lambda least, more, factor: StrategyConfig(HyperbandStrategyConfig(least + more, least, reduction_factor=factor)),
    st.integers(1, 9),
    st.integers(0, 100),
    st.integers(2, 5),
)
OPTIONS: dict[str, Any] = {
    "max_jobs": st.none() | st.integers(1, 300) | st.just(10**12),
    "max_parallel_jobs": st.integers(1, 9),
    "strategy": st.sampled_from(["Hyperband", "Random", "Grid", "Bayesian", "Hyprband"]),
    "objective_type": st.sampled_from(["Maximize", "Minimize", "max"]),
    "objective_value": st.sampled_from(["last", "best", "first"]),
    "early_stopping_type": st.sampled_from(["Off", "Auto", "off"]),
    "max_runtime_in_seconds": st.none() | st.integers(0, 9),
    "random_seed": st.none() | st.integers(-1),
    "strategy_config": st.none() | CONFIGS,
    "base_tuning_job_name": st.none() | st.text(max_size=5) | st.sampled_from(["a", "a-b", "-", "a" * 40]),
    "tags": ANYTHING,
    "estimator_name": SCALAR,
    "storage_path": SCALAR,
    "store": SCALAR,
    "warm_start_config": SCALAR,
    "metric_definitions": SCALAR,
}


def planned(make: Callable[[], HyperparameterTuner], max_jobs: int | None) -> None:
    tuner = ours(make)
    if tuner is not None:
        plan = tuner.plan()
        assert plan.trials == tuner.max_jobs
        assert tuner.max_jobs == (max_jobs or 1) or (tuner.strategy == "Grid" and max_jobs is None)
        assert all(1 <= rung <= plan.max_resource for bracket in plan.brackets for rung in bracket.rungs)
        check_job_name(new_name(tuner), tuner.TUNING_JOB_NAME_MAX_LENGTH)
        assert recorded(tuner.settings.to_json({}, 1))


@settings(quick, max_examples=examples(60))
@given(RANGES, STATIC, st.integers(1, 2), st.sampled_from(["Hyperband", "Random", "Grid"]), st.data())
def test_tuners_that_may_be_right(ranges: Any, static: Any, workers: int, strategy: str, data: st.DataObject) -> None:
    max_jobs = data.draw(st.none() | st.integers(1, 300))
    config = data.draw(st.none() | CONFIGS) if strategy == "Hyperband" else None

    def make() -> HyperparameterTuner:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters=static)
        return HyperparameterTuner(
            trainer, "validation:auc", ranges, strategy=strategy, strategy_config=config, max_jobs=max_jobs
        )

    planned(make, max_jobs)


@settings(quick, max_examples=examples(60))
@given(
    st.fixed_dictionaries({}, optional={name: ANYTHING | values | values for name, values in OPTIONS.items()}),
    st.just("validation:auc") | SCALAR,
    RANGES | st.dictionaries(st.text(max_size=4) | KEY, RANGE | SCALAR, max_size=2) | ANYTHING,
    st.just(XGBoostTrainer(hyperparameters={"num_round": 30})) | SCALAR,
)
@example(options={}, metric=np.array([1, 2]), ranges=None, estimator=XGBoostTrainer(hyperparameters={"num_round": 30}))
def test_tuners_of_anything(options: dict[str, Any], metric: Any, ranges: Any, estimator: Any) -> None:
    planned(lambda: HyperparameterTuner(estimator, metric, ranges, **options), options.get("max_jobs"))


@quick
@given(st.text(max_size=40) | st.from_regex(r"[a-z0-9-]{1,34}") | ANYTHING)
def test_names_of_jobs(name: Any) -> None:
    ours(lambda: check_job_name(name, 32))


COLUMNS = st.lists(
    st.one_of(
        st.lists(st.floats() | st.none(), min_size=3, max_size=3),
        st.lists(st.sampled_from(["a", "b", None]), min_size=3, max_size=3),
        st.lists(st.sampled_from(["a", "b", None]), min_size=3, max_size=3).map(pd.Categorical),
        st.lists(st.booleans() | st.none(), min_size=3, max_size=3).map(
            lambda values: pd.array(values, dtype="boolean")
        ),
        st.lists(st.integers(0, 9) | st.none(), min_size=3, max_size=3).map(
            lambda values: pd.array(values, dtype="Int64")
        ),
        st.just(pd.date_range("2020", periods=3)),
        st.lists(st.sampled_from([0, 1, 10**30, np.inf, object()]), min_size=3, max_size=3),
    ),
    max_size=4,
)
TARGETS = st.none() | st.integers(-3, 3) | st.sampled_from(["a", "0", 0.0, b"a", True, np.int64(1), ["a"]])


@settings(quick, max_examples=examples(60))
@given(ARRAYS, TARGETS)
def test_arrays(array: Any, target: Any) -> None:
    look_and_read(lambda: Channel.of(array, target=target, name="train"))


@settings(quick, max_examples=examples(60))
@given(COLUMNS, st.lists(st.sampled_from(["a", "b", "c", "d", 0, None, ("a", 1)]), min_size=4, max_size=4), TARGETS)
def test_frames(columns: list[Any], names: list[Any], target: Any) -> None:
    frame = pd.concat([pd.Series(column) for column in columns], axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(names[: len(columns)], dtype=object)
    look_and_read(lambda: Channel.of(frame, target=target, name="train"))


@quick
@given(ANYTHING, st.dictionaries(st.sampled_from(["target", "header", "delimiter"]), SCALAR, max_size=2))
def test_sources_of_any_kind(source: Any, options: dict[str, Any]) -> None:
    look_and_read(lambda: Channel.of(source, name="train", **options))


@quick
@given(st.dictionaries(KEY, st.just(np.eye(3)), max_size=2) | ANYTHING)
def test_channels_of_any_name(channels: Any) -> None:
    opened = ours(lambda: open_channels(channels))
    if opened is not None:
        ours(lambda: XGBoostTrainer().checked(opened))


CSV = st.lists(
    st.lists(
        st.sampled_from(["1", "0", "2.5", "", "y", "nan", "inf", '"1"', '"', "1e400", "é", "a b"]),
        min_size=1,
        max_size=3,
    ),
    max_size=4,
).map(lambda lines: "\n".join(",".join(cells) for cells in lines).encode())
WHOLE = {"csv": b"y,a,b\n0,1,2\n1,3,4\n", "parquet": b""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz")
    pd.DataFrame({"y": [0.0, 1.0] * 50, "a": range(100)}).to_parquet(path / "whole.parquet")
    WHOLE["parquet"] = (path / "whole.parquet").read_bytes()
    return path


@settings(quick, max_examples=examples(60))
@given(CSV | st.binary(max_size=30), st.sampled_from([None, True, False]))
@example(b"\xff\xfey\0,\0", None)
@example(b"y,a\r1,2\r", None)
@example(b"\n\n", True)
def test_csv_files(folder: Path, content: bytes, header: bool | None) -> None:
    (folder / "fuzz.csv").write_bytes(content)
    look_and_read(lambda: Channel.of(folder / "fuzz.csv", header=header, name="train"))


@settings(quick, max_examples=examples(60))
@given(st.sampled_from(["csv", "parquet"]), st.data())
def test_files_that_are_damaged(folder: Path, kind: str, data: st.DataObject) -> None:
    content = bytearray(WHOLE[kind])
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[place] = data.draw(st.integers(0, 255))
    path = folder / f"damaged.{kind}"
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    look_and_read(lambda: Channel.of(path, name="train"))
