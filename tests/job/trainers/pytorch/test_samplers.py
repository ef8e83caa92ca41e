"""The rows that samplers draw come as drawn on any number of workers, or the loader is refused."""

from __future__ import annotations

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    SequentialSampler,
)

from tests.support.loaders import NUMBERS
from tests.support.networks import HERE, assignment, run
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError


def test_a_batch_sampler_of_another_size_than_the_hyperparameters_is_refused(tmp_path):
    def train(context) -> None:
        context.prepare_data(DataLoader(NUMBERS, batch_sampler=BatchSampler(SequentialSampler(NUMBERS), 7, False)))

    with refuses(
        TrialError,
        field=("DataLoader", "batch_size"),
        value=7,
        remedy=("8", "context.batch.per_worker_batch_size"),
    ):
        run(TorchTrainer(train, scaling=HERE), assignment(tmp_path, per_worker_batch_size=8))
