"""A Ray Train function from rung to rung: files, repeated reports, early ends, halts and errors; without Ray."""

from __future__ import annotations

from typing import Any

import ray.train
import torch
import torch.distributed as dist

from tests.support.networks import assignment
from tests.support.process_gang import process_gang
from tests.support.ray_train_job import trainer
from tests.support.trainers.ray_train.segment import WORDS, read, report, steps
from trainers import RayTrainTrainer


def sharded(config: dict[str, Any]) -> None:
    """Each rank has a file, and its part of the sum."""
    rank = ray.train.get_context().get_world_rank()
    if checkpoint := ray.train.get_checkpoint():
        assert read(checkpoint) == {f"{other}": "2" for other in range(2)}
    for step in range(2 if checkpoint else 0, 4):
        total = torch.ones(1)
        dist.all_reduce(total)
        report({"x": total.item() + 10 * rank}, **{str(rank): str(step + 1)})


def test_workers_put_their_files_together_and_rank_0_s_numbers_count(tmp_path):
    def make():
        return RayTrainTrainer(trainer(2, sharded)).program({})

    def made():
        return RayTrainTrainer(trainer(2)).program({})

    with process_gang(2, str(tmp_path)) as gang:
        first = gang.run(make, assignment(tmp_path, stop=2), assignment(tmp_path, start=2, stop=3))
        model = gang.run(made, assignment(tmp_path, stop=2, name="m", **WORDS, halt_at=9))
    for one, other in first:
        assert (steps(one), steps(other)) == ([1, 2], [3])
    assert first[0][1].reports[0].metrics == {"x": 2.0}
    assert first[0][0].manifest.parts == ("rank-00000.tar", "rank-00001.tar")
    assert steps(model[0][0]) == [1, 2]


def leaving(config: dict[str, Any]) -> None:
    """Takes the process group apart at its end, on the ranks that it is told, or fails behind that."""
    try:
        sharded(config)
    finally:
        if ray.train.get_context().get_world_rank() in config["leaves"]:
            dist.destroy_process_group()
        if config.get("fails"):
            raise ValueError("no last layer")


def test_a_function_that_takes_the_process_group_apart_breaks_nothing(tmp_path):
    def make():
        return RayTrainTrainer(trainer(2, leaving)).program({})

    both, one, none = {"leaves": [0, 1]}, {"leaves": [1]}, {"leaves": []}
    with process_gang(2, str(tmp_path)) as gang:
        found = gang.run(
            make,
            assignment(tmp_path, stop=2, **both),
            assignment(tmp_path, start=2, stop=4, **one),
            assignment(tmp_path, stop=4, name="fails", fails=True, **both),
            assignment(tmp_path, stop=4, name="returns", **none),
        )
        alone = gang.run(make, assignment(tmp_path, stop=4, name="last", **both))
    for served in found:
        assert [steps(served[at]) for at in (0, 1, 3)] == [[1, 2], [3, 4], [1, 2, 3, 4]]
        assert "no last layer" in str(served[2])
    assert [steps(served[0]) for served in alone] == [[1, 2, 3, 4]] * 2
