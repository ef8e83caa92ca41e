"""Gangs of a program on two workers, each in a thread of this process."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.script_programs import assignment
from trainers import ScriptTrainer
from trainers.channels import open_channels
from trainers.gangs import Segment, WorkerContext


def of_two(
    folder: Path,
    trainer: ScriptTrainer,
    *,
    units: int = 6,
    channels: Mapping[str, Any] | None = None,
    **hyperparameters: object,
) -> list[Segment | Exception]:
    """Train a trial on the two workers of a gang, and return what each worker returned or raised.

    Args:
        folder: of the trial's files.
        trainer: of the program.
        units: of the trial.
        channels: as `fit` takes them.
        hyperparameters: of the trial.
    """
    handed: queue.SimpleQueue[object] = queue.SimpleQueue()
    opened = open_channels(channels or {}, train=False)

    def serve(rank: int) -> Segment | Exception:
        def broadcast(value: object) -> object:
            if rank:
                return handed.get(timeout=60)
            handed.put(value)
            return value

        program = trainer.program({name: channel.place(2) for name, channel in opened.items()})
        program.open(
            WorkerContext(rank=rank, world_size=2, node_ip="127.0.0.1", cpus=1, broadcast=broadcast, in_hand=True)
        )
        try:
            return program.train(assignment(folder, units, **hyperparameters), print)
        except Exception as error:
            return error
        finally:
            ended.append(time.monotonic())
            program.close()

    ended: list[float] = []
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(serve, range(2)))
    assert abs(ended[0] - ended[1]) < 5  # Ray's workers have to agree on an error within ten seconds.
    return outcomes
