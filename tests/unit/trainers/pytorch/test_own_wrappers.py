"""A function's own DistributedDataParallel or FSDP2, with plain backward passes and steps, trial after trial."""

from __future__ import annotations

import torch
from torch import nn

from tests.support.networks import assignment, servers
from tests.support.refusals import refuses
from trainers.errors import TrialError


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)).double()


def keeps_one(context) -> None:
    """A wrapper of an earlier trial is none of this one's."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.zeros(1, 6).double()).sum().backward()
    optimizer.step()


def test_parameter_servers_hear_of_no_wrapper(tmp_path):
    with refuses(TrialError, field="SGD.step()", remedy="context.step(loss, optimizer)"):
        servers(keeps_one, assignment(tmp_path, per_worker_batch_size=8, num_workers=2))
