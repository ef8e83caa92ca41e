"""Rows of the table of scaling out, and made-up measurements of them."""

from __future__ import annotations

from experiments.scale_out import image_rows, xgboost_rows
from experiments.scaling.measured import Measured, Training
from experiments.scaling.shard_models import WithoutSharing
from trainers.datasets import load

ROWS = {row.name: row for row in [*image_rows(20), *xgboost_rows(150)]}
MARKETING = load("bank-marketing-synthetic")
APART = WithoutSharing(whole=0.76, alone=[0.73, 0.74, 0.72], averaged=0.75, mean_of_parts=0.761)
LASTS = {"image-4-async": 0.11, "image-4-bounded": 0.11}


def training(last: float) -> Training:
    curves = {"validation": [0.1, last + 0.01, last], "test": [0.2, last, last]}
    return Training(curves=curves, seconds=20.0, training_seconds=4.0, worker_seconds=60.0)


def made(seeds: int = 1, **lasts: float) -> dict[str, Measured]:
    """Return made-up measurements of each row."""
    found = {}
    for name, row in ROWS.items():
        last = lasts.get(name, LASTS.get(name, 0.76 if row.problem == "xgboost" else 0.97))
        trainings = [training(last + 0.001 * seed) for seed in range(seeds)]
        errors = {"validation": 0.018, "test": 0.013}
        found[name] = Measured(row=row, trainings=trainings, errors=errors, work=4 / row.trainer.workers)
    return found
