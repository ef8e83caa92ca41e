"""Batch normalisation over the rows of all workers: that of one worker with all rows, in float64."""

from __future__ import annotations

from tests.support.networks import assignment, servers
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.layouts.batch_norm import normalised
from trainers.errors import TrialError


def test_parameter_servers_refuse_it_since_workers_have_no_batch_together(tmp_path):
    with refuses(TrialError, field="sync_batch_norm", remedy="TorchTrainer"):
        servers(normalised, assignment(tmp_path, per_worker_batch_size=8, num_workers=2))
    servers(normalised, assignment(tmp_path, name="one", per_worker_batch_size=8, num_workers=1))
