"""A training whose gradients have noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from ray.train import ScalingConfig
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from experiments.convergence.gradient_noise import watched
from trainers import TorchTrainer, TrainContext
from trainers.result import TrainingResult

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
ROWS, STEPS = 8, 4000
FEATURES = torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.randn(ROWS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def linear() -> nn.Linear:
    model = nn.Linear(3, 1, bias=False).double()
    nn.init.constant_(model.weight, 0.5)
    return model


def gradients(seen: list[Tensor]) -> Callable[[TrainContext], None]:
    """A function that steps on one batch without ever moving, and keeps its gradients."""

    def train(context: TrainContext) -> None:
        model = context.prepare_model(linear())
        model.weight.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
            lambda weight: seen.append(weight.grad[0].clone())
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in context.epochs():
            for _ in range(STEPS):
                context.step(F.mse_loss(model(FEATURES)[:, 0], LABELS), optimizer)
            context.report({"validation:loss": 0.0}, checkpoint={})

    return train


def fitted(function: Callable[[TrainContext], None], folder: Path) -> TrainingResult:
    rows = {"train": (FEATURES.float().numpy(), LABELS.float().numpy())}
    trainer = TorchTrainer(function, scaling=HERE, hyperparameters={"epochs": 1})
    return trainer.fit(rows, storage_path=str(folder), seed=3)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensor, TrainingResult]:
    """Gradients of 8 rows with the noise of 2."""
    seen: list[Tensor] = []
    result = fitted(watched(gradients(seen), times=4.0), tmp_path_factory.mktemp("noisy"))
    return torch.stack(seen), result
