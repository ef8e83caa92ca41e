"""A node that leaves its cluster properly: `ray start --block`, which SIGTERM drains before it ends.

    python -m trainers.node HEAD:6379 [--grace 110] [-- OPTIONS OF ray start]

SIGTERM alone ends Ray's workers within milliseconds (ray 2.60), before they can checkpoint. Here it gives Ray notice
that the node goes, waits until nothing is held there any more, `--grace` seconds at most, and then ends Ray.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

GRACE_SECONDS = 110.0
"""Clouds give 120 s of notice."""

COMMAND_SECONDS = 60.0
"""How long `ray drain-node` may take."""

LOOK_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the node until it ends or is told to; returns what `ray start` did."""
    parser = argparse.ArgumentParser(prog="python -m trainers.node", description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="of the cluster's head, such as 10.0.0.1:6379")
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help="seconds from SIGTERM to Ray's end, at most")
    parser.epilog = "What stands behind -- are options of ray start."
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, options = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    asked = parser.parse_args(own)
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: told.set())
    ray = str(Path(sys.executable).with_name("ray"))
    # A session of its own: what is sent to this process's group must not reach Ray before its gangs have left.
    command = [ray, "start", f"--address={asked.address}", "--block", *options]
    node = subprocess.Popen(command, start_new_session=True)
    while node.poll() is None and not told.wait(LOOK_SECONDS):
        pass
    if node.poll() is None:
        leave(ray, asked.address, asked.grace)
        node.terminate()
    return node.wait()


def leave(ray: str, address: str, grace: float) -> None:
    """Gives notice that this node goes, and waits until nothing is held there; never longer than `grace` seconds."""
    deadline = time.monotonic() + grace
    notice = [
        ray,
        "drain-node",
        f"--address={address}",
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message=SIGTERM",
        f"--deadline-remaining-seconds={grace:.0f}",
    ]
    try:
        subprocess.run(notice, timeout=min(COMMAND_SECONDS, grace), check=True)
        wait_until_empty(held_here(address), deadline)
    except (subprocess.SubprocessError, OSError, RuntimeError) as error:
        sys.stderr.write(f"this node could not be drained and ends without notice: {error}\n")


def wait_until_empty(held: Callable[[], float], deadline: float) -> bool:
    """Waits until nothing is held, or for the deadline on the monotonic clock; returns whether nothing is."""
    while held() > 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def held_here(address: str) -> Callable[[], float]:
    """Asks the head how many CPUs and GPUs of this machine are held."""
    from ray.autoscaler.v2.sdk import get_cluster_status
    from ray.util import get_node_ip_address

    here = get_node_ip_address()

    def held() -> float:
        status = get_cluster_status(address)
        used = [node.used_resources() for node in (*status.active_nodes, *status.idle_nodes) if node.ip_address == here]
        return sum(node.get("CPU", 0.0) + node.get("GPU", 0.0) for node in used)

    return held


if __name__ == "__main__":
    sys.exit(main())
