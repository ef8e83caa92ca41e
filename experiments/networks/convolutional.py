"""A convolutional network: the class of a small grey image."""

from __future__ import annotations

import math

from torch import nn

from trainers.pytorch import ModelPlan

CLASSES = 10


def convolutional(pixels: int, *, dropout: float = 0.0) -> nn.Sequential:
    """Two convolutions, each halved by pooling, and two linear maps, as LeNet has them (LeCun et al., 1998).

    It takes float32 images (rows, pixels), and gives logits (rows, 10). For 28x28 pixels it has 422,000 parameters.

    Args:
        pixels: of a square image whose side is a multiple of 4.
        dropout: part of the inner units that is dropped in training.
    """
    side = math.isqrt(pixels)
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(64 * (side // 4) ** 2, 128), nn.ReLU(), nn.Dropout(dropout), nn.Linear(128, CLASSES)),
    )


def plan() -> ModelPlan:
    """How workers share it: the large linear map in shards of its own, or its units dealt out, or cut anywhere."""
    return ModelPlan(blocks=(nn.Conv2d, nn.Linear), tensor={"8": "colwise", "11": "rowwise"})
