"""Handwritten digits in a loop of one's own with Accelerate, for `accelerate launch`."""

import argparse
import glob
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    set_seed(0)
    accelerator = Accelerator()
    features, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(features / 16, dtype=torch.float32), torch.tensor(labels)
    train, test = train_test_split(torch.arange(len(x)), test_size=0.2, random_state=0)
    network = nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.hidden), nn.ReLU())
    network.append(nn.Linear(args.hidden, 10))
    model, optimizer, train_loader, test_loader = accelerator.prepare(
        network,
        torch.optim.SGD(network.parameters(), lr=args.lr, momentum=0.9),
        DataLoader(TensorDataset(x[train], y[train]), batch_size=16, shuffle=True),
        DataLoader(TensorDataset(x[test], y[test]), batch_size=64),
    )

    # One is renamed when it is complete.
    first = max((int(path.rpartition("_")[2]) for path in glob.glob(f"{args.checkpoints}/epoch_*")), default=0)
    if first:
        accelerator.load_state(f"{args.checkpoints}/epoch_{first}")
        accelerator.print(f"resumed after epoch {first}")

    for epoch in range(first + 1, args.epochs + 1):
        model.train()
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
        model.eval()
        right = []
        for inputs, targets in test_loader:
            with torch.no_grad():
                guesses = model(inputs).argmax(1)
            right.append(accelerator.gather_for_metrics(guesses == targets))
        accelerator.print(f"epoch={epoch} accuracy={torch.cat(right).float().mean().item():.4f}")
        unfinished = os.path.join(args.checkpoints, "unfinished")
        accelerator.save_state(unfinished)
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            os.replace(unfinished, os.path.join(args.checkpoints, f"epoch_{epoch}"))
    accelerator.end_training()


if __name__ == "__main__":
    main()
