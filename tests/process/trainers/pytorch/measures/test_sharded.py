"""Communication of parameters that FSDP2 shards: each block is gathered twice and reduced once a step."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.support.allreduce import only, program
from tests.support.networks import assignment, network
from tests.support.process_gang import process_gang
from trainers.pytorch.measures import Communication, count_collectives

STEPS = 3


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def shards_itself(context) -> None:
    """Trains the same model with and without counting."""
    for _ in context.epochs():
        losses, counted = [], Communication()
        for communication in (None, counted):
            torch.manual_seed(3)
            model = network()
            sizes = context.hyperparameters["sizes"]
            mesh = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=("replicate", "shard")[-len(sizes) :])
            for block in (model[0], model[2]):
                fully_shard(block, mesh=mesh)
            fully_shard(model, mesh=mesh)
            if communication is not None:
                count_collectives(model, communication, replicas=sizes[0] if len(sizes) > 1 else 1)
            rows = torch.linspace(-1, 1, 48, dtype=torch.float64).view(8, 6)
            for _ in range(STEPS):
                loss = model(rows).square().mean()
                counted.begin(loss.device)
                loss.backward()
                for parameter in model.parameters():
                    parameter.data.add_(parameter.grad, alpha=-0.1)
                    parameter.grad = None
                counted.end()
            losses.append(loss.item())
        stepped, waited = counted.seconds
        metrics = {"x:bytes": counted.bytes, "x:waited": waited, "x:stepped": stepped, "x:same": losses[0] == losses[1]}
        context.report({name: float(value) for name, value in metrics.items()}, checkpoint={"x": 0})


@pytest.mark.parametrize("sizes", [[2], [2, 1]])
def test_gathered_and_reduced_bytes_are_counted(gang, tmp_path, sizes):
    found = only(gang.run(program(shards_itself), assignment(tmp_path, stop=1, sizes=sizes)))
    whole = sum(parameter.nbytes for parameter in network().parameters())
    for segment in found:
        metrics = segment.reports[0].metrics
        assert metrics["x:same"] == 1.0
        assert 0 < metrics["x:waited"] < metrics["x:stepped"]
        if sizes == [2, 1]:  # Gradients are added up over two whole models, and nothing is gathered.
            assert metrics["x:bytes"] == STEPS * whole
            continue
        # Gathered before the forward and before the backward pass, but for what is used last, which stays.
        assert 2 * STEPS * whole <= metrics["x:bytes"] <= 4 * STEPS * whole
