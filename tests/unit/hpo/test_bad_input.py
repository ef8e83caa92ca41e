"""Bad input to the Python API: one error that names the field, the value and the remedy, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.record.store import JobRow, Store
from tests.support.bad_input import GOOD, RANGES, STATIC, make, rows
from tests.support.hpo.bad_input import damaged
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, DataError, XGBoostTrainer
from trainers.channels import Channel

HYPERBAND = "HyperbandStrategyConfig"


def test_a_wrong_value_is_named_where_it_is_given() -> None:
    refuses_each(
        [
            (lambda: ContinuousParameter(5, 2), ("min_value", 5.0, "max_value", 2.0)),
            (lambda: IntegerParameter(5, 2), ("min_value", 5, "max_value", 2)),
            (lambda: ContinuousParameter(0, 1, "Logarithmic"), ("min_value", 0.0, "above 0", "scaling_type")),
            (lambda: ContinuousParameter(1, 2, "Log"), ("scaling_type", "'Log'", "'Logarithmic'")),
            (lambda: make(early_stopping_type="Auto"), ("early_stopping_type", "'Auto'", "'Hyperband'", "'Off'")),
            (lambda: HyperbandStrategyConfig(3, 9), (HYPERBAND, "max_resource", 3, "min_resource", 9)),
            (lambda: HyperbandStrategyConfig(9, 0), (HYPERBAND, "min_resource", 0, 1)),
            (lambda: HyperbandStrategyConfig("9", 1), (HYPERBAND, "max_resource", "'9'", "whole number")),
            (lambda: HyperbandStrategyConfig(9, True), (HYPERBAND, "min_resource", True, "whole number")),
            (
                lambda: HyperbandStrategyConfig(9, 1, reduction_factor=1),
                (HYPERBAND, "reduction_factor", 1, "whole number"),
            ),
            (
                lambda: HyperbandStrategyConfig(10**5000, 1),
                (HYPERBAND, "max_resource", "16,610 bits", "whole number"),
            ),
            (
                lambda: StrategyConfig({"max_resource": 9}),
                ("hyperband_strategy_config", {"max_resource": 9}, "HyperbandStrategyConfig"),
            ),
            (lambda: StrategyConfig.from_json({"max": 9}), ("StrategyConfig", {"max": 9}, "to_json")),
            (
                lambda: make(strategy_config={"max_resource": 9}),
                ("strategy_config", {"max_resource": 9}, "StrategyConfig", HYPERBAND),
            ),
            (lambda: make(takes_effect={"eta": 3}), ("takes_effect['eta']", 3, "XGBoost", "takes_effect")),
            (lambda: make(max_jobs=0), ("max_jobs", 0, 1, 100000)),
            (lambda: make(max_jobs=100_001), ("max_jobs", 100001, 1, 100000)),
            (lambda: make(max_jobs=10**12), ("max_jobs", 1000000000000, 1, 100000)),
            (lambda: make(max_jobs=10**5000), ("max_jobs", "16,610 bits", 1, 100000)),
            (lambda: make(max_cost=10**5000), ("max_cost", "16,610 bits", "above 0")),
            (lambda: make(random_seed=2**63), ("random_seed", 9223372036854775808, 0, "2**63")),
            (lambda: make(max_parallel_jobs=None), ("max_parallel_jobs", None, 1)),
            (lambda: make(storage_path=5), ("storage_path", 5, "string")),
            (lambda: make(storage_path="s3://key:secret@b/j"), ("storage_path", "'s3://***@b/j'", "credentials")),
            (
                lambda: make(base_tuning_job_name="my job!"),
                ("base_tuning_job_name", "'my job!'", "letters", "digits", "hyphens"),
            ),
            (lambda: HyperparameterTuner("xgboost", "validation:auc", RANGES), ("estimator", "'xgboost'", "trainer")),
            (lambda: make(objective_metric_name="auc"), ("objective_metric_name", "'auc'", "channel", "metric")),
            (lambda: make(objective_metric_name=None), ("objective_metric_name", None, "channel", "metric")),
            (lambda: make(ranges={}), ("hyperparameter_ranges", {}, "dict", "range")),
            (
                lambda: make(ranges=[ContinuousParameter(0, 1)]),
                ("hyperparameter_ranges", [ContinuousParameter(0, 1)], "dict"),
            ),
            (lambda: make(ranges={"eta": 0.3}), ("hyperparameter_ranges['eta']", 0.3, "ContinuousParameter")),
            (lambda: make(ranges={"a/b": IntegerParameter(1, 2)}), ("'a/b'", "'/'")),
            (lambda: make(3, {"tree_method": "exact"}), ("tree_method", "'exact'", "3 workers", "'hist'")),
            (
                lambda: make(3, ranges={"tree_method": CategoricalParameter(["hist", "exact"])}),
                ("hyperparameter_ranges['tree_method']", "tree_method", "'exact'", "3 workers", "'hist'"),
            ),
            (lambda: make(static={"etaa": 0.1}), ("'etaa'", "XGBoost", "'eta'")),
            (
                lambda: make(ranges={"max_dept": IntegerParameter(1, 5)}),
                ("hyperparameter_ranges['max_dept']", IntegerParameter(1, 5), "'max_depth'"),
            ),
            (
                lambda: make(ranges={"eta": ContinuousParameter(-0.1, 1)}),
                ("hyperparameter_ranges['eta']", ContinuousParameter(-0.1, 1.0), "'eta'", -0.1, 0),
            ),
            (
                lambda: make(ranges={"subsample": ContinuousParameter(0.5, 1.5)}),
                ("hyperparameter_ranges['subsample']", "'subsample'", 1.5, 0, 1),
            ),
            (
                lambda: make(ranges={"max_depth": ContinuousParameter(1, 10)}),
                ("hyperparameter_ranges['max_depth']", "'max_depth'", 1.0, 0, "whole number"),
            ),
            (
                lambda: make(ranges={"colsample_bytree": CategoricalParameter([0, 0.5])}),
                ("hyperparameter_ranges['colsample_bytree']", "'colsample_bytree'", 0, 1),
            ),
            (
                lambda: make(static={"eta": 0.3}, ranges={"learning_rate": ContinuousParameter(0.1, 1)}),
                ("hyperparameter_ranges['learning_rate']", "'eta'", "'learning_rate'"),
            ),
            (
                lambda: make(ranges={"eta": ContinuousParameter(0, 1), "learning_rate": ContinuousParameter(0, 1)}),
                ("hyperparameter_ranges", "'eta'", "'learning_rate'"),
            ),
            (
                lambda: make(ranges={"num_round": ContinuousParameter(1, 10)}),
                ("hyperparameter_ranges['num_round']", ContinuousParameter(1.0, 10.0), "IntegerParameter"),
            ),
            (
                lambda: make(ranges={"n_estimators": IntegerParameter(0, 10)}),
                ("hyperparameter_ranges['n_estimators']", IntegerParameter(0, 10), "IntegerParameter"),
            ),
        ],
        ConfigurationError,
    )


def test_ranges_may_reach_to_where_only_their_end_is_wrong() -> None:
    ranges = {name: ContinuousParameter(0, 1) for name in ("eta", "subsample", "colsample_bytree", "colsample_bylevel")}
    assert make(ranges=ranges).plan().trials == 3


@pytest.fixture
def nothing_started(home: Path) -> Any:
    """Fails where the test left a job in the store, or started or ended Ray."""
    before = ray.is_initialized()
    yield
    assert ray.is_initialized() == before
    with Store() as store:
        assert store.jobs() == []


@pytest.mark.usefixtures("nothing_started")
def test_wrong_channels_are_refused_before_anything_starts() -> None:
    def fit(channels: Any) -> Callable[[], object]:
        return lambda: make().fit(channels)

    refuses_each(
        [
            (fit(7), ("'train'", "int", "DataFrame")),
            (fit({"trian": GOOD}), ("'trian'", '"train"')),
            (fit({"train": GOOD, "a:b": GOOD}), ("channels", "'a:b'", "letters", "digits")),
            (fit({"train": GOOD, 5: GOOD}), ("channels", 5, "letters", "digits")),
            (fit({"train": GOOD}), ("'validation:auc'", "'validation'")),
            (fit({"train": GOOD, "validaton": GOOD}), ("'validation:auc'", "'validaton:auc'")),
        ],
        ConfigurationError,
    )


@pytest.mark.usefixtures("nothing_started")
def test_wrong_data_are_refused_before_anything_starts() -> None:
    def fit(train: Any, validation: Any = GOOD) -> Callable[[], object]:
        return lambda: make().fit({"train": train, "validation": validation})

    def named(name: str) -> Callable[[], object]:
        table = rows().rename(columns={"a": name})
        return fit(table, table)

    other_target = Channel.of(GOOD, name="validation", target="z").expecting(())
    refuses_each(
        [
            (fit("no.csv"), ("channel 'train'", "no.csv", "path")),
            (fit(GOOD, Channel.of(rows(columns="zabc"))), ("channel 'validation'", "'c'", "channel 'train'")),
            (fit(GOOD, rows([1.0] * 8)), ("channel 'validation'", 1, "'validation:auc'", "class", "metric")),
            (fit(GOOD, rows([0.0] * 8)), ("channel 'validation'", 0, "'validation:auc'", "class", "metric")),
            (fit(rows([0.0] * 8)), ("channel 'train'", 0, "'binary:logistic'", "class")),
            (fit(rows([0.0, 2.0])), ("channel 'train'", 2, "'binary:logistic'", 0, 1)),
            (fit(rows([0.0, np.nan])), ("channel 'train'", 1, "NaN")),
            (fit(GOOD, other_target), ("channel 'validation'", "'z'", "'label'", "channel 'train'")),
            (named("a<5"), ("channel 'train'", "'a<5'", "'<'", "'a_5'")),
            (named("a[0]"), ("channel 'train'", "'a[0]'", "'['", "'a_0_'")),
            (named("0]"), ("channel 'train'", "'0]'", "']'", "'0_'")),
        ],
        DataError,
    )


@pytest.mark.usefixtures("nothing_started")
def test_a_wrong_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    def fit(kind: str) -> Callable[[], object]:
        folder = tmp_path / kind
        folder.mkdir()
        return lambda: make().fit({"train": GOOD, "validation": damaged(folder, kind)})

    names: dict[str, tuple[object, ...]] = {
        "empty": ("validation.csv", "empty"),
        "header only": ("validation.csv", "rows"),
        "short line": ("validation.csv", 3, "line 3", 4),
        "long line": ("validation.csv", 5, "line 4", 4),
        "one class": (1, "'validation:auc'", "class"),
        "not UTF-8": ("validation.csv", "line 2", "UTF-8"),
        "UTF-16": ("validation.csv", "first line", "UTF-8"),
        "text": ("validation.csv", "'b'", "'yes'", "line 2", "categorical"),
        "cut short": ("validation.parquet", "damaged"),
        "directory": ("parts", "directory", ".csv", ".parquet", "pattern"),
        "other columns": ("2.csv", "4 columns", "label, z, a, c", "1.csv", "label, z, a, b"),
    }
    refuses_each([(fit(kind), ("channel 'validation'", *each)) for kind, each in names.items()], DataError)


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize("kind", ["pandas", "csv", "parquet"])
def test_fewer_rows_than_workers_are_named(tmp_path: Path, kind: str) -> None:
    few = rows([0.0, 1.0])
    few.to_csv(tmp_path / "few.csv", index=False)
    few.to_parquet(tmp_path / "few.parquet")
    source = few if kind == "pandas" else tmp_path / f"few.{kind}"
    with refuses(DataError, field="channel 'train'", value="2 rows", remedy="3 workers"):
        make(3).fit({"train": source, "validation": GOOD})


@pytest.mark.usefixtures("nothing_started")
def test_a_column_that_is_no_target_is_named() -> None:
    with refuses(ConfigurationError, field=("channel 'data'", "target"), value="'lable'", remedy="'label'"):
        make().fit({"train": Channel.of(GOOD, target="lable"), "validation": GOOD})


@pytest.mark.usefixtures("nothing_started")
def test_a_name_that_no_job_can_have() -> None:
    def fit(name: Any) -> Callable[[], object]:
        return lambda: make().fit({"train": GOOD, "validation": GOOD}, job_name=name)

    names = ("", "-a", "a-", "my job", "a" * 33, "ä", 5, "a\n")
    refuses_each(
        [(fit(name), ("job_name", repr(name), 32, "letters", "digits", "hyphens")) for name in names],
        ConfigurationError,
    )


def test_a_name_that_is_taken_is_said_before_data_is_read() -> None:
    with Store() as store:
        store.create_job(JobRow(name="taken", created_at=1.0, spec={}))
    with refuses(ConfigurationError, field="job_name", value="'taken'", remedy="attach('taken')"):
        make().fit({"train": "no/such/file.csv"}, job_name="taken")


def test_a_single_training_is_checked_alike() -> None:
    trainer = XGBoostTrainer(hyperparameters=STATIC)
    with refuses(DataError, field="channel 'train'", value=0, remedy="class"):
        trainer.fit({"train": rows([0.0] * 8)})
    with refuses(DataError, field="channel 'test'", value="'b'", remedy="channel 'train'"):
        trainer.fit({"train": GOOD, "test": GOOD.drop(columns="b")})
