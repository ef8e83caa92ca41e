"""What is wrong in a job file is refused by its line and key, with what to give."""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import pytest

from hpo import (
    ContinuousParameter,
    HyperparameterTuner,
)
from hpo.job_file.reading import read_job, read_text
from hpo.job_file.yaml_file import MOST_PROBLEMS, JobFileError
from hpo.text import masked
from tests.support import yaml_text
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
        ("data.channels={train: {path: a.csv}}", ("'validation:auc'", "'train:auc'", "'validation'", "data.channels")),
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
    place = mentions(lines[0], "--set", masked(change))
    mentions(place.replace(masked(change), ""), *names)


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


def test_what_is_wrong_without_a_range_is_said_once_and_of_no_range(path: Path) -> None:
    change(path, "trainer.hyperparameters.objective", "multi:softprob")
    with pytest.raises(ConfigurationError) as caught:
        read_job(path)
    [line] = [each for each in str(caught.value).splitlines() if "num_class" in each]
    mentions(line, "multi:softprob", 2)
    assert "ranges" not in line


@pytest.mark.parametrize("group", ["", "tuning", "trainer.hyperparameters"])
def test_of_many_problems_the_first_are_named(path: Path, group: str) -> None:
    state = yaml_text.load(path.read_text())
    inner = state
    for key in filter(None, group.split(".")):
        inner = inner[key]
    inner.update({f"unknown{number}": 1 for number in range(1000)})
    began = time.process_time()
    with pytest.raises(JobFileError) as caught:
        read_text(yaml_text.dump(state))
    assert time.process_time() - began < 2.0, "each unknown key took 5 ms and more"
    assert len(caught.value.fields) == MOST_PROBLEMS
    if group != "trainer.hyperparameters":  # These are looked for one after the other.
        mentions(str(caught.value), "unknown0", 1000 - MOST_PROBLEMS)


def test_a_file_that_is_too_large_is_not_parsed(path: Path) -> None:
    text = "a: [" + "1," * 900_000 + "1]"
    path.write_text(text)
    for read in (lambda: read_text(text), lambda: read_job(path)):
        began = time.process_time()
        with refuses(ConfigurationError, field="job file", value="256 KiB", remedy="path"):
            read()
        assert time.process_time() - began < 0.1
