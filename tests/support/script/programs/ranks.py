"""Two processes that wait for each other at each epoch; the second one breaks as it is told to."""

import argparse
import os
import signal
import time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--mode", default="")
args = parser.parse_args()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert size == 2
if rank == 0 and args.mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
checkpoint = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "epoch")
first = 0
if os.path.exists(checkpoint):
    with open(checkpoint) as file:
        first = int(file.read())
for epoch in range(first + 1, args.epochs + 1):
    own, other = (os.path.join(os.environ["SM_OUTPUT_DIR"], f"{epoch}-{each}") for each in (rank, 1 - rank))
    if rank == 1 and epoch == 3 and args.mode in ("fail", "stubborn"):
        while not os.path.exists(other):  # The first one has printed its second epoch.
            time.sleep(0.02)
        raise ValueError("no third epoch")
    if rank == 1 and epoch == 3 and args.mode == "hang":
        time.sleep(600)
    with open(own, "w"):
        pass
    while not os.path.exists(other):
        time.sleep(0.02)
    time.sleep(0.2)
    if rank == 1 and args.mode == "loud":
        print(f"acc={epoch}")
    if rank == 0:
        print(f"acc={epoch / 10}")
        with open(checkpoint + ".new", "w") as file:
            file.write(str(epoch))
        os.replace(checkpoint + ".new", checkpoint)
