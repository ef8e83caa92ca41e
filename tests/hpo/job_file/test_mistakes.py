"""What is wrong in a job file is refused by its line and key, with what to give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hpo import (
    ContinuousParameter,
    HyperparameterTuner,
)
from hpo.job_file.reading import read_job
from tests.support.job_files import JOB, change
from trainers import ConfigurationError


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
    with pytest.raises(ConfigurationError, match=r"updater\.zzz: unknown key; known here are type, values, when$"):
        read_job(path)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("tuning.max_jobs", "many", "tuning.max_jobs is 'many'; give a whole number, 1 or more"),
        ("tuning.max_jobs", "10", "tuning.max_jobs is '10'; give a whole number, 1 or more"),
        ("tuning.max_jobs", 2.5, "tuning.max_jobs is 2.5; give a whole number, 1 or more"),
        ("tuning.max_jobs", 0, "tuning.max_jobs is 0; give a whole number, 1 or more"),
        ("tuning.max_jobs", True, "tuning.max_jobs is true; give a whole number, 1 or more"),
        ("tuning.max_parallel_jobs", None, "tuning.max_parallel_jobs is null; give a whole number, 1 or more"),
        ("tuning.max_jobs", 10**9, "tuning: max_jobs is 1000000000; give at most 100000"),
        ("tuning.max_runtime_in_seconds", -1, "is -1; give a whole number, 1 or more"),
        ("tuning.objective_type", "Max", "is 'Max'; give one of Maximize, Minimize; did you mean 'Maximize'?"),
        (
            "tuning.strategy",
            "hyperbnd",
            "give one of Bayesian, Hyperband, Random, Grid, ASHA; did you mean 'Hyperband'?",
        ),
        ("tuning.objective_metric_name", 5, "is 5; give text such as validation:auc, in quotes: '5'"),
        (
            "tuning.ranges",
            {},
            "tuning.ranges: no ranges; give names of hyperparameters",
        ),
        ("tuning.ranges", {"a/b": {"type": "integer", "min": 1, "max": 2}}, "the name 'a/b'; give a hyperparameter's"),
        ("tuning.hyperband", {"max_resource": 3, "min_resource": 9}, "max_resource is 3, less than min_resource, 9"),
        ("tuning.hyperband", {"max_resource": 3, "reduction_factor": 1}, "is 1; give a whole number, 2 or more"),
        ("tuning.hyperband", {}, "tuning.hyperband.max_resource is missing; give a whole number, 1 or more: units"),
        ("trainer.num_workers", True, "trainer.num_workers is true; give a whole number, 0 or more"),
        ("trainer.num_workers", -1, "trainer.num_workers is -1; give a whole number, 0 or more"),
        (
            "trainer.type",
            "xgbost",
            "trainer.type is 'xgbost'; give one of xgboost, torch, parameter_server, script, ray_train, custom, "
            "several; did",
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
        ("data.channels.train", {}, "data.channels.train: give either path, for rows, or folder, for files"),
        ("data.channels.train.folder", "x", "data.channels.train: give either path, for rows, or folder, for files"),
        ("data.channels.train", {"folder": 3}, "data.channels.train.folder is 3; give a folder's path, or its URI"),
        (
            "data.channels.train",
            {"folder": "images", "target": "y"},
            "data.channels.train: target is for rows; leave it out",
        ),
        (
            "data.channels.train",
            {"path": "train.csv", "distribution": "Sharded"},
            "train.distribution is 'Sharded'; give one of FullyReplicated, ShardedByS3Key; did you mean",
        ),
        (
            "data.channels.train",
            {"folder": "images"},
            "data.channels.train.folder is 'images', and a trainer of type xgboost reads rows; give path instead, to",
        ),
        (
            "data.channels.train",
            {"images": "x", "text": "y"},
            "for PyTorch, one of images, text, columns, named",
        ),
        ("data.channels.train", {"images": "x", "only": ["a"]}, "train: only is not for images; leave it out"),
        ("data.channels.train", {"text": "x", "target": "y"}, "train: target is not for text; leave it out"),
        ("data.channels.train.size", 8, "data.channels.train: size is for images; leave it out"),
        ("data.channels.train", {"images": "x", "size": 0}, "train.size"),
        (
            "data.channels.train",
            {"named": "rows"},
            "train.named is 'rows'; give a module and a function",
        ),
        (
            "data.channels.train",
            {"columns": "rows.parquet"},
            "data.channels.train.columns is for a trainer of type torch or parameter_server, and this one is xgboost",
        ),
        ("data.channels.train.path", [1, 2], "train.path is [1, 2]; give a path, or a list of paths"),
        ("data.channels.train.delimiter", ";;", "is ';;'; give one character, such as ';'"),
        ("tuning.ranges.eta", 3, "tuning.ranges.eta is 3; give a range such as {type: continuous, min: 0, max: 1}"),
        (
            "tuning.ranges.eta.type",
            "integr",
            "eta.type is 'integr'; give one of continuous, integer, normal, categorical; did",
        ),
        ("tuning.ranges.eta", {"min": 0}, "eta.type is missing; give one of continuous, integer, normal, categorical"),
        ("tuning.ranges.eta.min", "low", "tuning.ranges.eta.min is 'low'; give a number"),
        ("tuning.ranges.eta.min", float("nan"), "tuning.ranges.eta.min is .nan; give a number, and a finite one"),
        ("tuning.ranges.eta.min", 0, "eta: min is 0.0 with scaling 'Logarithmic'; give a min above 0, or scaling 'Li"),
        ("tuning.ranges.eta.scaling", "log", "is 'log'; give one of Auto, Linear, Logarithmic, ReverseLogarithmic"),
        ("tuning.ranges.max_depth.min", 0.5, "tuning.ranges.max_depth.min is 0.5; give a whole number"),
        ("tuning.ranges.eta.step", 0, "tuning.ranges.eta: step is 0.0; give a number above 0"),
        ("tuning.ranges.eta.when", 3, "eta.when is 3; give names of hyperparameters and their values, such as {optim"),
        ("tuning.ranges.eta.when", {"updater": []}, "eta: when['updater'] is []; give at least one value"),
        (
            "tuning.ranges.eta.when",
            {"updatr": ["x"]},
            "'updatr' is not tuned; give the name of another range; did you mean 'updater'?",
        ),
        ("tuning.ranges.eta.when", {"eta": [1]}, "'eta' may have any number between two"),
        ("tuning.ranges.eta", {"type": "normal", "mean": 0}, "eta.standard_deviation is missing; give a number"),
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
        ("trainer.hyperparameters.nthread=99", "--set ", "'nthread' is 99, and a worker holds"),
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
