"""Layouts of shards and tensors train as one worker does with the same global batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.train import ScalingConfig

from tests.support.networks import assignment
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from tests.support.transformer import train_text
from trainers import TorchTrainer
from trainers.gangs.messages import Segment

pytestmark = pytest.mark.process

EPOCHS = 5
"""Of 4 updates each, the last of which has 3 rows of 8."""

LAYOUTS = ["shard=4", "replicate=2 shard=2", "tensor=4", "shard=2 tensor=2", "replicate=2 tensor=2"]


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    with process_gang(4, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(function: Any, layout: str = "", **options: Any) -> Any:
    """Makes the program of a trainer, on whichever process asks."""

    def make() -> Any:
        from trainers import Layout

        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0, **options)
        trainer.layout = Layout.parse(layout)
        return trainer.program({})

    return make


def ended(answers: list[Any]) -> list[Segment]:
    """The segments of all ranks' last assignments."""
    for answer in answers:
        for each in answer:
            if isinstance(each, Exception):
                raise each
    return [answer[-1] for answer in answers]


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    """What the workers left."""
    values: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.pt")):
        values |= torch.load(file)
    return values


@pytest.fixture(scope="module", params=[torch.float64, torch.float32], ids=str)
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """What one worker comes to."""
    folder = tmp_path_factory.mktemp("alone")
    words = {"global_batch_size": 8, "clip": 0.5, "leave": str(folder)}
    made = program(partial(train_text, dtype=request.param))()
    segment = serve_alone(made, assignment(folder / "trials", stop=EPOCHS, **words))[0]
    assert isinstance(segment, Segment), segment
    return request.param, segment.reports, parameters(folder)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_and_parameters_are_those_of_one_worker(
    gang: ProcessGang, alone: tuple[Any, Any, Any], tmp_path: Path, layout: str
) -> None:
    dtype, reports, values = alone
    near = 1e-12 if dtype == torch.float64 else 2e-5
    words = {"global_batch_size": 8, "clip": 0.5, "leave": str(tmp_path)}
    made = program(partial(train_text, dtype=dtype), layout)
    segment = ended(gang.run(made, assignment(tmp_path / "trials", stop=EPOCHS, **words)))[0]
    for mine, theirs in zip(segment.reports, reports, strict=True):
        assert mine.metrics["train:loss"] == pytest.approx(theirs.metrics["train:loss"], abs=near)
    found = parameters(tmp_path)
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert (found[name] - value).abs().max() < near, name
