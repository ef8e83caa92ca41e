"""Recipes on models in shards: precision, activations computed again, and normalisation over all workers' rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from tests.support.refusals import mentions
from tests.support.transformer import PLAN, Transformer, loss_of, text, whole
from trainers import ModelPlan, TorchTrainer, TrainContext
from trainers.gangs.messages import Segment
from trainers.pytorch.state.checkpoint import TorchCheckpoint

pytestmark = pytest.mark.process


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


@pytest.mark.parametrize("precision", ["bf16", "fp16", "bf16-master", "fp16-master"])
@pytest.mark.parametrize("recompute", [False, True])
def test_shards_train_in_low_precision_and_leave_out_the_same_updates(
    gang: ProcessGang, tmp_path: Path, precision: str, recompute: bool
) -> None:
    losses = {}
    words = {"precision": precision, "recompute": recompute, "burst": 1e9 if "fp16" in precision else 1.0}
    for layout in ("", "replicate=2 shard=2"):
        trial = assignment(tmp_path / layout, stop=1, **words)
        segment = ended(gang.run(program(bursts, layout), trial))
        losses[layout] = segment.reports[-1].metrics["train:loss"]
        kept = TorchCheckpoint.read(segment.checkpoint)
        assert kept.state == {"dtypes": ["torch.float32"], "steps": [7 if "fp16" in precision else 8]}
        assert set(kept.scales) == ({(32768.0, 5)} if "fp16" in precision else set())
    assert losses["replicate=2 shard=2"] == pytest.approx(losses[""], abs=0.03)


def test_a_master_copy_without_shards_is_refused(gang: ProcessGang, tmp_path: Path) -> None:
    trial = assignment(tmp_path, stop=1, precision="bf16-master", recompute=False, burst=1.0)
    [[error], *_] = gang.run(program(bursts, "tensor=4"), trial)
    mentions(str(error), "precision", "-master", "layout", "bf16", "shard=2")


def steps_itself(context: TrainContext) -> None:
    model = context.prepare_model(Transformer(), PLAN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        loss_of(model, text(8)).backward()
        optimizer.step()


def test_a_step_of_ones_own_on_shards_of_the_layout_is_refused(gang: ProcessGang, tmp_path: Path) -> None:
    """Their gradients are added up with weights that `context.step` alone gives losses."""
    [[error], *_] = gang.run(program(steps_itself, "shard=4"), assignment(tmp_path, stop=1))
    mentions(str(error), "SGD.step()", "context.step(loss, optimizer)")


def normalises(context: TrainContext) -> None:
    """29 rows in batches of 8: the last has two of the first worker's, and one of each other's."""
    words = context.hyperparameters
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)).double()
    model = context.prepare_model(network, ModelPlan(sync_batch_norm=True, recompute=words["recompute"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    features = torch.randn(29, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = TensorDataset(features, (features[:, 0] > 0).long())
    assert context.batch is not None
    batches = context.prepare_data(DataLoader(rows, batch_size=context.batch.per_worker_batch_size))
    for _ in context.epochs():
        for some, labels in batches:
            context.step(cross_entropy(model(some), labels), optimizer)
        context.report({}, checkpoint={name: whole(value) for name, value in model.state_dict().items()})


@pytest.mark.parametrize("layout", ["shard=4", "replicate=2 shard=2"])
@pytest.mark.parametrize("recompute", [False, True])
def test_shards_normalise_over_the_rows_of_all_workers(
    gang: ProcessGang, tmp_path: Path, layout: str, recompute: bool
) -> None:
    words = {"global_batch_size": 8, "recompute": recompute}
    segment = ended(gang.run(program(normalises, layout), assignment(tmp_path, stop=3, **words)))
    [one] = serve_alone(program(normalises)(), assignment(tmp_path, stop=3, name="one", **words))
    close(state(segment), state(one))
