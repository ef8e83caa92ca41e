"""A training function with a common mistake, for the tests of `why_it_broke`: its AUC is a mean over workers."""

from __future__ import annotations

import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from trainers import TrainContext


def train(context: TrainContext) -> None:
    """Tells digits of 5 and more from the others, linearly."""
    batches = context.prepare_data("train")
    rows = context.shard("validation")
    model = context.prepare_model(nn.Linear(rows.features.shape[1], 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=context.hyperparameters["lr"])
    for _ in context.epochs():
        for features, labels in batches:
            large = (labels >= 5).float()
            context.step(F.binary_cross_entropy_with_logits(model(features).squeeze(1), large), optimizer)
        with torch.no_grad():
            mine = float(roc_auc_score(rows.labels >= 5, model(rows.features).squeeze(1)))
        auc = context.sum(torch.tensor(mine, dtype=torch.float64)) / context.world_size
        context.report({"validation:auc": auc}, checkpoint={"model": model.state_dict()})
