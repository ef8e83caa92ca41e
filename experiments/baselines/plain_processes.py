"""XGBoost's own distributed training, started by hand on plain processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainers.channels import Channel

ANSWER_SECONDS = 300.0


class PlainProcesses:
    """A trial on plain processes, through XGBoost's own interfaces alone; each evaluates its share of the rows.

    Args:
        channels: "train" and "validation", read here and handed to the processes.
        workers: how many processes.
        parameters: XGBoost's; its one metric is a mean over rows, which XGBoost sums up over processes.
        rounds: of the trial.
        niceness: of the processes. Ray's workers have one of their own, and lose to others on a busy machine.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        workers: int,
        parameters: dict[str, Any],
        rounds: int,
        *,
        niceness: int = 0,
    ) -> None:
        from xgboost.tracker import RabitTracker

        self._tracker = RabitTracker(n_workers=workers, host_ip="127.0.0.1", sortby="task")
        self._tracker.start()
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        for rank in range(workers):
            mine = {name: channels[name].read(rank, workers) for name in ("train", "validation")}
            pipe, other = context.Pipe()
            given = (rank, mine, dict(self._tracker.worker_args()), parameters, rounds, other)
            process = context.Process(target=hand_worker, args=given, daemon=True)
            process.start()
            os.setpriority(os.PRIO_PROCESS, process.pid or 0, niceness)
            self._pipes.append(pipe)
            self._processes.append(process)

    def start(self) -> None:
        """Waits until every process has built its matrices."""
        for pipe in self._pipes:
            _receive(pipe)

    def train(self, save_to: str) -> tuple[float, list[float]]:
        """Wall seconds of the trial, and its curve."""
        began = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(save_to)
        curves = [_receive(pipe) for pipe in self._pipes]
        return time.perf_counter() - began, curves[0]

    def close(self) -> None:
        """Ends the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(30)
        self._tracker.free()


def _receive(pipe: Any) -> Any:
    if not pipe.poll(ANSWER_SECONDS):
        raise RuntimeError(f"waited {ANSWER_SECONDS:.0f} s for a process that trains by hand; see its output")
    return pipe.recv()


def hand_worker(
    rank: int, tables: Mapping[str, Any], tracker: dict[str, Any], parameters: dict[str, Any], rounds: int, pipe: Any
) -> None:
    """One of the processes that train by hand: builds its matrices, joins, and trains whenever it is told to."""
    import xgboost
    from xgboost.collective import CommunicatorContext

    with CommunicatorContext(**tracker, dmlc_task_id=f"{rank:08d}"):
        train = xgboost.QuantileDMatrix(tables["train"].features, tables["train"].labels, nthread=1)
        # Not in bins: XGBoost predicts such rows faster.
        validation = xgboost.DMatrix(tables["validation"].features, tables["validation"].labels, nthread=1)
        pipe.send("built")
        while (save_to := pipe.recv()) is not None:
            curve: dict[str, dict[str, list[float]]] = {}
            booster = xgboost.train(
                parameters,
                train,
                num_boost_round=rounds,
                evals=[(validation, "validation")],
                evals_result=curve,
                verbose_eval=False,
            )
            if rank == 0:
                Path(save_to).write_bytes(booster.save_raw("ubj"))
            pipe.send(next(iter(curve["validation"].values())))
