"""Handwritten digits in PyTorch, data-parallel with DistributedDataParallel, for torchrun."""

import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(0)

    features, labels = load_digits(return_X_y=True)
    split = train_test_split(features / 16, labels, test_size=0.2, random_state=0)
    train_x, test_x = (torch.tensor(each, dtype=torch.float32) for each in split[:2])
    train_y, test_y = (torch.tensor(each) for each in split[2:])
    data = TensorDataset(train_x, train_y)
    sampler: DistributedSampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)

    network = nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.hidden), nn.ReLU())
    network.append(nn.Linear(args.hidden, 10))
    model = DistributedDataParallel(network.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    path, first = os.path.join(args.checkpoints, "checkpoint.pt"), 0
    if os.path.exists(path):
        state = torch.load(path, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
        print(f"resumed after epoch {first}")

    for epoch in range(first + 1, args.epochs + 1):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        if dist.get_rank() == 0:
            with torch.no_grad():
                accuracy = (model.module(test_x.to(device)).argmax(1).cpu() == test_y).float().mean().item()
            print(f"epoch={epoch} accuracy={accuracy:.4f}")
            os.makedirs(args.checkpoints, exist_ok=True)
            state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, path + ".new")
            os.replace(path + ".new", path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
