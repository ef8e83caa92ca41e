"""Handwritten digits in DeepSpeed with ZeRO stage 1, for torchrun or `deepspeed`."""

import argparse
import os

import deepspeed
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    torch.manual_seed(0)
    features, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(features / 16, dtype=torch.float32), torch.tensor(labels)
    train, test = train_test_split(torch.arange(len(x)), test_size=0.2, random_state=0)
    network = nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.hidden), nn.ReLU())
    network.append(nn.Linear(args.hidden, 10))

    config = {
        "train_micro_batch_size_per_gpu": 16,
        "optimizer": {"type": "Adam", "params": {"lr": args.lr, "torch_adam": True}},
        "zero_optimization": {"stage": 1},
        "steps_per_print": 1_000_000,
    }
    deepspeed.init_distributed()
    engine, _, loader, _ = deepspeed.initialize(
        model=network, training_data=TensorDataset(x[train], y[train]), config=config
    )
    folder, state = engine.load_checkpoint(args.checkpoints) if os.path.isdir(args.checkpoints) else (None, {})
    first = state["epoch"] if folder else 0
    if first and engine.global_rank == 0:
        print(f"resumed after epoch {first}")

    for epoch in range(first + 1, args.epochs + 1):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(engine(inputs.to(engine.device)), targets.to(engine.device))
            engine.backward(loss)
            engine.step()
        with torch.no_grad():
            accuracy = (engine(x[test].to(engine.device)).argmax(1).cpu() == y[test]).float().mean().item()
        if engine.global_rank == 0:
            print(f"epoch={epoch} accuracy={accuracy:.4f}")
        engine.save_checkpoint(args.checkpoints, tag=f"epoch_{epoch}", client_state={"epoch": epoch})
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
