"""A Ray Train trainer as its documentation writes it, tuned on a warm gang of two workers on Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray.data
import ray.train

from trainers import RayTrainTrainer


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
