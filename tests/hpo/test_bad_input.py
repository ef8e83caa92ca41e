"""Bad input to the Python API: one error that names the field, the value and the remedy, before anything starts."""

from __future__ import annotations

import re
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
from tests.support.processes import printed
from trainers import ConfigurationError, DataError, GangError, WarmbandError, XGBoostTrainer
from trainers.channels import Channel
from trainers.channels.files import files

HYPERBAND = "HyperbandStrategyConfig: "


# ---- what the tuner, its ranges and its strategy are made with


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: ContinuousParameter(5, 2),
            "min_value is 5.0 and max_value is 2.0; give a min_value that is not above",
        ),
        (lambda: IntegerParameter(5, 2), "min_value is 5 and max_value is 2; give a min_value that is not above"),
        (
            lambda: ContinuousParameter(0, 1, "Logarithmic"),
            "min_value is 0.0 with .*; give a min_value above 0, or scal",
        ),
        (lambda: ContinuousParameter(1, 2, "Log"), "scaling_type is 'Log'; give .*; did you mean 'Logarithmic'"),
        (lambda: make(early_stopping_type="Auto"), "early_stopping_type 'Auto' with 'Hyperband': .*; give 'Off'"),
        (
            lambda: HyperbandStrategyConfig(3, 9),
            HYPERBAND + "max_resource is 3, less than min_resource, 9; give a max_res",
        ),
        (lambda: HyperbandStrategyConfig(9, 0), HYPERBAND + "min_resource is 0; give a whole number, 1 or more"),
        (lambda: HyperbandStrategyConfig("9", 1), HYPERBAND + "max_resource is '9'; give a whole number, 1 or more"),
        (lambda: HyperbandStrategyConfig(9, True), HYPERBAND + "min_resource is True; give a whole number"),
        (lambda: HyperbandStrategyConfig(9, 1, reduction_factor=1), HYPERBAND + "reduction_factor is 1; give a whole"),
        (lambda: StrategyConfig({"max_resource": 9}), "hyperband_strategy_config is .*; give HyperbandStrategyConfig"),
        (lambda: StrategyConfig.from_json({"max": 9}), "record of a StrategyConfig is {'max': 9}; give what to_json"),
        (lambda: make(strategy_config={"max_resource": 9}), "strategy_config is .*; give StrategyConfig[(]Hyperband"),
        (
            lambda: make(takes_effect={"eta": 3}),
            r"takes_effect\['eta'\] is 3, and XGBoost trains .*; .* takes_effect out",
        ),
        (lambda: make(max_jobs=0), "max_jobs is 0; give a whole number from 1 to 100000"),
        (lambda: make(max_jobs=100_001), "max_jobs is 100001; give a whole number from 1 to 100000"),
        (lambda: make(max_jobs=10**5000), "max_jobs is a whole number of 16,610 bits; give a whole number from 1 to"),
        (lambda: make(max_cost=10**5000), "max_cost is a whole number of 16,610 bits; give an amount above 0"),
        (lambda: make(random_seed=2**63), r"random_seed is 9223372036854775808; give a whole number from 0 to 2\*\*63"),
        (
            lambda: HyperbandStrategyConfig(10**5000, 1),
            HYPERBAND + "max_resource is a whole number of 16,610 bits; give a whole number from 1 to",
        ),
        (lambda: make(max_jobs=10**12), "max_jobs is 1000000000000; give a whole number from 1 to 100000"),
        (lambda: make(max_parallel_jobs=None), "max_parallel_jobs is None; give a whole number from 1"),
        (lambda: make(storage_path=Path("x")), "storage_path is PosixPath[(]'x'[)]; give a string"),
        (lambda: make(storage_path="s3://key:secret@b/j"), r"storage_path 's3://\*\*\*@b/j' holds credentials"),
        (lambda: make(base_tuning_job_name="my job!"), "base_tuning_job_name is 'my job!'; give letters, digits and"),
        (lambda: HyperparameterTuner("xgboost", "validation:auc", RANGES), "estimator is 'xgboost'; give a trainer"),
        (lambda: make(objective_metric_name="auc"), "objective_metric_name is 'auc'; give a channel and its metric"),
        (lambda: make(objective_metric_name=None), "objective_metric_name is None; give a channel and its metric"),
        (
            lambda: make(ranges={}),
            "hyperparameter_ranges is {}; give a dict with a range for each hyperparameter to tune",
        ),
        (lambda: make(ranges=[ContinuousParameter(0, 1)]), "hyperparameter_ranges is .*; give a dict"),
        (lambda: make(ranges={"eta": 0.3}), r"hyperparameter_ranges\['eta'\] is 0.3; give a ContinuousParameter"),
        (lambda: make(ranges={"a/b": IntegerParameter(1, 2)}), "has the name 'a/b'; give a string without '/'"),
        (
            lambda: make(3, {"tree_method": "exact"}),
            "tree_method 'exact' does not distribute over 3 workers; use 'hist'",
        ),
        (
            lambda: make(3, ranges={"tree_method": CategoricalParameter(["hist", "exact"])}),
            r"hyperparameter_ranges\['tree_method'\] is Categorical.*: tree_method 'exact' does not .*use 'hist",
        ),
        (lambda: make(static={"etaa": 0.1}), "hyperparameter 'etaa' is none of XGBoost's.*did you mean 'eta'"),
        (
            lambda: make(ranges={"max_dept": IntegerParameter(1, 5)}),
            r"hyperparameter_ranges\['max_dept'\] is IntegerParameter\(1, 5\): .*did you mean 'max_depth'",
        ),
        (
            lambda: make(ranges={"eta": ContinuousParameter(-0.1, 1)}),
            r"hyperparameter_ranges\['eta'\] is ContinuousParameter\(-0.1, 1.0\): hyperparameter 'eta' is -0.1; give",
        ),
        (
            lambda: make(ranges={"subsample": ContinuousParameter(0.5, 1.5)}),
            "hyperparameter 'subsample' is 1.5; give a number above 0, up to 1",
        ),
        (
            lambda: make(ranges={"max_depth": ContinuousParameter(1, 10)}),
            "hyperparameter 'max_depth' is 1.0; give a whole number, 0 or more, without a decimal point",
        ),
        (
            lambda: make(ranges={"colsample_bytree": CategoricalParameter([0, 0.5])}),
            "hyperparameter 'colsample_bytree' is 0; give a number above 0, up to 1",
        ),
        (
            lambda: make(static={"eta": 0.3}, ranges={"learning_rate": ContinuousParameter(0.1, 1)}),
            r"hyperparameter_ranges\['learning_rate'\] is .*'eta' and 'learning_rate' are two names of one",
        ),
        (
            lambda: make(ranges={"eta": ContinuousParameter(0, 1), "learning_rate": ContinuousParameter(0, 1)}),
            "hyperparameter_ranges 'eta', 'learning_rate' do not go together: .*two names of one",
        ),
        (
            lambda: make(ranges={"num_round": ContinuousParameter(1, 10)}),
            r"hyperparameter_ranges\['num_round'\] is ContinuousParameter\(1.0, 10.0\), and says how .*give an Int",
        ),
        (
            lambda: make(ranges={"n_estimators": IntegerParameter(0, 10)}),
            "and says how long a trial trains; give an Int",
        ),
    ],
)
def test_a_wrong_value_is_named_where_it_is_given(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        wrong()


def test_ranges_may_reach_to_where_only_their_end_is_wrong() -> None:
    ranges = {name: ContinuousParameter(0, 1) for name in ("eta", "subsample", "colsample_bytree", "colsample_bylevel")}
    assert make(ranges=ranges).plan().trials == 3


# ---- what fit is given


@pytest.fixture
def nothing_started(home: Path) -> Any:
    """Fails where the test left a job in the store, or started or ended Ray."""
    before = ray.is_initialized()
    yield
    assert ray.is_initialized() == before
    with Store() as store:
        assert store.jobs() == []


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize(
    ("channels", "error", "message"),
    [
        ("train.csv", ConfigurationError, 'channels are a str; give a dict, such as {"train": ...}'),
        ({"trian": GOOD}, ConfigurationError, "need one called \"train\"; did you mean it by 'trian'"),
        ({"train": GOOD, "a:b": GOOD}, ConfigurationError, "channels have the name 'a:b'; give letters, digits"),
        ({"train": GOOD, 5: GOOD}, ConfigurationError, "channels have the name 5; give letters, digits"),
        (
            {"train": GOOD},
            ConfigurationError,
            "'validation:auc' is not reported, since only .*; give a channel 'validation'",
        ),
        (
            {"train": GOOD, "validaton": GOOD},
            ConfigurationError,
            "'validation:auc' is not reported; the trainer reports validaton:auc; did you mean 'validaton:auc'",
        ),
        ({"train": "no.csv", "validation": GOOD}, DataError, "channel 'train': no.csv does not exist; check the path"),
        (
            {"train": GOOD, "validation": Channel.of(rows(columns="yabc"))},
            DataError,
            "channel 'validation': columns have 'c', which channel 'train' has not: give both the same columns",
        ),
        (
            {"train": GOOD, "validation": rows(columns="bay")},
            DataError,
            "channel 'validation': columns are in another order than in channel 'train': 'b' for 'y'",
        ),
        (
            {"train": GOOD, "validation": rows([1.0] * 8)},
            DataError,
            "channel 'validation': every label is 1, and objective_metric_name 'validation:auc' takes rows of both "
            "classes: add rows of the other class, or choose another metric",
        ),
        *[
            (
                dict.fromkeys(("train", "validation"), rows().rename(columns={"a": name})),
                DataError,
                f"channel 'train': the column {re.escape(repr(name))} has a name that XGBoost does not take, for its "
                f"'{re.escape(character)}'; rename it, to {re.escape(repr(other))} say",
            )
            for name, character, other in (("a<5", "<", "a_5"), ("a[0]", "[", "a_0_"), ("0]", "]", "0_"))
        ],
        ({"train": GOOD, "validation": rows([0.0] * 8)}, DataError, "channel 'validation': every label is 0"),
        ({"train": rows([0.0] * 8), "validation": GOOD}, DataError, "channel 'train': every label is 0, and objective"),
        (
            {"train": rows([0.0, 2.0]), "validation": GOOD},
            DataError,
            "channel 'train': the label 2 is not what objective 'binary:logistic' takes, labels from 0 to 1: enc",
        ),
        ({"train": rows([0.0, np.nan]), "validation": GOOD}, DataError, "channel 'train': 1 label is missing .NaN."),
        (
            {"train": GOOD, "validation": Channel.of(GOOD, name="validation", target="y").expecting(())},
            DataError,
            "channel 'validation': columns lack 'y' and have 'label', which channel 'train' has not",
        ),
    ],
)
def test_wrong_channels_are_named_before_anything_starts(
    channels: Any, error: type[WarmbandError], message: str
) -> None:
    with pytest.raises(error, match=message):
        make().fit(channels)


def damaged(folder: Path, kind: str) -> Path:
    """A validation channel of which something is wrong."""
    path = folder / "validation.csv"
    match kind:
        case "empty":
            path.touch()
        case "header only":
            path.write_text("label,y,a,b\n")
        case "short line":
            path.write_text("label,y,a,b\n1,2,3,4\n0,2,3\n")
        case "long line":
            path.write_text("label,y,a,b\n1,2,3,4\n\n0,2,3,4,5\n")
        case "one class":
            path.write_text("label,y,a,b\n1,2,3,4\n1,2,3,4\n")
        case "not UTF-8":
            path.write_bytes("label,y,a,b\n1,2,3,\xe9\n".encode("latin-1"))
        case "UTF-16":
            path.write_text("label,y,a,b\n1,2,3,4\n", encoding="utf-16")
        case "text":
            path.write_text("label,y,a,b\n1,2,3,yes\n")
        case "cut short":
            path = path.with_suffix(".parquet")
            GOOD.to_parquet(path)
            path.write_bytes(path.read_bytes()[:-9])
        case "directory":
            path = folder / "parts"
            path.mkdir()
            (path / "README.md").touch()
        case "other columns":
            path = folder / "parts"
            path.mkdir()
            GOOD.to_csv(path / "1.csv", index=False)
            rows(columns="yac").to_csv(path / "2.csv", index=False)
    return path


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty", "validation.csv is empty: write it again, or leave it out"),
        ("header only", "validation.csv holds no rows: write it again, or leave it out"),
        (
            "short line",
            "validation.csv has 3 cells in line 3 and 4 cells in its first: it is cut short or damaged; write",
        ),
        ("long line", "validation.csv has 5 cells in line 4 and 4 cells in its first"),
        ("one class", "every label is 1, and objective_metric_name 'validation:auc' takes rows of both classes"),
        ("not UTF-8", "validation.csv is not UTF-8 in line 2: save it as UTF-8"),
        ("UTF-16", "validation.csv is not UTF-8 in its first line .*: save it as UTF-8"),
        ("text", "validation.csv: column 'b' holds 'yes' in line 2, which is no number; encode it as numbers"),
        ("cut short", "validation.parquet is cut short or damaged .*; write or copy it again"),
        (
            "directory",
            "parts is a directory without a file of rows, .csv, .parquet, .* behind; give another, or a pattern",
        ),
        ("other columns", "2.csv has 4 columns .label, y, a, c. and .*1.csv has 4 columns .label, y, a, b.: all files"),
    ],
)
def test_a_wrong_file_is_named_before_anything_starts(tmp_path: Path, kind: str, message: str) -> None:
    with pytest.raises(DataError, match=f"channel 'validation': .*{message}"):
        make().fit({"train": GOOD, "validation": damaged(tmp_path, kind)})


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize("kind", ["pandas", "csv", "parquet"])
def test_fewer_rows_than_workers_are_named(tmp_path: Path, kind: str) -> None:
    few = rows([0.0, 1.0])
    few.to_csv(tmp_path / "few.csv", index=False)
    few.to_parquet(tmp_path / "few.parquet")
    source = few if kind == "pandas" else tmp_path / f"few.{kind}"
    with pytest.raises(
        DataError, match="channel 'train': 2 rows for 3 workers: each needs at least one; use fewer work"
    ):
        make(3).fit({"train": source, "validation": GOOD})


@pytest.mark.usefixtures("nothing_started")
def test_a_column_that_is_no_target_is_named() -> None:
    with pytest.raises(ConfigurationError, match="channel 'data': target='lable' is no column; did you mean 'label'"):
        make().fit({"train": Channel.of(GOOD, target="lable"), "validation": GOOD})


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize("name", ["", "-a", "a-", "my job", "a" * 33, "ä", 5, "a\n"])
def test_a_name_that_none_can_have(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"job_name is .*; give at most 32 letters, digits and hyphens"):
        make().fit({"train": GOOD, "validation": GOOD}, job_name=name)


def test_a_name_that_is_taken_is_said_before_data_is_read() -> None:
    with Store() as store:
        store.create_job(JobRow(name="taken", created_at=1.0, spec={}))
    with pytest.raises(
        ConfigurationError, match=r"a job named 'taken' is already in sqlite.*; give another job_name, or"
    ):
        make().fit({"train": "no/such/file.csv"}, job_name="taken")


def test_a_single_training_is_checked_alike() -> None:
    trainer = XGBoostTrainer(hyperparameters=STATIC)
    with pytest.raises(DataError, match="channel 'train': every label is 0"):
        trainer.fit({"train": rows([0.0] * 8)})
    with pytest.raises(DataError, match="channel 'test': columns lack 'b' of channel 'train'"):
        trainer.fit({"train": GOOD, "test": GOOD.drop(columns="b")})


@pytest.mark.process
def test_ray_is_not_started_for_any_of_it(home: Path) -> None:
    """In a process of its own, which no other test has started Ray in."""
    program = """
        import ray
        from tests.support.bad_input import GOOD, make, rows
        from trainers import WarmbandError
        for channels in ({}, {"train": GOOD}, {"train": "no.csv"}, {"train": GOOD, "validation": rows([1.0] * 8)}):
            try:
                make().fit(channels)
            except WarmbandError as error:
                print(type(error).__name__)
        assert not ray.is_initialized()
    """
    assert printed(program).split() == ["ConfigurationError", "ConfigurationError", "DataError", "DataError"]


def test_a_worker_says_the_same_of_files_too_large_to_be_read_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in this process; what one elsewhere says comes from its gang: tests/trainers/gangs/test_gang.py."""
    monkeypatch.setattr(files, "QUICK_BYTES", 0)
    with pytest.raises(GangError, match="channel 'validation': every label is 1, and objective_metric_name 'validat"):
        make(0).fit({"train": GOOD, "validation": damaged(tmp_path, "one class")})
