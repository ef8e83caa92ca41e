"""Logistic regression with mpi4py: each process descends on rows of its own, and Allreduce averages the weights."""

import argparse
import os

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    features, labels = load_breast_cancer(return_X_y=True)
    features = scale(features)
    x, y = features[rank::size], labels[rank::size]
    weights, first = np.zeros(features.shape[1]), 0
    path = os.path.join(args.checkpoints, "checkpoint.npz")
    if rank == 0 and os.path.exists(path):
        state = np.load(path)
        weights, first = state["weights"], int(state["epoch"])
        print(f"resumed after epoch {first}")
    weights, first = world.bcast((weights, first))

    for epoch in range(first + 1, args.epochs + 1):
        for _ in range(args.steps):
            weights = weights - args.lr * x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(y)
        total = np.empty_like(weights)
        world.Allreduce(weights, total)
        weights = total / size
        loss = world.reduce(float(np.sum(np.logaddexp(0, -(2 * y - 1) * (x @ weights)))))
        if rank == 0:
            print(f"epoch={epoch} loss={loss / len(labels):.6f}")
            os.makedirs(args.checkpoints, exist_ok=True)
            np.savez(os.path.join(args.checkpoints, "new.npz"), weights=weights, epoch=epoch)
            os.replace(os.path.join(args.checkpoints, "new.npz"), path)


if __name__ == "__main__":
    main()
