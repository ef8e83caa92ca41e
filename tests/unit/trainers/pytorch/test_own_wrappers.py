"""A function's own DistributedDataParallel or FSDP2, with plain backward passes and steps, trial after trial."""

from __future__ import annotations

from tests.support.networks import assignment, servers
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.own_wrappers import keeps_one
from trainers.errors import TrialError


def test_parameter_servers_hear_of_no_wrapper(tmp_path):
    with refuses(TrialError, field="SGD.step()", remedy="context.step(loss, optimizer)"):
        servers(keeps_one, assignment(tmp_path, per_worker_batch_size=8, num_workers=2))
