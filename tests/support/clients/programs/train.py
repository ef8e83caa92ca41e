"""Distributed training of a line in PyTorch, as a script for the service's containers has it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
given = parser.parse_args()
dist.init_process_group("gloo")
rows = [line.split(",") for line in next(Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()).read_text().splitlines()]
numbers = torch.tensor([[float(cell or 0) for cell in row] for row in rows])
mine = numbers[dist.get_rank() :: dist.get_world_size()]
model = nn.parallel.DistributedDataParallel(nn.Linear(mine.shape[1] - 1, 1))
optimizer = torch.optim.SGD(model.parameters(), given.lr)
features = (mine[:, 1:] - mine[:, 1:].mean(0)) / (mine[:, 1:].std(0) + 1e-6)
for epoch in range(given.epochs):
    loss = nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], mine[:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch={epoch + 1}; train:loss={loss.item():.6f};", flush=True)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")
