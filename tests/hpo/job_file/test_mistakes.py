"""What is wrong in a job file is refused by its line and key, with what to give."""

from __future__ import annotations

import errno
import os
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
from tests.support.refusals import mentions, missing_names, refuses
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
    with refuses(ConfigurationError, field=keys, remedy=f"'{near}'") as caught:
        read_job(path)
    assert re.search(r"\bline \d+", str(caught.value))


def test_also_in_a_group_that_may_be_left_out(path: Path) -> None:
    change(path, "tuning.hyperband", {"max_resource": 9, "min_resorce": 1})
    with refuses(ConfigurationError, field="tuning.hyperband.min_resorce", remedy="'min_resource'"):
        read_job(path)


def test_a_key_of_another_group_is_sent_there(path: Path) -> None:
    change(path, "trainer.max_jobs", 1)
    with refuses(ConfigurationError, field="trainer.max_jobs", remedy="'tuning.max_jobs'"):
        read_job(path)


def test_a_key_like_no_other_comes_with_those_there_are(path: Path) -> None:
    change(path, "tuning.ranges.updater.zzz", 1)
    with refuses(ConfigurationError, field="tuning.ranges.updater.zzz", remedy=("type", "values", "when")) as caught:
        read_job(path)
    assert missing_names(str(caught.value), "min", "max") == ["min", "max"], "keys of other ranges"


STRATEGIES = ("Bayesian", "Hyperband", "Random", "Grid", "ASHA")
TRAINERS = ("xgboost", "torch", "parameter_server", "script", "ray_train", "custom", "several")
RANGES = ("continuous", "integer", "normal", "categorical")
TRAIN = "data.channels.train"
ETA = "tuning.ranges.eta"
WRONG_VALUES: list[tuple[str, Any, tuple[object, ...]]] = [
    ("tuning.max_jobs", "many", ("tuning.max_jobs", "'many'", "whole", 1)),
    ("tuning.max_jobs", "10", ("tuning.max_jobs", "'10'", "whole", 1)),
    ("tuning.max_jobs", 2.5, ("tuning.max_jobs", 2.5, "whole", 1)),
    ("tuning.max_jobs", 0, ("tuning.max_jobs", 0, "whole", 1)),
    ("tuning.max_jobs", True, ("tuning.max_jobs", "true", "whole", 1)),
    ("tuning.max_parallel_jobs", None, ("tuning.max_parallel_jobs", "null", "whole", 1)),
    ("tuning.max_jobs", 10**9, ("tuning", "max_jobs", 10**9, 100000)),
    ("tuning.max_runtime_in_seconds", -1, ("tuning.max_runtime_in_seconds", -1, "whole", 1)),
    ("tuning.objective_type", "Max", ("tuning.objective_type", "'Max'", "'Maximize'", "Minimize")),
    ("tuning.strategy", "hyperbnd", ("tuning.strategy", "'hyperbnd'", *STRATEGIES, "'Hyperband'")),
    ("tuning.objective_metric_name", 5, ("tuning.objective_metric_name", 5, "text", "validation:auc", "'5'")),
    ("tuning.ranges", {}, ("tuning.ranges", "hyperparameters", "autotune")),
    ("tuning.ranges", {"a/b": {"type": "integer", "min": 1, "max": 2}}, ("tuning", "ranges", "'a/b'", "'/'")),
    (
        "tuning.hyperband",
        {"max_resource": 3, "min_resource": 9},
        ("tuning.hyperband", "max_resource", 3, "min_resource", 9),
    ),
    (
        "tuning.hyperband",
        {"max_resource": 3, "reduction_factor": 1},
        ("tuning.hyperband.reduction_factor", 1, "whole", 2),
    ),
    ("tuning.hyperband", {}, ("tuning.hyperband.max_resource", "whole", 1, "units")),
    ("trainer.num_workers", True, ("trainer.num_workers", "true", "whole", 0)),
    ("trainer.num_workers", -1, ("trainer.num_workers", -1, "whole", 0)),
    ("trainer.type", "xgbost", ("trainer.type", "'xgbost'", *TRAINERS, "'xgboost'")),
    ("trainer.hyperparameters", [1], ("trainer.hyperparameters", [1], "names", "values")),
    ("trainer.use_gpu", "yes", ("trainer.use_gpu", "'yes'", "true", "false")),
    ("trainer.resources_per_worker", {"CPU": -1}, ("trainer.resources_per_worker.CPU", -1, 0)),
    ("trainer.accelerator_type", 100, ("trainer.accelerator_type", 100, "text")),
    ("trainer.label_selector", [{"zone": "a"}], ("trainer.label_selector", "[{zone: 'a'}]", "names", "values")),
    ("trainer.label_selector", {"zone": 3}, ("trainer.label_selector.zone", 3, "text")),
    ("trainer", None, ("trainer", "null", "keys", "type")),
    ("data", {}, ("data", "dataset", "channels")),
    ("data", {"dataset": "bank"}, ("dataset", "'bank'", "bank-marketing", "bank-marketing-synthetic")),
    ("data", {"channels": {"test": {"path": "x.csv"}}}, ("data", "channels", "test", "train")),
    (TRAIN, {}, (TRAIN, "path", "rows", "folder", "files")),
    (f"{TRAIN}.folder", "x", (TRAIN, "path", "rows", "folder", "files")),
    (TRAIN, {"folder": 3}, (f"{TRAIN}.folder", 3, "path", "URI")),
    (TRAIN, {"folder": "images", "target": "y"}, (TRAIN, "target", "rows")),
    (
        TRAIN,
        {"path": "train.csv", "distribution": "Sharded"},
        (f"{TRAIN}.distribution", "'Sharded'", "FullyReplicated", "'ShardedByS3Key'"),
    ),
    (TRAIN, {"folder": "images"}, (f"{TRAIN}.folder", "'images'", "xgboost", "rows", "path")),
    (TRAIN, {"images": "x", "text": "y"}, (TRAIN, "PyTorch", "images", "text", "columns", "named")),
    (TRAIN, {"images": "x", "only": ["a"]}, (TRAIN, "only", "images")),
    (TRAIN, {"text": "x", "target": "y"}, (TRAIN, "target", "text")),
    (f"{TRAIN}.size", 8, (TRAIN, "size", "images")),
    (TRAIN, {"images": "x", "size": 0}, (f"{TRAIN}.size", 0)),
    (TRAIN, {"named": "rows"}, (f"{TRAIN}.named", "'rows'", "module", "function")),
    (TRAIN, {"columns": "rows.parquet"}, (f"{TRAIN}.columns", "torch", "parameter_server", "xgboost")),
    (f"{TRAIN}.path", [1, 2], (f"{TRAIN}.path", [1, 2], "list")),
    (f"{TRAIN}.delimiter", ";;", (f"{TRAIN}.delimiter", "';;'", "character", "';'")),
    (ETA, 3, (ETA, 3, "{type: continuous, min: 0, max: 1}")),
    (f"{ETA}.type", "integr", (f"{ETA}.type", "'integr'", *RANGES, "'integer'")),
    (ETA, {"min": 0}, (f"{ETA}.type", *RANGES)),
    (f"{ETA}.min", "low", (f"{ETA}.min", "'low'", "number")),
    (f"{ETA}.min", float("nan"), (f"{ETA}.min", ".nan", "finite")),
    (f"{ETA}.min", 0, (ETA, "min", 0.0, "'Logarithmic'", "'Linear'")),
    (f"{ETA}.scaling", "log", (f"{ETA}.scaling", "'log'", "Auto", "Linear", "Logarithmic", "ReverseLogarithmic")),
    ("tuning.ranges.max_depth.min", 0.5, ("tuning.ranges.max_depth.min", 0.5, "whole")),
    (f"{ETA}.step", 0, (ETA, "step", 0.0)),
    (f"{ETA}.when", 3, (f"{ETA}.when", 3, "{optimizer: [sgd]}")),
    (f"{ETA}.when", {"updater": []}, (ETA, "when['updater']", [], "value")),
    (f"{ETA}.when", {"updatr": ["x"]}, ("eta", "when", "'updatr'", "'updater'")),
    (f"{ETA}.when", {"eta": [1]}, ("eta", "when", {"eta": [1]}, "categorical", "integer", "step")),
    (ETA, {"type": "normal", "mean": 0}, (f"{ETA}.standard_deviation", "number")),
    ("tuning.ranges.updater.values", 3, ("tuning.ranges.updater.values", 3, "list")),
    ("tuning.ranges.updater.values", [], ("tuning.ranges.updater", "values", [], "value")),
    ("name", "-x", ("name", "'-x'", 32, "letters", "digits", "hyphens")),
    ("name", 12, ("name", 12, 32, "letters", "digits", "hyphens", "'12'")),
]


def test_a_wrong_value_is_named_by_its_line_and_key_with_what_to_give(path: Path) -> None:
    faults = []
    for keys, value, names in WRONG_VALUES:
        path.write_text(JOB)
        change(path, keys, value)
        try:
            read_job(path)
        except ConfigurationError as refusal:
            if fault := fault_in(str(refusal), path, keys, names):
                faults.append(f"{keys}: {value!r}: {fault}: {refusal}")
        else:
            faults.append(f"{keys}: {value!r}: no error")
    assert not faults, "\n".join(faults)


def fault_in(said: str, path: Path, keys: str, names: tuple[object, ...]) -> str:
    """What is wrong with the error of one wrong value: its file, its only line, the place or the names in it."""
    first, *lines = said.splitlines()
    found = re.search(r"\bline (\d+)\b", lines[0]) if len(lines) == 1 else None
    if str(path) not in first or found is None:
        return "the file, and one line with a place, are expected"
    number, told = int(found[1]), lines[0].replace(found[0], "", 1)
    if absent := missing_names(told, *names):
        return f"{absent} missing"
    written, key = path.read_text().splitlines(), keys.split(".")[-1]
    if number not in range(line_of(path, keys.split(".")[0]), len(written) + 1):
        return f"line {number} is not of the group"
    whole = re.search(rf"(?<![\w.]){re.escape(keys)}(?!\w|\.\w)", told)
    if whole and not written[number - 1].strip().startswith(f"{key}:"):
        return f"line {number} is not that of the key"
    return ""


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
    mentions(str(caught.value), "tuning.max_jobs", "trianer", path)


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
LINES: list[tuple[int, tuple[object, ...]]] = [
    (2, ("data.dataset", "'bank-marketing-sinthetic'", "'bank-marketing-synthetic'")),
    (7, ("trainer", "hyperparameters", "'max_dept'", "XGBoost", "'max_depth'")),
    (8, ("trainer", "hyperparameters", "'subsample'", 2, 0, 1)),
    (11, ("tuning.max_jobs", "'many'", "whole", 1)),
    (12, ("tuning", "objective_metric_name", "'validation:acu'", "'validation:auc'")),
    (14, ("tuning", "hyperparameter_ranges", "'etta'", "XGBoost", "'eta'")),
    (16, ("tuning", "hyperparameter_ranges", "'colsample_bytree'", 2.0, 0, 1)),
]


def test_what_the_form_does_not_tell_is_said_with_it_and_each_has_its_line(path: Path) -> None:
    path.write_text(WRONG)
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    first, *lines = str(caught.value).splitlines()
    assert str(path) in first
    assert len(lines) == len(LINES), lines
    for line, (number, names) in zip(lines, LINES, strict=True):
        mentions(mentions(line, f"line {number}").replace(f"line {number}", ""), *names)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("tuning.objective_metric_name=auc", ("objective_metric_name", "'auc'", "channel", "'validation:auc'")),
        ("tuning.objective_metric_name=test:auc", ("objective_metric_name", "'test:auc'", "validation:auc")),
        ("trainer.hyperparameters.eval_metric=acu", ("hyperparameters", "'eval_metric'", "'acu'", "'auc'")),
        ("trainer.hyperparameters.eval_metric=null", ("hyperparameters", "'eval_metric'", "auc")),
        (
            "trainer.hyperparameters.num_round=null",
            ("tuning.hyperband.max_resource", "num_round", "trainer.hyperparameters"),
        ),
        ("data.channels.validation.delimiter=;;", ("data.channels.validation.delimiter", "';;'", "character")),
        ("data.channels={train: {path: a.csv}}", ("'validation:auc'", "'train'", "'validation'", "data.channels")),
    ],
)
def test_one_mistake_is_one_line(path: Path, change: str, names: tuple[object, ...]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_job(path, [change])
    _, *lines = str(caught.value).splitlines()
    assert len(lines) == 1, lines
    place = re.match(rf"\W*(line \d+|--set {re.escape(change)})", lines[0])
    assert place, lines[0]
    mentions(lines[0][place.end() :], *names)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("trainer.hyperparameters.tree_method=exact", ("tree_method", "'exact'", 2, "'hist'", "num_workers=1")),
        ("tuning.max_wait=5", ("max_wait", 5, "max_runtime_in_seconds", 60)),
        ("storage_path=s3://key:secret@bucket", ("storage_path", "'s3://***@bucket'", "credentials")),
        ("trainer.hyperparameters.nthread=99", ("'nthread'", 99, "resources_per_worker={'CPU': 99}")),
        ("trainer.resources_per_worker={GPU: 1}", ("trainer", "use_gpu", False, "GPU", "resources_per_worker")),
        ("trainer.accelerator_type=''", ("accelerator_type", "''", "'A100'")),
        ("trainer.label_selector={zone: in(a}", ("label_selector", {"zone": "in(a"}, "dict")),
        ("trainer.label_selector={a b: c}", ("label_selector", {"a b": "c"}, "'a b'", 63)),
        ("trainer.label_selector={'': c}", ("label_selector", {"": "c"}, 63)),
    ],
)
def test_what_only_the_tuner_finds_has_its_line_too(path: Path, change: str, names: tuple[object, ...]) -> None:
    spec = read_job(path, ["tuning.max_runtime_in_seconds=60", change])
    with pytest.raises(ConfigurationError) as caught:
        HyperparameterTuner(**spec.arguments())
    first, *lines = str(caught.value).splitlines()
    assert str(path) in first
    assert len(lines) == 1
    place = mentions(lines[0], "--set", change)
    mentions(place.replace(change, ""), *names)


def test_a_length_that_nothing_gives_is_asked_for(path: Path) -> None:
    names = ("tuning.hyperband.max_resource", "num_round", "trainer.hyperparameters")
    with refuses(ConfigurationError, field=names):
        HyperparameterTuner(**read_job(path, ["trainer.hyperparameters={}"]).arguments())


@pytest.mark.parametrize("text", ["data:\n  - [", "a: b: c", "\tdata: 1", "a: 1\nb: *none", "a: \x07"])
def test_what_is_not_yaml_is_said_to_be_none(path: Path, text: str) -> None:
    path.write_text(text)
    with refuses(ConfigurationError, field="job.yaml", value="YAML", remedy=f"line {len(text.splitlines())}"):
        read_job(path)


def test_what_is_not_text_is_not_yaml_either(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00data")
    with refuses(ConfigurationError, field="job.yaml", value="YAML", remedy="UTF-8"):
        read_job(path)


@pytest.mark.parametrize("text", ["", "just words", "- data\n- trainer"])
def test_a_file_without_keys_says_how_to_get_one(path: Path, text: str) -> None:
    path.write_text(text)
    with refuses(ConfigurationError, field="job.yaml", value="keys", remedy="hpo init"):
        read_job(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refuses(ConfigurationError, field="no.yaml", value=os.strerror(errno.ENOENT)):
        read_job(tmp_path / "no.yaml")
    with refuses(ConfigurationError, field=str(tmp_path), value=os.strerror(errno.EISDIR)):
        read_job(tmp_path)
