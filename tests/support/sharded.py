"""A trainer whose two workers hold a half of the state each, and write it each for itself; and a job of it."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.own_code import Line
from trainers import checkpoint, steady
from trainers.channels import PlacedChannel
from trainers.checkpoint import UNKNOWN, File
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import WorkerContext, never
from trainers.patient_storage import PatientStorage

WORKERS = 2
ROWS = pandas.DataFrame({"y": [0, 1], "x": [1.0, 2.0]})


class Halves(Line):
    """Both workers are threads of the job's process, as simulated ones are."""

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        return Program()

    def load_model(self, checkpoint_: str) -> list[list[float]]:
        found = checkpoint.manifest_of(checkpoint_)
        return [json.loads(checkpoint.load(checkpoint_, found, part)) for part in found.parts]


class Program:
    """The workers' program: each worker adds to its half of the state, and the objective uses both halves."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        self.storage = context.storage
        return {}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        saved = assignment.saved_at(assignment.stop)
        with ThreadPoolExecutor(WORKERS) as workers:
            done = list(workers.map(lambda rank: self._half(assignment, rank, saved), range(WORKERS)))
        reports = []
        for step in range(assignment.start + 1, assignment.stop + 1):
            both = sum(half[step - 1] for half, _ in done)
            reports.append(Report(step=step, metrics={"validation:auc": both}))
            on_report(reports[-1])
        return Segment(
            reports=tuple(reports),
            checkpoint=saved,
            manifest=self.storage.seal(saved, [file for _, file in done]),
            training_seconds=0.0,
            checkpointing_seconds=0.0,
            first_step_at=steady.now(),
        )

    def _half(self, assignment: Assignment, rank: int, saved: str) -> tuple[list[float], File]:
        """One worker's: all values of its half so far, and the file that it wrote them to."""
        name, half = f"rank-{rank}.json", []
        if assignment.checkpoint:
            assert assignment.manifest != UNKNOWN
            half = json.loads(self.storage.read(assignment.checkpoint, assignment.manifest, name))
        assert len(half) == assignment.start
        for step in range(assignment.start + 1, assignment.stop + 1):
            half.append((half[-1] if half else 0.0) + float(assignment.hyperparameters["eta"]) / (step + rank))
        return half, self.storage.write_part(saved, name, json.dumps(half).encode())

    def close(self) -> None:
        pass


def tuner(folder: Path, place: str) -> HyperparameterTuner:
    """A job whose record is in a folder and whose checkpoints are at a place."""
    return HyperparameterTuner(
        Halves(scaling=ScalingConfig(num_workers=0)),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")),
        random_seed=1729,
        max_jobs=9,
        num_to_keep=2,
        storage_path=place,
        store=f"sqlite:///{folder}/record.db",
        console=Console(file=io.StringIO()),
    )


CHANNELS = {"train": ROWS, "validation": ROWS}


def main(folder: str, place: str) -> None:
    """Runs the job, and kills this process between the files and the manifest of a trial's second checkpoint."""
    seal = PatientStorage.seal
    begun: set[str] = set()

    def dies(storage: PatientStorage, uri: str, files: Iterable[File]) -> Any:
        trial = uri.partition("?")[0].split("/")[-2]
        if trial in begun:
            wait_for_record(Path(folder), trial)
            os.kill(os.getpid(), signal.SIGKILL)
        begun.add(trial)
        return seal(storage, uri, files)

    PatientStorage.seal = dies  # type: ignore[method-assign]
    tuner(Path(folder), place).fit(CHANNELS, job_name="job")


def wait_for_record(folder: Path, trial: str) -> None:
    """Waits until the record has a checkpoint of the trial."""
    deadline = time.monotonic() + 60.0
    with Store(f"sqlite:///{folder}/record.db") as store:
        while not any(row.trial_id == trial and row.checkpoint for row in store.trials("job")):
            assert time.monotonic() < deadline, f"waited 60 s for the record of {trial}"
            time.sleep(0.02)


if __name__ == "__main__":
    from tests.support import sharded  # The record names its classes by this module.

    sharded.main(sys.argv[1], sys.argv[2])
