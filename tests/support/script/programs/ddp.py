"""Data-parallel PyTorch as its tutorial writes it; a checkpoint an epoch."""

import argparse
import os

import torch
import torch.distributed as dist
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
        loss = torch.nn.functional.mse_loss(model.module(features)[:, 0], labels).item()
        print(f"epoch={epoch + 1} loss={loss:.9f}")
        torch.save({"epoch": epoch + 1, "model": model.state_dict()}, path + ".new")
        os.replace(path + ".new", path)
dist.destroy_process_group()
