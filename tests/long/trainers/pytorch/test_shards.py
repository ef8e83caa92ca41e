"""Checkpoints in shards: whatever the layout that wrote one, another reads the same bits."""

from __future__ import annotations

from pathlib import Path

import torch
from ray.train import ScalingConfig

from tests.support import shards as support
from tests.support.allreduce import only
from tests.support.networks import assignment
from tests.support.process_gang import process_gang
from tests.support.transformer import train_text
from trainers import TorchTrainer


def test_a_trial_goes_on_in_other_layouts_as_one_that_stayed(tmp_path: Path) -> None:
    words = {"global_batch_size": 8, "clip": 0.5}
    layouts = [
        "shard=4",
        "pipeline=2 shard=2",
        "shard=2 tensor=2",
        "replicate=4",
        "pipeline=4",
        "tensor=4",
        "replicate=4",
    ]
    orders = [assignment(tmp_path, 0, 7, "straight", layout="shard=4", **words)]
    for start, layout in enumerate(layouts):
        orders.append(assignment(tmp_path, start, start + 1, "moved", layout=layout, **words))
    with process_gang(4, str(tmp_path)) as gang:
        for order in orders:
            [first, *_] = only(gang.run(support.kept(train_text), order))
            assert first.manifest.is_folder is (order.hyperparameters["layout"] != "replicate=4")
    trainer = TorchTrainer(train_text, scaling=ScalingConfig(num_workers=0))
    stayed, moved = (trainer.load_model(f"{tmp_path}/{name}/7.pt") for name in ("straight", "moved"))
    assert stayed["model"].keys() == moved["model"].keys()
    for name, value in stayed["model"].items():
        torch.testing.assert_close(moved["model"][name], value, rtol=0, atol=1e-12)
    for number, moments in stayed["optimizer"]["state"].items():
        for name, value in moments.items():
            torch.testing.assert_close(moved["optimizer"]["state"][number][name], value, rtol=0, atol=1e-12)
