"""Both networks come to the same losses on one worker and on two that share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from experiments.networks.training import GPT_NAME, IMAGES_NAME
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from trainers import Layout, TorchTrainer
from trainers.channels import Channel
from trainers.datasets import load
from trainers.gangs import Assignment, Program, Segment

NETWORKS = {GPT_NAME: "python-stdlib", IMAGES_NAME: "digits"}
LAYOUTS = ["replicate=2", "shard=2", "tensor=2"]


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(name: str, layout: str = "") -> Callable[[], Program]:
    """Makes the program of a network's trainer, on whichever process asks."""

    def make() -> Program:
        data = load(NETWORKS[name])
        trainer = TorchTrainer(name, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0)
        trainer.layout = Layout.parse(layout)
        return trainer.program(
            {
                part: Channel.of(tuple(array[:rows] for array in getattr(data, part)), name=part).place(0)
                for part, rows in (("train", 72), ("validation", 16))
            }
        )

    return make


def assignment(folder: Path, stop: int = 2) -> Assignment:
    """Two units of 4 updates of 16 rows; each pass over 72 rows ends with an update of 8."""
    folder.mkdir(parents=True, exist_ok=True)
    return Assignment(
        trial_id="trial",
        hyperparameters={
            "lr": 0.003,
            "size": "tiny",
            "units": 2,
            "rows_per_unit": 64,
            "validation_rows": 16,
            "global_batch_size": 16,
        },
        seed=11,
        start=0,
        stop=stop,
        checkpoint=None,
        save_to=str(folder / f"{stop}.pt"),
    )


def losses(segment: Any) -> list[list[float]]:
    """Of each report: the validation rows' loss."""
    assert isinstance(segment, Segment), segment
    return [[report.metrics["validation:loss"]] for report in segment.reports]


@pytest.mark.parametrize("name", NETWORKS, ids=["gpt", "convolutional"])
def test_two_workers_that_share_it_come_to_one_worker_s_losses(gang: ProcessGang, name: str, tmp_path: Path) -> None:
    """Up to what AdamW makes of sums in another order; rows come in another order on two workers, so that one has all.

    Replicas and shards deal out the same rows; tensors see those of one worker.
    """
    one = losses(serve_alone(program(name)(), assignment(tmp_path / "one"))[0])
    found = {}
    for layout in LAYOUTS:
        answers = gang.run(program(name, layout), assignment(tmp_path / layout))
        found[layout] = losses(answers[0][0])
    assert found["tensor=2"] == [[pytest.approx(loss, rel=1e-3)] for (loss,) in one]
    assert found["shard=2"] == [[pytest.approx(loss, rel=1e-3)] for (loss,) in found["replicate=2"]]
