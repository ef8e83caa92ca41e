"""A gang that trains by recipes in sharded layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from ray.train import ScalingConfig

from tests.support.process_gang import ProcessGang, process_gang
from tests.support.transformer import PLAN, Transformer, loss_of, text
from trainers import TorchTrainer, TrainContext
from trainers.gangs.messages import Segment


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    with process_gang(4, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(function: Any, layout: str = "") -> Any:
    """Makes the program of a trainer, on whichever process asks."""

    def make() -> Any:
        from trainers import Layout

        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0)
        trainer.layout = Layout.parse(layout)
        return trainer.program({})

    return make


def ended(answers: list[Any]) -> Segment:
    """Rank 0's segment."""
    for answer in answers:
        for each in answer:
            if isinstance(each, Exception):
                raise each
    segment: Segment = answers[0][-1]
    return segment


def bursts(context: TrainContext) -> None:
    """Of 8 updates the third overflows in half precision, on one worker alone."""
    words = context.hyperparameters
    torch.manual_seed(5)
    model = context.prepare_model(Transformer(), replace(PLAN, recompute=words["recompute"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    rows = text(8)[context.rank :: context.world_size]
    dtypes = set()
    for _ in context.epochs():
        for at in range(8):
            factor = words["burst"] if at == 2 and context.rank == 1 else 1.0
            context.step(loss_of(model, rows) * factor, optimizer, max_norm=0.5)
        dtypes |= {str(part.dtype) for part in model.parameters()}
        steps = {int(state["step"]) for state in optimizer.state.values()}
        with torch.no_grad():
            loss = context.sum(loss_of(model, rows)) / context.world_size
        context.report({"train:loss": float(loss)}, checkpoint={"dtypes": sorted(dtypes), "steps": sorted(steps)})
