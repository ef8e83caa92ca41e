"""A Ray Train trainer as its documentation writes it, tuned on a warm gang of two workers on Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ray.data
import ray.train
import torch

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.ray_train_job import train, trainer
from trainers import RayTrainTrainer


def job(folder: Path, **config: Any) -> tuple[HyperparameterTuner, list]:
    """The trials of a Hyperband job."""
    folder.mkdir()
    tuner = HyperparameterTuner(
        trainer(2, **config),
        "accuracy",
        {"lr": ContinuousParameter(0.0001, 0.1, "Logarithmic")},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, reduction_factor=2)),
        max_jobs=6,
        random_seed=3,
        storage_path=str(folder),
        store=f"sqlite:///{folder}/store.db",
        console=False,
    )
    tuner.fit(job_name="job")
    with Store(f"sqlite:///{folder}/store.db") as store:
        return tuner, store.trials("job")


@pytest.mark.fault
def test_a_job_is_the_same_with_a_worker_killed(ray_cluster: None, tmp_path: Path) -> None:
    kill = tmp_path / "kill"
    _, trials = job(tmp_path / "one", kill="")
    kill.touch()
    tuner, again = job(tmp_path / "other", kill=str(kill))
    assert not kill.exists()
    assert [(trial.resource, trial.objective) for trial in again] == [
        (trial.resource, trial.objective) for trial in trials
    ]
    assert {trial.resource for trial in trials} > {4}
    model = tuner.best_estimator().model()
    with model.as_directory() as folder:
        assert Path(folder, "model.pt").is_file()


def apart(config: dict[str, Any]) -> None:
    """Takes the process group apart at its end, as programs do, at a rung too."""
    try:
        train(config)
    finally:
        torch.distributed.destroy_process_group()


def test_a_function_may_take_the_process_group_of_its_gang_apart(ray_cluster: None, tmp_path: Path) -> None:
    _, trials = job(tmp_path / "apart", function=apart)
    assert {trial.status for trial in trials} <= {"Completed", "Stopped"}
    assert {trial.attempts for trial in trials} == {0}


def columns(config: dict[str, Any]) -> None:
    """Reports what this worker's part of each channel has."""
    found: dict[str, float] = {}
    for name in ("train", "validation"):
        for batch in ray.train.get_dataset_shard(name).iter_batches(batch_size=None):
            found[f"{name}:rows"] = found.get(f"{name}:rows", 0) + len(batch["label"])
            found[f"{name}:sum"] = found.get(f"{name}:sum", 0) + float(batch["label"].sum() + batch["x"].sum())
    ray.train.report(found)


def test_channels_are_dealt_out_as_datasets(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("label,x\n" + "".join(f"{row % 2},{row}\n" for row in range(8)))
    validation = ray.data.from_items([{"label": 1, "x": 2.0}] * 4)
    made = ray.train.torch.TorchTrainer(
        columns, train_loop_config={"epochs": 1}, scaling_config=ray.train.ScalingConfig(num_workers=2)
    )
    channels = {"train": str(tmp_path / "train.csv"), "validation": validation}
    (report,) = RayTrainTrainer(made).fit(channels, storage_path=str(tmp_path)).reports
    assert report.metrics == {
        "train:rows": 4.0,
        "train:sum": 0 + 1 + 2 + 3 + 2,
        "validation:rows": 2.0,
        "validation:sum": 6.0,
    }


def counting(config: dict[str, Any]) -> None:
    """Reports the rows and the sum that this worker's part of the dataset has, and rows of the one that is whole."""
    for _ in range(2):
        part, rows = 0, 0
        for batch in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=4, dtypes=None):
            part, rows = part + int(batch["id"].sum()), rows + len(batch["id"])
        whole = sum(len(batch["id"]) for batch in ray.train.get_dataset_shard("whole").iter_batches())
        ray.train.report({"sum": part, "rows": rows, "whole": whole})


def test_datasets_are_dealt_out_as_ray_train_does(ray_cluster: None, tmp_path: Path) -> None:
    made = ray.train.torch.TorchTrainer(
        counting,
        train_loop_config={"epochs": 2},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        datasets={"train": ray.data.range(21), "whole": ray.data.range(7)},
        dataset_config=ray.train.DataConfig(datasets_to_split=["train"]),
    )
    result = RayTrainTrainer(made).fit({}, storage_path=str(tmp_path))
    assert [report.metrics["rows"] for report in result.reports] == [10, 10]
    assert [report.metrics["whole"] for report in result.reports] == [7, 7]
