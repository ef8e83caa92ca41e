"""The data of job files: channels of files, named datasets, and trainers that have their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpo import HyperparameterTuner
from hpo.job_file.models import JobSpec
from hpo.job_file.reading import read_job
from tests.support.job_files import change
from tests.support.refusals import refuses
from trainers import Channel, ConfigurationError, DataError

BANK = Path(__file__).resolve().parents[4] / "experiments" / "bank-marketing.yaml"


def opened(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    change(path, "data", data)
    return read_job(path).data.open(None)


def test_either_a_dataset_or_channels(path: Path) -> None:
    for data in ({}, {"dataset": "bank-marketing-synthetic", "channels": {"train": {"path": "train.csv"}}}):
        with refuses(ConfigurationError, field="data", remedy=("dataset", "channels")):
            opened(path, data)


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


def test_channels_of_files_say_more_of_a_row_than_its_label(path: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("y,w,m,a\n1,2,0.5,30\n0,1,0.25,40\n")
    file = {"path": str(tmp_path / "train.csv"), "weight": "w", "base_margin": [2]}
    table = opened(path, {"channels": {"train": file, "validation": file}})["train"].read_whole()
    said = {role: numbers.tolist() for role, numbers in table.said.items()}
    assert said == {"weight": [2, 1], "base_margin": [0.5, 0.25]}
    assert table.feature_names == ("a",)


@pytest.mark.parametrize("categorical", ["town", ["town"], 1, [1]])
def test_channels_of_files_have_categories(path: Path, tmp_path: Path, categorical: Any) -> None:
    (tmp_path / "train.csv").write_text("y,town,a\n1,Rome,30\n0,Oslo,40\n")
    file = {"path": str(tmp_path / "train.csv"), "categorical": categorical}
    channels = opened(path, {"channels": {"train": file, "validation": file}})
    assert channels["train"].coding[0].values == ("Oslo", "Rome")
    field = "data.channels.train.categorical"
    with refuses(ConfigurationError, field=field, value="{town: 1}", remedy=("column", "list")) as raised:
        opened(path, {"channels": {"train": {**file, "categorical": {"town": 1}}}})
    assert re.search(r"\bline \d+", str(raised.value))


def test_a_missing_file_is_named_by_its_channel(path: Path, tmp_path: Path) -> None:
    file = {"path": str(tmp_path / "gone.csv")}
    with refuses(DataError, field=("channel", "'train'"), value=file["path"], remedy="path"):
        opened(path, {"channels": {"train": file, "validation": file}})


def test_a_program_finds_its_own_data_and_names_its_metric(path: Path) -> None:
    program = {"type": "script", "entry_point": path.name, "source_dir": str(path.parent)}
    taken = {"booleans": {"updater": "--flag true"}}
    change(path, "trainer", {**program, "hyperparameters": {"epochs": 3}, "arguments": taken})
    change(path, "tuning.objective_metric_name", "loss")
    change(path, "data", None)
    spec = read_job(path, allow_code=True)
    assert spec.channels(None) == {}
    assert HyperparameterTuner(**spec.arguments()).plan().trials == 4


@pytest.mark.parametrize("own", [{}, {"num_workers": 3, "hyperparameters": {"lr": 0.5, "num_epochs": 3}}])
def test_a_ray_trainer_has_its_own_workers_and_configuration(path: Path, own: dict[str, Any]) -> None:
    change(path, "trainer", {"type": "ray_train", "ray_trainer": "tests.support.ray_train_job:OURS", **own})
    change(path, "tuning.objective_metric_name", "loss")
    change(path, "data", None)
    code = "tests.support.ray_train_job:OURS"
    with refuses(ConfigurationError, field="trainer.ray_trainer", value=code, remedy="--allow-code"):
        read_job(path)
    estimator = read_job(path, allow_code=True).arguments()["estimator"]
    assert estimator.options["ray_trainer"] == "tests.support.ray_train_job:OURS"
    assert estimator.scaling.num_workers == own.get("num_workers", 2)
    assert estimator.hyperparameters == own.get("hyperparameters", {"lr": 0.01, "num_epochs": 4})


@pytest.mark.parametrize("data", ["", "data:\n"])
def test_other_trainers_are_given_data(path: Path, data: str) -> None:
    path.write_text(data + path.read_text().partition("trainer:")[1] + path.read_text().partition("trainer:")[2])
    with refuses(ConfigurationError, field="data", remedy=("dataset", "files")) as error:
        read_job(path)
    assert len(str(error.value).splitlines()) == 2


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
