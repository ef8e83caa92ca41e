"""Recipes on models in shards: precision, activations computed again, and normalisation over all workers' rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.layouts.shard_recipes import (
    bursts,
    ended,
    gang,  # noqa: F401  # Fixtures.
    program,
)
from tests.support.transformer import PLAN, Transformer, loss_of, text, whole
from trainers import ModelPlan, TrainContext


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
