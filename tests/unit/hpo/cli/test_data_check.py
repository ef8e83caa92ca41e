"""`hpo data check`: what it is asked about, and what it says to people and to programs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hpo import cli
from hpo.cli.checked_data import as_options, channels_of
from tests.support.examples import image_folder
from tests.support.lines import line_with
from tests.support.refusals import mentions, refuses, refuses_each
from trainers.errors import ConfigurationError, DataError

RANDOM = np.random.default_rng(5)
FRAME = pd.DataFrame(RANDOM.normal(size=(400, 3)).astype(np.float32), columns=["a", "b", "c"])
FRAME["y"] = (FRAME.a > 0).astype(int)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME[:300].to_csv(tmp_path / "train.csv", index=False)
    FRAME[250:].to_csv(tmp_path / "validation.csv", index=False)
    return tmp_path


JOB_OF_XGBOOST = """
data:
  channels:
    train: {path: FOLDER/train.csv, target: y}
    validation: {path: FOLDER/validation.csv, target: y}
trainer:
  type: xgboost
  num_workers: 4
  hyperparameters: {objective: "binary:logistic", eval_metric: auc, num_round: 10}
tuning:
  objective_metric_name: validation:auc
  ranges:
    eta: {type: continuous, min: 0.1, max: 0.5}
"""


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, ["data", "check", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_channels_are_compared(folder: Path) -> None:
    said = printed(f"train={folder}/train.csv", f"validation={folder}/validation.csv", "--target", "y")
    line_with(said, "train", 300, 3, 1)
    line_with(said, "label", 2, 0)
    line_with(said, "train", "'a'", "label")
    line_with(said, "validation", 50, "33.3%", "label")
    line_with(said, "worker", "4.8 kB", "s")


def test_paths_alone_are_one_channel(folder: Path) -> None:
    said = printed(f"{folder}/train.csv", f"{folder}/validation.csv", "--target", "-1", "--workers", "3")
    line_with(said, "train", 450, 3, 2)
    line_with(said, "worker", 3, "2.4 kB", "s")
    assert "validation" not in said


def test_programs_get_json(folder: Path) -> None:
    said = json.loads(printed(f"train={folder}/train.csv", "--target", "y", "--json"))
    (train,) = said["channels"]
    assert train["rows"] == sum(train["labels"]["classes"].values()) == 300
    assert [column["name"] for column in train["columns"]] == ["a", "b", "c"]
    mentions(said["findings"][0], "train", "'a'", "label")


def test_a_job_file_says_channels_targets_and_workers(folder: Path) -> None:
    job = folder / "job.yaml"
    job.write_text(JOB_OF_XGBOOST.replace("FOLDER", str(folder)))
    channels, workers, refusals = channels_of([str(job)], {}, None, allow_code=False)
    assert list(channels) == ["train", "validation"]
    assert (workers, refusals) == (4, ())
    line_with(printed(str(job)), "worker", 4, "1.2 kB")


def test_what_the_trainer_of_a_job_file_refuses_is_found(folder: Path) -> None:
    named = FRAME.rename(columns={"a": "x[1] <kg>"})
    for name in ("train", "validation"):
        named.to_csv(folder / f"{name}.csv", index=False)
    job = folder / "job.yaml"
    job.write_text(JOB_OF_XGBOOST.replace("FOLDER", str(folder)))
    said = printed(str(job), "--json")
    mentions(json.loads(said)["findings"][0], "will not start", "train", "x[1] <kg>", "rename", "x_1_ _kg>")


def test_what_is_none_of_all_is_refused(folder: Path, tmp_path: Path) -> None:
    train, validation = f"{folder}/train.csv", f"{folder}/validation.csv"
    check = partial(channels_of, data_dir=None, allow_code=False)
    refuses_each(
        [
            (lambda: check([f"train={train}", validation], {}), (validation, f"CHANNEL={validation}")),
            (lambda: check(["train="], {}), ("'train='", "train=PATH")),
            (lambda: check([f"train={train}", "validation="], {}), ("'validation='", "validation=PATH")),
            (lambda: check(["digits"], {"target": "y"}), ("--target", "'y'", "dataset")),
            (lambda: check([f"train={train}"], {"target": "z"}), ("train", "target", "'z'", "column")),
        ],
        ConfigurationError,
    )
    with refuses(DataError, field=str(tmp_path / "other.csv")):
        channels_of([str(tmp_path / "other.csv")], {}, None, allow_code=False)


def test_a_path_may_have_an_equals_sign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "year=2024").mkdir()
    (folder / "train.csv").rename(folder / "year=2024" / "train.csv")
    monkeypatch.chdir(folder)
    channels, *_ = channels_of(["year=2024/train.csv"], {"target": "y"}, None, allow_code=False)
    assert list(channels) == ["train"]


JOB_OF_OTHERS = """
data:
  channels:
    train: {images: FOLDER/images, size: 4}
    VALIDATION
trainer:
  type: torch
  train_loop: tests.support.examples_job:train
  num_workers: 2
  hyperparameters: {epochs: 2, per_worker_batch_size: 5}
  metrics: ["validation:accuracy"]
tuning:
  objective_metric_name: validation:accuracy
  ranges: {lr: {type: categorical, values: [0.1, 0.2]}}
"""


def test_channels_that_are_no_rows_are_told_of_and_others_looked_into(folder: Path) -> None:
    image_folder(folder / "images")
    job = folder / "job.yaml"
    text = JOB_OF_OTHERS.replace("FOLDER", str(folder))
    job.write_text(text.replace("VALIDATION", f"validation: {{path: {folder}/validation.csv, target: y}}"))
    result = CliRunner().invoke(cli.app, ["data", "check", str(job), "--allow-code", "--json"])
    assert [each["name"] for each in json.loads(result.stdout)["channels"]] == ["validation"]
    mentions(result.stderr, "train", "Examples.images", 20, 2)
    job.write_text(text.replace("VALIDATION", ""))
    with refuses(ConfigurationError, field=(str(job), "train"), value="Examples.images", remedy=("20", "2")):
        channels_of([str(job)], {}, None, allow_code=True)


def test_a_table_as_it_comes_is_told_with_what_becomes_of_it(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "user_id,since,plan,age,left\n"
        + "".join(
            f"{row},2024-01-{row + 1:02},{'ab'[row % 2]},{-999 if row % 3 else 30},{['yes', 'no'][row % 2]}\n"
            for row in range(20)
        )
    )
    path = str(tmp_path / "rows.csv")
    said = printed(path, "--target", "left", "--categorical", "plan", "--missing", "-999")
    mentions(said, "predicts left, 2 classes (no, yes)", "--keep user_id", "'since'", "-999", "no (50.0%)")
    kept = printed(path, "--target", "left", "--categorical", "plan", "--drop", "since", "--keep", "user_id")
    mentions(kept, "'since' is left out", "3 features")


def test_another_delimiter_is_given_as_an_option(folder: Path) -> None:
    FRAME.to_csv(folder / "other.csv", index=False, sep=";")
    assert "400 rows of 3 features" in printed(f"{folder}/other.csv", "--target", "y", "--delimiter", ";")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("name it in categorical=['plan'], or drop=['plan']", "name it in --categorical plan, or --drop plan"),
        ("leave them out with drop=['a b', 3]", "leave them out with --drop 'a b' --drop 3"),
        ("give target=..., one of these", "give --target COLUMN, one of these"),
        ("name it in categorical=[...]", "name it in --categorical COLUMN"),
        ('target="it\'s" is no column', "--target 'it'\"'\"'s' is no column"),
        ("give missing=-999", "give --missing -999"),
        ("give weight='w' or header=True", "give weight='w' or header=True"),
        ("a cell y=1", "a cell y=1"),
    ],
)
def test_arguments_of_messages_are_options_where_options_count(text: str, shown: str) -> None:
    assert as_options(text, ["rows.csv"]) == shown
    for other in (["job.yaml"], ["digits"]):
        assert as_options(text, other) == text


def test_an_error_about_files_names_options(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("plan,age,y\n" + "a,3,0\nb,4,1\n" * 20)
    result = CliRunner().invoke(cli.app, ["data", "check", str(tmp_path / "rows.csv"), "--target", "y"])
    mentions(f"{result.exception}\n{result.stderr}", "'plan'", "--categorical plan", "--drop plan")
