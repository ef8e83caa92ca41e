"""Job files: read into the tuner they describe, and refused by the key that is wrong."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from ray.train import ScalingConfig

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.job_file.models import ContinuousRange, JobSpec, Tuning
from hpo.job_file.reading import read_job
from hpo.ranges.numeric import SCALING_TYPES
from hpo.strategies.registry import STRATEGIES
from tests.support import yaml_text
from tests.support.boosting import RANGES, STATIC
from trainers import Channel, ConfigurationError, DataError, XGBoostTrainer

BANK = Path(__file__).resolve().parents[3] / "experiments" / "bank-marketing.yaml"

JOB = """
name: small
data:
  channels:
    train: {path: train.csv}
    validation: {path: validation.csv}
trainer:
  type: xgboost
  num_workers: 2
  hyperparameters: {eval_metric: auc, num_round: 9}
tuning:
  objective_metric_name: validation:auc
  max_jobs: 4
  ranges:
    eta: {type: continuous, min: 0.001, max: 1, scaling: Logarithmic}
    max_depth: {type: integer, min: 1, max: 10}
    updater: {type: categorical, values: [gbtree, dart, 1, 1.5, true, null]}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small job file, to change."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file


def change(path: Path, keys: str, value: Any) -> None:
    """Writes a value at a dotted key of a job file."""
    state = yaml_text.load(path.read_text())
    *parents, last = keys.split(".")
    group = state
    for parent in parents:
        group = group[parent]
    group[last] = value
    path.write_text(yaml_text.dump(state))


# ---- what it describes


def test_the_job_of_the_blog_is_the_tuner_of_the_blog() -> None:
    blog = HyperparameterTuner(
        XGBoostTrainer(scaling=ScalingConfig(num_workers=3), hyperparameters=STATIC),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        max_jobs=30,
        max_parallel_jobs=4,
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=30, min_resource=1)),
        random_seed=1729,
    )
    spec = read_job(BANK)
    assert spec.data.dataset == "bank-marketing"
    tuner = HyperparameterTuner(**spec.arguments())
    assert tuner.settings.to_json({}, 1729) == blog.settings.to_json({}, 1729)
    assert tuner.random_seed == 1729
    assert tuner.objective_metric_name == "validation:auc"
    assert tuner.plan() == blog.plan()
    assert tuner.plan().resource == 334


def train(context: object) -> None:
    """A training function, for its name."""


TORCH = {
    "type": "torch",
    "train_loop": f"{__name__}:train",
    "num_workers": 2,
    "hyperparameters": {"epochs": 9, "per_worker_batch_size": 32},
    "metrics": ["validation:auc"],
    "report_timeout_s": 60.0,
}
LEARNING = {"lr": {"type": "continuous", "min": 0.001, "max": 1}}


@pytest.mark.parametrize(
    ("kind", "more", "trainer"),
    [
        ("torch", {"precision": "bf16", "compile": True}, "TorchTrainer"),
        ("parameter_server", {}, "ParameterServerTrainer"),
    ],
)
def test_trainers_of_functions(path: Path, kind: str, more: dict[str, Any], trainer: str) -> None:
    change(path, "trainer", {**TORCH, **more, "type": kind})
    change(path, "tuning.ranges", {**LEARNING, "num_workers": {"type": "integer", "min": 1, "max": 4}})
    made = HyperparameterTuner(**read_job(path, allow_code=True).arguments()).estimator
    kept = made.to_json()
    assert (kept["trainer"], kept["scaling"]["num_workers"]) == (trainer, 2)
    assert kept["hyperparameters"] == TORCH["hyperparameters"]
    assert kept["options"] == {
        "train_loop_per_worker": f"{__name__}:train",
        "metrics": ["validation:auc"],
        "report_timeout_s": 60.0,
        **more,
    }


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        ({"train_loop": "train"}, "trainer.train_loop is 'train'; give a module and a function, such as mnist:train"),
        ({"precision": "fp16"}, "trainer.precision is 'fp16'; give one of fp32, bf16"),
        ({"type": "parameter_server", "compile": True}, "trainer.compile: unknown key"),
        ({"report_timeout_s": 0}, "trainer.report_timeout_s is 0; give a number above 0"),
        ({"metrics": "validation:auc"}, "trainer.metrics is 'validation:auc'; give a list of"),
    ],
)
def test_what_trainers_of_functions_refuse(path: Path, trainer: dict[str, Any], message: str) -> None:
    change(path, "trainer", {**TORCH, **trainer})
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    assert message in str(caught.value)


def test_a_function_that_is_not_there_is_named(path: Path) -> None:
    change(path, "trainer", {**TORCH, "train_loop": "no_such_module:train"})
    change(path, "tuning.ranges", LEARNING)
    with pytest.raises(ConfigurationError, match="trainer: train_loop 'no_such_module:train' cannot be loaded"):
        HyperparameterTuner(**read_job(path, allow_code=True).arguments())


def test_a_function_beside_the_job_file_is_found(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_the_job.py").write_text("def train(context):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    change(path, "trainer", {**TORCH, "train_loop": "beside_the_job:train"})
    change(path, "tuning.ranges", LEARNING)
    assert (
        HyperparameterTuner(**read_job(path, allow_code=True).arguments()).estimator.options["train_loop_per_worker"]
        == "beside_the_job:train"
    )


def test_every_key_reaches_the_tuner(path: Path) -> None:
    sets = [
        "trainer.use_gpu=true",
        "trainer.resources_per_worker={CPU: 2, GPU: 0.5}",
        "trainer.placement=SPREAD",
        "trainer.accelerator_type=A100",
        "trainer.label_selector={zone: 'in(a, b)', market-type: '!spot'}",
        "tuning.objective_type=Minimize",
        "tuning.objective_value=best",
        "tuning.hyperband={max_resource: 16, min_resource: 2, reduction_factor: 4}",
        "tuning.max_parallel_jobs=3",
        "tuning.max_runtime_in_seconds=600",
        "tuning.random_seed=5",
        "storage_path=s3://bucket/jobs",
    ]
    tuner = HyperparameterTuner(**read_job(path, sets).arguments())
    spec = tuner.settings.to_json({}, 5)
    expected = {
        "objective_metric_name": "validation:auc",
        "objective_type": "Minimize",
        "objective_value": "best",
        "strategy": "Hyperband",
        "strategy_config": {"max_resource": 16, "min_resource": 2, "reduction_factor": 4},
        "max_jobs": 4,
        "max_parallel_jobs": 3,
        "max_runtime_in_seconds": 600,
        "storage_path": "s3://bucket/jobs",
    }
    assert {key: spec[key] for key in expected} == expected
    assert tuner.random_seed == 5
    assert tuner.ranges == {
        "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
        "max_depth": IntegerParameter(1, 10),
        "updater": CategoricalParameter(["gbtree", "dart", 1, 1.5, True, None]),
    }
    scaling = tuner.estimator.scaling
    assert (scaling.num_workers, scaling.use_gpu) == (2, True)
    assert scaling.resources_per_worker == {"CPU": 2, "GPU": 0.5}
    assert scaling.placement_strategy == "SPREAD"
    assert scaling.accelerator_type == "A100"
    assert scaling.label_selector == {"zone": "in(a, b)", "market-type": "!spot"}
    assert tuner.estimator.hyperparameters == {"eval_metric": "auc", "num_round": 9}


def test_the_record_is_kept_where_the_file_says(path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    assert HyperparameterTuner(**read_job(path, [f"store={url}"]).arguments())._store == url
    assert HyperparameterTuner(**read_job(path).arguments())._store is None


# ---- overrides


@pytest.mark.parametrize(
    ("override", "keys", "value"),
    [
        ("tuning.max_jobs=10", "tuning.max_jobs", 10),
        ("trainer.hyperparameters.eta=0.25", "trainer.hyperparameters.eta", 0.25),
        ("trainer.hyperparameters.eta='0.25'", "trainer.hyperparameters.eta", "0.25"),
        ("trainer.hyperparameters.one_drop=false", "trainer.hyperparameters.one_drop", False),
        ("trainer.hyperparameters.eval_metric=[auc, error]", "trainer.hyperparameters.eval_metric", ["auc", "error"]),
        ("name=null", "name", None),
        ("name=", "name", None),
        ("tuning.hyperband.max_resource=27", "tuning.hyperband.max_resource", 27),
        ("trainer.resources_per_worker.CPU=2", "trainer.resources_per_worker", {"CPU": 2.0}),
        ("storage_path=s3://bucket/key=value", "storage_path", "s3://bucket/key=value"),
        ("tuning.ranges.eta.max=0.5", "tuning.ranges.eta.max", 0.5),
        ("tuning.ranges.eta={type: categorical, values: [1]}", "tuning.ranges.eta.values", [1]),
    ],
)
def test_set_changes_one_key(path: Path, override: str, keys: str, value: Any) -> None:
    def at_keys(spec: JobSpec) -> Any:
        found: Any = spec.model_dump()
        for key in keys.split("."):
            found = found.get(key) if found else None
        return found

    before, after = read_job(path), read_job(path, [override])
    assert at_keys(after) == value
    assert type(at_keys(after)) is type(value)
    assert at_keys(before) != value
    group = keys.split(".")[0]
    assert after.model_dump(exclude={group}) == before.model_dump(exclude={group})


def test_the_last_of_two_counts(path: Path) -> None:
    assert read_job(path, ["tuning.max_jobs=10", "tuning.max_jobs=11"]).tuning.max_jobs == 11


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tuning.max_jobs", "it has no value; give key=value, such as tuning.max_jobs=10"),
        ("tuning.max_jobs.x=1", "tuning.max_jobs is 4, not a group of keys"),
        ("name.first.second=1", "name is 'small', not a group of keys"),
        ("tuning.max_jobs=[1, 2", r"the value is not YAML: .*; check brackets and quotes"),
        ("tuning.max_jobs=ten", "tuning.max_jobs is 'ten'; give a whole number, 1 or more"),
        ("tuning.max_job=10", r"tuning.max_job: unknown key; did you mean 'max_jobs'\?"),
        ("tuning.ranges.eta.min=2", "tuning.ranges.eta: min is 2.0 and max is 1.0; give a min that is not above max"),
        ("=1", "it has no key, or an empty part in it"),
        ("tuning..max_jobs=1", "it has no key, or an empty part in it"),
    ],
)
def test_set_says_what_is_wrong(path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_job(path, [override])
    first, *lines = str(caught.value).splitlines()
    assert first == f"job file '{path}':"
    assert len(lines) == 1
    assert re.match(rf"  {re.escape(place_of(path, override))}: {message}", lines[0]), lines[0]


def place_of(path: Path, override: str) -> str:
    """Where a mistake of an override is said to be: it, or the line of what it made wrong with others."""
    line = 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if "eta" in text)
    return f"line {line}" if override.startswith("tuning.ranges.eta") else f"--set {override}"


# ---- what is wrong in the file


@pytest.mark.parametrize(
    ("keys", "near"),
    [
        ("trianer", "trainer"),
        ("tuning.max_job", "max_jobs"),
        ("tuning.objective_metric", "objective_metric_name"),
        ("trainer.num_worker", "num_workers"),
        ("data.datset", "dataset"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(path: Path, keys: str, near: str) -> None:
    change(path, keys, "x")
    with pytest.raises(ConfigurationError, match=rf"  line \d+: {keys}: unknown key; did you mean '{near}'\?"):
        read_job(path)


def test_also_in_a_group_that_may_be_left_out(path: Path) -> None:
    change(path, "tuning.hyperband", {"max_resource": 9, "min_resorce": 1})
    with pytest.raises(ConfigurationError, match=r"tuning.hyperband.min_resorce: unknown key; .*'min_resource'"):
        read_job(path)


def test_a_key_of_another_group_is_sent_there(path: Path) -> None:
    change(path, "trainer.max_jobs", 1)
    with pytest.raises(
        ConfigurationError, match=r"trainer\.max_jobs: unknown key here; did you mean 'tuning.max_jobs'"
    ):
        read_job(path)


def test_a_key_like_no_other_comes_with_those_there_are(path: Path) -> None:
    change(path, "tuning.ranges.updater.zzz", 1)
    with pytest.raises(ConfigurationError, match=r"updater\.zzz: unknown key; known here are type, values$"):
        read_job(path)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("tuning.max_jobs", "many", "tuning.max_jobs is 'many'; give a whole number, 1 or more"),
        ("tuning.max_jobs", "10", "tuning.max_jobs is '10'; give a whole number, 1 or more"),
        ("tuning.max_jobs", 2.5, "tuning.max_jobs is 2.5; give a whole number, 1 or more"),
        ("tuning.max_jobs", 0, "tuning.max_jobs is 0; give a whole number, 1 or more"),
        ("tuning.max_jobs", True, "tuning.max_jobs is true; give a whole number, 1 or more"),
        ("tuning.max_jobs", None, "tuning.max_jobs is null; give a whole number, 1 or more"),
        ("tuning.max_jobs", 10**9, "tuning: max_jobs is 1000000000; give at most 100000"),
        ("tuning.max_runtime_in_seconds", -1, "is -1; give a whole number, 1 or more"),
        ("tuning.objective_type", "Max", "is 'Max'; give one of Maximize, Minimize; did you mean 'Maximize'?"),
        ("tuning.strategy", "hyperbnd", "give one of Hyperband, Random; did you mean 'Hyperband'?"),
        ("tuning.objective_metric_name", 5, "is 5; give text such as validation:auc, in quotes: '5'"),
        ("tuning.ranges", {}, "tuning.ranges is {}; give names of hyperparameters and their ranges"),
        ("tuning.ranges", {"a/b": {"type": "integer", "min": 1, "max": 2}}, "the name 'a/b'; give a hyperparameter's"),
        ("tuning.hyperband", {"max_resource": 3, "min_resource": 9}, "max_resource is 3, less than min_resource, 9"),
        ("tuning.hyperband", {"max_resource": 3, "reduction_factor": 1}, "is 1; give a whole number, 2 or more"),
        ("tuning.hyperband", {}, "tuning.hyperband.max_resource is missing; give a whole number, 1 or more: units"),
        ("trainer.num_workers", True, "trainer.num_workers is true; give a whole number, 0 or more"),
        ("trainer.num_workers", -1, "trainer.num_workers is -1; give a whole number, 0 or more"),
        (
            "trainer.type",
            "xgbost",
            "trainer.type is 'xgbost'; give one of xgboost, torch, parameter_server, custom; did",
        ),
        ("trainer.hyperparameters", [1], "trainer.hyperparameters is [1]; give names and values"),
        ("trainer.use_gpu", "yes", "trainer.use_gpu is 'yes'; give true or false"),
        ("trainer.resources_per_worker", {"CPU": -1}, "trainer.resources_per_worker.CPU is -1; give a number, 0 or"),
        ("trainer.accelerator_type", 100, "trainer.accelerator_type is 100; give text"),
        ("trainer.label_selector", [{"zone": "a"}], "trainer.label_selector is [{zone: 'a'}]; give names and values"),
        ("trainer.label_selector", {"zone": 3}, "trainer.label_selector.zone is 3; give text"),
        ("trainer", None, "trainer is null; give a group of keys"),
        ("data", {}, "data: give either dataset or channels"),
        ("data", {"dataset": "bank"}, "there is no dataset 'bank'; give one of bank-marketing, bank-marketing-synth"),
        ("data", {"channels": {"test": {"path": "x.csv"}}}, "data: channels are test; give one called train"),
        ("data.channels.train", {}, "data.channels.train.path is missing; give a path, or a list of paths: CSV or"),
        ("data.channels.train.path", [1, 2], "train.path is [1, 2]; give a path, or a list of paths"),
        ("data.channels.train.delimiter", ";;", "is ';;'; give one character, such as ';'"),
        ("tuning.ranges.eta", 3, "tuning.ranges.eta is 3; give a range such as {type: continuous, min: 0, max: 1}"),
        ("tuning.ranges.eta.type", "integr", "eta.type is 'integr'; give one of continuous, integer, categorical; did"),
        ("tuning.ranges.eta", {"min": 0}, "eta.type is missing; give one of continuous, integer, categorical"),
        ("tuning.ranges.eta.min", "low", "tuning.ranges.eta.min is 'low'; give a number"),
        ("tuning.ranges.eta.min", float("nan"), "tuning.ranges.eta.min is .nan; give a number, and a finite one"),
        ("tuning.ranges.eta.min", 0, "eta: min is 0.0 with scaling 'Logarithmic'; give a min above 0, or scaling 'Li"),
        ("tuning.ranges.eta.scaling", "log", "is 'log'; give one of Auto, Linear, Logarithmic, ReverseLogarithmic"),
        ("tuning.ranges.max_depth.min", 0.5, "tuning.ranges.max_depth.min is 0.5; give a whole number"),
        ("tuning.ranges.updater.values", 3, "tuning.ranges.updater.values is 3; give a list"),
        ("tuning.ranges.updater.values", [], "tuning.ranges.updater: values is []; give at least one value"),
        ("name", "-x", "name is '-x'; give at most 32 letters, digits and hyphens, no hyphen first or last"),
        (
            "name",
            12,
            "name is 12; give at most 32 letters, digits and hyphens, no hyphen first or last, in quotes: '12'",
        ),
    ],
)
def test_a_wrong_value_is_named_by_its_line_and_key_with_what_to_give(
    path, keys: str, value: Any, message: str
) -> None:
    change(path, keys, value)
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    first, *lines = str(caught.value).splitlines()
    assert first == f"job file '{path}':"
    assert len(lines) == 1
    assert message in lines[0]
    number = int(re.match(r"  line (\d+): ", lines[0])[1])
    group, key = keys.split(".")[0], keys.split(".")[-1]
    below = range(line_of(path, group), len(path.read_text().splitlines()) + 1)
    assert number in below
    if f"{keys} is" in lines[0]:
        assert path.read_text().splitlines()[number - 1].strip().startswith(f"{key}:")


def line_of(path: Path, key: str) -> int:
    """The line where a key of the top level stands."""
    return 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if text.startswith(f"{key}:"))


def test_no_workers_may_be_asked_for(path: Path) -> None:
    assert read_job(path, ["trainer.num_workers=0"]).trainer.num_workers == 0


def test_text_that_looks_like_a_number_of_yaml_1_2_is_one(path: Path) -> None:
    path.write_text(JOB.replace("min: 0.001", "min: 1e-3"))
    assert read_job(path).tuning.ranges["eta"].parameter() == ContinuousParameter(0.001, 1, "Logarithmic")


def test_every_problem_is_named_at_once(path: Path) -> None:
    change(path, "tuning.max_jobs", "many")
    change(path, "trianer", {})
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    assert "tuning.max_jobs" in str(caught.value)
    assert "trianer" in str(caught.value)
    assert str(path) in str(caught.value)


WRONG = """
data: {dataset: bank-marketing-sinthetic}
trainer:
  type: xgboost
  hyperparameters:
    eval_metric: auc
    max_dept: 3
    subsample: 2
    num_round: 9
tuning:
  max_jobs: many
  objective_metric_name: validation:acu
  ranges:
    etta: {type: continuous, min: 0, max: 1}
    eta: {type: continuous, min: 0, max: 1}
    colsample_bytree: {type: continuous, min: 0.5, max: 2}
"""
LINES = [
    (2, "data.dataset: there is no dataset 'bank-marketing-sinthetic'; .*did you mean 'bank-marketing-synthetic'"),
    (7, "trainer: hyperparameters 'max_dept' is none of XGBoost's.*; did you mean 'max_depth'"),
    (8, "trainer: hyperparameters 'subsample' is 2; give a number above 0, up to 1"),
    (11, "tuning.max_jobs is 'many'; give a whole number, 1 or more"),
    (12, "tuning: objective_metric_name 'validation:acu' is not reported; .*; did you mean 'validation:auc'"),
    (14, "tuning: hyperparameter_ranges.'etta'. .* is none of XGBoost's, .*; did you mean 'eta'"),
    (16, "tuning: hyperparameter_ranges.'colsample_bytree'. .* is 2.0; give a number above 0, up to 1"),
]


def test_what_the_form_does_not_tell_is_said_with_it_and_each_has_its_line(path: Path) -> None:
    path.write_text(WRONG)
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    first, *lines = str(caught.value).splitlines()
    assert first == f"job file '{path}':"
    assert len(lines) == len(LINES), lines
    for line, (number, message) in zip(lines, LINES, strict=True):
        assert re.match(rf"  line {number}: {message}", line), line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("tuning.objective_metric_name=auc", "objective_metric_name is 'auc'; give a channel and its metric"),
        ("tuning.objective_metric_name=test:auc", "'test:auc' is not reported; the trainer reports validation:auc"),
        ("trainer.hyperparameters.eval_metric=acu", "hyperparameters 'eval_metric' is 'acu'; give metrics among"),
        ("trainer.hyperparameters.eval_metric=null", "hyperparameters have no 'eval_metric'"),
        ("trainer.hyperparameters.num_round=null", "nothing says how long a trial trains: give tuning.hyperband.max_r"),
        ("data.channels.validation.delimiter=;;", "data.channels.validation.delimiter is ';;'; give one character"),
        (
            "data.channels={train: {path: a.csv}}",
            "channels beside 'train' .*; give a channel 'validation' under data.c",
        ),
    ],
)
def test_one_mistake_is_one_line(path: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_job(path, [change])
    _, *lines = str(caught.value).splitlines()
    assert len(lines) == 1, lines
    assert re.search(message, lines[0]), lines[0]
    assert re.match(r"  (line \d+|--set .*): ", lines[0]), lines[0]


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (
            "trainer.hyperparameters.tree_method=exact",
            "--set ",
            "tree_method 'exact' does not distribute over 2 workers",
        ),
        ("tuning.max_wait=5", "--set ", "max_wait is 5 and max_runtime_in_seconds 60"),
        ("storage_path=s3://key:secret@bucket", "--set ", "storage_path"),
        ("trainer.hyperparameters.early_stopping_rounds=5", "--set ", "early_stopping_rounds is not for this trainer"),
        ("trainer.resources_per_worker={GPU: 1}", "--set ", "trainer: `use_gpu` is False"),
        ("trainer.accelerator_type=''", "--set ", "accelerator_type='')"),
        ("trainer.label_selector={zone: in(a}", "--set ", "label_selector={'zone': 'in(a'}): give one dict"),
        (
            "trainer.label_selector={a b: c}",
            "--set ",
            "label_selector={'a b': 'c'}): 'a b' cannot be the name of a label",
        ),
        ("trainer.label_selector={'': c}", "--set ", "label_selector={'': 'c'}): '' cannot be the name of a label"),
    ],
)
def test_what_only_the_tuner_finds_has_its_line_too(path: Path, change: str, place: str, message: str) -> None:
    spec = read_job(path, ["tuning.max_runtime_in_seconds=60", change])
    with pytest.raises(ConfigurationError) as caught:
        HyperparameterTuner(**spec.arguments())
    first, *lines = str(caught.value).splitlines()
    assert first == f"job file '{path}':"
    assert len(lines) == 1
    assert lines[0].startswith(f"  {place}"), lines[0]
    assert message in lines[0]


def test_a_length_that_nothing_gives_is_asked_for(path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"give tuning\.hyperband\.max_resource, or num_round in trainer\.hyper"
    ):
        HyperparameterTuner(**read_job(path, ["trainer.hyperparameters={}"]).arguments())


@pytest.mark.parametrize("text", ["data:\n  - [", "a: b: c", "\tdata: 1", "a: 1\nb: *none", "a: \x07"])
def test_what_is_not_yaml_is_said_to_be_none(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"job\.yaml' is not YAML") as caught:
        read_job(path)
    assert f"line {len(text.splitlines())}" in str(caught.value)


def test_what_is_not_text_is_not_yaml_either(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00data")
    with pytest.raises(ConfigurationError, match="is not YAML"):
        read_job(path)


@pytest.mark.parametrize("text", ["", "just words", "- data\n- trainer"])
def test_a_file_without_keys_says_how_to_get_one(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"holds no keys; `hpo init` writes a file to start from"):
        read_job(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no\.yaml' cannot be read: No such file"):
        read_job(tmp_path / "no.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_job(tmp_path)


# ---- its data


def opened(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    change(path, "data", data)
    return read_job(path).data.open(None)


def test_either_a_dataset_or_channels(path: Path) -> None:
    for data in ({}, {"dataset": "bank-marketing-synthetic", "channels": {"train": {"path": "train.csv"}}}):
        with pytest.raises(ConfigurationError, match="data: give either dataset or channels"):
            opened(path, data)


def test_what_the_file_may_name_is_what_there_is() -> None:
    strategies, _ = Tuning.model_json_schema()["properties"]["strategy"]["anyOf"]
    assert strategies == {"enum": [*STRATEGIES]}
    assert get_args(ContinuousRange.model_fields["scaling"].annotation) == SCALING_TYPES
    taken = set(inspect.signature(HyperparameterTuner).parameters)
    assert set(read_job(BANK).tuning.arguments()) <= taken


def test_channels_of_files_without_header_have_the_target_first(path: Path, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "part-0.csv").write_text("1,0.5,2\n0,1.5,3\n")
    (tmp_path / "train" / "part-1.csv").write_text("1,2.5,4\n")
    (tmp_path / "validation.csv").write_text("0,7,8\n")
    channels = opened(
        path,
        {
            "channels": {
                "train": {"path": [str(tmp_path / "train" / f"part-{part}.csv") for part in (0, 1)]},
                "validation": {"path": str(tmp_path / "validation.csv")},
            }
        },
    )
    assert [type(channel) for channel in channels.values()] == [Channel, Channel]
    assert [channel.name for channel in channels.values()] == ["train", "validation"]
    table = channels["train"].read_whole()
    assert np.array_equal(table.labels, [1, 0, 1])
    assert np.array_equal(table.features, [[0.5, 2], [1.5, 3], [2.5, 4]])
    assert np.array_equal(channels["validation"].read_whole().features, [[7, 8]])


def test_channels_of_files_take_what_the_python_api_takes(path: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("age;y\n30;1\n40;0\n")
    file = {"path": str(tmp_path / "train.csv"), "target": "y", "header": True, "delimiter": ";"}
    table = opened(path, {"channels": {"train": file, "validation": file}})["train"].read_whole()
    assert np.array_equal(table.labels, [1, 0])
    assert table.feature_names == ("age",)


def test_a_missing_file_is_named_by_its_channel(path: Path, tmp_path: Path) -> None:
    file = {"path": str(tmp_path / "gone.csv")}
    with pytest.raises(DataError, match=r"channel 'train': .*gone\.csv"):
        opened(path, {"channels": {"train": file, "validation": file}})


def test_a_dataset_comes_with_its_three_channels(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def channels(name: str, **options: Any) -> dict[str, str]:
        asked.update(name=name, **options)
        return {"train": "the train rows", "validation": "the validation rows", "test": "the test rows"}

    monkeypatch.setattr("hpo.jobs.dataset_channels", channels)
    change(path, "data", {"dataset": "bank-marketing", "repeat": 3})
    assert read_job(path).data.open("a-folder") == channels("bank-marketing")
    assert asked == {"name": "bank-marketing", "data_dir": "a-folder", "repeat": 3}


def test_the_channels_of_a_dataset_serve_the_objective() -> None:
    spec = read_job(BANK)
    assert isinstance(spec, JobSpec)
    assert spec.tuning.objective_metric_name in spec.trainer.trainer().metrics(["train", "validation", "test"])
