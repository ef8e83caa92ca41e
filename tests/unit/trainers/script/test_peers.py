"""Workers of a gang that tell each other what they have, over real connections of this process."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import Any

from trainers.script.peers import Peers


def pair() -> tuple[Peers, Peers]:
    """Ranks 0 and 1."""
    said: queue.Queue[Any] = queue.Queue()
    made: dict[int, Peers] = {}

    def join(rank: int) -> None:
        def broadcast(value: Any) -> Any:
            if rank == 0:
                said.put(value)
            return value if rank == 0 else said.get(timeout=10)

        context: Any = SimpleNamespace(rank=rank, world_size=2, node_ip="127.0.0.1", broadcast=broadcast)
        made[rank] = Peers(context)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return made[0], made[1]


def test_what_a_rank_said_too_late_is_no_value_of_a_later_gathering() -> None:
    first, second = pair()
    found: list[Any] = []

    def other() -> None:
        second.say("my part ended")  # As rank 0 has decided already.
        found.extend(second.gathered(each, 10, "it") for each in ("a1", "b1"))

    thread = threading.Thread(target=other)
    thread.start()
    mine = [first.gathered(each, 10, "it") for each in ("a0", "b0")]
    thread.join(20)
    first.close()
    second.close()
    assert mine == found == [["a0", "a1"], ["b0", "b1"]]
