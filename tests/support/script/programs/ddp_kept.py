"""Data-parallel PyTorch that stays loaded; a checkpoint an epoch."""

import argparse
import os

import torch
import torch.distributed as dist
import warmband
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
args = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(1)
features = torch.randn(64, 4)
labels = features @ torch.tensor([1.0, -2.0, 3.0, 0.5])
rank, size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), args.lr)
path, first = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "checkpoint.pt"), 0
if os.path.exists(path):
    state = torch.load(path, weights_only=True)
    first = state["epoch"]
    model.load_state_dict(state["model"])
for epoch in range(first, args.epochs):
    for batch in range(rank, 8, size):
        rows = slice(8 * batch, 8 * batch + 8)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features[rows])[:, 0], labels[rows]).backward()
        optimizer.step()
    if rank == 0:
        torch.save({"epoch": epoch + 1, "model": model.state_dict()}, path + ".new")
        os.replace(path + ".new", path)
    loss = torch.nn.functional.mse_loss(model.module(features)[:, 0], labels).item()
    if warmband.report({"train:loss": round(loss, 9), "process": os.getpid()}, step=epoch + 1):
        break
dist.destroy_process_group()
