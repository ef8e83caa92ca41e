"""A gang of a Ray cluster that counts four GPUs, which are not there: what its workers hold, and one that breaks.

    python -m tests.support.gpu_gang

Prints what happened as JSON.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.train import ScalingConfig

from tests.support.assignments import segment
from tests.support.gangs import Pool, segments
from trainers.errors import BrokenWorkerError, TrialError
from trainers.gangs.messages import Assignment, GangUp, Report, Segment, Served
from trainers.gangs.program import Program, WorkerContext, never

GPUS, CPUS = 4, 8


class Telling:
    """Tells where each rank stands in a file of `folder`; the hyperparameter `breaks` breaks the last rank."""

    def __init__(self, folder: str, *, peers_gpus: bool) -> None:
        self._folder = folder
        self.peers_gpus = peers_gpus
        self._context: WorkerContext | None = None

    def open(self, context: WorkerContext) -> dict[str, float]:
        self._context = context
        told = {
            "gpus": context.gpus,
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "held": ray.get_runtime_context().get_accelerator_ids()["GPU"],
            "cpus": context.cpus,
            "place": (context.local_rank, context.local_world_size, context.node_rank),
        }
        Path(self._folder, f"{context.rank}.json").write_text(json.dumps(told))
        return {}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        context = self._context
        assert context is not None
        if assignment.hyperparameters.get("breaks"):
            why = "AcceleratorError: CUDA error: device-side assert triggered"
            raise BrokenWorkerError(why) if context.rank == context.world_size - 1 else TrialError(why)
        return segment(checkpoint=assignment.save_to)

    def close(self) -> None:
        pass


def played(folder: Path, *, peers_gpus: bool, breaks: bool) -> dict[str, Any]:
    """One gang of two workers with a GPU each, and what became of it."""
    folder.mkdir()

    def program(workers: int) -> Program:
        return Telling(str(folder), peers_gpus=peers_gpus)

    pool = Pool("gpus", program=program, scaling=ScalingConfig(num_workers=2, use_gpu=True))
    try:
        [gang] = pool.start(1)
        before = pool.up[gang]
        told = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
        if not breaks:
            return {"told": told}
        first, second = (segments(folder, (1,), trial, breaks=trial == "bad")[0] for trial in ("bad", "good"))
        refused = pool.serve(gang, first)
        # It is lost by then: what comes in the same breath is in the log.
        pool.until(lambda event: isinstance(event, GangUp))
        served = pool.serve(gang, second)
        kinds = [type(event).__name__ for event in pool.log]
        return {
            "told": told,
            "events": [kind for kind in kinds if kind in ("GangUp", "Served", "GangLost", "GangEnded")],
            "error": refused.error,
            "served": isinstance(served, Served) and served.segment is not None,
            "new": not set(before.pids) & set(pool.up[gang].pids),
        }
    finally:
        pool.gangs.close()


def main() -> None:
    import tempfile

    ray.init(
        address="local",
        num_cpus=CPUS,
        num_gpus=GPUS,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    with tempfile.TemporaryDirectory() as scratch:
        told = {
            "shared": played(Path(scratch, "shared"), peers_gpus=True, breaks=True),
            "own": played(Path(scratch, "own"), peers_gpus=False, breaks=False),
        }
    ray.shutdown()
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
