"""A program as people have it: it knows nothing of Warmband, prints its accuracy and writes checkpoints."""

import argparse
import json
import os
import sys
import time


def main() -> None:
    """Trains, or breaks as it is told to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--eta", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--checkpoints", default="True")
    parser.add_argument("--fail_at", type=int, default=0)
    parser.add_argument("--hang_at", type=int, default=0)
    parser.add_argument("--hang_rank", type=int, default=0)
    parser.add_argument("--quiet", default="False")
    args = parser.parse_args()
    rank = int(os.environ.get("RANK", "0"))
    path = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "state.json")
    first, weight = 0, 0.0
    if os.path.exists(path):
        with open(path) as file:
            first, weight = json.load(file)
    for epoch in range(first, args.epochs):
        time.sleep(args.seconds)
        weight += args.eta * (1.0 - weight)
        if args.fail_at == epoch + 1:
            raise ValueError(f"cannot train epoch {epoch + 1}")
        if args.hang_at == epoch + 1 and rank == args.hang_rank:
            time.sleep(3600)
        if rank == 0 and args.quiet != "True":
            print(f"epoch {epoch + 1}: loss={1 - weight:.6f} acc={weight:.6f}")
        if rank == 0 and args.checkpoints == "True":
            with open(path + ".new", "w") as file:
                json.dump([epoch + 1, weight], file)
            os.replace(path + ".new", path)
    if rank == 0:
        with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w") as file:
            json.dump(weight, file)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
